"""Epsilon-greedy against its formula."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.kernels.hashing import hash_integers
from foretest.policies import EpsilonGreedy

SCORES = [0.5, 2.0, 0.5, -1.0]
ORDER = [1, 0, 2, 3]  # the tie goes to the lower position


def rows_of(scores: list[float], ranking: list[int]) -> Displays:
    lists, shown = Ragged.of([np.array(scores)]), Ragged.of([np.array(ranking, np.int32)])
    return Displays({"s": lists}, shown, lists.lengths, hash_integers(np.arange(1)))


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_slot_formula(epsilon: float, k: int) -> None:
    policy = EpsilonGreedy("s", epsilon)
    for ranking in permutations(range(4), k):
        left, expected = list(ORDER), 1.0
        for item in ranking:
            expected *= (1 - epsilon) * (item == left[0]) + epsilon / len(left)
            left.remove(item)
        rows = rows_of(SCORES, list(ranking))
        assert np.exp(policy.log_prob(rows, rows.ranking)[0]) == pytest.approx(expected, rel=1e-13)


def test_quantiles_of_one_slot() -> None:
    rows = rows_of(SCORES, [0])
    # ε = 0.4 of four items: 0.7 for the best, 0.1 for each other
    for u, item in [(1e-9, 1), (0.55, 1), (0.699, 1), (0.701, 0), (0.801, 2), (0.901, 3), (1 - 1e-16, 3)]:
        assert EpsilonGreedy("s", 0.4).sample(rows, np.full((1, 5), u))[0].tolist() == [item]


def test_support_follows_epsilon() -> None:
    assert EpsilonGreedy("s", 0.0).deterministic
    assert not EpsilonGreedy("s", 0.0).full_support
    assert not EpsilonGreedy("s", 1e-9).deterministic
    assert EpsilonGreedy("s", 1e-9).full_support


@pytest.mark.parametrize("epsilon", [-0.1, 1.1, np.nan, True, "some", None])
def test_a_wrong_epsilon_is_refused(epsilon: object) -> None:
    with pytest.raises(BadInput, match=r"^epsilon = .*: expected a number between 0 and 1\.$"):
        EpsilonGreedy("s", epsilon)  # type: ignore[arg-type]
