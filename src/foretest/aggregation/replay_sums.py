"""How many rows show what follows from the service's seed and their ids, counted over every row of a log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.merging import by, smallest
from foretest.displays.ragged import plain
from foretest.log.rows import Rows
from foretest.policies.replay import replays
from foretest.records import dataclass
from foretest.settings.replay import Replay, replays_of
from foretest.settings.settings import Settings


class RowPlace(NamedTuple):
    """A row of a log: its position, and its id as JSON."""

    position: int
    id: str


@dataclass
class ReplaySums:
    """Counts of rows that were drawn again, and the first of those that show something else."""

    rows: int = 0
    differ: int = 0
    first: RowPlace | None = field(default=None, metadata=by(smallest))  # of the rows that differ

    def __post_init__(self) -> None:
        self.first = None if self.first is None else RowPlace(*self.first)  # from a file it comes as a tuple

    def add(self, rows: Rows, controls: Sequence[Replay], logger: npt.NDArray[np.int64]) -> None:
        """Draw the rankings of a batch again, and count; `logger` has the number of each row's."""
        for control in controls:
            at = np.flatnonzero(logger == control.logger)
            if len(at):
                displays = rows.displays if len(at) == len(rows) else rows.displays.take(at)
                other = at[~replays(control.policy, displays, control.seed)]
                self.rows += len(at)
                self.differ += len(other)
                self.first = smallest([self.first, _first(rows, other)])


def _first(rows: Rows, other: np.ndarray[tuple[int], np.dtype[np.int64]]) -> RowPlace | None:
    """The first of some rows of a batch; None of none."""
    if not len(other):
        return None
    assert rows.ids is not None
    at = int(other[np.argmin(rows.ids.positions[other])])
    id_text = json.dumps(plain(rows.ids.values)[at].as_py(), ensure_ascii=False)
    return RowPlace(int(rows.ids.positions[at]), id_text)


def no_replay(settings: Settings) -> ReplaySums | None:
    """Counts before the first row; None where no log is to be replayed."""
    return ReplaySums() if replays_of(settings.control) else None
