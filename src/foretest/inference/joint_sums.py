"""The uplift of a metric that is a function of several others, as revenue per click: their values from the same rows.

With f the metric's function, R_1, R_2, … the control's values of the metrics that it is made of and V_1, V_2, … the
treatment's,

    control  f(R_1, R_2, …),   treatment  f(V_1, V_2, …),   relative uplift  f(V_1, V_2, …)/f(R_1, R_2, …) − 1

Each is a function of the sums of all those metrics; its error is that of the joint sums, by the complex step or by
resamples of buckets that they share. What the log does not support may change all of them: there is no band.
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
from foretest.inference.uplift import mean_reward, metric_value, too_large
from foretest.inference.uplift_estimate import NO_UPLIFT, StdErrors, Uplift
from foretest.inference.usual_intervals import UpliftIntervals
from foretest.records import dataclass
from foretest.results.result import Control
from foretest.settings.metric_kinds import Formula

JointStatistic = Callable[..., Any]  # of the sums of every metric that the formula takes


@dataclass(frozen=True)
class JointSums:
    """The sums of one estimator for every metric that a metric is made of."""

    formula: Formula
    sums: tuple[BucketSums, ...]
    estimators: tuple[Estimator, ...]  # with the bound that suits each metric
    counts: Floats | None  # resamples of buckets; None for the delta method

    def value(self, *sums: Sums) -> Any:
        """f(V_1, V_2, …)."""
        with too_large():
            return metric_value(self.formula, *self._values(sums))

    def control_value(self, *sums: Sums) -> Any:
        """f(R_1, R_2, …)."""
        with too_large():
            return metric_value(self.formula, *map(mean_reward, sums))

    def uplift(self, *sums: Sums) -> Any:
        """The absolute uplift."""
        return self.value(*sums) - self.control_value(*sums)

    def relative_uplift(self, *sums: Sums) -> Any:
        """The relative uplift."""
        with too_large():
            control = self.control_value(*sums)
            return (ratio(self.value(*sums), control) - 1.0) * np.where(np.real(control) < 0.0, -1.0, 1.0)

    def of_log(self, statistic: JointStatistic) -> float:
        """A statistic of the log itself."""
        return float(statistic(*(sums.total() for sums in self.sums))[0])

    def error(self, statistic: JointStatistic, aggregates: Aggregates) -> float:
        """The standard error of a statistic, by unit."""
        first, *others = self.sums
        influence = first.joint_influence(others, statistic)
        return std_error(influence, aggregates.displays, aggregates.n_units)

    def with_limits(self, statistic: JointStatistic, aggregates: Aggregates) -> tuple[float, Uplift]:
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

    def resampled(self, statistic: JointStatistic) -> Floats | None:
        """A statistic of every resample, NaN where there is none; None where nothing is resampled."""
        if self.counts is None:
            return None
        sums = [one.resampled(self.counts) for one in self.sums]
        exists = (sums[0].rows > 0) & (self._control_denominator(*sums) != 0.0)
        return np.where(exists, statistic(*sums), np.nan)

    def intervals(self, aggregates: Aggregates) -> UpliftIntervals:
        """Both uplifts with their errors and limits."""
        error, absolute = self.with_limits(self.uplift, aggregates)
        rel_error, relative = float("nan"), NO_UPLIFT
        if self.of_log(self.control_value):
            rel_error, relative = self.with_limits(self.relative_uplift, aggregates)
        return UpliftIntervals(StdErrors(error, rel_error), absolute, relative)

    def control(self, aggregates: Aggregates) -> Control:
        """The control's value with its interval."""
        error, (value, limits) = self.with_limits(self.control_value, aggregates)
        return Control(*(finite_or_none(number) for number in (value, error, limits.lower, limits.upper)))

    def may_divide_by_zero(self, aggregates: Aggregates) -> bool:
        """Does the interval of a denominator contain 0: the control's, or the treatment's?"""
        denominators = (self._control_denominator, self._denominator)
        limits = (self.with_limits(statistic, aggregates)[1].limits for statistic in denominators)
        return self.formula.divisor is not None and not all(map(_excludes_zero, limits))

    def _values(self, sums: tuple[Sums, ...]) -> list[Any]:
        """V_1, V_2, …"""
        return [estimator.value(one) for estimator, one in zip(self.estimators, sums, strict=True)]

    def _denominator(self, *sums: Sums) -> Any:
        with too_large():
            return self.formula.denominator(*self._values(sums))

    def _control_denominator(self, *sums: Sums) -> Any:
        return self.formula.denominator(*map(mean_reward, sums))


def _excludes_zero(limits: Interval) -> bool:
    return limits.lower > 0.0 or limits.upper < 0.0
