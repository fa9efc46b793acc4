"""Several uplifts at once: Holm against the step-down procedure, quantiles against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from foretest.inference.multiple_testing import holm, normal_quantile, resampled_quantile, two_sided_p

# Benjamini and Hochberg (1995), table of 15 cardiac end points, and Holm's adjustment by hand: (16 − rank)·p, rising
END_POINTS = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
              0.7590, 1.0]  # fmt: skip
HOLM = [0.0015, 0.0056, 0.0247, 0.114, 0.2211, 0.278, 0.278, 0.278, 0.3213, *[1.0] * 6]


def step_down(p: np.ndarray, alpha: float) -> list[bool]:
    """Holm's procedure as he wrote it: reject the smallest while p ≤ α/(m − how many are rejected)."""
    rejected = [False] * len(p)
    for step, at in enumerate(np.argsort(p)):
        if p[at] > alpha / (len(p) - step):
            break
        rejected[at] = True
    return rejected


def test_holm_on_a_published_table() -> None:
    assert holm(END_POINTS) == pytest.approx(HOLM, abs=1e-12)
    assert holm(END_POINTS[::-1]) == pytest.approx(HOLM[::-1], abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_holm_rejects_as_the_step_down_procedure_does(seed: int) -> None:
    p = np.random.default_rng(seed).random(7) ** 3
    for alpha in (0.01, 0.05, 0.1, 0.4):
        assert [q <= alpha for q in holm(p)] == step_down(p, alpha)


def test_one_p_value_stays_as_it_is_and_an_unknown_one_counts() -> None:
    assert holm([0.03]) == [0.03]
    assert holm([0.03, float("nan")])[0] == 0.06
    assert np.isnan(holm([0.03, float("nan")])[1])


def test_p_values() -> None:
    assert two_sided_p(-1.3, 0.7, 1000) == pytest.approx(2 * stats.norm.sf(1.3 / 0.7), rel=1e-12)
    assert two_sided_p(1.3, 0.7, 12) == pytest.approx(2 * stats.t.sf(1.3 / 0.7, 11), rel=1e-12)
    assert two_sided_p(1e-14, 1e-17, 1000, control=0.1) == 1.0  # rounding, not an uplift
    assert two_sided_p(0.1, 0.0, 1000) == 0.0
    assert np.isnan(two_sided_p(0.1, float("nan"), 1))


@pytest.mark.parametrize("count", [1, 3, 6])
def test_the_largest_of_independent_normals(count: int) -> None:
    """P(max |Z_j| ≤ q) = (2Φ(q) − 1)^J."""
    influences = np.eye(count).repeat(50, axis=0) * np.tile([1.0, -1.0], 25 * count)[:, None]
    wanted = stats.norm.ppf(0.5 + 0.9 ** (1 / count) / 2)
    # the quantile's own standard error, √(level(1 − level)/n)/density, is 0.0046 for one
    assert normal_quantile(influences, 0.9, 1000, seed=0) == pytest.approx(wanted, abs=0.015)


def test_the_same_treatment_many_times_is_one() -> None:
    g = np.random.default_rng(0)
    column = g.normal(size=(200, 1))
    one, many = (normal_quantile(np.repeat(column, k, axis=1), 0.9, 1000, seed=3) for k in (1, 4))
    assert (one, many) == (pytest.approx(1.6449, abs=0.015), pytest.approx(1.6449, abs=0.015))
    deviations = g.normal(size=(500, 1))
    alone = np.quantile(np.abs(deviations[:, 0]) / 0.7, 0.9)
    for k in (1, 4):
        copies = resampled_quantile(np.repeat(deviations, k, axis=1), np.full(k, 0.7), 0.9)
        assert copies == pytest.approx(alone, rel=1e-12)


def test_under_30_units_the_quantile_is_students() -> None:
    column = np.random.default_rng(0).normal(size=(12, 1))
    assert normal_quantile(column, 0.9, 12, seed=0) == pytest.approx(stats.t.ppf(0.95, 11), abs=0.02)


def test_the_largest_of_resampled_deviations() -> None:
    deviations = np.array([[1.0, 0.0, 5.0], [0.0, -6.0, 5.0], [2.0, 2.0, 5.0], [np.nan, np.nan, np.nan]])
    # over se (1, 2, 0): max of (1, 0), (0, 3), (2, 1); the third column has no spread
    errors = np.array([1.0, 2.0, 0.0])
    assert resampled_quantile(deviations, errors, 0.5) == 2.0
    assert resampled_quantile(deviations, np.zeros(3), 0.5) == 0.0
