"""The uplift of a ratio of two metrics, as revenue per click: both metrics' values from the same rows.

    control  R_A/R_B,   treatment  V_A/V_B,   relative uplift  (V_A/V_B)/(R_A/R_B) − 1

Each is a function of the sums of both metrics; its error is that of the joint sums, by the complex step or by resamples
of buckets that both metrics share. What the log does not support may change both, so that a ratio has no band.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.displays.batch import Floats
from foretest.estimators import Estimator, Sums
from foretest.estimators.base import ratio
from foretest.files import finite_or_none
from foretest.inference.bootstrap import percentile_interval
from foretest.inference.buckets import NO_INTERVAL, BucketSums, Interval
from foretest.inference.delta import delta_interval, std_error
from foretest.inference.uplift import mean_reward, too_large
from foretest.inference.uplift_estimate import NO_UPLIFT, StdErrors, Uplift
from foretest.inference.usual_intervals import UpliftIntervals
from foretest.records import dataclass
from foretest.results.result import Control

PairStatistic = Callable[[Sums, Sums], Any]  # of the sums of both metrics


@dataclass(frozen=True)
class RatioSums:
    """The sums of one estimator for both metrics of a ratio."""

    above: BucketSums
    below: BucketSums
    above_estimator: Estimator  # with the bound that suits each metric
    below_estimator: Estimator
    counts: Floats | None  # resamples of buckets; None for the delta method

    def value(self, above: Sums, below: Sums) -> Any:
        """V_A/V_B."""
        with too_large():
            return ratio(self.above_estimator.value(above), self.below_estimator.value(below))

    def uplift(self, above: Sums, below: Sums) -> Any:
        """The absolute uplift."""
        return self.value(above, below) - control_ratio(above, below)

    def relative_uplift(self, above: Sums, below: Sums) -> Any:
        """The relative uplift."""
        with too_large():
            control = control_ratio(above, below)
            return (ratio(self.value(above, below), control) - 1.0) * np.where(np.real(control) < 0.0, -1.0, 1.0)

    def of_log(self, statistic: PairStatistic) -> float:
        """A statistic of the log itself."""
        return float(statistic(self.above.total(), self.below.total())[0])

    def error(self, statistic: PairStatistic, aggregates: Aggregates) -> float:
        """The standard error of a statistic, by unit."""
        influence = self.above.joint_influence(self.below, statistic)
        return std_error(influence, aggregates.displays, aggregates.n_units)

    def with_limits(self, statistic: PairStatistic, aggregates: Aggregates) -> tuple[float, Uplift]:
        """The standard error of a statistic, and its value with limits."""
        value, error = self.of_log(statistic), self.error(statistic, aggregates)
        level = aggregates.plan.settings.analysis.confidence_level
        if aggregates.n_units < 2:
            limits = NO_INTERVAL
        else:
            resampled = self.resampled(statistic)
            limits = (
                delta_interval(value, error, aggregates.n_units, level)
                if resampled is None
                else percentile_interval(resampled, level)
            )
        return error, Uplift(value, limits)

    def resampled(self, statistic: PairStatistic) -> Floats | None:
        """A statistic of every resample, NaN where there is none; None where nothing is resampled."""
        if self.counts is None:
            return None
        above, below = (sums.resampled(self.counts) for sums in (self.above, self.below))
        exists = (above.rows > 0) & (np.asarray(below.r) != 0.0)
        return np.where(exists, statistic(above, below), np.nan)

    def intervals(self, aggregates: Aggregates) -> UpliftIntervals:
        """Both uplifts with their errors and limits."""
        error, absolute = self.with_limits(self.uplift, aggregates)
        rel_error, relative = float("nan"), NO_UPLIFT
        if self.of_log(control_ratio):
            rel_error, relative = self.with_limits(self.relative_uplift, aggregates)
        return UpliftIntervals(StdErrors(error, rel_error), absolute, relative)

    def control(self, aggregates: Aggregates) -> Control:
        """The control's ratio with its interval."""
        error, (value, limits) = self.with_limits(control_ratio, aggregates)
        return Control(*(finite_or_none(number) for number in (value, error, limits.lower, limits.upper)))

    def may_divide_by_zero(self, aggregates: Aggregates) -> bool:
        """Does the interval of a denominator contain 0: the control's, or the treatment's?"""

        def treatment(_: Sums, below: Sums) -> Any:
            with too_large():
                return self.below_estimator.value(below)

        return any(
            not _excludes_zero(self.with_limits(statistic, aggregates)[1].limits)
            for statistic in (lambda _, below: mean_reward(below), treatment)
        )


def control_ratio(above: Sums, below: Sums) -> Any:
    """R_A/R_B."""
    with too_large():
        return ratio(mean_reward(above), mean_reward(below))


def _excludes_zero(limits: Interval) -> bool:
    return limits.lower > 0.0 or limits.upper < 0.0
