"""The covariate of one arm: sums by bucket of units, co-moments with the rewards, and the value of each unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.displays.batch import Floats, Hashes
from foretest.displays.merging import by
from foretest.kernels.random import derived_bucket
from foretest.online.unit_values import UnitValues
from foretest.records import dataclass


class CoMoments(NamedTuple):
    """Count, means, Σ(x − x̄)² and Σ(x − x̄)(r − r̄) of rows; added up as Chan, Golub and LeVeque (1983) do, so that a
    covariate far from 0 loses no digits."""

    rows: int
    x: float
    r: Floats  # by metric
    xx: float
    xr: Floats  # by metric

    @classmethod
    def of(cls, x: Floats, rewards: Floats) -> CoMoments:
        """Of the rows of a batch; `rewards` has a column for each metric."""
        metrics = rewards.shape[1]
        if not len(x):
            return cls(0, 0.0, np.zeros(metrics), 0.0, np.zeros(metrics))
        mean, means = float(x.mean()), rewards.mean(axis=0)
        centred = x - mean
        return cls(len(x), mean, means, float(centred @ centred), centred @ (rewards - means))

    def plus(self, other: CoMoments) -> CoMoments:
        """Of the rows of both."""
        rows = self.rows + other.rows
        if not rows:
            return self
        dx, dr, share = other.x - self.x, other.r - self.r, other.rows / rows
        return CoMoments(
            rows,
            self.x + dx * share,
            self.r + dr * share,
            self.xx + other.xx + dx * dx * self.rows * share,
            self.xr + other.xr + dx * dr * self.rows * share,
        )


class BucketSums(NamedTuple):
    """Σx and the number of units, by bucket; where every row is a unit, Σ m x and Σ m."""

    x: Floats
    units: Floats

    @property
    def mean(self) -> float:
        """The mean of the covariate over units."""
        return float(self.x.sum() / self.units.sum())


def _of_all_rows(parts: Sequence[CoMoments]) -> CoMoments:
    return reduce(CoMoments.plus, parts)


@dataclass
class CovariateSums:
    """What an arm knows of its covariate.

    Rows that are units are summed up as they come. Else a unit counts once, however many rows it has: its value is
    kept by unit, within bounded memory, and summed up when it is asked for.
    """

    sums: BucketSums  # empty where units have several rows
    moments: CoMoments = field(metadata=by(_of_all_rows))
    units: UnitValues | None  # None: every row is a unit

    def __post_init__(self) -> None:
        self._of_units: BucketSums | None = None  # the units' values, once they were summed up

    @classmethod
    def empty(cls, metrics: int, buckets: int, row_is_unit: bool) -> CovariateSums:
        """Of no rows."""
        return cls(
            BucketSums(np.zeros(buckets), np.zeros(buckets)),
            CoMoments.of(np.empty(0), np.empty((0, metrics))),
            None if row_is_unit else UnitValues(),
        )

    def add(
        self, x: Floats, rewards: Floats, unit: Hashes, bucket: npt.NDArray[np.int64], displays_per_row: Floats
    ) -> None:
        """Add the rows of a batch."""
        self.moments = self.moments.plus(CoMoments.of(x, rewards))
        if self.units is not None:
            self.units.add(unit, x)
            self._of_units = None
            return
        buckets = len(self.sums.x)
        self.sums.x[:] += np.bincount(bucket, weights=x * displays_per_row, minlength=buckets)
        self.sums.units[:] += np.bincount(bucket, weights=displays_per_row, minlength=buckets)

    def by_bucket(self) -> BucketSums:
        """Σx and the number of units that have one, by bucket of units."""
        if self.units is None:
            return self.sums
        if self._of_units is None:
            buckets, ranges = len(self.sums.x), self.units.ranges()
            bucket = derived_bucket(ranges.units, BUCKET_SALT, buckets)
            self._of_units = BucketSums(
                *(
                    np.bincount(bucket, weights=weights, minlength=buckets).astype(np.float64)
                    for weights in (ranges.lowest, None)
                )
            )
        return self._of_units

    @property
    def share(self) -> float:
        """The share of units whose value is in the sums."""
        return 1.0 if self.units is None else self.units.share
