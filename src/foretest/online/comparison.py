"""What compares the two arms: the uplift with its standard errors and intervals, the verdict, the smallest effect."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from foretest.files import finite_or_none
from foretest.formatting import plural
from foretest.inference.bootstrap import percentile_interval
from foretest.inference.buckets import NO_INTERVAL
from foretest.inference.delta import FEW_UNITS, delta_interval, std_error
from foretest.inference.uplift_estimate import StdErrors, Uplift, uplift_estimate
from foretest.inference.verdict import FEWEST_POSITIVES, FEWEST_UNITS, Judgement, decide
from foretest.inference.welch import TwoSampleError, mean_error, two_sample_error, two_sample_interval
from foretest.online.arms import Arm, Arms
from foretest.online.resampling import ArmCounts, replicates, resampled_means
from foretest.results.result import Control, Estimate
from foretest.settings.analysis import Analysis

POWER = 0.8  # of the minimum detectable effect

_NO_ERROR = TwoSampleError(float("nan"), float("inf"))


class UpliftErrors(NamedTuple):
    """The standard errors of Δ = R_t − R_c and of δ = R_t/R_c − 1, with their degrees of freedom."""

    absolute: TwoSampleError
    relative: TwoSampleError


class DetectableEffect(NamedTuple):
    """The smallest uplift that a test of this size would show with the given power; None without any variance."""

    absolute: float | None
    relative: float | None
    power: float


class Comparison(NamedTuple):
    """One metric's answers: the control's value, the uplift, and the smallest uplift that could be shown."""

    control: Control
    estimate: Estimate
    detectable: DetectableEffect


def compare_arms(arms: Arms, metric: int, analysis: Analysis, counts: ArmCounts | None) -> Comparison:
    """Compare the arms in one metric; `counts` are the resamples of the bootstrap, None for the delta method."""
    errors = standard_errors(arms, metric)
    return Comparison(
        control=_control(arms.control, metric, analysis.confidence_level, counts),
        estimate=_estimate(arms, metric, analysis.confidence_level, errors, counts),
        detectable=_detectable_effect(errors, analysis.confidence_level),
    )


def standard_errors(arms: Arms, metric: int) -> UpliftErrors:
    """The standard errors of both uplifts.

    The arms are independent: se(Δ)² = se_t² + se_c² and, by the delta method, se(δ)² = [se_t² + (1 + δ)² se_c²]/R_c².
    An arm's own se² is C/(C−1)·Σ_u (Σ_{i∈u} (r_i − R))²/n², by bucket of units; where every unit has one row it is
    s²/n, Welch's, from the rows themselves, unless the log was thinned: the number of displays is then random too.
    """
    welch = all(arm.one_row_per_unit and arm.thinned is None for arm in arms)
    if welch:
        errors = [mean_error(float(arm.r[metric].sum()), float(arm.r2[metric]), arm.rows) for arm in arms]
    else:
        errors = [arm_error(arm, metric) for arm in arms]
    counts = [arm.n_units for arm in arms]
    control, treatment = (arm.mean(metric) for arm in arms)
    absolute = _two_sample(errors, counts, welch)
    if not control > 0:
        return UpliftErrors(absolute, _NO_ERROR)
    relative = _two_sample([errors[0] * treatment / control**2, errors[1] / control], counts, welch)
    return UpliftErrors(absolute, relative)


def arm_error(arm: Arm, metric: int) -> float:
    """The standard error of an arm's reward per display, a ratio by unit."""
    return std_error(arm.r[metric] - arm.mean(metric) * arm.n, arm.displays, arm.n_units) if arm.rows else float("nan")


def _two_sample(errors: list[float], counts: list[int], welch: bool) -> TwoSampleError:
    if not all(np.isfinite(errors)):
        return _NO_ERROR
    error = two_sample_error(errors, counts)
    # sums by unit are only nearly normal: Student's quantiles where units are few, as offline
    return error if welch or min(counts) < FEW_UNITS else error._replace(degrees=float("inf"))


def _control(arm: Arm, metric: int, level: float, counts: ArmCounts | None) -> Control:
    """The control's reward per display and its interval, the ones of an offline test of the same log."""
    if arm.rows == 0:
        return Control(None, None, None, None)
    value, error = arm.mean(metric), arm_error(arm, metric)
    if arm.n_units < 2:
        limits = NO_INTERVAL
    elif counts is None:
        limits = delta_interval(value, error, arm.n_units, level)
    else:
        limits = percentile_interval(resampled_means(arm, metric, counts.control), level)
    return Control(value, finite_or_none(error), finite_or_none(limits.lower), finite_or_none(limits.upper))


def _estimate(
    arms: Arms, metric: int, confidence_level: float, errors: UpliftErrors, counts: ArmCounts | None
) -> Estimate:
    """The uplift, its intervals and the verdict."""
    enough, reasons = _judge(arms, metric)
    positives = min((arm.effective_positives(metric) or 0.0) for arm in arms)
    control, treatment = (arm.mean(metric) for arm in arms)
    delta = treatment - control
    relative = treatment / control - 1.0 if control > 0 else float("nan")
    if min(arm.n_units for arm in arms) < 2:  # resamples of one unit do not differ
        limits = rel_limits = NO_INTERVAL
    elif counts is None:
        limits = two_sample_interval(delta, errors.absolute, confidence_level)
        rel_limits = two_sample_interval(relative, errors.relative, confidence_level)
    else:
        resampled = replicates(arms, metric, counts)
        limits = percentile_interval(resampled.absolute, confidence_level)
        rel_limits = percentile_interval(resampled.relative, confidence_level)
    return uplift_estimate(
        treatment, StdErrors(errors.absolute.std_error, errors.relative.std_error), Uplift(delta, limits),
        Uplift(relative, rel_limits),
        verdict=decide(limits, enough, control), reasons=reasons, effective_positives=positives,
    )  # fmt: skip


def _judge(arms: Arms, metric: int) -> Judgement:
    """Whether both arms have evidence enough for a verdict, and what is missing."""
    reasons = []
    if not any(arm.positives[metric] for arm in arms) and all(arm.rows for arm in arms):
        return Judgement(False, ["no row has a reward"])
    for name, arm in zip(Arms._fields, arms, strict=True):
        effective, units = arm.effective_positives(metric) or 0.0, arm.n_units
        if arm.rows == 0:
            reasons.append(f"the {name}'s log is empty")
            continue
        if units < FEWEST_UNITS:
            reasons.append(f"only {plural(units, 'unit')} in the {name}: an interval needs at least {FEWEST_UNITS}")
        if effective < FEWEST_POSITIVES:
            reasons.append(
                f"only {effective:.1f} effective positives in the {name}: at least {FEWEST_POSITIVES:.0f} are needed"
            )
    return Judgement(not reasons, reasons)


def _detectable_effect(errors: UpliftErrors, confidence_level: float) -> DetectableEffect:
    """(z_{1−α/2} + z_power)·se."""
    factor = float(ndtri(0.5 + confidence_level / 2.0) + ndtri(POWER))
    return DetectableEffect(
        _positive_or_none(factor * errors.absolute.std_error),
        _positive_or_none(factor * errors.relative.std_error),
        POWER,
    )


def _positive_or_none(value: float) -> float | None:
    """The number if it is finite and above 0; without any variance there is no smallest effect."""
    return value if np.isfinite(value) and value > 0 else None
