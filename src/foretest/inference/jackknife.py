"""Errors of a statistic that is far from linear in its sums: by leaving out each bucket of units (Tukey 1958)."""

from __future__ import annotations

import numpy as np

from foretest.displays.batch import Floats
from foretest.inference.buckets import BucketSums, Interval
from foretest.inference.delta import std_error
from foretest.inference.uplift import Statistic


def jackknife_error(sums: BucketSums, statistic: Statistic, units: int) -> float:
    """se² = (C − 1)/C·Σ_j (θ_(−j) − mean)², θ_(−j) without bucket j, of the C buckets that have a unit.

    That is the error of terms (C − 1)·(θ_(−j) − mean) by the formula of the delta method, which takes numbers of any
    size.

    >>> arrays = {name: np.ones(3) for name in ("rows", "n", "h", "hr", "hv", "v")}
    >>> round(jackknife_error(BucketSums({**arrays, "r": np.array([0.0, 2.0, 4.0])}, 1.0), lambda s: s.r / s.n, 3), 9)
    1.154700538
    """
    without = np.asarray(statistic(sums.without_each()))[sums.arrays["rows"] > 0.0]
    count = len(without)
    return std_error((count - 1.0) * (without - without.mean()), count, units) if count else float("nan")


def without_bias(limits: Interval, replicates: Floats, value: float) -> Interval:
    """Percentiles of resamples that are on average b above the value, which itself is b above what it estimates: both
    limits are 2b too high.

    >>> without_bias(Interval(1.0, 4.0), np.array([2.0, 3.0]), 2.0)
    Interval(lower=0.0, upper=3.0)
    """
    some = replicates[np.isfinite(replicates)]
    twice = 2.0 * (float(some.mean()) - value) if len(some) else 0.0
    return Interval(limits.lower - twice, limits.upper - twice)
