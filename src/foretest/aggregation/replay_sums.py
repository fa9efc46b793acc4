"""How many rows show what follows from the service's seed and their ids, counted over every row of a log."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from foretest.displays.ragged import plain
from foretest.log.rows import Rows
from foretest.policies.replay import replays
from foretest.records import dataclass
from foretest.settings.replay import Replay, replays_of
from foretest.settings.settings import Settings


@dataclass
class ReplaySums:
    """Counts of rows that were drawn again, and the first of those that show something else."""

    rows: int = 0
    differ: int = 0
    first_position: int = -1  # in the log, of the first row that differs; −1 where none does
    first_id: str = ""  # of that row, as JSON

    def add(self, rows: Rows, controls: Sequence[Replay], logger: npt.NDArray[np.int64]) -> None:
        """Draw the rankings of a batch again, and count; `logger` has the number of each row's."""
        for control in controls:
            at = np.flatnonzero(logger == control.logger)
            if len(at):
                displays = rows.displays if len(at) == len(rows) else rows.displays.take(at)
                other = at[~replays(control.policy, displays, control.seed)]
                self._count(len(at), len(other), *_first(rows, other))

    def _count(self, rows: int, differ: int, first_position: int, first_id: str) -> None:
        """Add counts, and keep the earlier of two first rows."""
        self.rows += rows
        self.differ += differ
        mine = self.first_position, self.first_id
        theirs = first_position, first_id
        if first_position >= 0 and (self.first_position < 0 or theirs < mine):
            self.first_position, self.first_id = theirs

    @classmethod
    def total(cls, parts: Sequence[ReplaySums]) -> ReplaySums:
        """The counts of all parts."""
        whole = cls()
        for part in parts:
            whole._count(part.rows, part.differ, part.first_position, part.first_id)
        return whole


def _first(rows: Rows, other: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[int, str]:
    """The position and the id of the first of some rows of a batch."""
    if not len(other):
        return -1, ""
    assert rows.ids is not None
    at = int(other[np.argmin(rows.ids.positions[other])])
    return int(rows.ids.positions[at]), json.dumps(plain(rows.ids.values)[at].as_py(), ensure_ascii=False)


def no_replay(settings: Settings) -> ReplaySums | None:
    """Counts before the first row; None where no log is to be replayed."""
    return ReplaySums() if replays_of(settings.control) else None
