"""Mallows against its formula, and against the distance it is named for."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.kernels.hashing import hash_integers
from foretest.policies import Mallows

SCORES = [0.5, 2.0, 0.5, -1.0, 3.0]
CENTRE = [4, 1, 0, 2, 3]  # the tie goes to the lower position


def log_prob(ranking: tuple[int, ...], dispersion: float, scores: list[float] = SCORES) -> float:
    lists, shown = Ragged.of([np.array(scores)]), Ragged.of([np.array(ranking, np.int32)])
    rows = Displays({"s": lists}, shown, lists.lengths, hash_integers(np.arange(1)))
    return float(Mallows("s", dispersion).log_prob(rows, shown)[0])


@pytest.mark.parametrize("dispersion", [0.05, 0.5, 0.99])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_the_step_formula(dispersion: float, k: int) -> None:
    for ranking in permutations(range(5), k):
        left, expected = list(CENTRE), 1.0
        for item in ranking:
            j = left.index(item)
            expected *= dispersion**j * (1 - dispersion) / (1 - dispersion ** len(left))
            left.remove(item)
        assert log_prob(ranking, dispersion) == pytest.approx(np.log(expected), rel=1e-10)


def test_whole_rankings_fall_off_with_kendalls_distance() -> None:
    place = {item: i for i, item in enumerate(CENTRE)}
    top = log_prob(tuple(CENTRE), 0.4)
    for ranking in permutations(range(5)):
        inversions = sum(place[a] > place[b] for a, b in combinations(ranking, 2))
        assert log_prob(ranking, 0.4) - top == pytest.approx(inversions * np.log(0.4), abs=1e-12)


def test_the_ends_of_the_dispersion() -> None:
    assert log_prob((0,), 1 - 1e-12) == pytest.approx(np.log(1 / 5), rel=1e-10)
    assert log_prob(tuple(CENTRE), 1e-300) == pytest.approx(0.0, abs=1e-15)
    assert log_prob((3,), 1e-300) == pytest.approx(4 * np.log(1e-300), rel=1e-14)


def test_quantiles_of_one_slot() -> None:
    lists = Ragged.of([np.array([3.0, 2.0, 1.0])])
    rows = Displays({"s": lists}, Ragged.of([np.zeros(1, np.int32)]), lists.lengths, hash_integers(np.arange(1)))
    # φ = 1/2 of three items: 4/7, 2/7, 1/7
    for u, item in [(1e-9, 0), (0.5714, 0), (0.5715, 1), (0.857, 1), (0.858, 2), (1 - 1e-16, 2)]:
        assert Mallows("s", 0.5).sample(rows, np.full((1, 4), u))[0].tolist() == [item]


@pytest.mark.parametrize("dispersion", [0, 1, 1.5, -0.1, np.nan, True, "wide"])
def test_a_wrong_dispersion_is_refused(dispersion: object) -> None:
    with pytest.raises(BadInput, match=r"^dispersion = .*: expected a number between 0 and 1\.$"):
        Mallows("s", dispersion)  # type: ignore[arg-type]
