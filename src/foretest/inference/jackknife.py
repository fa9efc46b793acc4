"""Errors of a statistic that is far from linear in its sums: by leaving out each bucket of units (Tukey 1958)."""

from __future__ import annotations

import numpy as np

from foretest.displays.batch import Floats
from foretest.inference.buckets import BucketSums, Interval
from foretest.inference.uplift import Statistic


def jackknife_error(sums: BucketSums, statistic: Statistic, units: int) -> float:
    """se² = (C − 1)/C·Σ_j (θ_(−j) − mean)², θ_(−j) without bucket j; C buckets, or units where those are fewer.

    >>> halves = {name: np.array([0.0, 2.0, 4.0]) for name in ("rows", "r", "n", "h", "hr", "hv", "v")}
    >>> round(jackknife_error(BucketSums({**halves, "n": np.ones(3)}, 1.0), lambda s: s.r / s.n, 3), 9)
    1.154700538
    """
    buckets = len(sums.arrays["rows"])
    count = min(buckets, units)
    if count < 2:
        return float("nan")
    without = np.asarray(statistic(sums.without_each()), np.float64)
    # buckets without a unit leave the statistic as it is: the mean is over those that have one
    value = float(np.asarray(statistic(sums.total()))[0])
    apart = without - value
    mean = apart.sum() / count
    squares = float(np.square(apart - mean).sum()) - (buckets - count) * mean**2
    return float(np.sqrt((count - 1.0) / count * max(0.0, squares)))


def without_bias(limits: Interval, replicates: Floats, value: float) -> Interval:
    """Percentiles of resamples that are on average b above the value, which itself is b above what it estimates: both
    limits are 2b too high.

    >>> without_bias(Interval(1.0, 4.0), np.array([2.0, 3.0]), 2.0)
    Interval(lower=0.0, upper=3.0)
    """
    some = replicates[np.isfinite(replicates)]
    twice = 2.0 * (float(some.mean()) - value) if len(some) else 0.0
    return Interval(limits.lower - twice, limits.upper - twice)
