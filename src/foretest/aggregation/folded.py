"""What a run takes from a log."""

from __future__ import annotations

from typing import NamedTuple

from foretest.aggregation.aggregates import Aggregates


class Folded(NamedTuple):
    """What a fold of a log gives: the sums, notes for the reader, and the largest possible reward of each metric."""

    aggregates: Aggregates
    notes: list[str]
    r_max: dict[str, float]  # by metric, where it is known
