"""Specifications as files: name.vl.json, name.svg and name.png."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write_pictures(folder: str | Path, figures: dict[str, dict[str, Any]]) -> list[Path]:
    """Write every figure in three forms, all of them or none."""
    raise NotImplementedError
