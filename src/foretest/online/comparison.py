"""What compares the two arms: the uplift with its standard errors and intervals, the verdict, the smallest effect."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from foretest.files import finite_or_none
from foretest.formatting import plural
from foretest.inference.bootstrap import percentile_interval
from foretest.inference.buckets import NO_INTERVAL
from foretest.inference.delta import delta_interval
from foretest.inference.uplift_estimate import StdErrors, Uplift, uplift_estimate
from foretest.inference.verdict import FEWEST_POSITIVES, FEWEST_UNITS, Judgement, decide
from foretest.inference.welch import two_sample_interval, two_sample_p_value
from foretest.online.adjustment import adjusted, coefficient
from foretest.online.arm_errors import UpliftErrors, standard_errors
from foretest.online.metric_arms import MetricArm, MetricArms
from foretest.online.resampling import ArmCounts, Replicates, replicates
from foretest.online.sequential import Sequence
from foretest.results.result import Control, Estimate
from foretest.settings.analysis import Analysis
from foretest.special import ndtri

POWER = 0.8  # of the minimum detectable effect
KEY, UNADJUSTED = "online", "unadjusted"  # of the estimates


class DetectableEffect(NamedTuple):
    """The smallest uplift that a test of this size would show with the given power; None without any variance."""

    absolute: float | None
    relative: float | None
    power: float


class Gain(NamedTuple):
    """What a covariate bought in one metric; None where there is no error to compare."""

    coefficient: float  # θ
    control: float | None  # the control's adjusted value
    variance_removed: float | None  # the share of the uplift's variance that is gone
    units_gained: int | None  # so many units more would have had the same effect


class Comparison(NamedTuple):
    """One metric's answers: the control's value, the uplifts by name, and the smallest uplift that could be shown."""

    control: Control
    estimates: dict[str, Estimate]
    detectable: DetectableEffect
    gain: Gain | None = None  # with a covariate

    @property
    def estimate(self) -> Estimate:
        """The uplift that decides: the adjusted one, with a covariate."""
        return self.estimates[KEY]


class _Uplifts(NamedTuple):
    """The values of both arms, adjusted or not, with the noise of their uplifts."""

    control: float
    treatment: float
    errors: UpliftErrors
    resampled: Replicates | None  # None: limits by the delta method


def compare_arms(
    sides: MetricArms, analysis: Analysis, counts: ArmCounts | None, sequence: Sequence | None = None
) -> Comparison:
    """Compare the arms in one metric; `counts` are the resamples of the bootstrap, None for the delta method."""
    level = analysis.confidence_level
    resampled = None if counts is None else replicates(sides, counts)
    control = _control(sides.control, level, resampled)
    plain = _Uplifts(sides.control.value, sides.treatment.value, standard_errors(sides), resampled)
    unadjusted = _estimate(sides, level, plain, sequence)
    if sides.control.arm.covariate is None:
        return Comparison(control, {KEY: unadjusted}, _detectable_effect(plain.errors, level))
    theta = coefficient(sides)
    resampled = None if counts is None else replicates(sides, counts, theta)
    uplifts = _Uplifts(*adjusted(sides, theta), resampled)
    estimates = {KEY: _estimate(sides, level, uplifts, sequence), UNADJUSTED: unadjusted}
    units = sum(side.n_units for side in sides)
    return Comparison(
        control, estimates, _detectable_effect(uplifts.errors, level), _gain(theta, plain, uplifts, units)
    )


def _gain(theta: float, plain: _Uplifts, uplifts: _Uplifts, units: int) -> Gain:
    """What the adjustment bought, from the variances of the absolute uplift without and with it."""
    before, after = (one.errors.absolute.std_error**2 for one in (plain, uplifts))
    known = bool(np.isfinite(before) and np.isfinite(after) and before > 0.0 and after > 0.0)
    return Gain(
        theta,
        finite_or_none(uplifts.control),
        1.0 - after / before if known else None,
        round(units * (before / after - 1.0)) if known else None,
    )


def _control(side: MetricArm, level: float, resampled: Replicates | None) -> Control:
    """The control's value and its interval, the ones of an offline test of the same log."""
    if side.arm.rows == 0:
        return Control(None, None, None, None)
    value, error = side.value, side.error
    if side.n_units < 2:
        limits = NO_INTERVAL
    elif resampled is None:
        limits = delta_interval(value, error, side.n_units, level)
    else:
        limits = percentile_interval(resampled.control, level)
    return Control(value, finite_or_none(error), finite_or_none(limits.lower), finite_or_none(limits.upper))


def _estimate(sides: MetricArms, level: float, uplifts: _Uplifts, sequence: Sequence | None) -> Estimate:
    """The uplift, its intervals and the verdict."""
    enough, reasons = _judge(sides)
    positives = min(side.effective_positives for side in sides)
    control, treatment, errors, resampled = uplifts
    delta = treatment - control
    relative = (treatment / control - 1.0) * (1.0 if control > 0 else -1.0) if abs(control) > 0 else float("nan")
    if min(side.n_units for side in sides) < 2:  # resamples of one unit do not differ
        limits = rel_limits = NO_INTERVAL
    elif resampled is None:
        limits = two_sample_interval(delta, errors.absolute, level)
        rel_limits = two_sample_interval(relative, errors.relative, level)
    else:
        limits = percentile_interval(resampled.absolute, level)
        rel_limits = percentile_interval(resampled.relative, level)
    estimate = uplift_estimate(
        treatment, StdErrors(errors.absolute.std_error, errors.relative.std_error), Uplift(delta, limits),
        Uplift(relative, rel_limits),
        verdict=decide(limits, enough, control), reasons=reasons, effective_positives=positives,
    )  # fmt: skip
    always = None if sequence is None else sequence.intervals(estimate)
    return replace(
        estimate,
        p_value=finite_or_none(two_sample_p_value(delta, errors.absolute)),
        always_valid=None if always is None else always.to_dict(decide(always.absolute, enough, control)),
    )


def _judge(sides: MetricArms) -> Judgement:
    """Whether both arms have evidence enough for a verdict, and what is missing."""
    reasons = []
    if not any(side.positives for side in sides) and all(arm.rows for arm in sides.arms):
        return Judgement(False, ["no row has a reward"])
    for name, side in zip(MetricArms._fields, sides, strict=True):
        effective, units = side.effective_positives, side.n_units
        if side.arm.rows == 0:
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
