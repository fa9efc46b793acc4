"""Several treatments of one log, compared: each on its own, then all as one family of questions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.displays.batch import Floats
from foretest.estimators import Estimator
from foretest.files import finite_or_none, nan_if_none
from foretest.inference.bernstein import bernstein_interval
from foretest.inference.betting import betting_interval
from foretest.inference.bound_choice import at_chosen_bound
from foretest.inference.buckets import NO_INTERVAL, Interval, bucket_sums
from foretest.inference.delta import std_error
from foretest.inference.multiple_testing import holm, normal_quantile, resampled_quantile, two_sided_p
from foretest.inference.predicted_noise import error_of, inflation
from foretest.inference.uplift import Statistic, absolute_uplift_of, mean_reward, relative_uplift_of
from foretest.inference.uplift_range import with_adjusted
from foretest.inference.verdict import decide
from foretest.records import dataclass
from foretest.results.result import Adjusted, Estimate, Metric
from foretest.settings.analysis import BOUNDED, Analysis
from foretest.settings.metric_roles import DECREASE, GOAL

NAN = float("nan")

Metrics = dict[str, Metric]


def compare(
    aggregates: Mapping[str, Aggregates],
    metrics: Mapping[str, Metrics],
    counts: Floats | None,
    r_max: Mapping[str, float],
) -> dict[str, Metrics]:
    """The estimates by treatment and metric, with what is left of each once all treatments are asked about together.

    A family is the treatments under one metric and one estimator. Each treatment keeps its own headline.
    """
    first = next(iter(aggregates.values()))
    compared = {name: dict(by_metric) for name, by_metric in metrics.items()}
    for metric, m in first.plan.shown.items():
        estimates = _adjusted_estimates(aggregates, metrics, m, counts, r_max.get(metric))
        for name in aggregates:
            compared[name][metric] = replace(metrics[name][metric], estimates=estimates[name])
    return compared


def _adjusted_estimates(
    aggregates: Mapping[str, Aggregates], metrics: Mapping[str, Metrics], m: int, counts: Floats | None,
    r_max: float | None,
) -> dict[str, dict[str, Estimate]]:  # fmt: skip
    """The estimates of one metric, by treatment and label, adjusted for the number of treatments."""
    plan = next(iter(aggregates.values())).plan
    estimators, metric = {e.label: e for e in plan.estimators}, plan.metrics[m]
    adjusted: dict[str, dict[str, Estimate]] = {name: {} for name in aggregates}
    for label in next(iter(metrics.values()))[metric].estimates:
        alone = {name: metrics[name][metric].estimates[label] for name in aggregates}
        if label in estimators:  # the error of a calibrated one is not of this log alone
            by_treatment = {name: at_chosen_bound(sums, estimators[label], m) for name, sums in aggregates.items()}
            family = _Family(aggregates, alone, by_treatment, m, counts, r_max)
            alone = {name: with_adjusted(estimate, family.adjusted(name)) for name, estimate in alone.items()}
        for name, estimate in alone.items():
            adjusted[name][label] = estimate
    return adjusted


@dataclass(frozen=True)
class _Family:
    """The treatments under one metric and one estimator."""

    aggregates: Mapping[str, Aggregates]
    alone: Mapping[str, Estimate]  # each treatment's estimate by itself
    estimators: Mapping[str, Estimator]  # one, with the bound that suits each treatment
    metric: int
    counts: Floats | None
    r_max: float | None

    @property
    def first(self) -> Aggregates:
        return next(iter(self.aggregates.values()))

    @property
    def estimator(self) -> Estimator:
        """Any of them: their values are one function of the sums."""
        return next(iter(self.estimators.values()))

    @property
    def settings(self) -> Analysis:
        return self.first.plan.settings.analysis

    @cached_property
    def control(self) -> float:
        return float(self.first.r[self.metric].sum()) / self.first.displays

    @cached_property
    def p_values(self) -> dict[str, float]:
        """Two-sided, of each treatment by itself."""
        return {
            name: two_sided_p(nan_if_none(e.effect_size), error_of(e), self.first.n_units, self.control)
            for name, e in self.alone.items()
        }

    @cached_property
    def p_adjusted(self) -> dict[str, float]:
        """After Holm."""
        return dict(zip(self.p_values, holm(list(self.p_values.values())), strict=True))

    @cached_property
    def limits(self) -> dict[str, tuple[Interval, Interval]]:
        """Absolute and relative limits that hold for all treatments at once."""
        if self.settings.interval in BOUNDED:
            method = betting_interval if self.settings.interval == "betting" else bernstein_interval
            absolute = [self._at_strict_level(name, method) for name in self.alone]
            relative = [Interval(*(x / abs(self.control) if self.control else NAN for x in pair)) for pair in absolute]
        else:
            absolute = _simultaneous(self, absolute_uplift_of(self.estimator), relative=False)
            relative = [NO_INTERVAL] * len(self.alone)
            if self.control:
                relative = _simultaneous(self, relative_uplift_of(self.estimator), relative=True)
        return dict(zip(self.alone, zip(absolute, relative, strict=True), strict=True))

    def adjusted(self, name: str) -> Adjusted:
        """What is left of a treatment's estimate once all are asked about together."""
        if self.first.rows == 0:
            return Adjusted(None, None, "insufficient", None, None, None, None)
        absolute, relative = self.limits[name]
        has_p, has_relative = self.settings.interval not in BOUNDED, self.alone[name].rel_effect_size is not None
        return Adjusted(
            p_value=finite_or_none(self.p_values[name]) if has_p else None,
            p_adjusted=finite_or_none(self.p_adjusted[name]) if has_p else None,
            verdict_adjusted=self._verdict(name),
            simultaneous_ci_lower=finite_or_none(absolute.lower),
            simultaneous_ci_upper=finite_or_none(absolute.upper),
            rel_simultaneous_ci_lower=finite_or_none(relative.lower) if has_relative else None,
            rel_simultaneous_ci_upper=finite_or_none(relative.upper) if has_relative else None,
        )

    def _verdict(self, name: str) -> str:
        estimate = self.alone[name]
        if self.settings.interval in BOUNDED:
            strict = decide(self.limits[name][0], True, self.control)
            return _keep_if_confirmed(estimate.verdict, strict, "neutral")
        if estimate.betting is not None:  # few rewards: p is not to be trusted
            strict = decide(self._at_strict_level(name, betting_interval), True, self.control)
            return _keep_if_confirmed(estimate.verdict, strict, "insufficient")
        return adjusted_verdict(estimate.verdict, self.p_adjusted[name], 1.0 - self.settings.confidence_level)

    def _at_strict_level(self, name: str, method: Callable[..., Interval]) -> Interval:
        """An interval that holds with any number of rewards, at the level that Bonferroni's bound asks for."""
        level = 1.0 - (1.0 - self.settings.confidence_level) / len(self.alone)
        level = min(level, math.nextafter(1.0, 0.0))  # of a confidence level that is nearly 1
        delta = nan_if_none(self.alone[name].effect_size)  # None where weights are beyond a float
        return method(self.aggregates[name], self.estimators[name], self.metric, delta, level, self.r_max)


def _keep_if_confirmed(verdict: str, strict: str, otherwise: str) -> str:
    """A verdict of positive or negative only where an interval at a stricter level says the same."""
    return otherwise if verdict in ("positive", "negative") and strict != verdict else verdict


def adjusted_verdict(verdict: str, p_adjusted: float, alpha: float) -> str:
    """Holm may take a verdict away and never gives one.

    >>> adjusted_verdict("positive", 0.04, 0.1), adjusted_verdict("negative", 0.2, 0.1)
    ('positive', 'neutral')
    """
    if verdict in ("positive", "negative") and not p_adjusted <= alpha:
        return "neutral"
    return verdict


def _simultaneous(family: _Family, statistic: Statistic, *, relative: bool) -> list[Interval]:
    """Δ_j ± q·se_j, one q for all: with probability `confidence_level` all hold at once."""
    first, a, units = family.first, family.settings, family.first.n_units
    sums = [bucket_sums(part, family.estimators[name], family.metric) for name, part in family.aggregates.items()]
    centre = np.array([float(statistic(s.total())[0]) for s in sums])
    influences = np.column_stack([s.influence(statistic) for s in sums])
    errors = np.array([std_error(column, first.displays, units) for column in influences.T])
    rounding = 1e-12 * (1.0 if relative else abs(float(mean_reward(sums[0].total())[0])))
    errors[errors <= rounding] = 0.0  # the control itself
    if units < 2 or np.isnan(errors).any():
        return [NO_INTERVAL] * len(sums)
    if family.counts is None:
        quantile = normal_quantile(influences * (errors > 0.0), a.confidence_level, units, a.seed)
    else:
        resampled = [s.resampled(family.counts) for s in sums]
        exists = resampled[0].r != 0 if relative else resampled[0].rows > 0
        deviations = np.column_stack([np.where(exists, statistic(r), np.nan) for r in resampled]) - centre
        quantile = resampled_quantile(deviations, errors, a.confidence_level)
    widths = quantile * errors * [inflation(estimate) for estimate in family.alone.values()]
    return [Interval(float(c - half), float(c + half)) for c, half in zip(centre, widths, strict=True)]


def ranked(metrics: Mapping[str, Metrics]) -> list[str]:
    """The names of treatments by the uplift of the first goal, each by its own headline: the best first, insufficient
    ones last."""

    def place(name: str) -> tuple[bool, float]:
        metric = metrics[name][goal(metrics[name])]
        e = metric.estimates[metric.headline or ""]
        way = -1.0 if metric.role is not None and metric.role["direction"] == DECREASE else 1.0
        return e.verdict == "insufficient", np.inf if e.effect_size is None else -way * e.effect_size

    return sorted(metrics, key=place)


def goal(metrics: Mapping[str, Metric]) -> str:
    """The metric that treatments are ranked by: the first goal, or the first where no roles are given."""
    return next((name for name, metric in metrics.items() if metric.role is None or metric.role["role"] == GOAL), "")
