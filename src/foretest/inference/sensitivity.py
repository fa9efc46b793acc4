"""What the interval leaves out: how far the part of the treatment that the log does not support may move the uplift.

A capped estimator with normalised weights is exact importance sampling for a surrogate policy π̃ = min(π_t, c π_p)/q, as
E_p[w̃ | x] = 1. The treatment is π_t = q π̃ + (1 − q) ν, and of ν the log says nothing. Suppose its value is within a
factor of the supported part's, display by display: R(ν|x) ∈ [R(π̃|x)/Γ_lower, Γ_upper·R(π̃|x)]. Then, with
d = (w̃ − 1) r and t = (w̃ − w̄) r, the uplift lies in

    [L, U] = [mean(d − (1 − 1/Γ_lower) t), mean(d + (Γ_upper − 1) t)]

Γ = 1 is the estimator itself. As Γ_lower grows L falls to mean((w̄ − 1) r), where ν is worth nothing: CIS.

The interval around it is that of Imbens and Manski (2004), which contains each point of [L, U] with the probability
asked for, joined with the estimator's own. The breakdown Γ* is the Γ (both ways) at which the verdict is lost. The
slice test asks the log itself: what lies between c/3 and c is supported at c, and unsupported at c/3.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.quantities import (
    SLICE,
    SLICE_EXPECTED,
    UNSUPPORTED_LOSSES,
    UNSUPPORTED_REWARDS,
    WEIGHTED_REWARDS,
    WEIGHTS,
)
from foretest.displays.batch import Floats
from foretest.estimators import Estimator
from foretest.inference.betting import betting_limits
from foretest.inference.buckets import Interval, bucket_sums, mean_weights, with_curve_error
from foretest.inference.by_logger import by_unit
from foretest.inference.delta import FEW_UNITS, quantile, std_error
from foretest.inference.row_terms import unsupported_terms, uplift_range, uplift_terms, weight_bound
from foretest.inference.uplift import absolute_uplift_of
from foretest.records import dataclass
from foretest.results.sensitivity import Sensitivity
from foretest.special import ndtr, stdtr
from foretest.weights.weightings import Weighting

_LARGEST_GAMMA = 1e9
_NAN = float("nan")
_NO_INTERVAL = Interval(_NAN, _NAN)


class Bounds(NamedTuple):
    """L and U, with their standard errors."""

    lower: float
    upper: float
    lower_error: float
    upper_error: float


class SliceTest(NamedTuple):
    """What a part of the log earns that a smaller cap would leave unsupported, as a multiple Γ̂ of the supported."""

    gamma: float
    interval: Interval


@dataclass(frozen=True)
class Terms:
    """Sums by bucket of units: rows, d, t, and both sides of the slice test."""

    n: Floats
    d: Floats
    t: Floats
    sliced: Floats
    expected: Floats
    units: int
    loggers: int = 1

    @classmethod
    def of(cls, aggregates: Aggregates, weighting: Weighting, metric: int) -> Terms:
        """The sums of a banded weighting and a metric."""
        account, buckets = aggregates.weighted(weighting, metric), aggregates.ledger.cells
        with np.errstate(over="ignore", invalid="ignore"):
            unit = np.exp(account.log_unit)
            hr, t = (
                with_curve_error(aggregates, weighting, metric, q) * unit
                for q in (WEIGHTED_REWARDS, UNSUPPORTED_REWARDS)
            )
            sliced, expected = (account.get(q, size=buckets) * unit for q in (SLICE, SLICE_EXPECTED))
        weights = mean_weights(aggregates, weighting) if weighting.pointwise else None
        h = np.zeros(buckets) if weights is None else weights.get(WEIGHTS, size=buckets) * np.exp(weights.log_unit)
        if h.any():
            # the terms of Σhr/Σh: those of the mean of h·(r − V) + V, V the ratio itself
            hr = hr - float(hr.sum() / h.sum()) * (h - aggregates.n)
        d = hr - aggregates.r[metric]
        terms = Terms(aggregates.n, d, t, sliced, expected, aggregates.n_units, aggregates.plan.loggers)
        if not account.has(UNSUPPORTED_LOSSES):
            return terms
        return LossTerms(**vars(terms), losses=account.get(UNSUPPORTED_LOSSES) * unit)

    @classmethod
    def of_estimator(cls, aggregates: Aggregates, estimator: Estimator, metric: int) -> Terms:
        """The sums of an estimator whose weighting is banded. With a reward model d is that of its own uplift; what the
        log does not support counts as without, and the slice test, which is of weights alone, is not made."""
        terms = cls.of(aggregates, aggregates.plan.weighting(estimator), metric)
        if not estimator.uses_items:
            return terms
        sums, uplift = bucket_sums(aggregates, estimator, metric), absolute_uplift_of(estimator)
        d = sums.influence(uplift) + float(uplift(sums.total())[0]) * aggregates.n  # one logger: by bucket
        nothing = np.zeros(len(d))
        return replace(terms, d=d, sliced=nothing, expected=nothing)

    @property
    def t_losses(self) -> Floats:
        """t of what counts against the metric, where `t` is of what counts in its favour: nothing."""
        return np.zeros(len(self.n))

    @property
    def rows(self) -> float:
        """How many rows there are in all."""
        return float(self.n.sum())

    def mean(self, sums: Floats) -> float:
        """The mean over rows of what `sums` adds up by bucket; NaN for an empty log."""
        return float(sums.sum() / self.rows) if self.rows else float("nan")

    def error(self, sums: Floats) -> float:
        """The standard error of a mean, by unit: Σ_{i∈b} (φ_i − φ̄) is the bucket's sum less its rows' share."""
        return std_error(by_unit(sums - self.n * self.mean(sums), self.n, self.loggers), self.rows, self.units)

    def bounds(self, gamma: tuple[float, float]) -> Bounds:
        """L and U at (Γ_lower, Γ_upper); Γ_lower may be infinite."""
        low, high = self.ends(gamma)
        return Bounds(self.mean(low), self.mean(high), self.error(low), self.error(high))

    def ends(self, gamma: tuple[float, float]) -> tuple[Floats, Floats]:
        """The terms of L and U."""
        less, more = 1.0 - 1.0 / gamma[0], gamma[1] - 1.0
        return self.d - less * self.t, self.d + more * self.t

    def breakdown(self, sign: int, level: float, rounding: float = 0.0) -> float | None:
        """Γ* of a verdict that is positive (sign 1) or negative (−1); None where no Γ undoes it.

        With x = 1 − 1/Γ (positive) or Γ − 1 (negative) the limit in question, away from 0, is
        f(x) = ±D − x T − z·√(A ∓ 2xB + x²C), with means D of d and T of t, variances A and C and covariance B. f is
        concave: where it starts above 0 it crosses 0 once or never, at a root of the square of that equation.
        """
        mean_d, mean_t = sign * self.mean(self.d) - rounding, self.mean(self.t)
        z = quantile(self.units, level)
        a, c = self.error(self.d), self.error(self.t)
        if not np.isfinite([mean_d, mean_t, a, c]).all():
            return None
        if mean_d - z * a <= 0.0:
            return 1.0
        scale = max(mean_d, mean_t)  # squares of 1e200 would overflow
        plus, minus = (self.error(self.d / scale + s * self.t / scale) ** 2 for s in (1.0, -1.0))
        covariance = sign * (plus - minus) / 4.0
        mean_d, mean_t, a, c = mean_d / scale, mean_t / scale, a / scale, c / scale
        roots = _roots(
            mean_t**2 - (z * c) ** 2,
            -2.0 * (mean_d * mean_t - z * z * covariance),
            mean_d**2 - (z * a) ** 2,
        )
        # the square also has the roots of the other sign, where ±D − xT is below 0
        crossings = [x for x in roots if x > 0.0 and mean_d - x * mean_t >= -1e-12]
        return _gamma_of(min(crossings, default=np.inf), sign)

    def slice_test(self, level: float) -> SliceTest:
        """Γ̂ = Σ (w̄_c − w̄_c') r / Σ (q_c − q_c')/q_c'·w̄_c' r, c' = c/3, and its delta interval, never below 0."""
        expected = float(self.expected.sum())
        # without a reward in the slice Γ̂ would be 0, with an error of 0
        if not expected > 0.0 or not self.sliced.any():
            return SliceTest(_NAN, _NO_INTERVAL)
        gamma = float(self.sliced.sum()) / expected
        terms = by_unit((self.sliced - gamma * self.expected) / self.mean(self.expected), self.n, self.loggers)
        half = quantile(self.units, level) * std_error(terms, self.rows, self.units)
        return SliceTest(gamma, Interval(float(np.maximum(gamma - half, 0.0)), gamma + half))


@dataclass(frozen=True)
class LossTerms(Terms):
    """Those of a metric with losses: `d` is of gains less losses, `t` of its gains."""

    losses: Floats = field(default_factory=lambda: np.zeros(0))  # t of its losses

    @property
    def t_losses(self) -> Floats:
        return self.losses

    def ends(self, gamma: tuple[float, float]) -> tuple[Floats, Floats]:
        """The terms of L and U: what is not supported may earn less and lose more, or the other way round."""
        less, more = 1.0 - 1.0 / gamma[0], gamma[1] - 1.0
        low, high = super().ends(gamma)
        return low - more * self.losses, high + less * self.losses

    def breakdown(self, sign: int, level: float, rounding: float = 0.0) -> float | None:
        """Γ* by halving, Γ_lower = Γ_upper: no formula gives where the limit crosses 0."""
        z = quantile(self.units, level)

        def stands(gamma: float) -> bool:
            end = sign * self.ends((gamma, gamma))[0 if sign > 0 else 1]
            return self.mean(end) - z * self.error(end) > rounding

        if not stands(1.0):
            return 1.0
        low, high = 1.0, 2.0
        while stands(high):
            low, high = high, 2.0 * high
            if high > _LARGEST_GAMMA:
                return None
        while high - low > 1e-9 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if stands(middle) else (low, middle)
        return high


def sensitivity(
    aggregates: Aggregates,
    weighting: Weighting,
    metric: int,
    *,
    plain: Interval,
    verdict: str,
    control: float,
    gamma: tuple[float, float],
    betting: float | None = None,
    terms: Terms | None = None,
) -> Sensitivity:
    """The band around an estimate with the interval `plain`, and what it takes to undo its verdict.

    `gamma` are the factors of what unsupported recommendations may earn. `betting` is r_max where the limits are to
    be those of betting, which are valid with few rewards; `terms` are the sums where they are not the weighting's own.
    """
    a = aggregates.plan.settings.analysis
    level, rounding = a.confidence_level, 1e-12 * abs(control)
    terms = Terms.of(aggregates, weighting, metric) if terms is None else terms
    bounds = terms.bounds(gamma)
    sign = {"positive": 1, "negative": -1}.get(verdict)
    if betting is not None:
        rows = _RowTerms.of(aggregates, weighting, metric, betting)
        around = Interval(
            min(rows.lower(1.0 - 1.0 / gamma[0], level), bounds.lower),
            max(rows.upper(gamma[1] - 1.0, level), bounds.upper),
        )
        breakdown = None if sign is None else rows.breakdown(sign, level, rounding)
    else:
        around = imbens_manski(bounds, terms.units, level)
        breakdown = None if sign is None else terms.breakdown(sign, level, rounding)
    joined = Interval(float(np.minimum(plain.lower, around.lower)), float(np.maximum(plain.upper, around.upper)))
    return _assembled(gamma, bounds, joined, breakdown, terms.slice_test(level))


def no_sensitivity(gamma: tuple[float, float]) -> Sensitivity:
    """The band of an empty log, whose numbers do not exist."""
    return _assembled(gamma, Bounds(_NAN, _NAN, _NAN, _NAN), _NO_INTERVAL, None, SliceTest(_NAN, _NO_INTERVAL))


def _assembled(
    gamma: tuple[float, float], bounds: Bounds, interval: Interval, breakdown: float | None, slice_test: SliceTest
) -> Sensitivity:
    return Sensitivity(
        gamma_lower=gamma[0],
        gamma_upper=gamma[1],
        effect_size_lower=bounds.lower,
        effect_size_upper=bounds.upper,
        ci_lower=interval.lower,
        ci_upper=interval.upper,
        breakdown_gamma=breakdown,
        slice_gamma=slice_test.gamma,
        slice_gamma_ci_lower=slice_test.interval.lower,
        slice_gamma_ci_upper=slice_test.interval.upper,
    )


def robustness(verdict: str, on_band: str, band: Sensitivity) -> str | None:
    """Robust where the verdict on the band is that on the interval, and the log itself does not refute the Γ that the
    band assumes (slice test); else fragile. None where either verdict is insufficient."""
    if "insufficient" in (verdict, on_band):
        return None
    refuted = band.slice_gamma_ci_lower > band.gamma_upper or band.slice_gamma_ci_upper < 1.0 / band.gamma_lower
    return "robust" if verdict == on_band and not refuted else "fragile"


def imbens_manski(bounds: Bounds, units: int, level: float) -> Interval:
    """[L − Cσ_L, U + Cσ_U] with F(C + (U − L)/max(σ_L, σ_U)) − F(−C) = level  (Imbens and Manski 2004, eq. 7).

    F is the normal distribution, Student's under 30 units. C is the two-sided quantile where U = L, and closes in on
    the one-sided as the band grows: the truth cannot be beyond both ends.

    >>> limits = imbens_manski(Bounds(0.0, 1.0, 0.1, 0.1), 1000, 0.9)
    >>> round(limits.lower, 4), round(limits.upper, 4)  # 1.2816, not 1.6449
    (-0.1282, 1.1282)
    """
    lower, upper, lower_error, upper_error = bounds
    width, error = upper - lower, max(lower_error, upper_error)
    c = quantile(units, level)
    if width > 0.0 and np.isfinite(width) and error > 0.0:
        few = 2 <= units < FEW_UNITS
        low, high = 0.0, c
        for _ in range(60):  # halved to rounding
            c = 0.5 * (low + high)
            ends = [c + width / error, -c]
            above, below = stdtr(units - 1.0, ends) if few else ndtr(ends)
            low, high = (low, c) if above - below >= level else (c, high)
    return Interval(lower - c * lower_error, upper + c * upper_error)


@dataclass(frozen=True)
class _RowTerms:
    """d and t of the kept rewarded rows: limits of their means are found by betting."""

    aggregates: Aggregates
    d: Floats
    t: Floats
    row_range: tuple[float, float]  # of d
    most: float  # of t: no more than b·r_max

    @classmethod
    def of(cls, aggregates: Aggregates, weighting: Weighting, metric: int, r_max: float) -> _RowTerms:
        d, t = (terms(aggregates, weighting, metric) for terms in (uplift_terms, unsupported_terms))
        return cls(aggregates, d, t, uplift_range(aggregates, weighting, r_max), weight_bound(weighting) * r_max)

    def lower(self, x: float, level: float) -> float:
        """The lower limit of mean(d − x t), whose rows lie in the range of those of d, [−r_max, (b − 1) r_max]."""
        return betting_limits(self.aggregates, self.d - x * self.t, self.row_range, level).lower

    def upper(self, x: float, level: float) -> float:
        """The upper limit of mean(d + x t), whose rows lie in [−r_max, ((1 + x) b − 1) r_max]."""
        lowest, highest = self.row_range
        row_range = lowest, highest + x * self.most
        return betting_limits(self.aggregates, self.d + x * self.t, row_range, level).upper

    def breakdown(self, sign: int, level: float, rounding: float) -> float | None:
        """Γ* of a verdict by halving: no formula gives where these limits cross 0."""

        def stands(x: float) -> bool:
            return self.lower(x, level) > rounding if sign > 0 else self.upper(x, level) < -rounding

        if not stands(0.0):
            return 1.0
        low, high = 0.0, 1.0
        if not self.t.any() or (sign > 0 and stands(1.0)):
            return None
        while sign < 0 and stands(high):
            low, high = high, 2.0 * high
            if high > _LARGEST_GAMMA:
                return None
        while high - low > 1e-6 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if stands(middle) else (low, middle)
        return _gamma_of(high, sign)


def _gamma_of(x: float, sign: int) -> float | None:
    """Γ of x = 1 − 1/Γ or x = Γ − 1; None where it is above 1e9."""
    gamma = 1.0 + x if sign < 0 else 1.0 / (1.0 - x) if x < 1.0 else np.inf
    return float(gamma) if gamma <= _LARGEST_GAMMA else None


def _roots(a: float, b: float, c: float) -> list[float]:
    """The real roots of a x² + b x + c, without subtracting numbers that are nearly equal."""
    if a == 0.0:
        return [-c / b] if b else []
    inside = b * b - 4.0 * a * c
    if inside < 0.0:
        return []
    half = -0.5 * (b + np.copysign(np.sqrt(inside), b))
    return [half / a, c / half] if half else [0.0]
