"""The test of days: Cochran's Q where they are independent, its covariance where they are not, and its level."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from foretest.inference.heterogeneity import DayEstimate, heterogeneity


def days_of(uplifts: np.ndarray, influence: np.ndarray) -> list[DayEstimate]:
    return [DayEstimate(float(u), x) for u, x in zip(uplifts, influence, strict=True)]


def test_independent_days_have_cochrans_q() -> None:
    rng = np.random.default_rng(0)
    days, each = 6, 40
    influence = np.zeros((days, days * each))
    for d in range(days):  # buckets of its own: no covariance
        influence[d, d * each : (d + 1) * each] = rng.normal(scale=0.01 * (d + 1), size=each)
    uplifts = rng.normal(0.05, 0.1, days)
    test = heterogeneity(days_of(uplifts, influence), 10_000)
    buckets = days * each
    weight = 1.0 / (buckets / (buckets - 1) * np.square(influence).sum(axis=1))
    mean = (weight @ uplifts) / weight.sum()
    q = float(weight @ np.square(uplifts - mean))
    assert test is not None
    assert test.chi2 == pytest.approx(q, rel=1e-9)
    assert (test.df, test.days) == (5, 6)
    assert test.p_value == pytest.approx(stats.f.sf(q * (buckets - 5) / (5 * (buckets - 1)), 5, buckets - 5), rel=1e-9)


def test_correlated_days_use_their_covariance() -> None:
    rng = np.random.default_rng(1)
    influence = rng.multivariate_normal(np.zeros(3), 1e-4 * (0.3 * np.eye(3) + 0.7), 200).T
    uplifts = np.array([0.02, 0.05, 0.11])
    v = 200 / 199 * influence @ influence.T
    contrast = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    d = contrast @ uplifts
    expected = float(d @ np.linalg.inv(contrast @ v @ contrast.T) @ d)
    test = heterogeneity(days_of(uplifts, influence), 10_000)
    assert test is not None
    assert test.chi2 == pytest.approx(expected, rel=1e-9)


def test_where_it_cannot_be_run() -> None:
    rng = np.random.default_rng(2)
    influence = rng.normal(size=(5, 18))
    uplifts = rng.normal(size=5)
    assert heterogeneity(days_of(uplifts, influence), 100) is None  # 18 buckets for 5 days
    assert heterogeneity(days_of(uplifts[:4], influence[:4]), 15) is None  # 15 units
    assert heterogeneity(days_of(uplifts[:4], influence[:4]), 18) is not None
    assert heterogeneity(days_of(uplifts[:1], influence[:1]), 18) is None
    uplifts[2] = np.nan
    test = heterogeneity(days_of(uplifts[:4], influence[:4]), 18)
    assert test is not None
    assert test.days == 3
    assert heterogeneity([DayEstimate(0.1, np.ones(20)), DayEstimate(0.1, np.zeros(20))], 20) is None


def test_its_level_is_as_it_says() -> None:
    """Means of users who come on several days, without a difference between days: p is uniform."""
    rng = np.random.default_rng(3)
    below, runs = 0, 600
    for _ in range(runs):
        users = rng.normal(size=(60, 1)) + rng.normal(size=(60, 7))  # users × days, correlated within a user
        means = users.mean(axis=0)
        test = heterogeneity(days_of(means, (users - means).T / 60), 60)
        assert test is not None
        below += test.p_value < 0.1
    assert below / runs == pytest.approx(0.1, abs=3 * np.sqrt(0.09 / runs))
