"""log h along caps and bounds: against plain NumPy, and against the kernels of one cap and one bound."""

from __future__ import annotations

import numpy as np
import pytest

from foretest.kernels.normaliser import adaptive_caps_of_draws, two_sided_means
from foretest.kernels.point_path import path_of_draws, path_of_rankings

CAPS = np.array([1.0, 3.0, 30.0, 1e4])
BOUNDS = np.array([1.5, 2.0, 4.0, 20.0, 500.0])


def capped_mass(t: np.ndarray, p: np.ndarray, cap: float) -> float:
    return float(np.minimum(t, cap * p).sum())


def largest_cap(t: np.ndarray, p: np.ndarray, bound: float) -> float:
    """c̃ by bisection on its log; 0 where there is none."""
    if p[t > 0].sum() < (1.0 - 1e-12) / bound:
        return 0.0
    low, high = -80.0, np.log(bound) + 1e-9
    for _ in range(200):
        mid = (low + high) / 2.0
        low, high = (mid, high) if np.exp(mid) <= bound * capped_mass(t, p, np.exp(mid)) else (low, mid)
    return float(np.exp(low))


@pytest.mark.parametrize("spread", [0.3, 2.0, 6.0])
def test_over_all_rankings(spread: float) -> None:
    """Displays with different numbers of rankings, asked for in another order than they stand in."""
    g = np.random.default_rng(int(10 * spread))
    counts = g.integers(2, 31, size=20)
    starts = np.cumsum(counts) - counts
    p = np.concatenate([g.dirichlet(np.ones(n)) for n in counts])
    t = p * np.exp(spread * g.normal(size=len(p)))
    t /= np.repeat(np.add.reduceat(t, starts), counts)
    shown = starts + g.integers(counts)
    order = g.permutation(20)
    log_w = np.log(t[shown] / p[shown])
    caps_of, bounds_of = path_of_rankings(t, p, starts[order], counts[order], log_w[order], CAPS, BOUNDS)
    for display, of_caps, of_bounds in zip(order, caps_of, bounds_of, strict=True):
        own = slice(starts[display], starts[display] + counts[display])
        w = np.exp(log_w[display])
        expected = [min(w, c) / capped_mass(t[own], p[own], c) for c in CAPS]
        np.testing.assert_allclose(np.exp(of_caps), expected, rtol=1e-12)
        caps = [largest_cap(t[own], p[own], b) for b in BOUNDS]
        expected = [min(w, c) / capped_mass(t[own], p[own], c) for c in caps]
        np.testing.assert_allclose(np.exp(of_bounds), expected, rtol=1e-8)
        assert (np.exp(of_bounds) <= BOUNDS * (1.0 + 1e-12)).all()


def test_a_bound_that_no_cap_keeps_gives_1() -> None:
    """P_p(W > 0) = 0.2: no cap for a bound below 5 (the counter-example to the printed appendix)."""
    t, p = np.array([1.0, 0.0, 0.0]), np.array([0.2, 0.5, 0.3])
    bounds = np.array([2.0, 4.0, 5.0, 6.0])
    _, of_bounds = path_of_rankings(t, p, np.array([0]), np.array([3]), np.log([5.0]), CAPS, bounds)
    np.testing.assert_allclose(np.exp(of_bounds), [[1.0, 1.0, 5.0, 5.0]], rtol=1e-12)


def test_on_draws_as_one_cap_or_one_bound_at_a_time() -> None:
    g = np.random.default_rng(3)
    log_draws = 2.5 * g.normal(size=(40, 64))
    log_w = 2.5 * g.normal(size=40)
    most = np.full(40, np.inf)
    of_caps, of_bounds = path_of_draws(np.exp(log_draws), log_w, most, CAPS, BOUNDS)
    for k, cap in enumerate(CAPS):
        q = two_sided_means(log_draws, cap, False)
        np.testing.assert_allclose(of_caps[:, k], np.minimum(log_w, np.log(cap)) - np.log(q), atol=1e-12)
    for k, bound in enumerate(BOUNDS):
        cap, q, _ = adaptive_caps_of_draws(np.exp(log_draws), bound)
        some = q > 0.0
        np.testing.assert_allclose(
            of_bounds[some, k], np.minimum(log_w, np.log(cap))[some] - np.log(q[some]), atol=1e-9
        )
        assert (of_bounds[~some, k] == 0.0).all()


def test_where_no_weight_is_larger_nothing_is_cut() -> None:
    """The certificate: with no ranking above e, q = 1 at larger caps, whatever the draws are."""
    draws = np.full((1, 8), 1.2)
    of_caps, of_bounds = path_of_draws(draws, np.array([0.7]), np.array([1.0]), CAPS, BOUNDS)
    np.testing.assert_array_equal(of_caps[0, 1:], [0.7] * 3)
    np.testing.assert_array_equal(of_bounds[0, 2:], [0.7] * 3)
    assert of_caps[0, 0] != 0.7


def test_weights_of_any_size() -> None:
    log_w = np.array([-np.inf, -690.0, 690.0])
    draws = np.exp(np.tile(np.linspace(-700.0, 700.0, 16), (3, 1)))
    of_caps, of_bounds = path_of_draws(draws, log_w, np.full(3, np.inf), CAPS, BOUNDS)
    assert np.isneginf(of_caps[0]).all()
    assert np.isfinite(of_caps[1:]).all()
    assert not np.isnan(of_bounds).any()
    np.testing.assert_allclose(of_bounds[2], np.log(BOUNDS), atol=1e-9)
