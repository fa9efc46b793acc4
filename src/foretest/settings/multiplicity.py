"""Columns of [log] that say how many displays a row stands for, as the fields of `LogColumns` declare them.

A row stands for the product of what they say. How a column is read is in `log/multiplicity_columns.py`.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

KEY = "multiplicity"  # in the metadata of a field


class Multiplicity(NamedTuple):
    """What such a column is, in words."""

    meaning: str  # of a number in it
    where: str  # which logs have one: "when the log was thinned"
    log: str  # such a log: "a thinned log"
    rows: str  # what it says of the rows: "rows were left out"


def multiplicity(text: str, *, meaning: str, where: str, log: str, rows: str) -> Any:
    """A field of [log] for a column that says how many displays each row stands for."""
    words = Multiplicity(meaning, where, log, rows)
    return dataclasses.field(default=None, metadata={"help": text, KEY: words})
