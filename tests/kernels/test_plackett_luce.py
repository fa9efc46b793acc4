"""Plackett-Luce: log-probabilities against plain NumPy and 60-digit arithmetic, draws against enumeration."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretest.displays.ragged import Ragged
from foretest.kernels.plackett_luce import log_prob, log_prob_by_tails, log_weight_bound, sample
from foretest.kernels.random import uniforms


def logsumexp(x: np.ndarray) -> float:
    most = x.max()
    return float(most + np.log(np.exp(x - most).sum()))


def log_probs(scores: Ragged, rankings: Ragged, temperature: float = 1.0) -> np.ndarray:
    return log_prob(
        scores.values,
        scores.starts,
        scores.lengths,
        rankings.values,
        rankings.starts,
        rankings.lengths,
        1.0 / temperature,
    )


def of_one(scores: list[float], ranking: list[int], temperature: float = 1.0) -> float:
    return log_probs(Ragged.of([np.array(scores, float)]), Ragged.of([np.array(ranking)]), temperature)[0]


def plain(scores: np.ndarray, ranking: np.ndarray, temperature: float = 1.0) -> float:
    x = np.asarray(scores, float) / temperature
    return sum(x[a] - logsumexp(np.delete(x, ranking[:k])) for k, a in enumerate(ranking))


def precise(scores: list[float], ranking: list[int]) -> float:
    """The same in 60 digits, with exponents that no score can exhaust."""
    with localcontext(Context(prec=60, Emin=-(10**6), Emax=10**6)):
        odds = [Decimal(s).exp() for s in scores]
        p = Decimal(1)
        for k, a in enumerate(ranking):
            p *= odds[a] / sum((o for j, o in enumerate(odds) if j not in ranking[:k]), Decimal(0))
        return float(p.ln())


def every(m: int, k: int) -> np.ndarray:
    return np.array(list(permutations(range(m), k)), np.int32)


@pytest.mark.parametrize(
    "among", [[], [40.0, 0.0, 0.1, -0.2], [1e4, -1e4, 3.0], [np.nan, 1.0, 2.0], [np.inf, 1.0, 2.0]]
)
def test_rows_that_adjoin_do_not_disturb_each_other(among: list[float]) -> None:
    """Rows are priced in blocks of 1 024 scores: a row of any kind among them changes no other."""
    g = np.random.default_rng(4)
    rows = [g.normal(size=n) for n in g.integers(3, 90, 60)]
    rows.insert(20, np.array(among) if among else g.normal(size=1500))  # longer than a block
    rankings = [g.permutation(len(row))[:3] for row in rows]
    found = log_probs(Ragged.of(rows), Ragged.of(rankings))
    for row, ranking, answer in zip(rows, rankings, found, strict=True):
        if np.isfinite(row).all():
            assert answer == pytest.approx(plain(row, ranking), rel=1e-12)
        else:
            assert np.isnan(answer)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 7.0])
def test_ragged_rows_against_numpy(kind: type, temperature: float) -> None:
    rng = np.random.default_rng(1)
    scores = [(3 * rng.normal(size=m)).astype(kind) for m in rng.integers(1, 30, 200)]
    rankings = [rng.permutation(len(s))[: rng.integers(1, len(s) + 1)].astype(np.int32) for s in scores]
    got = log_probs(Ragged.of(scores), Ragged.of(rankings), temperature)
    expected = [plain(s, r, temperature) for s, r in zip(scores, rankings, strict=True)]
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)


def test_rows_may_be_any_part_of_the_values() -> None:
    scores, rankings = Ragged.of([[0.0, 1.0, 2.0], [5.0], [3.0, -1.0]]), Ragged.of([[2, 0], [0], [1]])
    rows = np.array([2, 0, 0])
    got = log_probs(scores.take(rows), rankings.take(rows))
    np.testing.assert_allclose(got, [plain(scores[i], rankings[i]) for i in rows], rtol=1e-14)


def test_single_precision_columns_are_computed_in_double() -> None:
    scores = np.random.default_rng(2).normal(size=40).astype(np.float32)
    ranking = Ragged.of([np.arange(20)])
    single = log_probs(Ragged.of([scores]), ranking)
    assert single[0] == log_probs(Ragged.of([scores.astype(np.float64)]), ranking)[0]


@pytest.mark.parametrize(
    ("scores", "ranking"),
    [
        ([40.0, 0.0, 0.1, -0.2], [0, 2, 1]),  # a tail by subtraction would have no digit left
        ([40.0, 0.0, 0.1, -0.2], [2, 1, 3]),
        ([700.0, 0.0, 1.0], [0, 1]),
        ([800.0, -800.0, 0.0, -799.0], [0, 2, 3, 1]),
        ([800.0, -800.0, 0.0, -799.0], [1, 3, 2, 0]),
        ([690.7755, 0.0], [1]),  # probability 1e-300
        ([0.0, -650.0, -650.5, -651.0], [1, 2, 3]),
        ([0.0, -644.0, -645.0, -646.0, -1290.0, -1291.0], [0, 1, 2, 3, 4]),
        ([1e-9, 0.0, -1e-9], [2, 1, 0]),
        ([-1e6, -1e6 + 2.0], [0]),
    ],
)
def test_dominant_items_against_60_digits(scores: list[float], ranking: list[int]) -> None:
    expected = precise(scores, ranking)
    assert of_one(scores, ranking) == pytest.approx(expected, rel=1e-13, abs=1e-14)
    x = np.array(scores) - max(scores)
    by_tails = log_prob_by_tails(x, len(x), np.array(ranking), len(ranking))
    assert by_tails == pytest.approx(expected, rel=1e-13, abs=1e-14)


rows = st.lists(st.floats(-800, 800), min_size=1, max_size=6).flatmap(
    lambda scores: st.tuples(
        st.just(scores),
        st.permutations(range(len(scores))).flatmap(lambda o: st.integers(1, len(o)).map(lambda k: list(o[:k]))),
    )
)


@settings(max_examples=150, deadline=None)
@given(rows)
def test_any_spread_of_scores_against_60_digits(row: tuple[list[float], list[int]]) -> None:
    # 1600 apart, s − max alone may be rounded by 1e-13
    assert of_one(*row) == pytest.approx(precise(*row), rel=1e-12, abs=1e-12)


def test_many_slots_neither_overflow_nor_underflow() -> None:
    ranking = list(range(999, -1, -1))
    expected = plain(np.zeros(1000), np.array(ranking))  # −log 1000!
    assert of_one([0.0] * 1000, ranking) == pytest.approx(expected, rel=1e-13)
    spread = np.linspace(0.0, 300.0, 1000)
    assert of_one(spread.tolist(), ranking) == pytest.approx(plain(spread, np.array(ranking)), rel=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_gives_nan_in_its_row_alone(bad: float) -> None:
    scores = Ragged.of([[0.0, 1.0], [0.0, bad], [bad], [2.0, 0.0]])
    got = log_probs(scores, Ragged.of([[0], [0], [0], [0]]))
    assert np.isnan(got).tolist() == [False, True, True, False]


def drawn(scores: list[float], k: int, draws: int, temperature: float = 1.0) -> np.ndarray:
    u = uniforms(11, 0, np.arange(1, dtype=np.uint64), 0, draws, k)[0]
    lists = Ragged(np.array(scores), np.zeros(draws, np.int64), np.full(draws, len(scores)))
    slots = np.full(draws, k)
    out = np.empty(draws * k, np.int32)
    sample(lists.values, lists.starts, lists.lengths, slots, 1.0 / temperature, u, out)
    return out.reshape(draws, k)


@pytest.mark.parametrize(
    ("scores", "k", "temperature"),
    [
        ([0.0, 1.0, -0.5, 2.0], 2, 1.0),
        ([0.0, 1.0, 1.0], 3, 0.5),
        ([3.0, 1.0], 1, 2.0),
        ([700.0, 0.0, 0.5, -0.5], 3, 1.0),
    ],
)
def test_draws_have_the_enumerated_frequencies(scores: list[float], k: int, temperature: float) -> None:
    from scipy.stats import chisquare

    rankings = every(len(scores), k)
    p = np.exp([plain(np.array(scores), r, temperature) for r in rankings])
    code = {tuple(r): i for i, r in enumerate(rankings.tolist())}
    draws = drawn(scores, k, 40_000, temperature)
    counts = np.bincount([code[tuple(r)] for r in draws.tolist()], minlength=len(p))
    possible = p > 1e-12
    assert counts[~possible].sum() == 0
    assert chisquare(counts[possible], 40_000 * p[possible] / p[possible].sum()).pvalue > 1e-4


def bound(t: np.ndarray, p: np.ndarray, k: int, t_temperature: float = 1.0, p_temperature: float = 1.0) -> float:
    start, length = np.zeros(1, np.int64), np.array([len(t)])
    return log_weight_bound(
        t, start, p, start, length, np.array([k]), 1.0 / t_temperature, 1.0 / p_temperature
    )[0]  # fmt: skip


scores_of_both = st.integers(1, 5).flatmap(
    lambda m: st.tuples(
        st.lists(st.floats(-20, 20), min_size=m, max_size=m),
        st.lists(st.floats(-20, 20), min_size=m, max_size=m),
        st.integers(1, m),
    )
)


@settings(max_examples=80, deadline=None)
@given(scores_of_both)
def test_no_weight_is_above_its_bound(both: tuple[list[float], list[float], int]) -> None:
    t, p, k = np.array(both[0]), np.array(both[1]), both[2]
    most = max(plain(t, r, 0.8) - plain(p, r, 1.7) for r in every(len(t), k))
    assert most <= bound(t, p, k, 0.8, 1.7) + 1e-9


@pytest.mark.parametrize("k", [1, 3, 5])
def test_the_bound_is_exact_for_equal_policies(k: int) -> None:
    s = np.random.default_rng(3).normal(size=5)
    assert bound(s, s.copy(), k) == 0.0
    # scores are known up to a constant, and temperature is a scale
    assert abs(bound(2 * s + 1.0, s, k, 2.0, 1.0)) < 1e-14


def test_the_bound_is_exact_for_one_slot_and_a_boosted_item() -> None:
    # log w of the boosted item: its own gain less the growth of the sum
    t, p = np.array([1.0, 0.0, 0.0]), np.zeros(3)
    assert bound(t, p, 1) == pytest.approx(1.0 + np.log(3.0) - np.log(np.e + 2.0), rel=1e-14)
