"""Limits of one statistic of the sums: percentiles of resamples, or limits by the delta method."""

from __future__ import annotations

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.displays.batch import Floats
from foretest.estimators import Sums
from foretest.files import finite_or_none
from foretest.inference.bootstrap import percentile_interval
from foretest.inference.buckets import NO_INTERVAL, BucketSums, Interval
from foretest.inference.delta import delta_interval, std_error
from foretest.inference.jackknife import without_bias
from foretest.inference.uplift import Statistic, mean_reward
from foretest.results.result import Control


def control_of(aggregates: Aggregates, metric: int, counts: Floats | None, fixed: float = 1.0) -> Control:
    """The mean reward and its interval; for `fixed` see `BucketSums`."""
    rows = aggregates.displays
    zero = np.zeros(len(aggregates.n))
    sums = BucketSums(
        {"rows": aggregates.n, "r": aggregates.r[metric], **dict.fromkeys(("n", "h", "hr", "hv", "v"), zero)}, 1.0,
        aggregates.plan.loggers, fixed,
    )  # fmt: skip
    if rows == 0:
        return Control(None, None, None, None)
    value = float(mean_reward(sums.total())[0])
    error = std_error(sums.influence(mean_reward), rows, aggregates.n_units)
    resampled = None if counts is None else sums.resampled(counts)
    limits = limits_of(resampled, mean_reward, value, error, aggregates)
    return Control(value, finite_or_none(error), finite_or_none(limits.lower), finite_or_none(limits.upper))


def limits_of(
    resampled: Sums | None,
    statistic: Statistic,
    value: float,
    error: float,
    aggregates: Aggregates,
    relative: bool = False,
    centred: bool = False,
) -> Interval:
    """Percentile limits of the resamples, or delta limits where there are none.

    Resamples without rows are left out; relative limits also leave out those without reward. `centred` takes out of
    percentiles, twice, how far resamples are on average from the value.
    """
    level = aggregates.plan.settings.analysis.confidence_level
    if aggregates.n_units < 2:  # resamples of one unit do not differ
        return NO_INTERVAL
    if resampled is None:
        return delta_interval(value, error, aggregates.n_units, level)
    exists = resampled.r != 0 if relative else resampled.rows > 0
    replicates = np.where(exists, statistic(resampled), np.nan)
    limits = percentile_interval(replicates, level)
    return without_bias(limits, replicates, value) if centred else limits
