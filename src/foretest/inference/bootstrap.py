"""The bootstrap over buckets of units: percentile limits, everything resampled together."""

from __future__ import annotations

import numpy as np

from foretest.displays.batch import Floats
from foretest.inference.buckets import NO_INTERVAL, Interval
from foretest.inference.quantiles import quantiles


def resample_counts(buckets: int, n_resamples: int, seed: int) -> Floats:
    """counts[b, j]: how often bucket j is in resample b; multinomial over all buckets, empty ones included."""
    generator = np.random.Generator(np.random.Philox(seed))
    counts = np.empty((n_resamples, buckets))
    for b in range(n_resamples):
        counts[b] = np.bincount(generator.integers(0, buckets, buckets), minlength=buckets)
    return counts


def percentile_interval(replicates: Floats, level: float) -> Interval:
    """Quantiles (linear) of the replicates that are finite."""
    some = replicates[np.isfinite(replicates)]
    if not len(some):
        return NO_INTERVAL
    lower, upper = quantiles(some, [0.5 - level / 2.0, 0.5 + level / 2.0])
    return Interval(float(lower), float(upper))
