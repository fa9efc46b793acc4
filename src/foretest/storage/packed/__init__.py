"""Packed logs: the rows with a reward in a separate file, with the sums of all rows."""

from __future__ import annotations

from foretest.storage.packed.reading import PackedLog, packed_logs
from foretest.storage.packed.writing import pack

__all__ = ["PackedLog", "pack", "packed_logs"]
