"""Rankings that a display has several times: priced once, and the same as if all were priced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.policies.repeated_rankings import distinct_rankings, log_probs

COUNT = 16


class Counting(ft.PlackettLuce):
    """A user's policy, which notes how many rankings it is asked about."""

    asked = 0

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        self.asked += len(rankings)
        return super().log_prob(displays, rankings)


def drawn(policy: Any, items: list[int], slots: int) -> tuple[Displays, Ragged]:
    """COUNT rankings of each display, one after the other, and a row for each."""
    rng = np.random.default_rng(4)
    scores, shown = [rng.normal(size=m) for m in items], [np.arange(min(slots, m)) for m in items]
    displays = Displays(
        {"s": Ragged.of(scores)}, Ragged.of(shown), np.array(items), np.arange(len(items)).astype(np.uint64)
    )
    rows = displays.take(np.repeat(np.arange(len(items)), COUNT))
    return rows, policy.sample(rows, rng.uniform(size=(len(rows), max(items) + 1)))


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_the_same_as_all_rankings_priced(temperature: float) -> None:
    """Lists of different lengths; the policies' answers are equal to the last digit, and fewer are asked for."""
    first, second = Counting("s", temperature), ft.PlackettLuce("s", 2.0)
    rows, rankings = drawn(first, [3, 5, 4, 1, 5] * 20, 3)
    for found, policy in zip(log_probs([first, second], rows, rankings, COUNT), (first, second), strict=True):
        np.testing.assert_array_equal(found, ft.PlackettLuce("s", policy.temperature).log_prob(rows, rankings))
    different = {(i // COUNT, *rankings[i].tolist()) for i in range(len(rankings))}
    assert first.asked == len(different) < 0.8 * len(rankings)


@pytest.mark.parametrize("policy", [Counting("s"), ft.Mixture([(0.5, ft.TopK("s")), (0.5, Counting("s"))])])
def test_rankings_that_hardly_repeat_are_priced_as_they_are(policy: Any) -> None:
    rows, rankings = drawn(ft.PlackettLuce("s", 100.0), [30] * 50, 5)
    own = policy.components[1][1] if isinstance(policy, ft.Mixture) else policy
    [found] = log_probs([policy], rows, rankings, COUNT)
    assert own.asked == len(rankings)
    np.testing.assert_array_equal(found, policy.log_prob(rows, rankings))


def test_integrals_are_the_same_too() -> None:
    policy = ft.Thurstone("s", 0.5)
    rows, rankings = drawn(policy, [4, 6] * 30, 3)
    [found] = log_probs([policy], rows, rankings, COUNT)
    np.testing.assert_array_equal(found, policy.log_prob(rows, rankings))


def test_each_row_finds_its_ranking() -> None:
    rows, rankings = drawn(ft.PlackettLuce("s"), [3, 5, 2], 2)
    found = distinct_rankings(rows, rankings, COUNT)
    assert found is not None
    np.testing.assert_array_equal(found.rows[found.place] // COUNT, np.arange(len(rankings)) // COUNT)
    for row, same in enumerate(found.rows[found.place].tolist()):
        assert rankings[row].tolist() == rankings[same].tolist()
    assert len(found.rows) == len({(i // COUNT, *rankings[i].tolist()) for i in range(len(rankings))})


def test_too_many_rankings_for_whole_numbers() -> None:
    rows, rankings = drawn(ft.PlackettLuce("s", 0.001), [70] * 3, 12)
    assert distinct_rankings(rows, rankings, COUNT) is None
    [found] = log_probs([Counting("s", 0.001)], rows, rankings, COUNT)
    np.testing.assert_array_equal(found, ft.PlackettLuce("s", 0.001).log_prob(rows, rankings))
