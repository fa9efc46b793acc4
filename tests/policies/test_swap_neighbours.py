"""Neighbours swapped, against every way to swap them."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.kernels.hashing import hash_integers
from foretest.policies import SwapNeighbours

SCORES = [0.5, 2.0, 0.5, -1.0, 3.0, -7.0, 3.0]


def display(m: int, rankings: list[tuple[int, ...]]) -> Displays:
    n = len(rankings)
    lists = Ragged(np.array(SCORES[:m]), np.zeros(n, np.int64), np.full(n, m))
    return Displays({"s": lists}, Ragged.of(np.array(rankings, np.int32)), lists.lengths, hash_integers(np.arange(n)))


def every_swap(m: int, k: int, p: float) -> dict[tuple[int, ...], float]:
    """The probability of every ranking, by going through the kinds and through all swaps of each."""
    order = sorted(range(m), key=lambda item: (-SCORES[item], item))
    probability: dict[tuple[int, ...], float] = {}
    reach = min(k + 1, m)
    for begin in (0, 1):
        pairs = [(i, i + 1) for i in range(begin, reach - 1, 2)]
        for swaps in product((False, True), repeat=len(pairs)):
            shown = list(order)
            for (i, j), swap in zip(pairs, swaps, strict=True):
                if swap:
                    shown[i], shown[j] = shown[j], shown[i]
            weight = 0.5 * float(np.prod([p if swap else 1 - p for swap in swaps]))
            ranking = tuple(shown[:k])
            probability[ranking] = probability.get(ranking, 0.0) + weight
    return probability


@pytest.mark.parametrize("p", [0.0, 0.01, 0.3, 0.5])
@pytest.mark.parametrize("m", range(1, 8))
def test_all_rankings_and_slots(m: int, p: float) -> None:
    policy = SwapNeighbours("s", p)
    for k in range(1, m + 1):
        every, wanted = list(permutations(range(m), k)), every_swap(m, k, p)
        rows = display(m, every)
        got = np.exp(policy.log_prob(rows, rows.ranking))
        np.testing.assert_allclose(got, [wanted.get(ranking, 0.0) for ranking in every], rtol=1e-13, atol=1e-300)
        assert got.sum() == pytest.approx(1.0, abs=1e-13)
        table = policy.slot_marginals(rows.take(np.zeros(1, np.int64)))[0].reshape(k, m)
        for slot in range(k):
            for item in range(m):
                total = sum(q for ranking, q in wanted.items() if ranking[slot] == item)
                assert table[slot, item] == pytest.approx(total, abs=1e-15)


def test_the_rank_formula() -> None:
    """Five items, three slots: a pair of each kind reaches below the last slot."""
    table = SwapNeighbours("s", 0.2).marginals_by_rank(5, 3)
    wanted = [[0.9, 0.1, 0.0, 0.0, 0.0], [0.1, 0.8, 0.1, 0.0, 0.0], [0.0, 0.1, 0.8, 0.1, 0.0]]
    np.testing.assert_allclose(table, wanted, atol=1e-15)


def test_prefixes_have_the_probability_of_all_that_begin_so() -> None:
    """As the cascade estimator asks: of a policy that shows four items, the first two."""
    policy, wanted = SwapNeighbours("s", 0.3), every_swap(6, 4, 0.3)
    rows = display(6, [tuple(range(4))] * 30)
    prefixes = list(permutations(range(6), 2))
    got = np.exp(policy.log_prob(rows, Ragged.of(np.array(prefixes, np.int32))))
    np.testing.assert_allclose(got, [sum(q for a, q in wanted.items() if a[:2] == b) for b in prefixes], atol=1e-15)


def test_draws_swap_as_often_as_they_should() -> None:
    count, p = 60_000, 0.15
    rows = display(6, [tuple(range(4))] * count)
    drawn = SwapNeighbours("s", p).sample(rows, np.random.default_rng(3).random((count, 7))).flat().reshape(-1, 4)
    wanted = every_swap(6, 4, p)
    shown, counts = np.unique(drawn, axis=0, return_counts=True)
    assert {tuple(a) for a in shown.tolist()} == set(wanted)
    for ranking, n in zip(shown.tolist(), counts.tolist(), strict=True):
        q = wanted[tuple(ranking)]
        assert abs(n - count * q) < 4.5 * np.sqrt(count * q * (1 - q))


def test_tiny_probabilities_keep_their_digits() -> None:
    """Three swaps of the first kind at p = 1e-120."""
    order = sorted(range(7), key=lambda item: (-SCORES[item], item))
    swapped = [order[i] for i in (1, 0, 3, 2, 5, 4)]
    rows = display(7, [tuple(swapped)])
    got = SwapNeighbours("s", 1e-120).log_prob(rows, rows.ranking)[0]
    assert got == pytest.approx(np.log(0.5) + 3 * np.log(1e-120), rel=1e-14)


@pytest.mark.parametrize("swap", [-0.1, 0.51, np.nan, np.inf, True, "often", None])
def test_a_wrong_swap_is_refused(swap: object) -> None:
    with pytest.raises(BadInput, match=r"^swap = .*: expected a number from 0 to 0\.5, the probability that a pair is"):
        SwapNeighbours("s", swap)  # type: ignore[arg-type]
