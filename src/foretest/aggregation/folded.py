"""What a run takes from a log."""

from __future__ import annotations

from typing import NamedTuple

from foretest.aggregation.aggregates import Aggregates, aggregates_summary
from foretest.formatting import plural


class Folded(NamedTuple):
    """What a fold of a log gives: the sums, notes for the reader, and the largest possible reward of each metric."""

    aggregates: Aggregates
    notes: list[str]
    r_max: dict[str, float]  # by metric, where it is known

    def __repr__(self) -> str:
        notes = f"; {plural(len(self.notes), 'note')}" if self.notes else ""
        bounds = "".join(f"; r_max of {name} {bound:g}" for name, bound in list(self.r_max.items())[:4])
        return f"<Folded {aggregates_summary(self.aggregates)}{notes}{bounds}>"
