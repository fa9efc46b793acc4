"""CUPED: the uplift adjusted for what units did before the test.

Deng, Xu, Kohavi and Walker: Improving the Sensitivity of Online Controlled Experiments by Utilizing Pre-Experiment Data
(WSDM 2013). A covariate x of the time before the test has the same mean in both arms but for chance, so that
Δ − θ·(X_t − X_c) has the expectation of Δ for any θ, X an arm's mean of x over its units. What chance did to X it also
did to R, as far as both go together, and this is taken out again.

The variance is least at θ = Cov(R, X)/Var(X). With a_u = (Σ_{i∈u} (r_i − R))/n and b_u = (x_u − X)/m, what a unit adds
to R (over n displays) and to X (over m units), it is θ = Σ_u a_u b_u / Σ_u b_u², here over the units of both arms
together, about their common R and X: one θ, which no arm can bend its own way. With one display per unit this is the
slope of r on x. The mean of x is over units and never over displays: the number of displays of a unit is part of the
outcome. θ is estimated, which matters only to second order, as it multiplies X_t − X_c, itself near 0.

The adjusted values are R − θ·(X − X̄) of each arm, X̄ = w_c X_c + w_t X_t the mean over all units, w the
arms' shares of them: their difference is the adjusted Δ. The error of their ratio follows by the delta method, both
values moving with both X:
dδ = [dR_t − (1+δ) dR_c − κ (dX_t − dX_c)]/R_c, κ = θ·(w_c + (1+δ) w_t).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foretest.inference.welch import TwoSampleError
from foretest.online.arm_errors import NO_ERROR, UpliftErrors, combined_error, has_welch, is_welch, two_arms
from foretest.online.arms import Arms
from foretest.online.covariate import BucketSums
from foretest.online.metric_arms import BucketMeans, MetricArms

_CONSTANT = 1e-12  # a covariate that varies by less, relative to its size, differs by rounding alone


class Adjusted(NamedTuple):
    """The adjusted reward per display of both arms, and the errors of their uplifts."""

    control: float
    treatment: float
    errors: UpliftErrors


class Imbalance(NamedTuple):
    """The means of the covariate in both arms, and the error of their difference."""

    control: float
    treatment: float
    error: TwoSampleError


def coefficient(sides: MetricArms) -> float:
    """θ of one metric; 0 without a covariate, where it has one value only, where an arm has no rows, and for a ratio
    whose denominator is 0."""
    arms = sides.arms
    if any(side.arm.covariate is None or not side.exists for side in sides) or is_constant(arms):
        return 0.0
    control, treatment = arms
    assert control.covariate is not None
    assert treatment.covariate is not None
    if has_welch(sides):
        moments, [place] = control.covariate.moments.plus(treatment.covariate.moments), sides.control.places
        return float(sides.control.slope * moments.xr[place] / moments.xx)
    x = _both(control.covariate.by_bucket(), treatment.covariate.by_bucket())
    means, side = BucketMeans.of_both(sides.control.means, sides.treatment.means), sides.control
    if not side.formula.denominator(*means.values):  # where the arms' denominators have opposite signs
        return 0.0
    a = means.influence(side.function) / means.n.sum()
    b = (x.x - x.mean * x.units) / x.units.sum()
    return float((a @ b) / (b @ b))


def is_constant(arms: Arms) -> bool:
    """Whether the covariate has one value in all units of both arms."""
    sums = _both(*(arm.covariate.by_bucket() for arm in arms if arm.covariate is not None))
    spread = np.abs(sums.x - sums.mean * sums.units).max()
    return bool(spread <= _CONSTANT * np.abs(sums.x).max())


def _both(*arms: BucketSums) -> BucketSums:
    """The buckets of both arms, side by side."""
    return BucketSums(np.concatenate([arm.x for arm in arms]), np.concatenate([arm.units for arm in arms]))


def adjusted(sides: MetricArms, theta: float) -> Adjusted:
    """The adjusted values of one metric and the errors of their uplifts; NaN where an arm has no rows."""
    arms = sides.arms
    if not all(arm.rows for arm in arms):
        return Adjusted(float("nan"), float("nan"), UpliftErrors(NO_ERROR, NO_ERROR))
    sums = [arm.covariate.by_bucket() for arm in arms if arm.covariate is not None]
    means, counts = [one.mean for one in sums], [float(one.units.sum()) for one in sums]
    overall = float(np.average(means, weights=counts))
    control, treatment = (side.value - theta * (mean - overall) for side, mean in zip(sides, means, strict=True))
    welch, units = has_welch(sides), [side.n_units for side in sides]
    plain = [combined_error(side, 1.0, theta, welch=welch) for side in sides]
    absolute = two_arms(plain, units, welch)
    if not abs(control) > 0:
        return Adjusted(control, treatment, UpliftErrors(absolute, NO_ERROR))
    ratio, share = treatment / control, counts[1] / sum(counts)
    kappa = theta * (1.0 - share + ratio * share)
    errors = [
        combined_error(side, weight / control, kappa / control, welch=welch)
        for side, weight in zip(sides, (ratio, 1.0), strict=True)
    ]
    return Adjusted(control, treatment, UpliftErrors(absolute, two_arms(errors, units, welch)))


def imbalance(arms: Arms) -> Imbalance | None:
    """How far the arms differ in the covariate; None without one, or where an arm has no rows."""
    if any(arm.covariate is None or not arm.rows for arm in arms):
        return None
    welch = is_welch(arms)
    errors = [combined_error(side, 0.0, 1.0, welch=welch) for side in MetricArms.at(arms, 0)]
    control, treatment = (arm.covariate.by_bucket().mean for arm in arms if arm.covariate is not None)
    return Imbalance(control, treatment, two_arms(errors, [arm.n_units for arm in arms], welch))
