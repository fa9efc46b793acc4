"""Estimates in a line: how an estimate, a metric, a treatment and a segment show themselves, without their arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from foretest.formatting import format_number, percent, plural, span
from foretest.results.range_text import has_interval, range_of
from foretest.results.robustness_text import is_fragile

if TYPE_CHECKING:
    from foretest.results.result import Estimate, Metric, Segment, Treatment

MOST_METRICS = 3  # in the line of a treatment or a segment


def uplift_text(estimate: Estimate) -> str:
    """The relative uplift with its range; the absolute one where the control's value is 0."""
    limits = range_of(estimate)
    if estimate.rel_effect_size is not None and not has_interval(estimate):
        return f"{percent(estimate.rel_effect_size, sign=True)} (no interval)"
    if estimate.rel_effect_size is not None:
        return f"{percent(estimate.rel_effect_size, sign=True)} ({span(limits.rel_ci_lower, limits.rel_ci_upper)})"
    if estimate.effect_size is not None:
        lower, upper = limits.ci_lower, limits.ci_upper
        numbers = f"{format_number(estimate.effect_size)} ({format_number(lower)} to {format_number(upper)})"
        return f"{numbers} per display"
    return "no uplift"


def estimate_summary(estimate: Estimate) -> str:
    """Uplift, range and word; the verdict, by noise alone, and the one adjusted for several, where they differ."""
    adjusted = None if estimate.adjusted is None else estimate.adjusted.verdict_adjusted
    return (
        f"{uplift_text(estimate)}, {estimate.word}"
        + ("" if estimate.word == estimate.verdict else f" (verdict: {estimate.verdict})")
        + ("" if adjusted in (None, estimate.verdict) else f" (adjusted: {adjusted})")
        + (", fragile" if is_fragile(estimate) else "")
    )


def headline_summary(metric: Metric) -> str:
    """The headline's estimate; the verdict alone where there is no headline."""
    headline = metric.estimates.get(metric.headline or "")
    return metric.verdict if headline is None else estimate_summary(headline)


def metric_summary(metric: Metric) -> str:
    """The headline and its estimate, the control's value, and how many estimators there are."""
    role = "" if metric.role is None else f"({metric.role['role']}) "
    control = "" if metric.control is None else f"control {format_number(metric.control.value)}, "
    return (
        f"{role}{metric.headline or 'without headline'}: {headline_summary(metric)};"
        f" {control}{plural(len(metric.estimates), 'estimator')}"
    )


def metrics_summary(metrics: Mapping[str, Metric]) -> str:
    """The headline of each of the first metrics, and how many more there are."""
    shown = [f"{name} {headline_summary(metric)}" for name, metric in list(metrics.items())[:MOST_METRICS]]
    more = len(metrics) - len(shown)
    return "; ".join([*shown, *([f"{plural(more, 'more metric')}"] if more else [])]) or "no estimates"


def treatment_summary(treatment: Treatment) -> str:
    """Name, rank, outcome of the audit, and the headlines."""
    rank = "" if treatment.rank is None else f", rank {treatment.rank}"
    audit = "" if treatment.audit is None else f", audit {treatment.audit.outcome}"
    return f"{treatment.name!r}{rank}{audit}: {metrics_summary(treatment.metrics)}"


def segment_summary(segment: Segment) -> str:
    """Column and value, number of displays, and the headlines."""
    values = f" of {plural(segment.values, 'value')}" if segment.rest and segment.values is not None else ""
    where = f"{segment.column} {segment.value!r}{values}, {plural(segment.rows, 'display')}"
    return f"{where}: {metrics_summary(segment.metrics)}"
