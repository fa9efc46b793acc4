"""Always-valid intervals and daily looks, against the law of the looks computed another way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal, norm

from foretest.inference.always_valid import always_valid_interval, always_valid_quantile, mixture_variance
from foretest.inference.peeking import PATHS, false_alarm


def quantile(units: float, tuned_at: int, level: float) -> float:
    return always_valid_quantile(units, mixture_variance(tuned_at, level), level)


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("units", [100, 10_000, 3_000_000])
def test_the_mixture_is_the_best_for_its_number_of_units(level: float, units: int) -> None:
    best = minimize_scalar(
        lambda log_v: always_valid_quantile(units, np.exp(log_v) / units, level), (0.0, 4.0), method="brent", tol=1e-12
    )
    assert mixture_variance(units, level) == pytest.approx(np.exp(best.x) / units, rel=1e-5)
    assert quantile(units, units, level) == pytest.approx(best.fun, rel=1e-12)


def test_the_mixture_is_robbins() -> None:
    """∫ exp(λS − λ²V/2) dN(λ; 0, ρ²), the mixture of likelihood ratios, is 1/α at the boundary S = q·√V (V = n)."""
    level, units, variance = 0.9, 500, 0.004
    boundary = always_valid_quantile(units, variance, level) * np.sqrt(units)
    lam = np.linspace(-2.0, 2.0, 400_001)
    log_ratio = lam * boundary - lam**2 * units / 2.0
    mixed = np.trapezoid(np.exp(log_ratio) * norm.pdf(lam, scale=np.sqrt(variance)), lam)
    assert mixed == pytest.approx(1.0 / (1.0 - level), rel=1e-6)


def test_how_much_a_wrong_number_of_units_costs() -> None:
    """What the default is chosen by: the quantile at other sizes, over the best for that size."""
    for units, cost in ((1_000, 1.30), (10_000, 1.0), (100_000, 1.08), (1_000_000, 1.21)):
        assert quantile(units, 10_000, 0.9) / quantile(units, units, 0.9) == pytest.approx(cost, abs=0.01)


def test_an_interval_without_an_error() -> None:
    assert always_valid_interval(1.0, 0.5, 2.0) == (0.0, 2.0)
    assert np.isnan(always_valid_interval(1.0, float("nan"), 2.0)).all()
    assert np.isnan(always_valid_quantile(0, 0.1, 0.9))


@pytest.mark.slow
def test_the_boundary_is_crossed_at_most_as_often_as_promised() -> None:
    """Looks at every unit up to 3,000, of 4,000 tests without an effect: known variance 1."""
    g, level = np.random.default_rng(5), 0.9
    units = np.arange(1, 3_001)
    bound = np.array([quantile(n, 1_000, level) for n in units]) * np.sqrt(units)
    crossed = np.concatenate(
        [(np.abs(np.cumsum(g.standard_normal((500, 3_000)), axis=1)) > bound).any(axis=1) for _ in range(8)]
    )
    assert crossed.mean() < 1.0 - level
    assert crossed.mean() > 0.04  # it is not idle either


def recursion(information: list[float], level: float) -> float:
    """Armitage, McPherson and Rowe (1969): the density of the sum among tests without an alarm, look by look."""
    bound, so_far = norm.ppf(0.5 + level / 2.0), information[0]
    grid = np.linspace(-bound * np.sqrt(so_far), bound * np.sqrt(so_far), 801)
    density = norm.pdf(grid, scale=np.sqrt(so_far))
    for step in information[1:]:
        so_far += step
        after = np.linspace(-bound * np.sqrt(so_far), bound * np.sqrt(so_far), 801)
        kernel = norm.pdf(after[:, None] - grid[None, :], scale=np.sqrt(step))
        density, grid = np.trapezoid(kernel * density, grid, axis=1), after
    return 1.0 - float(np.trapezoid(density, grid))


@pytest.mark.parametrize(
    ("information", "level"),
    [([1.0] * 2, 0.95), ([1.0] * 5, 0.9), ([1.0] * 20, 0.9), ([3.0, 1.0, 0.5, 4.0, 2.0, 0.2], 0.8)],
)
def test_daily_looks_by_recursion(information: list[float], level: float) -> None:
    expected = recursion(information, level)
    error = np.sqrt(expected * (1.0 - expected) / PATHS)
    assert false_alarm(information, level) == pytest.approx(expected, abs=4.0 * error)


def test_daily_looks_by_the_joint_normal_law() -> None:
    information, level = np.array([2.0, 1.0, 3.0]), 0.9
    so_far = np.cumsum(information)
    correlation = np.sqrt(np.minimum.outer(so_far, so_far) / np.maximum.outer(so_far, so_far))
    bound = np.full(3, norm.ppf(0.95))
    inside = multivariate_normal.cdf(bound, cov=correlation, lower_limit=-bound, abseps=1e-7, maxpts=10**6)
    assert false_alarm(information.tolist(), level) == pytest.approx(1.0 - inside, abs=0.004)
    assert recursion(information.tolist(), level) == pytest.approx(1.0 - inside, abs=1e-5)


def test_looks_as_in_the_literature() -> None:
    """Armitage, McPherson and Rowe's table at 5 %: 2, 5 and 10 looks; and one look, or days without any display."""
    for looks, published in ((2, 0.083), (5, 0.142), (10, 0.193)):
        assert false_alarm([1.0] * looks, 0.95) == pytest.approx(published, abs=0.002)
    page = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "sequential.md").read_text(encoding="utf-8")
    looks = (1, 2, 5, 7, 14, 20, 30)
    assert f"| looks | {' | '.join(map(str, looks))} |" in page
    assert f"| false alarm | {' | '.join(f'{100 * false_alarm([1.0] * k, 0.9):.0f} %' for k in looks)} |" in page
    assert false_alarm([7.0], 0.9) == pytest.approx(0.1)
    assert false_alarm([0.0, 7.0, 0.0], 0.9) == pytest.approx(0.1)
    assert false_alarm([1.0] * 5, 0.9) == false_alarm([10.0] * 5, 0.9)
