"""P(item in slot) by a race: enumeration, closed forms, digits that stay, cost."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from foretest.displays.ragged import Ragged
from foretest.kernels import slot_marginals as kernel


def plackett_luce(scores: list[np.ndarray], slots: list[int], temperature: float = 1.0) -> list[np.ndarray]:
    """The kernel's answer, slots × items for each list."""
    lists, k = Ragged.of(scores), np.array(slots, np.int64)
    ends = np.cumsum(lists.lengths * k)
    starts, out = ends - lists.lengths * k, np.full(int(ends[-1]), np.nan)
    kernel.plackett_luce(lists.values, lists.starts, lists.lengths, k, 1.0 / temperature, out, starts)
    return [out[a:b].reshape(n, -1) for a, b, n in zip(starts, ends, slots, strict=True)]


def enumerated(scores: np.ndarray, slots: int) -> np.ndarray:
    """Summed over all rankings, in long doubles; only additions of positive numbers."""
    theta = np.exp(scores.astype(np.longdouble))
    table = np.zeros((slots, len(scores)), np.longdouble)
    for ranking in permutations(range(len(scores)), slots):
        left, p = set(range(len(scores))), np.longdouble(1.0)
        for item in ranking:
            p *= theta[item] / theta[sorted(left)].sum()
            left.remove(item)
        for slot, item in enumerate(ranking):
            table[slot, item] += p
    return table


@pytest.mark.parametrize(("m", "k"), [(1, 1), (2, 2), (4, 1), (5, 2), (6, 3), (7, 4), (6, 6), (8, 4)])
@pytest.mark.parametrize("spread", [0.0, 1.0, 5.0])
def test_all_rankings_enumerated(m: int, k: int, spread: float) -> None:
    scores = spread * np.random.default_rng(m).normal(size=m)
    [found] = plackett_luce([scores], [k])
    np.testing.assert_allclose(found, enumerated(scores, k).astype(float), rtol=3e-9)


@pytest.mark.parametrize(("m", "k"), [(6, 2), (6, 4), (5, 5)])
def test_scores_far_apart_lose_no_digit(m: int, k: int) -> None:
    """30 apart, marginals down to 1e-34: relative to each."""
    g = np.random.default_rng(m)
    for _ in range(5):
        scores = np.concatenate([[0.0, -30.0], g.uniform(-30.0, 0.0, m - 2)])
        wanted = enumerated(scores, k).astype(float)
        assert wanted.min() < 1e-12
        np.testing.assert_allclose(plackett_luce([scores], [k])[0], wanted, rtol=3e-9)


def test_many_slots_of_scores_far_apart() -> None:
    """Beyond 8 slots items are divided out of the counts of all: as many digits, against products of counts."""
    g = np.random.default_rng(3)
    scores = [np.concatenate([[0.0, -30.0], g.uniform(-30.0, 0.0, 10)]), 3.0 * g.normal(size=12)]
    for s in scores:
        [nine] = plackett_luce([s], [9])
        [eight] = plackett_luce([s], [8])
        np.testing.assert_allclose(nine[:8], eight, rtol=3e-9)


def test_lists_of_different_lengths_and_a_temperature() -> None:
    g = np.random.default_rng(1)
    sizes, slots = [3, 6, 4, 1], [2, 3, 4, 1]
    scores = [g.normal(size=m).astype(np.float32) for m in sizes]
    for found, s, k in zip(plackett_luce(scores, slots, temperature=0.5), scores, slots, strict=True):
        np.testing.assert_allclose(found, enumerated(s / np.float32(0.5), k).astype(float), rtol=1e-6)


@pytest.mark.parametrize("spread", [0.5, 2.0, 6.0])
def test_a_thousand_items_in_twenty_slots(spread: float) -> None:
    """Rows sum to 1, no item is shown more than once, and the second slot has a closed form."""
    scores = spread * np.random.default_rng(7).normal(size=1000)
    [found] = plackett_luce([scores], [20])
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert found.min() >= 0.0
    assert found.sum(axis=0).max() <= 1.0 + 1e-9
    theta = np.exp(scores - scores.max())
    theta /= theta.sum()
    odds = theta / (theta.sum() - theta)
    np.testing.assert_allclose(found[0], theta, rtol=1e-12)
    np.testing.assert_allclose(found[1], theta * (odds.sum() - odds), rtol=1e-8)


def test_two_kinds_of_items_in_twenty_slots() -> None:
    """990 items of one score and 10 of another: how likely a slot shows one of the 10, by the urn's own recursion."""
    few, many, odds, slots = 10, 990, 40.0, 20
    reached = {few: 1.0}  # how many of the few are left, with its probability
    wanted = []
    for slot in range(slots):
        share = {left: odds * left / (odds * left + many - (slot - (few - left))) for left in reached}
        wanted.append(sum(p * share[left] for left, p in reached.items()))
        following: dict[int, float] = {}
        for left, p in reached.items():
            following[left] = following.get(left, 0.0) + p * (1.0 - share[left])
            if left:
                following[left - 1] = following.get(left - 1, 0.0) + p * share[left]
        reached = following
    scores = np.concatenate([np.full(few, np.log(odds)), np.zeros(many)])
    [found] = plackett_luce([scores], [slots])
    np.testing.assert_allclose(found[:, :few].sum(axis=1), wanted, rtol=1e-9)


def test_scores_that_nothing_can_tell_apart_or_compare() -> None:
    """Equal scores share every slot; scores 5 000 apart are still finite, and fill all slots."""
    [equal] = plackett_luce([np.full(50, 3.25)], [12])
    np.testing.assert_allclose(equal, 1.0 / 50, rtol=1e-12)
    [apart] = plackett_luce([np.array([0.0, -5000.0, 5000.0])], [3])
    np.testing.assert_allclose(apart.sum(axis=1), 1.0, rtol=1e-12)
    assert apart[0, 2] == pytest.approx(1.0, rel=1e-12)
