"""P(item in slot) of every policy, against all rankings enumerated; of one that does not know it, from draws."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.policies.adapter import as_policy
from foretest.weights.policy_pair import PolicyPair
from foretest.weights.slot_marginals import DRAWS, counted_notes, knows_marginals, slot_marginals

POLICIES = {
    "plackett-luce": ft.PlackettLuce(scores="s"),
    "plackett-luce, cold": ft.PlackettLuce(scores="s", temperature=0.3),
    "thurstone": ft.Thurstone(scores="s", sigma=0.8),
    "mallows": ft.Mallows(scores="s", dispersion=0.6),
    "mallows, wide": ft.Mallows(scores="s", dispersion=0.99),
    "epsilon-greedy": ft.EpsilonGreedy(scores="s", epsilon=0.3),
    "deterministic": ft.EpsilonGreedy(scores="s", epsilon=0.0),
    "top-k": ft.TopK(scores="s"),
    "swap-neighbours": ft.SwapNeighbours(scores="s", swap=0.2),
    "mixture": ft.Mixture([(0.7, ft.PlackettLuce(scores="s")), (0.3, ft.EpsilonGreedy(scores="s", epsilon=0.1))]),
}


class Plain:
    """A user's own policy, of which only the two answers are known."""

    columns = ("s",)

    def __init__(self, inside: Any) -> None:
        self.inside = inside

    def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> np.ndarray:
        return self.inside.log_prob(displays, rankings)

    def sample(self, displays: ft.Displays, uniforms: np.ndarray) -> ft.Ragged:
        return self.inside.sample(displays, uniforms)


def displays_of(sizes: list[int], slots: list[int], seed: int = 0) -> ft.Displays:
    g = np.random.default_rng(seed)
    scores = ft.Ragged.of([np.round(g.normal(size=m), 1) for m in sizes])  # rounded: with ties
    ranking = ft.Ragged.of([np.arange(k, dtype=np.int32) for k in slots])
    return ft.Displays({"s": scores}, ranking, scores.lengths, np.arange(len(sizes)).astype(np.uint64))


def enumerated(policy: Any, displays: ft.Displays, row: int) -> np.ndarray:
    m, k = int(displays.eligible[row]), int(displays.slots[row])
    rankings = np.array(list(permutations(range(m), k)), np.int32)
    p = np.exp(policy.log_prob(displays.take(np.full(len(rankings), row)), ft.Ragged.of(rankings)))
    assert p.sum() == pytest.approx(1.0, rel=1e-7)
    return np.array([[p[rankings[:, slot] == item].sum() for item in range(m)] for slot in range(k)])


@pytest.mark.parametrize("name", POLICIES)
def test_all_rankings_enumerated(name: str) -> None:
    policy = POLICIES[name]
    displays = displays_of([3, 8, 5, 1, 6, 8], [2, 3, 4, 1, 3, 4])
    assert knows_marginals(policy)
    found = slot_marginals(policy, displays, PolicyPair(policy, policy), np.zeros(6))
    for row in range(6):
        wanted = enumerated(policy, displays, row)
        np.testing.assert_allclose(found[row].reshape(wanted.shape), wanted, rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", POLICIES)
def test_a_thousand_items_in_twenty_slots(name: str) -> None:
    policy = POLICIES[name]
    displays = displays_of([1000, 900], [20, 7], seed=2)
    found = slot_marginals(policy, displays, PolicyPair(policy, policy), np.zeros(2))
    for row, shape in enumerate([(20, 1000), (7, 900)]):
        table = found[row].reshape(shape)
        np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-9)
        assert table.min() >= 0.0
        assert table.sum(axis=0).max() <= 1.0 + 1e-9


def test_the_middle_of_a_long_mallows_sort() -> None:
    """The first slot is the geometric law itself; an item that is not first is later, by exchange of the two steps."""
    policy = ft.Mallows(scores="s", dispersion=0.9)
    table = policy.marginals_by_rank(300, 2)
    first = 0.9 ** np.arange(300) * 0.1 / (1 - 0.9**300)
    np.testing.assert_allclose(table[0], first, rtol=1e-10)
    second = 0.9 ** np.arange(299) * 0.1 / (1 - 0.9**299)
    above, below = np.cumsum(first) - first, np.cumsum(first[::-1])[::-1] - first
    wanted = above * np.insert(second, 0, 0.0) + below * np.append(second, 0.0)
    np.testing.assert_allclose(table[1], wanted, rtol=1e-10)


def test_draws_where_a_policy_does_not_know() -> None:
    policy = as_policy(Plain(ft.PlackettLuce(scores="s")))
    displays = displays_of([6, 5], [3, 2], seed=4)
    assert not knows_marginals(policy)
    assert not knows_marginals(ft.Mixture([(0.5, policy), (0.5, ft.PlackettLuce(scores="s"))]))
    pair = PolicyPair(policy, ft.PlackettLuce(scores="s"))
    assert len(counted_notes(pair)) == 1
    assert "treatment" in counted_notes(pair)[0]
    found = slot_marginals(policy, displays, pair, np.zeros(2))
    for row in range(2):
        wanted = enumerated(policy, displays, row)
        counted = found[row].reshape(wanted.shape) * (DRAWS + 1)
        shown = (wanted * 0.0).copy()
        shown[np.arange(len(wanted)), np.arange(len(wanted))] = 1.0  # the shown ranking is one draw more
        error = np.sqrt(wanted * (1 - wanted) * DRAWS)
        assert np.abs(counted - shown - DRAWS * wanted).max() < 4 * error.max()
        np.testing.assert_allclose(counted.sum(axis=1), DRAWS + 1, rtol=1e-12)
        assert np.abs(counted - np.round(counted)).max() < 1e-9


def test_draws_of_many_displays_are_those_of_each() -> None:
    """However displays are cut into batches, the counts of each are its own."""
    policy = as_policy(Plain(ft.Mallows(scores="s", dispersion=0.7)))
    displays = displays_of([4] * 200, [2] * 200, seed=5)
    pair = PolicyPair(policy, policy)
    whole = slot_marginals(policy, displays, pair, np.zeros(200))
    for row in (0, 57, 199):
        alone = slot_marginals(policy, displays.take(np.array([row])), pair, np.zeros(1))
        np.testing.assert_array_equal(alone[0], whole[row])
