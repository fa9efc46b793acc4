"""Sums by bin of log w and bucket: they give CIS and NCIS at every cap of a path, without a loop over the log."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.aggregation.ledger import Account
from foretest.aggregation.quantities import (
    BIN_DISPLAYS,
    BIN_REWARDS,
    BIN_SQUARED_REWARDS,
    BIN_SQUARED_WEIGHTED_REWARDS,
    BIN_WEIGHTED_REWARDS,
    BIN_WEIGHTS,
    Quantity,
)
from foretest.displays.batch import Floats
from foretest.kernels.exponential import exponentials
from foretest.kernels.tallies import tally_bins
from foretest.records import dataclass

# quarter decades from 1e-3 to 1e25, the range of the paper's Figure 2
STEPS = 4
LOWEST, HIGHEST = -3, 25
CAPS = 10.0 ** (np.arange(LOWEST * STEPS, HIGHEST * STEPS + 1) / STEPS)
BINS = len(CAPS) + 1

_OF_ROWS = (BIN_DISPLAYS, BIN_WEIGHTS)
_OF_REWARDS = (BIN_REWARDS, BIN_WEIGHTED_REWARDS, BIN_SQUARED_REWARDS, BIN_SQUARED_WEIGHTED_REWARDS)


class BinRewards(NamedTuple):
    """Σr, Σwr, Σr² and Σ(wr)² of a metric, by bucket and bin."""

    r: Floats
    wr: Floats
    r2: Floats
    wr2: Floats


@dataclass
class WeightBins:
    """n, Σw of all rows and Σr, Σwr, Σr², Σ(wr)² of each metric, by bucket and bin (bucket-major), in an account.

    Bin 0 has the rows with w < CAPS[0], bin j those with CAPS[j−1] ≤ w < CAPS[j], the last those with w ≥ 1e25, whose w
    is never needed: no cap of the path is above it.
    """

    account: Account
    buckets: int

    def open(self, metrics: int) -> None:
        """The sums of no rows."""
        for quantity in _OF_ROWS:
            self._sums(quantity)
        for metric in range(metrics):
            for quantity in _OF_REWARDS:
                self._sums(quantity, metric)

    def _sums(self, quantity: Quantity, metric: int | None = None) -> Floats:
        return self.account.array(quantity, self.buckets * BINS, metric)

    @property
    def n(self) -> Floats:
        """Displays, by bucket and bin."""
        return self._sums(BIN_DISPLAYS)

    @property
    def w(self) -> Floats:
        """Σ w, by bucket and bin."""
        return self._sums(BIN_WEIGHTS)

    def rewards(self, metric: int) -> BinRewards:
        """The sums of a metric's rewards."""
        return BinRewards(*(self._sums(quantity, metric) for quantity in _OF_REWARDS))

    def add(self, log_w: Floats, bucket: npt.NDArray[np.int64], displays_per_row: Floats) -> None:
        """Count all rows, and their weights."""
        self._tally(log_w, bucket, displays_per_row, _weights(log_w) * displays_per_row, self.n, self.w)

    def add_rewarded(self, log_w: Floats, bucket: npt.NDArray[np.int64], rewards: Floats) -> None:
        """Add the rewards of rows that have one."""
        w = _weights(log_w)
        for metric, column in enumerate(rewards.T):
            r, sums = np.ascontiguousarray(column), self.rewards(metric)
            self._tally(log_w, bucket, r, w * r, sums.r, sums.wr)
            self._tally(log_w, bucket, r * r, (w * r) ** 2, sums.r2, sums.wr2)

    @staticmethod
    def _tally(
        log_w: Floats, bucket: npt.NDArray[np.int64], first: Floats, second: Floats, firsts: Floats, seconds: Floats
    ) -> None:
        tally_bins(log_w, bucket, first, second, STEPS / np.log(10.0), LOWEST * STEPS, BINS, firsts, seconds)

    def capped_sums(self, metric: int) -> tuple[Floats, Floats]:
        """Σ w̄ and Σ w̄ r by bucket (rows) and cap of the path (columns), under max capping."""
        sums, shape = self.rewards(metric), (self.buckets, BINS)
        return self.capped_weights(), _at_caps(sums.wr.reshape(shape), sums.r.reshape(shape))

    def capped_weights(self) -> Floats:
        """Σ w̄ by bucket (rows) and cap of the path (columns), under max capping."""
        shape = (self.buckets, BINS)
        return _at_caps(self.w.reshape(shape), self.n.reshape(shape))


def _at_caps(below: Floats, above: Floats) -> Floats:
    """Σ min(w, c)·x at every cap c, from Σ w x (`below`) and Σ x (`above`) by bin of log w."""
    some = np.flatnonzero(below.any(axis=1) | above.any(axis=1))  # of a small log most buckets are empty
    uncapped = np.cumsum(below[some], axis=1)[:, :-1]
    # added from the top: a difference of sums would leave rounding, and a cap of 1e25 would blow it up
    capped = np.cumsum(above[some, ::-1], axis=1)[:, ::-1][:, 1:]
    sums = np.zeros((len(below), len(CAPS)))
    sums[some] = uncapped + CAPS * capped
    return sums


def _weights(log_w: Floats) -> Floats:
    """w, at most 1e25."""
    return np.asarray(exponentials(np.minimum(log_w, np.log(CAPS[-1])), 0.0))
