"""Plackett-Luce as a policy: the softmax, temperature, errors. Its kernel has a file of its own."""

from __future__ import annotations

import numpy as np
import pytest

from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.kernels.hashing import hash_integers
from foretest.policies import PlackettLuce


def display(scores: list[float], ranking: list[int]) -> Displays:
    lists = Ragged.of([np.array(scores)])
    return Displays({"s": lists}, Ragged.of([np.array(ranking, np.int32)]), lists.lengths, hash_integers(np.arange(1)))


def test_one_slot_is_the_softmax() -> None:
    scores, policy = np.array([0.2, 1.4, -3.0]), PlackettLuce("s", temperature=0.5)
    for item in range(3):
        shown = display(scores.tolist(), [item])
        expected = scores[item] / 0.5 - np.log(np.exp(scores / 0.5).sum())
        assert policy.log_prob(shown, shown.ranking)[0] == pytest.approx(expected, rel=1e-14)


def test_two_items_are_bradley_terry() -> None:
    shown = display([0.3, 1.0], [0, 1])
    expected = -np.log1p(np.exp(0.7))
    assert PlackettLuce("s").log_prob(shown, shown.ranking)[0] == pytest.approx(expected, rel=1e-14)


def test_a_low_temperature_shows_the_sort() -> None:
    shown = display([0.0, 2.0, 1.0], [1, 2, 0])
    assert PlackettLuce("s", 1e-6).log_prob(shown, shown.ranking)[0] == 0.0
    assert PlackettLuce("s", 1e-6).sample(shown, np.full((1, 4), 0.999))[0].tolist() == [1, 2, 0]


@pytest.mark.parametrize("temperature", [0, -1.0, np.nan, np.inf, True, "hot"])
def test_a_wrong_temperature_is_refused(temperature: object) -> None:
    with pytest.raises(BadInput, match=r"^temperature = .*: expected a number above 0\.$"):
        PlackettLuce("s", temperature)  # type: ignore[arg-type]
