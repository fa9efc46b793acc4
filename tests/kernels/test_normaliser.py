"""The normaliser's kernels: draws against enumeration, enumeration against itertools, caps against bisection."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretest.displays.ragged import Ragged
from foretest.kernels.enumeration import enumerate_all, masses_of_rankings
from foretest.kernels.normaliser import (
    adaptive_cap,
    adaptive_caps_of_draws,
    capped_mass,
    squares_of_draws,
    two_sided_means,
)
from foretest.kernels.plackett_luce import log_prob
from foretest.kernels.ranking_draws import LOG_W, W, Z, draws
from foretest.weights.policy_pair import NONE, NOT_SHOWN
from tests.support import read_only

Scores = list[float]


def logsumexp(x: np.ndarray) -> float:
    most = x.max()
    return float(most + np.log(np.exp(x - most).sum()))


def log_probs(scores: Scores, k: int) -> np.ndarray:
    """log π of every ranking, in the order of itertools.permutations."""
    x = np.array(scores)
    return np.array(
        [sum(x[a] - logsumexp(np.delete(x, r[:i])) for i, a in enumerate(r)) for r in permutations(range(len(x)), k)]
    )


def enumerated(t: Scores, p: Scores, k: int) -> tuple[np.ndarray, np.ndarray]:
    return np.exp(log_probs(t, k)), np.exp(log_probs(p, k))


def drawn(
    t: Scores,
    p: Scores,
    k: int,
    count: int,
    *,
    from_treatment: bool = True,
    want: int = LOG_W,
    cap: float = np.nan,
    zero: bool = False,
    first: int = 0,
    key: int = 5,
) -> np.ndarray:
    start = np.zeros(1, np.int64)
    return draws(
        read_only(t), start, read_only(p), start, np.array([len(t)]), np.array([k]), 1.0, 1.0,
        np.array([key], np.uint64), 3, 4, 4, first, *((count, 0) if from_treatment else (0, count)), want, cap, zero,
        NONE, NONE, NOT_SHOWN,
    )[0]  # fmt: skip


def assert_mean(sample: np.ndarray, values: np.ndarray, probability: np.ndarray) -> None:
    """The sample's mean is that of `values` within 4 of its exact standard errors."""
    mean = probability @ values
    se = np.sqrt(probability @ (values - mean) ** 2 / len(sample))
    assert abs(sample.mean() - mean) <= 4 * se + 1e-12, (sample.mean(), mean, se)


DISPLAYS = {
    "one slot": ([0.0, 1.0, 2.0], [1.0, 0.0, -1.0], 1),
    "ordinary": ([0.0, 1.0, 2.0, -1.0, 0.5], [1.0, 0.0, -1.0, 0.3, 0.2], 3),
    "all slots": ([0.0, 1.0, 2.5, -1.0], [1.0, 0.0, -1.0, 0.3], 4),
    # one item has nearly all the mass: after it, tails are summed anew and the rest is scanned
    "peaked": ([9.0, 0.0, 1.0, 0.5], [8.0, 1.0, 0.0, -0.5], 3),
    "peaked apart": ([12.0, 0.0, 1.0, 0.5], [0.0, 9.0, 0.0, -0.5], 3),
    # beyond the range of products: Gumbel draws priced in log space
    "spread": ([300.0, 299.0, 298.5, 0.0], [299.0, 300.0, 298.0, 0.0], 2),
    "spread far": ([0.5, 0.0, -700.0], [0.0, 1.5, -400.0], 2),
}


@pytest.mark.parametrize("name", DISPLAYS)
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("cap", [0.5, 1.5, 6.0])
def test_z_has_mean_q(name: str, zero: bool, cap: float) -> None:
    t, p, k = DISPLAYS[name]
    alpha, beta = enumerated(t, p, k)
    mass = np.where(alpha < cap * beta, alpha, 0.0) if zero else np.minimum(alpha, cap * beta)
    if not name.startswith("spread"):  # the last slot is summed out: one value for each a_1..a_{K−1}
        alpha, mass = (side.reshape(-1, len(t) - k + 1).sum(axis=1) for side in (alpha, mass))
    z = drawn(t, p, k, 20_000, want=Z, cap=cap, zero=zero)
    assert z.min() >= 0.0
    assert z.max() <= 1.0
    assert_mean(z, np.divide(mass, alpha, out=np.zeros_like(mass), where=alpha > 0), alpha)


def test_one_slot_is_summed_out_altogether() -> None:
    t, p, _ = DISPLAYS["one slot"]
    alpha, beta = enumerated(t, p, 1)
    np.testing.assert_allclose(drawn(t, p, 1, 5, want=Z, cap=1.5), np.minimum(alpha, 1.5 * beta).sum(), rtol=1e-14)


@pytest.mark.parametrize("name", DISPLAYS)
def test_weights_from_either_policy(name: str) -> None:
    t, p, k = DISPLAYS[name]
    alpha, beta = enumerated(t, p, k)
    w = np.exp(log_probs(t, k) - log_probs(p, k))
    for cap in (0.5, 2.0):
        log_w = drawn(t, p, k, 20_000, from_treatment=False)
        assert_mean(np.minimum(np.exp(log_w), cap), np.minimum(w, cap), beta)
        log_w = drawn(t, p, k, 20_000, from_treatment=True)
        assert_mean(np.exp(np.minimum(0.0, np.log(cap) - log_w)), np.minimum(1.0, cap / w), alpha)


@pytest.mark.parametrize("name", DISPLAYS)
def test_drawn_weights_are_weights_of_rankings(name: str) -> None:
    t, p, k = DISPLAYS[name]
    possible = log_probs(t, k) - log_probs(p, k)
    for from_treatment in (True, False):
        log_w = drawn(t, p, k, 200, from_treatment=from_treatment)
        assert np.abs(log_w[:, None] - possible).min(axis=1).max() < 1e-9


def test_temperatures_divide_the_scores() -> None:
    start, length, key = np.zeros(1, np.int64), np.array([3]), np.array([1], np.uint64)
    t, p = read_only([0.0, 1.0, 2.0]), read_only([2.0, 0.0, 1.0])
    slots, how = np.array([2]), (key, 0, 0, 0, 0, 50, 0, LOG_W, np.nan, False, NONE, NONE, NOT_SHOWN)
    hot = draws(t, start, p, start, length, slots, 0.5, 4.0, *how)
    same = draws(read_only(t * 0.5), start, read_only(p * 4.0), start, length, slots, 1.0, 1.0, *how)
    np.testing.assert_allclose(hot, same, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", DISPLAYS)
def test_weights_are_the_exponentials_of_their_logarithms(name: str) -> None:
    t, p, k = DISPLAYS[name]
    for from_treatment in (True, False):
        w = drawn(t, p, k, 100, want=W, from_treatment=from_treatment)
        np.testing.assert_allclose(w, np.exp(drawn(t, p, k, 100, from_treatment=from_treatment)), rtol=1e-12)


@pytest.mark.parametrize("name", ["ordinary", "peaked apart", "spread"])
@pytest.mark.parametrize("want", [LOG_W, W, Z])
def test_a_draw_depends_on_its_number_and_key_alone(name: str, want: int) -> None:
    t, p, k = DISPLAYS[name]
    whole = drawn(t, p, k, 40, want=want, cap=1.5)
    parts = [drawn(t, p, k, 7, want=want, cap=1.5), drawn(t, p, k, 33, want=want, cap=1.5, first=7)]
    assert np.array_equal(np.concatenate(parts), whole)
    assert not np.array_equal(drawn(t, p, k, 40, want=want, cap=1.5, key=6), whole)
    # the same display among longer and shorter ones
    lists = [[0.0] * 9, t, [1.0, 2.0]]
    values = np.concatenate(lists)
    others = np.concatenate([[1.0] * 9, p, [0.0, 5.0]])
    lengths = np.array([len(x) for x in lists])
    starts = np.cumsum(lengths) - lengths
    among = draws(
        read_only(values), starts, read_only(others), starts, lengths, np.array([2, k, 1]), 1.0, 1.0,
        np.array([1, 5, 2], np.uint64), 3, 4, 4, 0, 40, 0, want, 1.5, False, NONE, NONE, NOT_SHOWN,
    )  # fmt: skip
    assert np.array_equal(among[1], whole)


@pytest.mark.parametrize("name", DISPLAYS)
@pytest.mark.parametrize("zero", [False, True])
def test_both_policies_at_once_are_each_alone(name: str, zero: bool) -> None:
    """Weights, logarithms or not, and the mean z of the treatment's rankings at the cap and at a third of it."""
    t, p, k = DISPLAYS[name]
    start, means = np.zeros(1, np.int64), np.empty((1, 2))
    display = (read_only(t), start, read_only(p), start, np.array([len(t)]), np.array([k]), 1.0, 1.0)
    for want in (LOG_W, W):
        both = draws(*display, np.array([5], np.uint64), 3, 4, 4, 2, 30, 20, want, 1.5, zero, means, NONE, NOT_SHOWN)[0]
        assert np.array_equal(both[:30], drawn(t, p, k, 30, want=want, first=2))
        assert np.array_equal(both[30:], drawn(t, p, k, 20, want=want, first=2, from_treatment=False))
        z, low = (drawn(t, p, k, 30, want=Z, cap=cap, zero=zero, first=2) for cap in (1.5, 0.5))
        np.testing.assert_allclose(means[0], [z.mean(), low.mean()], rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 2000.0])
def test_drawn_rankings_are_priced_as_the_policy_prices_them(spread: float, dtype: type) -> None:
    """Scores 30 apart leave tails to be added up anew, scores 2 000 apart are drawn and priced in log space."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 13, 200)
    slots = np.minimum(lengths, rng.integers(1, 6, 200))
    t, p = (Ragged.packed((spread * rng.normal(size=lengths.sum())).astype(dtype), lengths) for _ in range(2))
    keys = np.arange(200).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    log_p, shown = np.full((200, 5), np.nan), np.full((200, 3, 4), -1, np.int32)
    every = np.full((200, 5, 5), -1, np.int32)
    for positions in (shown, every):
        log_w = draws(
            read_only(t.values), t.starts, read_only(p.values), p.starts, lengths, slots, 1.0 / 0.7, 1.0 / 0.7,
            keys, 3, 4, 4, 0, 0, 5, LOG_W, np.nan, False, NONE, log_p, positions,
        )  # fmt: skip
    assert np.array_equal(shown, np.where(np.arange(4) < slots[:, None, None], every[:, :3, :4], -1))
    for d in range(5):
        rankings = Ragged.of([every[i, d, : slots[i]] for i in range(200)])
        flat = read_only(rankings.values)
        assert all(len(set(rankings[i])) == slots[i] and rankings[i].max() < lengths[i] for i in range(200))
        of_t, of_p = (
            log_prob(read_only(s.values), s.starts, lengths, flat, rankings.starts, rankings.lengths, 1.0 / 0.7)
            for s in (t, p)
        )
        np.testing.assert_allclose(log_p[:, d], of_p, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(log_w[:, d], of_t - of_p, rtol=1e-11, atol=1e-11)


def test_a_long_ranking_is_priced_beyond_the_smallest_double() -> None:
    """200 of 400 equal items: π = 200!/400!, 1e-494."""
    start, p, log_p = np.zeros(1, np.int64), read_only(np.zeros(400)), np.empty((1, 3))
    draws(
        p, start, p, start, np.array([400]), np.array([200]), 1.0, 1.0, np.array([1], np.uint64), 3, 4, 4, 0, 0, 3,
        LOG_W, np.nan, False, NONE, log_p, NOT_SHOWN,
    )  # fmt: skip
    np.testing.assert_allclose(log_p, -np.log(np.arange(201, 401)).sum(), rtol=1e-12)


def enumerated_by_kernel(
    t: Scores, p: Scores, k: int, *, cap: float = np.nan, zero: bool = False, bound: float = np.nan
) -> tuple[float, float]:
    start = np.zeros(1, np.int64)
    caps, q, _, _ = enumerate_all(
        read_only(t), start, read_only(p), start, np.array([len(t)]), np.array([k]), 1.0, 1.0, 1000, cap, zero, bound
    )
    return caps[0], q[0]


both_scores = st.integers(1, 5).flatmap(
    lambda m: st.tuples(
        st.lists(st.floats(-15, 15), min_size=m, max_size=m),
        st.lists(st.floats(-15, 15), min_size=m, max_size=m),
        st.integers(1, m),
    )
)


@settings(max_examples=60, deadline=None)
@given(both_scores, st.floats(0.01, 100))
def test_enumeration_equals_itertools(display: tuple[Scores, Scores, int], cap: float) -> None:
    t, p, k = display
    alpha, beta = enumerated(t, p, k)
    _, q = enumerated_by_kernel(t, p, k, cap=cap)
    assert q == pytest.approx(np.minimum(alpha, cap * beta).sum(), rel=1e-12)
    # under zero capping, but for weights within rounding of the cap
    near = np.abs(alpha / (cap * beta) - 1.0) < 1e-9
    _, q = enumerated_by_kernel(t, p, k, cap=cap, zero=True)
    assert q == pytest.approx(alpha[(alpha < cap * beta) & ~near].sum(), abs=1e-12 + alpha[near].sum())


@pytest.mark.parametrize("name", DISPLAYS)
def test_enumeration_of_every_kind_of_display(name: str) -> None:
    t, p, k = DISPLAYS[name]
    alpha, beta = enumerated(t, p, k)
    for cap in (0.2, 3.0):
        _, q = enumerated_by_kernel(t, p, k, cap=cap)
        assert q == pytest.approx(np.minimum(alpha, cap * beta).sum(), rel=1e-12)
    assert enumerated_by_kernel(t, p, k, cap=np.inf)[1] == pytest.approx(1.0, rel=1e-12)


def test_enumeration_of_rows_of_different_sizes() -> None:
    rows = [DISPLAYS[name] for name in ("ordinary", "one slot", "spread", "all slots")]
    lengths = np.array([len(t) for t, _, _ in rows])
    starts = np.cumsum(lengths) - lengths
    slots = np.array([k for _, _, k in rows])
    t, p = (np.concatenate([row[side] for row in rows]) for side in (0, 1))
    both = read_only(t), starts, read_only(p), starts
    _, q, _, _ = enumerate_all(*both, lengths, slots, 1.0, 1.0, 60, 1.5, False, np.nan)
    np.testing.assert_allclose(q, [enumerated_by_kernel(*row, cap=1.5)[1] for row in rows], rtol=1e-14)


def bisected(alpha: np.ndarray, beta: np.ndarray, bound: float) -> float:
    """The largest c with c ≤ bound·q(c), by halving log c."""
    low, high = np.log(1e-250), np.log(2 * bound)
    for _ in range(200):
        middle = 0.5 * (low + high)
        c = np.exp(middle)
        low, high = (middle, high) if c <= bound * np.minimum(alpha, c * beta).sum() else (low, middle)
    return float(np.exp(low))


def masses(size: int) -> st.SearchStrategy[list[float]]:
    return st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1.0)), min_size=size, max_size=size)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 8).flatmap(lambda m: st.tuples(masses(m), masses(m))), st.floats(1.0, 1000.0))
def test_the_adaptive_cap_is_the_largest(both: tuple[list[float], list[float]], bound: float) -> None:
    alpha, beta = np.array(both[0]), np.array(both[1])
    if alpha.sum() == 0.0 or beta.sum() == 0.0:
        return
    alpha, beta = alpha / alpha.sum(), beta / beta.sum()
    reach = beta[alpha > 0].sum()
    if abs(reach * bound - 1.0) < 1e-9:
        return  # on the edge, rounding decides
    cap, q = adaptive_cap(alpha, beta, len(alpha), bound)
    if reach * bound < 1.0:
        assert (cap, q) == (0.0, 0.0)
        return
    assert q == pytest.approx(np.minimum(alpha, cap * beta).sum(), rel=1e-14)
    assert cap / q <= bound * (1.0 + 1e-12)
    # the slope of q(c) − c/bound at the root may be near 0, where c is known less well than q(c) − c/bound
    assert cap >= bisected(alpha, beta, bound) * (1.0 - 1e-12 / abs(reach * bound - 1.0))


@settings(max_examples=60, deadline=None)
@given(both_scores, st.floats(1.01, 200.0))
def test_no_normalised_weight_is_above_the_bound(display: tuple[Scores, Scores, int], bound: float) -> None:
    t, p, k = display
    alpha, beta = enumerated(t, p, k)
    cap, q = enumerated_by_kernel(t, p, k, bound=bound)
    assert q > 0.0  # every ranking has a positive probability: always feasible
    assert cap / q <= bound * (1.0 + 1e-12)
    assert q == pytest.approx(np.minimum(alpha, cap * beta).sum(), rel=1e-10)
    assert cap == pytest.approx(bisected(alpha, beta, bound), rel=1e-8)


def test_the_infeasible_example_and_its_edge() -> None:
    beta, alpha = np.array([0.2, 0.5, 0.3]), np.array([1.0, 0.0, 0.0])
    assert adaptive_cap(alpha, beta, 3, 4.0) == (0.0, 0.0)
    assert adaptive_cap(alpha, beta, 3, 4.999) == (0.0, 0.0)
    cap, q = adaptive_cap(alpha, beta, 3, 5.0)
    assert (cap, q) == pytest.approx((5.0, 1.0), rel=1e-15)
    cap, q = adaptive_cap(alpha, beta, 3, 8.0)
    assert (cap, q) == pytest.approx((8.0, 1.0), rel=1e-15)


def test_a_cap_solved_by_hand() -> None:
    # for 1/9 < c < 9, q(c) = .1 + .1c, and c/q = 2 at c = .1/(1/2 − .1)
    cap, q = adaptive_cap(np.array([0.1, 0.9]), np.array([0.9, 0.1]), 2, 2.0)
    assert (cap, q) == pytest.approx((0.25, 0.125), rel=1e-14)


def test_the_capped_mass_by_hand() -> None:
    alpha, beta = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.5, 0.4, 0.07, 0.03])
    assert capped_mass(alpha, beta, 4, 3.0, False) == pytest.approx(0.1 + 0.2 + 0.21 + 0.09, rel=1e-15)
    assert capped_mass(alpha, beta, 4, 3.0, True) == pytest.approx(0.3, rel=1e-15)
    # a weight equal to the cap is set to 0
    assert capped_mass(np.array([0.5, 0.5]), np.array([0.25, 0.75]), 2, 2.0, True) == 0.5


def two_sided(log_w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """α and β of draws half from each policy."""
    with np.errstate(over="ignore"):
        return 2 / (1 + np.exp(-log_w)) / log_w.shape[-1], 2 / (1 + np.exp(log_w)) / log_w.shape[-1]


def some_draws() -> np.ndarray:
    log_w = np.random.default_rng(0).normal(scale=3.0, size=(20, 64))
    log_w[0, :3] = [800.0, -800.0, -np.inf]
    return log_w


def test_caps_of_draws_solve_the_equation_on_the_draws() -> None:
    log_w = some_draws()
    with np.errstate(over="ignore"):
        cap, q, _ = adaptive_caps_of_draws(np.exp(log_w), 10.0)
    for i in range(20):
        alpha, beta = two_sided(log_w[i])
        assert q[i] == pytest.approx(np.minimum(alpha, cap[i] * beta).sum(), rel=1e-12)
        assert cap[i] / q[i] <= 10.0 * (1.0 + 1e-12)
        assert cap[i] == pytest.approx(bisected(alpha, beta, 10.0), rel=1e-8)


@pytest.mark.parametrize("cap", [0.1, 2.0, 1e6])
def test_two_sided_means_by_numpy(cap: float) -> None:
    log_w = some_draws()
    alpha, beta = two_sided(log_w)
    np.testing.assert_allclose(
        two_sided_means(log_w, cap, False), np.minimum(alpha, cap * beta).sum(axis=1), rtol=1e-12
    )
    expected = np.where(log_w < np.log(cap), alpha, 0.0).sum(axis=1)
    np.testing.assert_allclose(two_sided_means(log_w, cap, True), expected, rtol=1e-12)


@pytest.mark.parametrize("zero", [False, True])
def test_squares_of_draws_and_of_all_rankings_by_numpy(zero: bool) -> None:
    log_w = some_draws()
    caps = np.geomspace(0.1, 1e4, 20)
    with np.errstate(over="ignore"):
        w = np.exp(log_w)
    kept = np.where(w < caps[:, None], w, 0.0 if zero else caps[:, None])
    expected = (kept**2 * two_sided(log_w)[1]).sum(axis=1)
    np.testing.assert_allclose(squares_of_draws(w, caps, zero), expected, rtol=1e-12)
    t, p, k = DISPLAYS["ordinary"]
    alpha, beta = enumerated(t, p, k)
    # the second display has rankings that one of the policies never shows
    both = np.append(alpha, [0.5, 0.5, 0.0]), np.append(beta, [0.5, 0.0, 0.5])
    starts, counts = np.array([0, len(alpha)]), np.array([len(alpha), 3])
    for cap in (0.5, 3.0):
        kept = np.where(alpha < cap * beta, alpha / beta, 0.0 if zero else cap)
        caps, q, squares, low = masses_of_rankings(*both, starts, counts, cap, zero, np.nan)
        assert (caps == 0.0).all()
        assert squares == pytest.approx([beta @ kept**2, 0.5 if cap > 1.0 else 0.0 if zero else 0.125], rel=1e-12)
        assert q == pytest.approx([beta @ kept, 0.5 if cap > 1.0 else 0.0 if zero else 0.25], rel=1e-12)
        assert low[0] == pytest.approx(capped_mass(alpha, beta, len(alpha), cap / 3.0, zero), rel=1e-12)
    adaptive, q, squares, low = masses_of_rankings(*both, starts, counts, np.nan, False, 4.0)
    assert (adaptive[0], q[0]) == pytest.approx(adaptive_cap(alpha, beta, len(alpha), 4.0), rel=1e-14)
    assert (adaptive[1], q[1]) == pytest.approx((2.0, 0.5), rel=1e-14)  # c/q = 4, q = min(.5, c/2) up to c = 1
    assert squares[0] == pytest.approx(np.minimum(alpha, adaptive[0] * beta) @ np.minimum(alpha / beta, adaptive[0]))
    assert low[1] == pytest.approx(1.0 / 3.0, rel=1e-14)
