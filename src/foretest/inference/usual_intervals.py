"""The usual intervals of an uplift: bootstrap percentiles, or the delta method."""

from __future__ import annotations

from typing import NamedTuple

from foretest.aggregation.aggregates import Aggregates
from foretest.displays.batch import Floats
from foretest.estimators import Estimator, Sums
from foretest.inference.buckets import BucketSums
from foretest.inference.delta import std_error
from foretest.inference.limits import limits_of
from foretest.inference.uplift import Statistic, absolute_uplift_of, mean_reward, relative_uplift_of
from foretest.inference.uplift_estimate import NO_UPLIFT, StdErrors, Uplift


class UpliftIntervals(NamedTuple):
    """An estimator's uplift, absolute and relative, each with its limits."""

    errors: StdErrors
    absolute: Uplift
    relative: Uplift  # none where the control earned nothing


def usual_intervals(
    aggregates: Aggregates, estimator: Estimator, sums: BucketSums, counts: Floats | None
) -> UpliftIntervals:
    """Percentiles of the resamples `counts`, or delta limits where there are none."""
    total, resampled = sums.total(), None if counts is None else sums.resampled(counts)
    error, absolute = _interval(aggregates, sums, total, resampled, absolute_uplift_of(estimator), relative=False)
    rel_error, relative = float("nan"), NO_UPLIFT
    if float(mean_reward(total)[0]):
        statistic = relative_uplift_of(estimator)
        rel_error, relative = _interval(aggregates, sums, total, resampled, statistic, relative=True)
    return UpliftIntervals(StdErrors(error, rel_error), absolute, relative)


def _interval(
    aggregates: Aggregates, sums: BucketSums, total: Sums, resampled: Sums | None, statistic: Statistic, *,
    relative: bool,
) -> tuple[float, Uplift]:  # fmt: skip
    """The standard error of a statistic, and its value with limits."""
    value = float(statistic(total)[0])
    error = std_error(sums.influence(statistic), aggregates.displays, aggregates.n_units)
    return error, Uplift(value, limits_of(resampled, statistic, value, error, aggregates, relative=relative))
