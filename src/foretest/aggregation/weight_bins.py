"""Sums by bin of log w and bucket: they give CIS and NCIS at every cap of a path, without a loop over the log."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats
from foretest.kernels.exponential import exponentials
from foretest.kernels.tallies import tally_bins
from foretest.log.rows import times
from foretest.records import dataclass

# quarter decades from 1e-3 to 1e25, the range of the paper's Figure 2
STEPS = 4
LOWEST, HIGHEST = -3, 25
CAPS = 10.0 ** (np.arange(LOWEST * STEPS, HIGHEST * STEPS + 1) / STEPS)
BINS = len(CAPS) + 1


@dataclass
class WeightBins:
    """n, Σw of all rows and Σr, Σwr, Σr², Σ(wr)² of each metric, by bucket and bin (bucket-major).

    Bin 0 has the rows with w < CAPS[0], bin j those with CAPS[j−1] ≤ w < CAPS[j], the last those with w ≥ 1e25, whose w
    is never needed: no cap of the path is above it.
    """

    buckets: int
    metrics: int
    n: Floats
    w: Floats
    by_metric: Floats  # metric, (r, wr, r², (wr)²), bucket × bin

    @classmethod
    def empty(cls, buckets: int, metrics: int) -> WeightBins:
        """The sums of no rows."""
        size = buckets * BINS
        return cls(buckets, metrics, np.zeros(size), np.zeros(size), np.zeros((metrics, 4, size)))

    def add(self, log_w: Floats, bucket: npt.NDArray[np.int64], multiple: Floats | None = None) -> None:
        """Count all rows, and their weights; `multiple` is how many displays each stands for."""
        count = np.ones(len(log_w)) if multiple is None else multiple
        self._tally(log_w, bucket, count, times(_weights(log_w), multiple), self.n, self.w)

    def add_rewarded(self, log_w: Floats, bucket: npt.NDArray[np.int64], rewards: Floats) -> None:
        """Add the rewards of rows that have one."""
        w = _weights(log_w)
        for metric in range(self.metrics):
            r = np.ascontiguousarray(rewards[:, metric])
            sums = self.by_metric[metric]
            self._tally(log_w, bucket, r, w * r, sums[0], sums[1])
            self._tally(log_w, bucket, r * r, (w * r) ** 2, sums[2], sums[3])

    @staticmethod
    def _tally(
        log_w: Floats, bucket: npt.NDArray[np.int64], first: Floats, second: Floats, firsts: Floats, seconds: Floats
    ) -> None:
        tally_bins(log_w, bucket, first, second, STEPS / np.log(10.0), LOWEST * STEPS, BINS, firsts, seconds)

    def __add__(self, other: WeightBins) -> WeightBins:
        return WeightBins.total([self, other])

    @classmethod
    def total(cls, parts: Sequence[WeightBins]) -> WeightBins:
        """The sums of all parts."""
        total = cls.empty(parts[0].buckets, parts[0].metrics)
        for part in parts:
            total.n += part.n
            total.w += part.w
            total.by_metric += part.by_metric
        return total

    def capped_sums(self, metric: int) -> tuple[Floats, Floats]:
        """Σ w̄ and Σ w̄ r by bucket (rows) and cap of the path (columns), under max capping."""
        r, wr = (self.by_metric[metric, which].reshape(self.buckets, BINS) for which in (0, 1))
        return self.capped_weights(), _at_caps(wr, r)

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
