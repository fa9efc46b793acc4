"""The online side of a past test from its results: the uplift, its error, and how much of it the control arm has.

With s² the variance of an arm over its n units, its mean has the error s/√n (Welch's, as from the rows themselves). The
arms are independent, and by the delta method

    y = R_t/R_c − 1,    se_y² = [se_t² + (1 + y)² se_c²]/R_c²

of which (1 + y) se_c/R_c comes from the control arm. Where the uplift and its error alone are given, that part is not
known, and at most se_y: the treatment arm has the rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from foretest.files import finite_or_none
from foretest.formatting import plural
from foretest.history.online_results import UNITS, ArmResults, ArmSums, OnlineResult, UpliftResult
from foretest.inference.buckets import NO_INTERVAL, Interval
from foretest.inference.uplift_estimate import StdErrors, Uplift, uplift_estimate
from foretest.inference.verdict import FEWEST_POSITIVES, FEWEST_UNITS, Judgement, decide
from foretest.inference.welch import TwoSampleError, two_sample_error, two_sample_interval, two_sample_p_value
from foretest.results.result import Estimate
from foretest.special import ndtri

_NAN = float("nan")


class OnlineSide(NamedTuple):
    """The online estimate of a metric, and what its error may share with the offline one."""

    estimate: Estimate
    error: float  # of the relative uplift
    control_error: float  # the part of it that is the control arm's; at the most, where only the uplift is given
    control_count: int | None  # units (or rows) of the control arm, where they are known


def online_side(result: OnlineResult, confidence_level: float, *, signed: bool = False) -> OnlineSide:
    """The online side from the results of a test; `signed`: may the metric be negative?"""
    if isinstance(result, UpliftResult):
        return _of_uplift(result, confidence_level)
    return _of_arms(result, confidence_level, signed)


def _of_arms(result: ArmResults, level: float, signed: bool) -> OnlineSide:
    control, treatment = result.control, result.treatment
    counts, errors = [control.n, treatment.n], [float(np.sqrt(arm.variance / arm.n)) for arm in (control, treatment)]
    size = abs(control.mean)
    shared = errors[0] * abs(treatment.mean) / size**2
    absolute = two_sample_error(errors, counts)
    relative = two_sample_error([shared, errors[1] / size], counts)
    delta = treatment.mean - control.mean
    limits = two_sample_interval(delta, absolute, level)
    # of a metric with losses, what nets out to nothing is evidence too, and its sums do not show it
    positives = None if signed else min(effective_positives(arm) for arm in (control, treatment))
    judgement = _judge(result, signed)
    estimate = uplift_estimate(
        treatment.mean, StdErrors(absolute.std_error, relative.std_error), Uplift(delta, limits),
        Uplift(delta / size, two_sample_interval(delta / size, relative, level)),
        verdict=decide(limits, judgement.enough, control.mean), reasons=judgement.reasons,
        effective_positives=positives,
    )  # fmt: skip
    estimate = replace(estimate, p_value=finite_or_none(two_sample_p_value(delta, absolute)))
    return OnlineSide(estimate, relative.std_error, shared, control.n)


def _of_uplift(result: UpliftResult, level: float) -> OnlineSide:
    """Normal limits; there are no absolute numbers."""
    half = float(ndtri(0.5 + level / 2.0)) * result.std_error
    limits = Interval(result.uplift - half, result.uplift + half)
    estimate = uplift_estimate(
        _NAN, StdErrors(_NAN, result.std_error), Uplift(_NAN, NO_INTERVAL), Uplift(result.uplift, limits),
        verdict=decide(limits, True, 1.0), reasons=[], effective_positives=None,
    )  # fmt: skip
    error = TwoSampleError(result.std_error, float("inf"))
    estimate = replace(estimate, p_value=finite_or_none(two_sample_p_value(result.uplift, error)))
    return OnlineSide(estimate, result.std_error, result.std_error, None)


def effective_positives(arm: ArmSums) -> float:
    """(Σr)²/Σr² of an arm. By units it is that of their totals, at most the one of their rows.

    >>> round(effective_positives(ArmSums(100, 0.2, 0.16 * 100 / 99)), 6)  # 20 of 100 with a reward of 1
    20.0
    """
    squares = (arm.n - 1.0) * arm.variance + arm.n * arm.mean**2
    return (arm.n * arm.mean) ** 2 / squares


def _judge(result: ArmResults, signed: bool) -> Judgement:
    """Whether both arms have evidence enough for a verdict, and what is missing."""
    reasons, what = [], "unit" if result.by == UNITS else "row"
    for name, arm in (("control", result.control), ("treatment", result.treatment)):
        if arm.n < FEWEST_UNITS:
            reasons.append(f"only {plural(arm.n, what)} in the {name}: an interval needs at least {FEWEST_UNITS}")
        if not signed and (effective := effective_positives(arm)) < FEWEST_POSITIVES:
            reasons.append(
                f"only {effective:.1f} effective positives in the {name}: at least {FEWEST_POSITIVES:.0f} are needed"
            )
    return Judgement(not reasons, reasons)
