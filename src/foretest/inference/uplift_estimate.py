"""An `Estimate` from an uplift, absolute and relative, with the limits of both."""

from __future__ import annotations

from typing import NamedTuple

from foretest.files import finite_or_none
from foretest.inference.buckets import NO_INTERVAL, Interval
from foretest.results.result import Estimate


class Uplift(NamedTuple):
    """An uplift with its interval; NaN where there is none."""

    value: float
    limits: Interval


NO_UPLIFT = Uplift(float("nan"), NO_INTERVAL)


def uplift_estimate(
    treatment: float, std_error: float, absolute: Uplift, relative: Uplift, *, verdict: str, reasons: list[str],
    effective_positives: float | None,
) -> Estimate:  # fmt: skip
    """The fields that every estimate has; numbers that do not exist are None."""
    return Estimate(
        treatment=finite_or_none(treatment),
        std_error=finite_or_none(std_error),
        effect_size=finite_or_none(absolute.value),
        effect_size_ci_lower=finite_or_none(absolute.limits.lower),
        effect_size_ci_upper=finite_or_none(absolute.limits.upper),
        rel_effect_size=finite_or_none(relative.value),
        rel_effect_size_ci_lower=finite_or_none(relative.limits.lower),
        rel_effect_size_ci_upper=finite_or_none(relative.limits.upper),
        verdict=verdict,
        reasons=reasons,
        effective_positives=effective_positives,
    )


def no_estimate(reasons: list[str], effective_positives: float | None) -> Estimate:
    """The estimate of a log that has no number to give, with the reasons."""
    return uplift_estimate(
        float("nan"), float("nan"), NO_UPLIFT, NO_UPLIFT, verdict="insufficient", reasons=reasons,
        effective_positives=effective_positives,
    )  # fmt: skip
