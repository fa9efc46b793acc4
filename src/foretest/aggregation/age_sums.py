"""How old rewards were when they came, as counts by age: what is needed to see how many are still to come.

Ages are in bins whose upper ends are 32 to a decade, from a second to 32 years: a bin is 7 % wide. A display with a
reward counts in the bin of its reward's age, one without in the bin of its own age when the log was read. Counts add
up, also of logs that were read at different times.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.aggregation.ledger import Account
from foretest.aggregation.quantities import (
    AGES_OF_REWARDS,
    AGES_OF_WAITING,
    FIRST_READ,
    LAST_READ,
    LATE_REWARDS,
    LEFT_OUT_OF_WINDOW,
)
from foretest.displays.batch import Floats
from foretest.displays.durations import SECOND
from foretest.log.rows import Rows
from foretest.records import dataclass
from foretest.settings.late_rewards import read_at_of, reward_columns
from foretest.settings.settings import Settings

#: the upper ends of the bins, in seconds; ages above the last are in a bin of their own
EDGES: Floats = 10.0 ** (np.arange(0, 9 * 32 + 1) / 32.0)


@dataclass(frozen=True)
class AgeSums:
    """Counts of displays by age and metric (of a thinned log Σ 1/keep), and of the rows that a window left out, in an
    account."""

    account: Account

    @classmethod
    def of(cls, account: Account) -> AgeSums | None:
        """The counts of an account; None where it has none."""
        return cls(account) if account.has(LAST_READ) else None

    def open(self, metrics: int, read_at: int, *, has_window: bool) -> None:
        """The counts of no rows of a log that was read at this time."""
        shape = (metrics, 0 if has_window else len(EDGES) + 1)
        self.account.put(AGES_OF_REWARDS, np.zeros(shape))
        self.account.put(AGES_OF_WAITING, np.zeros(shape))
        self.account.put(LEFT_OUT_OF_WINDOW, 0.0)
        self.account.put(LATE_REWARDS, np.zeros(metrics))
        for quantity in (FIRST_READ, LAST_READ):
            self.account.put(quantity, float(read_at))

    @property
    def rewarded(self) -> Floats:
        """Metrics × bins, by the age of the reward; empty where there is a window."""
        return self.account.get(AGES_OF_REWARDS)

    @property
    def waiting(self) -> Floats:
        """Metrics × bins, displays without a reward by their age."""
        return self.account.get(AGES_OF_WAITING)

    @property
    def left_out(self) -> int:
        """Rows of displays younger than the window."""
        return int(self.account.total(LEFT_OUT_OF_WINDOW))

    @property
    def late(self) -> Floats:
        """By metric, rewards that came after the window."""
        return self.account.get(LATE_REWARDS)

    @property
    def read_at(self) -> tuple[float, float]:
        """The first and the last time that a log was read, in microseconds."""
        return self.account.total(FIRST_READ), self.account.total(LAST_READ)

    def add(self, rows: Rows) -> None:
        """Count the rows of a batch."""
        ages = rows.ages
        if ages is None:
            return
        self.account.put(LEFT_OUT_OF_WINDOW, ages.left_out)
        if ages.display is None:
            self.account.put(LATE_REWARDS, ages.late)
            return
        shown, m = age_bins(ages.display), rows.displays_per_row
        for metric, has_reward in enumerate(ages.rewarded.T):
            self.rewarded[metric] += _counts(age_bins(ages.reward[has_reward, metric]), m[has_reward])
            self.waiting[metric] += _counts(shown[~has_reward], m[~has_reward])


def age_bins(ages: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The bin of each age, in microseconds: the first whose upper end is not below it."""
    return np.asarray(np.searchsorted(EDGES, ages / SECOND, side="left"))


def _counts(bins: npt.NDArray[np.int64], displays: Floats) -> Floats:
    return np.asarray(np.bincount(bins, weights=displays, minlength=len(EDGES) + 1), np.float64)


def open_ages(account: Account, settings: Settings) -> None:
    """Counts before the first row, where the log says when rewards came, and somebody when it was read."""
    read_at = read_at_of(settings.log)
    if read_at is None or not reward_columns(settings.log):
        return
    AgeSums(account).open(len(settings.log.rewards), read_at, has_window=settings.analysis.window is not None)
