"""The fit of a history against plain NumPy, on simulated histories, and what leaving one test out does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from foretest.calibration.fit import Fit, History, apply

TESTS = 39


def drawn(gamma: float, tau: float, seed: int, tests: int = TESTS) -> History:
    """A history by the model: T and s of the size that simulated A/B tests have."""
    g = np.random.default_rng([5, seed])
    t = g.gamma(2.0, 0.1, tests)
    s = 0.02 + 0.15 * t * g.random(tests)
    return History((gamma - 1.0 + tau * g.normal(size=tests)) * t + s * g.normal(size=tests), t, s**2)


def plain_fit(d: np.ndarray, t: np.ndarray, s2: np.ndarray) -> tuple[float, float, float]:
    """Test by test, with sums as they are written."""
    tau2 = 0.0
    for _ in range(50):
        v = [b + tau2 * a * a for a, b in zip(t, s2, strict=True)]
        slope = sum(a * y / w for a, y, w in zip(t, d, v, strict=True)) / sum(
            a * a / w for a, w in zip(t, v, strict=True)
        )
        e = [y - slope * a for y, a in zip(d, t, strict=True)]
        over = sum(a**2 * (r**2 - b) / w**2 for a, r, b, w in zip(t, e, s2, v, strict=True))
        tau2 = max(0.0, over / sum(a**4 / w**2 for a, w in zip(t, v, strict=True)))
    v = [b + tau2 * a * a for a, b in zip(t, s2, strict=True)]
    information = sum(a * a / w for a, w in zip(t, v, strict=True))
    slope = sum(a * y / w for a, y, w in zip(t, d, v, strict=True)) / information
    return 1.0 + slope, 1.0 / information, tau2


@pytest.mark.parametrize(("gamma", "tau"), [(1.0, 0.0), (1.2, 0.07), (0.8, 0.3)])
def test_the_fit_is_the_printed_formula(gamma: float, tau: float) -> None:
    for seed in range(5):
        h = drawn(gamma, tau, seed)
        fit = h.fit()
        assert fit[:3] == pytest.approx(plain_fit(h.difference, h.unsupported, h.noise), rel=1e-9, abs=1e-12)
        assert fit.tests == TESTS


def test_leaving_one_out_and_running_fits_are_fits_of_fewer_tests() -> None:
    h = drawn(1.2, 0.1, 3, tests=12)
    for j, (without, so_far) in enumerate(zip(h.leave_one_out(), h.running(), strict=True)):
        others = np.arange(12) != j
        assert without[:3] == pytest.approx(
            plain_fit(h.difference[others], h.unsupported[others], h.noise[others]), rel=1e-9, abs=1e-12
        )
        first = slice(0, j + 1)
        assert so_far[:3] == pytest.approx(
            plain_fit(h.difference[first], h.unsupported[first], h.noise[first]), rel=1e-9, abs=1e-12
        )
        assert (without.tests, so_far.tests) == (11, j + 1)
    assert h.running()[-1] == pytest.approx(h.fit())


def test_tests_without_an_unsupported_part_do_not_count() -> None:
    h = drawn(1.3, 0.1, 1, tests=15)
    t, d, s2 = h.unsupported.copy(), h.difference.copy(), h.noise.copy()
    t[2], d[5], s2[9], s2[11] = 0.0, np.nan, 0.0, np.nan
    some = np.setdiff1d(np.arange(15), [2, 5, 9, 11])
    fit = History(d, t, s2).fit()
    assert fit.tests == 11
    assert fit[:3] == pytest.approx(plain_fit(d[some], t[some], s2[some]))
    weights = History(d, t, s2).weights(fit)
    pull = t[some] ** 2 / (s2[some] + fit.tau2 * t[some] ** 2)
    assert weights[some] == pytest.approx(pull / pull.sum())
    assert weights[[2, 5, 9, 11]].tolist() == [0.0] * 4
    nothing = History(d, np.full(15, 1e-14), s2)
    assert not nothing.fit().known
    assert np.isnan(nothing.fit().gamma)
    assert "nothing to learn" in (nothing.fit().doubt() or "")
    assert nothing.weights(nothing.fit()).tolist() == [0.0] * 15


@pytest.mark.slow
def test_known_gamma_is_estimated_without_bias_and_its_interval_contains_it() -> None:
    """400 histories: the mean of Γ0 within 3 standard errors of the truth; coverage of 95 % within 3.5 points; τ²
    biased by its floor at 0 only."""
    gamma, tau = 1.17, 0.10
    fits = [drawn(gamma, tau, seed).fit() for seed in range(400)]
    gammas = np.array([fit.gamma for fit in fits])
    assert abs(gammas.mean() - gamma) < 3.0 * gammas.std(ddof=1) / 20.0
    coverage = np.mean([fit.interval()[0] <= gamma <= fit.interval()[1] for fit in fits])
    assert 0.915 <= coverage <= 0.985
    assert np.mean([fit.variance for fit in fits]) == pytest.approx(gammas.var(ddof=1), rel=0.2)
    assert np.mean([fit.tau2 for fit in fits]) == pytest.approx(tau**2, rel=0.35)


def test_without_anything_to_learn_it_is_not_used() -> None:
    used = [drawn(1.0, 0.07, 1000 + seed).fit().doubt() is None for seed in range(100)]
    assert np.mean(used) <= 0.10


@pytest.mark.slow
def test_calibrated_limits_contain_the_truth_as_often_as_they_should() -> None:
    """The true uplift of a new test, Γ_j its own: 90 % limits by the fit of the others contain it in about 90 %."""
    covered, plain = [], []
    for seed in range(100):
        g = np.random.default_rng([6, seed])
        t = g.gamma(2.0, 0.1, TESTS)
        x_error, y_error = 0.03 + 0.05 * t, np.full(TESTS, 0.025)
        truth = g.normal(size=TESTS) * 0.05
        x = truth - (0.17 + 0.08 * g.normal(size=TESTS)) * t + x_error * g.normal(size=TESTS)
        y = truth + y_error * g.normal(size=TESTS)
        for j, fit in enumerate(History(y - x, t, x_error**2 + y_error**2).leave_one_out()):
            moved = apply(fit, x[j], t[j], x_error[j] ** 2, 0.9)
            covered.append(moved.lower <= truth[j] <= moved.upper)
            plain.append(abs(x[j] - truth[j]) <= 1.6449 * x_error[j])
    assert np.mean(covered) == pytest.approx(0.90, abs=0.02)
    assert np.mean(plain) < 0.80


def test_limits_are_normal_with_the_printed_variance() -> None:
    moved = apply(Fit(1.2, 0.004, 0.01, 30), 0.05, 0.3, 0.0009, 0.8)
    assert moved.value == pytest.approx(0.05 + 0.2 * 0.3)
    assert moved.error == pytest.approx(np.sqrt(0.0009 + 0.09 * 0.014))
    z = stats.norm.ppf(0.9)
    assert (moved.lower, moved.upper) == pytest.approx((moved.value - z * moved.error, moved.value + z * moved.error))


def test_when_a_fit_is_used() -> None:
    half = stats.t.ppf(0.975, 9) * 0.1
    fit = Fit(1.5, 0.01, 0.0, 10)
    assert fit.interval() == pytest.approx((1.5 - half, 1.5 + half))
    assert fit.doubt() is None
    assert "only 9 tests" in (fit._replace(tests=9).doubt() or "")
    assert "contains 1" in (fit._replace(gamma=1.0 + 0.99 * half).doubt() or "")
    assert fit._replace(gamma=1.0 + 1.01 * half).doubt() is None
    assert fit._replace(gamma=1.0 - 1.01 * half).doubt() is None
    assert all(np.isnan(Fit(1.5, 0.01, 0.0, 1).interval()))
