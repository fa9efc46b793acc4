"""Several treatments of one log, compared: each on its own, then all as one family of questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.displays.batch import Floats
from foretest.estimators import HEADLINES, Estimator, Sums
from foretest.files import finite_or_none, nan_if_none
from foretest.inference.bernstein import bernstein_interval
from foretest.inference.betting import betting_interval
from foretest.inference.buckets import Interval, bucket_sums
from foretest.inference.delta import std_error
from foretest.inference.several import holm, normal_quantile, resampled_quantile, two_sided_p
from foretest.inference.uplift import mean_reward, relative_uplift, uplift
from foretest.inference.verdict import decide
from foretest.results.result import Adjusted, Estimate, Metric
from foretest.settings.analysis import BOUNDED
from foretest.settings.metric_roles import DECREASE, GOAL

Metrics = dict[str, Metric]


def compare(
    aggregates: Mapping[str, Aggregates],
    metrics: Mapping[str, Metrics],
    counts: Floats | None,
    r_max: Mapping[str, float],
) -> dict[str, Metrics]:
    """The same answers, by treatment and metric, with what is left of each once all are asked together.

    A family is the treatments under one metric and one estimator.
    """
    first = next(iter(aggregates.values()))
    answer = {name: dict(held) for name, held in metrics.items()}
    estimators = {e.label: e for e in first.plan.estimators}
    for m, metric in enumerate(first.plan.metrics):
        found: dict[str, dict[str, Estimate]] = {name: {} for name in aggregates}
        for label in next(iter(metrics.values()))[metric].estimates:
            alone = {name: metrics[name][metric].estimates[label] for name in aggregates}
            if label not in estimators:  # a calibrated one, whose error is not of this log alone
                for name, estimate in alone.items():
                    found[name][label] = estimate
                continue
            adjusted = _family(aggregates, alone, estimators[label], m, counts, r_max.get(metric))
            for name, estimate in alone.items():
                found[name][label] = replace(estimate, adjusted=adjusted[name])
        headline = _common_headline([metrics[name][metric].headline or "" for name in aggregates])
        for name in aggregates:
            verdict = found[name][headline].verdict
            held = metrics[name][metric]
            answer[name][metric] = replace(held, estimates=found[name], headline=headline, verdict=verdict)
    return answer


def _common_headline(headlines: list[str]) -> str:
    """One for all treatments, so that they compare: where slots disagree for one of them, none is judged by slot.

    >>> _common_headline(["slot-ncis-adaptive", "point-ncis-adaptive"])
    'point-ncis-adaptive'
    """
    return max(headlines, key=lambda label: HEADLINES.index(label) if label in HEADLINES else -1)


def _family(
    aggregates: Mapping[str, Aggregates], alone: Mapping[str, Estimate], estimator: Estimator, metric: int,
    counts: Floats | None, r_max: float | None,
) -> dict[str, Adjusted]:  # fmt: skip
    first = next(iter(aggregates.values()))
    a, units = first.plan.settings.analysis, first.n_units
    if first.rows == 0:
        return dict.fromkeys(aggregates, Adjusted(None, None, "insufficient", None, None, None, None))
    control = float(first.r[metric].sum()) / first.rows
    missing = float("nan")
    p = [two_sided_p(nan_if_none(e.effect_size), nan_if_none(e.std_error), units, control) for e in alone.values()]
    p_adjusted = holm(p)
    strict = 1.0 - (1.0 - a.confidence_level) / len(alone)

    def bounded(held: Aggregates, e: Estimate, method: Callable[..., Interval]) -> Interval:
        """An interval that holds with any number of rewards, at the level that Bonferroni's bound asks for."""
        return method(held, estimator, metric, e.effect_size, strict, r_max)

    if a.interval in BOUNDED:
        method = betting_interval if a.interval == "betting" else bernstein_interval
        limits = [bounded(held, e, method) for held, e in zip(aggregates.values(), alone.values(), strict=True)]
        relative = [Interval(*(x / control if control else missing for x in limit)) for limit in limits]
    else:
        limits = _simultaneous(aggregates, estimator, metric, counts, uplift)
        nothing = Interval(missing, missing)
        relative = (
            _simultaneous(aggregates, estimator, metric, counts, relative_uplift) if control else [nothing] * len(alone)
        )
    answer = {}
    for i, (name, e) in enumerate(alone.items()):
        if a.interval in BOUNDED:
            verdict = _left(e.verdict, decide(limits[i], True, control), "neutral")
        elif e.betting is not None:  # few rewards: p is not to be trusted
            said = decide(bounded(aggregates[name], e, betting_interval), True, control)
            verdict = _left(e.verdict, said, "insufficient")
        else:
            verdict = adjusted_verdict(e.verdict, p_adjusted[i], 1.0 - a.confidence_level)
        asked = a.interval not in BOUNDED
        answer[name] = Adjusted(
            p_value=finite_or_none(p[i]) if asked else None,
            p_adjusted=finite_or_none(p_adjusted[i]) if asked else None,
            verdict_adjusted=verdict,
            simultaneous_ci_lower=finite_or_none(limits[i].lower),
            simultaneous_ci_upper=finite_or_none(limits[i].upper),
            rel_simultaneous_ci_lower=finite_or_none(relative[i].lower),
            rel_simultaneous_ci_upper=finite_or_none(relative[i].upper),
        )
    return answer


def _left(verdict: str, strict: str, otherwise: str) -> str:
    """The verdict, where it is decided and an interval at a stricter level says the same."""
    return otherwise if verdict in ("positive", "negative") and strict != verdict else verdict


def adjusted_verdict(verdict: str, p_adjusted: float, alpha: float) -> str:
    """Holm may take a verdict away and never gives one.

    >>> adjusted_verdict("positive", 0.04, 0.1), adjusted_verdict("negative", 0.2, 0.1)
    ('positive', 'neutral')
    """
    if verdict in ("positive", "negative") and not p_adjusted <= alpha:
        return "neutral"
    return verdict


def _simultaneous(
    aggregates: Mapping[str, Aggregates], estimator: Estimator, metric: int, counts: Floats | None, statistic: Any
) -> list[Interval]:
    """Δ_j ± q·se_j, one q for all: with probability `confidence_level` all hold at once."""
    first = next(iter(aggregates.values()))
    a, units = first.plan.settings.analysis, first.n_units

    def asked(sums: Sums) -> Any:
        return statistic(estimator.value, sums)

    held = [bucket_sums(part, estimator, metric) for part in aggregates.values()]
    centre = np.array([float(asked(sums.total())[0]) for sums in held])
    influences = np.column_stack([sums.influence(asked) for sums in held])
    errors = np.array([std_error(column, first.rows, units) for column in influences.T])
    rounding = 1e-12 * (abs(float(mean_reward(held[0].total())[0])) if statistic is uplift else 1.0)
    errors[errors <= rounding] = 0.0  # the control itself
    if units < 2 or np.isnan(errors).any():
        return [Interval(float("nan"), float("nan"))] * len(held)
    if counts is None:
        quantile = normal_quantile(influences * (errors > 0.0), a.confidence_level, units, a.seed)
    else:
        resampled = [sums.resampled(counts) for sums in held]
        exists = resampled[0].rows > 0 if statistic is uplift else resampled[0].r > 0
        deviations = np.column_stack([np.where(exists, asked(r), np.nan) for r in resampled]) - centre
        quantile = resampled_quantile(deviations, errors, a.confidence_level)
    return [Interval(float(c - quantile * e), float(c + quantile * e)) for c, e in zip(centre, errors, strict=True)]


def ranked(metrics: Mapping[str, Metrics]) -> list[str]:
    """The names of treatments by the headline uplift of the first goal, the best first, insufficient ones last."""

    def place(name: str) -> tuple[bool, float]:
        metric = metrics[name][goal(metrics[name])]
        e = metric.estimates[metric.headline or ""]
        way = -1.0 if metric.role is not None and metric.role["direction"] == DECREASE else 1.0
        return e.verdict == "insufficient", np.inf if e.effect_size is None else -way * e.effect_size

    return sorted(metrics, key=place)


def goal(metrics: Mapping[str, Metric]) -> str:
    """The metric that treatments are ranked by: the first goal, or the first where no roles are given."""
    return next((name for name, metric in metrics.items() if metric.role is None or metric.role["role"] == GOAL), "")
