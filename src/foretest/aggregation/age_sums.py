"""How old rewards were when they came, as counts by age: what is needed to see how many are still to come.

Ages are in bins whose upper ends are 32 to a decade, from a second to 32 years: a bin is 7 % wide. A display with a
reward counts in the bin of its reward's age, one without in the bin of its own age when the log was read. Counts add
up, also of logs that were read at different times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats
from foretest.displays.durations import SECOND
from foretest.log.rows import Rows
from foretest.records import dataclass
from foretest.settings.late_rewards import read_at_of, reward_columns
from foretest.settings.settings import Settings

#: the upper ends of the bins, in seconds; ages above the last are in a bin of their own
EDGES: Floats = 10.0 ** (np.arange(0, 9 * 32 + 1) / 32.0)


@dataclass
class AgeSums:
    """Counts of displays by age and metric (of a thinned log Σ 1/keep), and of the rows that a window left out."""

    rewarded: Floats  # metrics × bins, by the age of the reward; empty where there is a window
    waiting: Floats  # metrics × bins, displays without a reward by their age
    left_out: Floats  # one number: rows of displays younger than the window
    late: Floats  # by metric, rewards that came after the window
    read_at: Floats  # first and last time that a log was read, in microseconds

    @classmethod
    def empty(cls, metrics: int, read_at: int, *, has_window: bool) -> AgeSums:
        """The counts of no rows of a log that was read at this time."""
        shape = (metrics, 0 if has_window else len(EDGES) + 1)
        return cls(
            np.zeros(shape), np.zeros(shape), np.zeros(1), np.zeros(metrics), np.array([read_at, read_at], np.float64)
        )

    def add(self, rows: Rows) -> None:
        """Count the rows of a batch."""
        ages = rows.ages
        if ages is None:
            return
        self.left_out += ages.left_out
        if ages.display is None:
            self.late += ages.late
            return
        own, displays = age_bins(ages.display), rows.displays_per_row
        for m in range(len(self.rewarded)):
            has_reward = ages.rewarded[:, m]
            self.rewarded[m] += _counts(age_bins(ages.reward[has_reward, m]), displays[has_reward])
            self.waiting[m] += _counts(own[~has_reward], displays[~has_reward])

    @classmethod
    def total(cls, parts: Sequence[AgeSums]) -> AgeSums:
        """The counts of all parts."""
        first, read = parts[0], [part.read_at for part in parts]
        sums = {name: sum((getattr(part, name) for part in parts[1:]), getattr(first, name)) for name in _ADDED}
        return cls(**sums, read_at=np.array([min(times[0] for times in read), max(times[1] for times in read)]))


_ADDED = ("rewarded", "waiting", "left_out", "late")


def age_bins(ages: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The bin of each age, in microseconds: the first whose upper end is not below it."""
    return np.asarray(np.searchsorted(EDGES, ages / SECOND, side="left"))


def _counts(bins: npt.NDArray[np.int64], displays: Floats) -> Floats:
    return np.asarray(np.bincount(bins, weights=displays, minlength=len(EDGES) + 1), np.float64)


def no_ages(settings: Settings) -> AgeSums | None:
    """Counts before the first row; None where the log does not say when rewards came, or nobody when it was read."""
    read_at = read_at_of(settings.log)
    if read_at is None or not reward_columns(settings.log):
        return None
    return AgeSums.empty(len(settings.log.rewards), read_at, has_window=settings.analysis.window is not None)
