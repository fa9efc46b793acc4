"""An `Estimate` from an uplift, absolute and relative, with the limits of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from foretest.files import finite_or_none
from foretest.inference.buckets import NO_INTERVAL, Interval
from foretest.results.result import Control, Estimate
from foretest.results.uplift_range import NOISE, Range
from foretest.settings.metric_kinds import Formula


class Uplift(NamedTuple):
    """An uplift with its interval; NaN where there is none."""

    value: float
    limits: Interval


NO_UPLIFT = Uplift(float("nan"), NO_INTERVAL)


class StdErrors(NamedTuple):
    """The standard errors of the absolute and of the relative uplift; NaN where there is none."""

    absolute: float
    relative: float


NO_ERRORS = StdErrors(float("nan"), float("nan"))


def uplift_estimate(
    treatment: float, errors: StdErrors, absolute: Uplift, relative: Uplift, *, verdict: str, reasons: list[str],
    effective_positives: float | None,
) -> Estimate:  # fmt: skip
    """The fields that every estimate has; numbers that do not exist are None.

    The range is the interval and the word the verdict: an offline estimate is given its own by `uplift_range`.
    """
    return Estimate(
        treatment=finite_or_none(treatment),
        std_error=finite_or_none(errors.absolute),
        effect_size=finite_or_none(absolute.value),
        effect_size_ci_lower=finite_or_none(absolute.limits.lower),
        effect_size_ci_upper=finite_or_none(absolute.limits.upper),
        rel_effect_size=finite_or_none(relative.value),
        rel_effect_size_ci_lower=finite_or_none(relative.limits.lower),
        rel_effect_size_ci_upper=finite_or_none(relative.limits.upper),
        verdict=verdict,
        reasons=reasons,
        effective_positives=effective_positives,
        rel_std_error=finite_or_none(errors.relative),
        range=Range(NOISE, *(finite_or_none(limit) for limit in (*absolute.limits, *relative.limits))),
        word=verdict,
    )


def relative_where_it_exists(
    estimates: Mapping[str, Estimate], control: Control, formula: Formula
) -> dict[str, Estimate]:
    """The estimates of a metric: of one that may be negative, a relative uplift only where the control's interval
    excludes 0."""
    lower, upper = control.ci_lower, control.ci_upper
    if not formula.needs_clear_control:
        return dict(estimates)
    if lower is not None and upper is not None and (lower > 0.0 or upper < 0.0):
        return dict(estimates)
    return {label: _without_relative(estimate) for label, estimate in estimates.items()}


def _without_relative(estimate: Estimate) -> Estimate:
    limits = None if estimate.range is None else replace(estimate.range, rel_ci_lower=None, rel_ci_upper=None)
    return replace(
        estimate, rel_effect_size=None, rel_effect_size_ci_lower=None, rel_effect_size_ci_upper=None,
        rel_std_error=None, unsupported=None, range=limits,
    )  # fmt: skip


def no_estimate(reasons: list[str], effective_positives: float | None) -> Estimate:
    """The estimate of a log that has no number to give, with the reasons."""
    return uplift_estimate(
        float("nan"), NO_ERRORS, NO_UPLIFT, NO_UPLIFT, verdict="insufficient", reasons=reasons,
        effective_positives=effective_positives,
    )  # fmt: skip
