"""The noise of one arm: standard errors of its reward per display, of its covariate, and of both together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foretest.displays.batch import Floats
from foretest.inference.delta import FEW_UNITS, std_error
from foretest.inference.welch import TwoSampleError, mean_error, two_sample_error
from foretest.online.arms import Arm, Arms
from foretest.online.metric_arms import MetricArm, MetricArms

NO_ERROR = TwoSampleError(float("nan"), float("inf"))


class UpliftErrors(NamedTuple):
    """The standard errors of Δ = R_t − R_c and of δ = R_t/R_c − 1, with their degrees of freedom."""

    absolute: TwoSampleError
    relative: TwoSampleError


def is_welch(arms: Arms) -> bool:
    """Whether the rows themselves are the units of both arms, and none was left out: variances are then Welch's."""
    return all(arm.one_row_per_unit and arm.are_displays for arm in arms)


def standard_errors(sides: MetricArms) -> UpliftErrors:
    """The standard errors of both uplifts.

    The arms are independent: se(Δ)² = se_t² + se_c² and, by the delta method, se(δ)² = [se_t² + (1 + δ)² se_c²]/R_c².
    An arm's own se² is C/(C−1)·Σ_u (Σ_{i∈u} (r_i − R))²/n², by bucket of units; of a mean, where every unit has one
    row, it is s²/n, Welch's, from the rows themselves, unless the log was thinned: the number of displays is then
    random too.
    """
    welch = has_welch(sides)
    errors = [_mean_error(side) if welch else side.error for side in sides]
    counts = [side.n_units for side in sides]
    control, treatment = (side.value for side in sides)
    absolute = two_arms(errors, counts, welch)
    if not abs(control) > 0:
        return UpliftErrors(absolute, NO_ERROR)
    relative = two_arms([errors[0] * abs(treatment) / control**2, errors[1] / abs(control)], counts, welch)
    return UpliftErrors(absolute, relative)


def has_welch(sides: MetricArms) -> bool:
    """Whether the metric is a function of one mean, and variances are Welch's."""
    return is_welch(sides.arms) and sides.control.has_one_mean


def _mean_error(side: MetricArm) -> float:
    """The standard error of a function of one mean, from the rows themselves."""
    [place], arm = side.places, side.arm
    return abs(side.slope) * mean_error(float(arm.r[place].sum()), float(arm.r2[place]), arm.rows)


def combined_error(side: MetricArm, reward: float, covariate: float, *, welch: bool) -> float:
    """The standard error of reward·R − covariate·X of an arm: R its value, X its covariate's mean.

    By bucket of units its square is C/(C−1)·Σ_b φ_b², φ_b = reward·(Σr − R·n)_b/n − covariate·(Σx − X·m)_b/m over n
    displays and m units; of a mean whose rows are units it is that of the numbers reward·r − covariate·x, s²/n.
    """
    arm = side.arm
    sums = arm.covariate
    assert sums is not None
    if not side.exists:
        return float("nan")
    if welch:
        moments, rows, [place] = sums.moments, arm.rows, side.places
        if rows < 2:
            return float("nan")
        reward *= side.slope
        total = float(arm.r[place].sum())
        rr = max(0.0, float(arm.r2[place]) - total * total / rows)
        squares = reward**2 * rr - 2.0 * reward * covariate * float(moments.xr[place]) + covariate**2 * moments.xx
        return float(np.sqrt(max(0.0, squares) / (rows - 1.0) / rows))
    influence = reward * side.influence / arm.displays
    return std_error(influence - covariate * covariate_influence(arm), 1.0, arm.n_units)


def covariate_influence(arm: Arm) -> Floats:
    """(Σx − X·m)_b/m by bucket: what each bucket adds to the mean of the covariate over units."""
    assert arm.covariate is not None
    sums = arm.covariate.by_bucket()
    return np.asarray((sums.x - sums.mean * sums.units) / sums.units.sum())


def two_arms(errors: list[float], counts: list[int], welch: bool) -> TwoSampleError:
    """The error of a difference of both arms; without one, of no number."""
    if not all(np.isfinite(errors)):
        return NO_ERROR
    error = two_sample_error(errors, counts)
    # sums by unit are only nearly normal: Student's quantiles where units are few, as offline
    return error if welch or min(counts) < FEW_UNITS else error._replace(degrees=float("inf"))
