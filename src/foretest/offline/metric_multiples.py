"""Metrics that are another one times a number, as those per unit are: all numbers of that metric times this one. The
mean number of displays of a unit is taken as known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from foretest.aggregation.aggregates import Aggregates
from foretest.inference.uplift import metric_value
from foretest.results.result import Adjusted, Control, Estimate, Metric
from foretest.settings.settings import Settings

#: numbers in units of the metric; all others are shares, counts or words
_OF_ESTIMATE = (
    "treatment", "std_error", "effect_size", "effect_size_ci_lower", "effect_size_ci_upper", "lower_bound",
    "predicted_std_error",
)  # fmt: skip
_OF_BAND = ("effect_size_lower", "effect_size_upper", "ci_lower", "ci_upper")


def displays_per_unit(aggregates: Aggregates) -> float:
    """The mean number of displays of a unit; 0 in an empty log."""
    return aggregates.displays / aggregates.n_units if aggregates.rows else 0.0


def metric_multiples(settings: Settings, metrics: Mapping[str, Metric], displays_per_unit: float) -> dict[str, Metric]:
    """The multiples of metrics, from those metrics of the same rows."""
    units = 1.0 / displays_per_unit if displays_per_unit else math.inf
    multiples = {}
    for formula in settings.definitions.multiples:
        factor = float(metric_value(formula, 1.0, *([units] if formula.counts_units else [])))
        scaled = scaled_metric(metrics[str(formula.multiple_of)], factor)
        multiples[formula.name] = replace(scaled, per=formula.per(settings.log.unit))
    return multiples


def scaled_metric(metric: Metric, factor: float) -> Metric:
    """A metric with its absolute numbers times a factor. Paths, strata, days and tests stay with the metric per
    display."""
    return replace(
        metric,
        control=Control(*(_times(getattr(metric.control, f.name), factor) for f in fields(Control))),
        estimates={label: _scaled(estimate, factor) for label, estimate in metric.estimates.items()},
        cap_path=None, slots=None, slot_model=None, examination=None, reward_model=None, days=None,
    )  # fmt: skip


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    limits = estimate.range
    if limits is not None:
        limits = replace(limits, **_each(limits, ("ci_lower", "ci_upper"), factor))
    return replace(
        estimate,
        **_each(estimate, _OF_ESTIMATE, factor),
        range=limits,
        betting=_values(estimate.betting, ("ci_lower", "ci_upper"), factor),
        sensitivity=_values(estimate.sensitivity, _OF_BAND, factor),
        adjusted=None if estimate.adjusted is None else _adjusted(estimate.adjusted, factor),
        strata=None, bound_choice=None, curves=None, unsupported_noise=None,
    )  # fmt: skip


def _adjusted(adjusted: Adjusted, factor: float) -> Adjusted:
    return replace(adjusted, **_each(adjusted, ("simultaneous_ci_lower", "simultaneous_ci_upper"), factor))


def _each(owner: Any, names: tuple[str, ...], factor: float) -> dict[str, Any]:
    return {name: _times(getattr(owner, name), factor) for name in names}


def _values(table: dict[str, float | None] | None, names: tuple[str, ...], factor: float) -> Any:
    return None if table is None else {k: _times(v, factor) if k in names else v for k, v in table.items()}


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
