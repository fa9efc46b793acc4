"""Aggregates in files: written, read back to the last bit, merged, and continued after a kill."""

from __future__ import annotations

from foretest.aggregation.flat import from_batch, to_batch
from foretest.storage.saved.files import write_aggregates

__all__ = ["from_batch", "to_batch", "write_aggregates"]
