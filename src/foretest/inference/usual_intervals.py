"""The usual intervals of an uplift: bootstrap percentiles, or the delta method.

PieceNCIS in an unevenly thinned log is the exception. A stratum may have a few dozen unrewarded rows left, each of
which stands for twenty displays. Its Σ m w̄ r/Σ m w̄ is a ratio of so few that the delta method, which takes it for
linear, finds an error that is too small, and resamples are on average to one side of it, as it is of what it estimates.
There the error is the jackknife's, and percentiles are moved back twice as far as resamples are from the estimate.
"""

from __future__ import annotations

from typing import NamedTuple

from foretest.aggregation.aggregates import Aggregates
from foretest.displays.batch import Floats
from foretest.estimators import Estimator, Sums
from foretest.inference.buckets import BucketSums
from foretest.inference.delta import std_error
from foretest.inference.jackknife import jackknife_error
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
    curved = estimator.stratified and aggregates.rows_worth < 0.5 * aggregates.rows
    error, absolute = _interval(
        aggregates, sums, total, resampled, absolute_uplift_of(estimator), relative=False, curved=curved
    )
    rel_error, relative = float("nan"), NO_UPLIFT
    if float(mean_reward(total)[0]):
        statistic = relative_uplift_of(estimator)
        rel_error, relative = _interval(aggregates, sums, total, resampled, statistic, relative=True, curved=curved)
    return UpliftIntervals(StdErrors(error, rel_error), absolute, relative)


def _interval(
    aggregates: Aggregates, sums: BucketSums, total: Sums, resampled: Sums | None, statistic: Statistic, *,
    relative: bool, curved: bool,
) -> tuple[float, Uplift]:  # fmt: skip
    """The standard error of a statistic, and its value with limits; `curved` where it is not taken for linear."""
    value, units = float(statistic(total)[0]), aggregates.n_units
    if curved:
        error = jackknife_error(sums, statistic, units)
    else:
        error = std_error(sums.influence(statistic), aggregates.displays, units)
    limits = limits_of(resampled, statistic, value, error, aggregates, relative=relative, centred=curved)
    return error, Uplift(value, limits)
