"""The noise of one arm: standard errors of its reward per display, of its covariate, and of both together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foretest.displays.batch import Floats
from foretest.inference.delta import FEW_UNITS, std_error
from foretest.inference.welch import TwoSampleError, mean_error, two_sample_error
from foretest.online.arms import Arm, Arms

NO_ERROR = TwoSampleError(float("nan"), float("inf"))


class UpliftErrors(NamedTuple):
    """The standard errors of Δ = R_t − R_c and of δ = R_t/R_c − 1, with their degrees of freedom."""

    absolute: TwoSampleError
    relative: TwoSampleError


def is_welch(arms: Arms) -> bool:
    """Whether the rows themselves are the units of both arms, and none was left out: variances are then Welch's."""
    return all(arm.one_row_per_unit and not arm.is_thinned for arm in arms)


def standard_errors(arms: Arms, metric: int) -> UpliftErrors:
    """The standard errors of both uplifts.

    The arms are independent: se(Δ)² = se_t² + se_c² and, by the delta method, se(δ)² = [se_t² + (1 + δ)² se_c²]/R_c².
    An arm's own se² is C/(C−1)·Σ_u (Σ_{i∈u} (r_i − R))²/n², by bucket of units; where every unit has one row it is
    s²/n, Welch's, from the rows themselves, unless the log was thinned: the number of displays is then random too.
    """
    welch = is_welch(arms)
    if welch:
        errors = [mean_error(float(arm.r[metric].sum()), float(arm.r2[metric]), arm.rows) for arm in arms]
    else:
        errors = [arm_error(arm, metric) for arm in arms]
    counts = [arm.n_units for arm in arms]
    control, treatment = (arm.mean(metric) for arm in arms)
    absolute = two_arms(errors, counts, welch)
    if not abs(control) > 0:
        return UpliftErrors(absolute, NO_ERROR)
    relative = two_arms([errors[0] * abs(treatment) / control**2, errors[1] / abs(control)], counts, welch)
    return UpliftErrors(absolute, relative)


def arm_error(arm: Arm, metric: int) -> float:
    """The standard error of an arm's reward per display, a ratio by unit."""
    if not arm.displays:
        return float("nan")
    return std_error(arm.r[metric] - arm.mean(metric) * arm.n, arm.displays, arm.n_units)


def combined_error(arm: Arm, metric: int, reward: float, covariate: float, *, welch: bool) -> float:
    """The standard error of reward·R − covariate·X of an arm: R its reward per display, X its covariate's mean.

    By bucket of units its square is C/(C−1)·Σ_b φ_b², φ_b = reward·(Σr − R·n)_b/n − covariate·(Σx − X·m)_b/m over n
    displays and m units; where rows are units it is that of the numbers reward·r − covariate·x, s²/n.
    """
    sums = arm.covariate
    assert sums is not None
    if not arm.displays:
        return float("nan")
    if welch:
        moments, rows = sums.moments, arm.rows
        if rows < 2:
            return float("nan")
        total = float(arm.r[metric].sum())
        rr = max(0.0, float(arm.r2[metric]) - total * total / rows)
        squares = reward**2 * rr - 2.0 * reward * covariate * float(moments.xr[metric]) + covariate**2 * moments.xx
        return float(np.sqrt(max(0.0, squares) / (rows - 1.0) / rows))
    influence = reward * (arm.r[metric] - arm.mean(metric) * arm.n) / arm.displays
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
