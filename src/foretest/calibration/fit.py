"""What a history of A/B tests says of the part of a treatment that the log does not support.

A capped estimator with normalised weights takes the unsupported part ν of a treatment to be worth what the supported
part is: Γ = 1 (see `inference/sensitivity.py`). Past tests show Γ. Test j has the offline uplift x, the online uplift y
(both relative), the unsupported term T = mean((w̃ − w̄) r)/R_p, and the noise s² = se_x² + se_y² − 2 cov of y − x:

    y_j − x_j = (Γ_j − 1)·T_j + noise,    Γ_j of mean Γ0 and variance τ²

Γ0 is found by weighted least squares through the origin with weights 1/v, v = s² + τ²T², and Var Γ0 = 1/Σ(T²/v);
τ² = max(0, Σ T²(e² − s²)/v² / Σ T⁴/v²), e the residuals, in 50 rounds from 0. The calibrated uplift is x + (Γ0 − 1)·T.

It is judged on tests that had no part in the fit: every test by the fit of all others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats
from foretest.records import dataclass
from foretest.special import ndtri, stdtrit

FEWEST_TESTS = 10
LEVEL = 0.95  # of the interval of Γ0 that decides whether it is used
ROUNDS = 50
ROUNDING = 1e-12  # a smaller T is rounding of 0

#: the calibrated estimator of each estimator that has an unsupported part
CALIBRATED = {
    "point-ncis-adaptive": "point-ncis-calibrated",
    "slot-ncis-adaptive": "slot-ncis-calibrated",
    "exposure-ncis-adaptive": "exposure-ncis-calibrated",
}


#: and the estimator that each calibrated one moves
PLAIN = {calibrated: plain for plain, calibrated in CALIBRATED.items()}


class Fit(NamedTuple):
    """Γ0, its variance, τ², and how many tests it is fitted to; NaN where there are none."""

    gamma: float
    variance: float
    tau2: float
    tests: int

    @property
    def known(self) -> bool:
        return self.tests > 0

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """The t interval of Γ0, with one degree of freedom less than there are tests.

        >>> Fit(1.2, 0.01, 0.0, 10).interval()  # doctest: +ELLIPSIS
        (0.97378..., 1.42621...)
        """
        if self.tests < 2:
            return float("nan"), float("nan")
        half = float(stdtrit(self.tests - 1.0, 0.5 + level / 2.0)) * float(np.sqrt(self.variance))
        return self.gamma - half, self.gamma + half

    def doubt(self) -> str | None:
        """Why this fit must not correct an estimate; None where it may.

        >>> Fit(1.1, 0.01, 0.0, 40).doubt()
        'the 95 % interval of Γ0, 0.90 to 1.30, contains 1'
        >>> Fit(1.2, 0.0001, 0.0, 9).doubt()
        'only 9 tests: at least 10 are needed'
        """
        if not self.known:
            return "no test has an unsupported part: there is nothing to learn from"
        if self.tests < FEWEST_TESTS:
            return f"only {self.tests} test{'s' if self.tests != 1 else ''}: at least {FEWEST_TESTS} are needed"
        lower, upper = self.interval()
        if not (lower > 1.0 or upper < 1.0):
            return f"the {LEVEL:.0%} interval of Γ0, {lower:.2f} to {upper:.2f}, contains 1".replace("%", " %")
        return None


class Calibrated(NamedTuple):
    """A calibrated relative uplift with its limits."""

    value: float
    error: float
    lower: float
    upper: float


@dataclass(frozen=True)
class History:
    """One entry per test: y − x, T and s². A test without one of them, or with T = 0, does not count in a fit."""

    difference: Floats
    unsupported: Floats
    noise: Floats

    @property
    def informs(self) -> npt.NDArray[np.bool_]:
        """Which tests count in a fit."""
        numbers = np.isfinite(self.difference) & np.isfinite(self.unsupported) & np.isfinite(self.noise)
        with np.errstate(invalid="ignore"):
            return np.asarray(numbers & (self.noise > 0.0) & (np.abs(self.unsupported) > ROUNDING))

    def fit(self) -> Fit:
        """The fit of all tests.

        >>> t = np.array([0.1, 0.2, 0.3])
        >>> fit = History(0.25 * t, t, np.full(3, 0.01)).fit()
        >>> round(fit.gamma, 6), round(fit.variance, 6), fit.tau2
        (1.25, 0.071429, 0.0)
        """
        return self._fits(np.ones((1, len(self.difference)), np.bool_))[0]

    def leave_one_out(self) -> list[Fit]:
        """For each test the fit of all others."""
        return self._fits(~np.eye(len(self.difference), dtype=np.bool_))

    def running(self) -> list[Fit]:
        """For each test the fit of all tests up to it, in their order."""
        count = len(self.difference)
        return self._fits(np.tri(count, count, dtype=np.bool_))

    def weights(self, fit: Fit) -> Floats:
        """The share of each test in Γ0: T²/v over their sum."""
        some = self.informs
        t2 = np.where(some, self.unsupported, 0.0) ** 2
        pull = np.divide(t2, self.noise + fit.tau2 * t2, out=np.zeros(len(t2)), where=some)
        return np.asarray(pull / pull.sum()) if pull.sum() > 0.0 else pull

    def _fits(self, sets: npt.NDArray[np.bool_]) -> list[Fit]:
        """The fit of each set of tests, one set per row."""
        some = self.informs
        y, t, s2 = self.difference[some], self.unsupported[some], self.noise[some]
        included = sets[:, some].astype(np.float64)
        gamma, variance, tau2 = _least_squares(y, t, s2, included)
        counts = included.sum(axis=1).astype(int)
        return [Fit(float(1.0 + g), float(v), float(u), int(n)) for g, v, u, n in
                zip(gamma, variance, tau2, counts, strict=True)]  # fmt: skip


def _least_squares(y: Floats, t: Floats, s2: Floats, included: Floats) -> tuple[Floats, Floats, Floats]:
    """Γ0 − 1, Var Γ0 and τ² for each row of `included`, which has 1 for every test of a fit and 0 for the others; NaN
    where a row has no 1."""
    t2, tau2 = t * t, np.zeros(len(included))

    def ratio(numerator: Floats, denominator: Floats) -> Floats:
        return np.asarray(
            np.divide(numerator, denominator, out=np.full(len(included), np.nan), where=denominator > 0.0)
        )

    def slope(v: Floats) -> tuple[Floats, Floats]:
        information = (included * t2 / v).sum(axis=1)
        return ratio((included * t * y / v).sum(axis=1), information), ratio(np.ones(len(included)), information)

    for _ in range(ROUNDS):
        v = s2 + tau2[:, None] * t2
        e = y - slope(v)[0][:, None] * t
        excess = ratio((included * t2 * (e * e - s2) / v**2).sum(axis=1), (included * t2**2 / v**2).sum(axis=1))
        tau2 = np.fmax(0.0, excess)
    gamma, variance = slope(s2 + tau2[:, None] * t2)
    return gamma, variance, np.where(np.isnan(gamma), np.nan, tau2)


def apply(fit: Fit, uplift: float, unsupported: float, variance: float, level: float) -> Calibrated:
    """x + (Γ0 − 1)·T with normal limits: `variance` is that of its row terms, to which T²(Var Γ0 + τ²) is added.

    >>> moved = apply(Fit(1.2, 0.0025, 0.0, 20), 0.01, 0.1, 0.0001, 0.9)
    >>> round(moved.value, 6), round(moved.error, 6), round(moved.lower, 6)
    (0.03, 0.01118, 0.01161)
    """
    value = uplift + (fit.gamma - 1.0) * unsupported
    error = float(np.sqrt(max(0.0, variance) + unsupported**2 * (fit.variance + fit.tau2)))
    half = float(ndtri(0.5 + level / 2.0)) * error
    return Calibrated(value, error, value - half, value + half)
