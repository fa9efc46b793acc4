"""Weights at several bounds at once, against enumeration in plain NumPy and against one bound at a time."""

from __future__ import annotations

import numpy as np
import pytest

from foretest.weights.normaliser import Masses, Normaliser
from tests.weights.test_normaliser import displays, normaliser, probabilities, various

BOUNDS = (2.0, 3.0, 10.0, 100.0, 1e6)


def by_bisection(t: np.ndarray, p: np.ndarray, bound: float) -> tuple[float, float]:
    """c̃ and q of one display; (0, 0) where there is none."""
    if p[t > 0.0].sum() < (1.0 - 1e-12) / bound:
        return 0.0, 0.0
    low, high = 0.0, bound
    for _ in range(200):
        c = (low + high) / 2
        low, high = (c, high) if c <= bound * np.minimum(t, c * p).sum() else (low, c)
    return low, float(np.minimum(t, low * p).sum())


@pytest.mark.parametrize("kind", ["fused", "generic"])
def test_all_rankings_against_the_definition(kind: str) -> None:
    rows, own = various(12), normaliser(kind, "exact")
    masses = own.at_bounds(rows, BOUNDS)
    for row in range(len(rows)):
        t, p = probabilities(rows, row, own)
        weights = []
        for at, bound in enumerate(BOUNDS):
            c, q = by_bisection(t, p, bound)
            uncut = t.max() > 0 and (t / p).max() <= bound
            c, q = (bound, 1.0) if uncut else (c, q)
            assert masses.q[row, at] == pytest.approx(q, rel=1e-9)
            if not uncut:
                assert masses.cap[row, at] == pytest.approx(c, rel=1e-9)
            assert masses.q_below[row, at] == pytest.approx(np.minimum(t, masses.cap[row, at] / 3 * p).sum(), rel=1e-9)
            weights.append(np.minimum(t / p, c) / q if q else np.ones(len(t)))
        for a, first in enumerate(weights):
            assert masses.gains[row, a] == pytest.approx(p @ np.maximum(first - weights[0], 0.0), rel=1e-8, abs=1e-12)
            for b, other in enumerate(weights):
                assert masses.products[row, a, b] == pytest.approx(p @ (first * other), rel=1e-9)


def test_many_rankings_against_the_definition() -> None:
    """840 rankings are more than one block; two far bounds cut nothing off, and have the same weights."""
    g = np.random.default_rng(8)
    rows, own = displays(g.normal(size=(3, 7)).tolist(), (2 * g.normal(size=(3, 7))).tolist(), [4] * 3), None
    for kind in ("fused", "generic"):
        own = normaliser(kind, "exact")
        masses = own.at_bounds(rows, BOUNDS)
        for row in range(3):
            t, p = probabilities(rows, row, own)
            weights = [np.minimum(t / p, c) / q for c, q in (by_bisection(t, p, bound) for bound in BOUNDS)]
            expected = np.array([[p @ (first * other) for other in weights] for first in weights])
            np.testing.assert_allclose(masses.products[row], expected, rtol=1e-9)
            gains = [p @ np.maximum(other - weights[0], 0.0) for other in weights]
            np.testing.assert_allclose(masses.gains[row], gains, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("method", ["auto", "two-sided", "exact"])
@pytest.mark.parametrize("kind", ["fused", "generic"])
def test_one_bound_at_a_time_is_the_same(kind: str, method: str) -> None:
    rows = various(20)
    own: Normaliser = normaliser(kind, method)
    together = own.at_bounds(rows, BOUNDS)
    for at, bound in enumerate(BOUNDS):
        alone, one = own.at_adaptive_cap(rows, bound), Masses.at_bound(together, at)
        assert one.q == pytest.approx(alone.q, rel=1e-9)
        assert one.squares == pytest.approx(alone.squares, rel=1e-9)
        assert one.q_below == pytest.approx(alone.q_below, rel=1e-9)
        assert one.inverse == pytest.approx(alone.inverse, rel=1e-9)


def test_draws_close_in_on_all_rankings() -> None:
    g = np.random.default_rng(3)
    t, p = g.normal(size=(60, 6)) * 1.5, g.normal(size=(60, 6)) * 1.5
    rows = displays(t.tolist(), p.tolist(), [3] * 60)
    exact, drawn = (normaliser("fused", m, draws=4096).at_bounds(rows, BOUNDS) for m in ("exact", "two-sided"))
    for field in ("q", "products", "gains"):
        a, b = getattr(exact, field).mean(axis=0), getattr(drawn, field).mean(axis=0)
        assert b == pytest.approx(a, rel=0.05, abs=1e-3), field


def test_scores_far_apart_stay_finite() -> None:
    rows = displays([[0.0, -600.0, 5.0], [700.0, 0.0, 1.0]], [[-690.0, 0.0, 3.0], [0.0, 650.0, 2.0]], [2, 1])
    for method in ("exact", "two-sided"):
        for part in normaliser("fused", method).at_bounds(rows, BOUNDS):
            assert np.isfinite(part).all()
