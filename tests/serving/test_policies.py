"""Policies of a service against those of the analysis, and their draws against their probabilities."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from foretest.policies.replay import replayed_rankings
from foretest.serving import BadInput, Mallows, Mixture, PlackettLuce, Sampler, SwapNeighbours, TopK, policy_from_table
from foretest.serving.base import Scores, best, places
from tests.serving.support import TABLES, analysed_policy, displays_of, some_draws

tables = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


@tables
def test_logged_probabilities_are_those_of_the_analysis(table: dict[str, Any]) -> None:
    displays, draws = some_draws(table, 400, seed=5)
    wanted = analysed_policy(table).log_prob(displays, displays.ranking)
    logged = np.array([draw.log_prob for draw in draws])
    assert (logged > -np.inf).all()
    np.testing.assert_allclose(logged, wanted, rtol=1e-12, atol=1e-12)


@tables
def test_any_ranking_is_priced_as_in_the_analysis(table: dict[str, Any]) -> None:
    scores, policy = [0.5, 2.0, 0.5, -1.0, 2.0], policy_from_table(table)
    for slots in (1, 2, 4, 5):
        every = [list(ranking) for ranking in permutations(range(5), slots)]
        displays = displays_of([scores] * len(every), every, list(range(len(every))))
        wanted = analysed_policy(table).log_prob(displays, displays.ranking)
        own = np.array([policy.log_prob(Scores.of(scores), ranking) for ranking in every])
        np.testing.assert_allclose(own, wanted, rtol=1e-12, atol=1e-12)
        assert np.exp(own).sum() == pytest.approx(1.0, abs=1e-12)


@tables
def test_slot_probabilities_are_those_of_the_analysis(table: dict[str, Any]) -> None:
    displays, draws = some_draws(table, 60, seed=6, slot_probabilities=True)
    marginals = analysed_policy(table).slot_marginals(displays)
    for row, draw in enumerate(draws):
        by_slot = marginals[row].reshape(len(draw.ranking), -1)
        wanted = [by_slot[slot, item] for slot, item in enumerate(draw.ranking)]
        np.testing.assert_allclose(draw.slot_probabilities, wanted, rtol=1e-9, atol=1e-10)


def chi_square(counts: np.ndarray, expected: np.ndarray) -> float:
    """The p-value of counts, cells that are expected fewer than 10 times pooled."""
    few = expected < 10.0
    if few.any():
        counts = np.append(counts[~few], counts[few].sum())
        expected = np.append(expected[~few], expected[few].sum())
    assert (counts[expected == 0.0] == 0).all()
    counts, expected = counts[expected > 0.0], expected[expected > 0.0]
    if len(counts) == 1:
        return 1.0
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1))


#: seeds are fixed, so that a test passes always or never; a right sampler fails one of all of these 2 % of the time
LEVEL = 0.02 / (2 * len(TABLES))


@tables
def test_draws_have_the_policy_s_probabilities(table: dict[str, Any]) -> None:
    scores, sampler = [0.2, 0.9, 0.2, -0.4], Sampler(table, slots=3, seed=1)
    every = list(permutations(range(4), 3))
    drawn = [tuple(sampler.draw(scores, key=key).ranking) for key in range(4000)]
    counts = np.array([drawn.count(ranking) for ranking in every])
    shares = np.exp([sampler.policy.log_prob(Scores.of(scores), ranking) for ranking in every])
    assert chi_square(counts, 4000 * shares) > LEVEL


@tables
def test_many_draws_of_six_items_have_the_policy_s_probabilities(table: dict[str, Any]) -> None:
    """By the replay, which draws the same and is quicker; for every number of slots."""
    scores, n = [0.2, 0.9, 0.2, -0.4, 1.1, 0.0], 60_000
    policy = analysed_policy(table)
    for slots in (1, 2, 6):
        rows = displays_of([scores] * n, [list(range(slots))] * n, list(range(n)))
        drawn = replayed_rankings(policy, rows, 21).flat().reshape(n, slots)
        every = [list(ranking) for ranking in permutations(range(6), slots)]
        code = 6 ** np.arange(slots)
        place = {int(np.dot(ranking, code)): i for i, ranking in enumerate(every)}
        counts = np.bincount([place[c] for c in (drawn @ code).tolist()], minlength=len(every))
        of_all = displays_of([scores] * len(every), every, list(range(len(every))))
        assert chi_square(counts, n * np.exp(policy.log_prob(of_all, of_all.ranking))) > LEVEL / 3


def test_a_wrong_temperature_would_be_seen() -> None:
    """The test above can fail: draws at temperature 0.5 are not those of 0.55."""
    scores, n = [0.2, 0.9, 0.2, -0.4], 60_000
    rows = displays_of([scores] * n, [[0]] * n, list(range(n)))
    drawn = replayed_rankings(analysed_policy(TABLES["plackett-luce"]), rows, 21).flat()
    shares = np.exp(np.array(scores) / 0.55)
    assert chi_square(np.bincount(drawn, minlength=4), n * shares / shares.sum()) < 1e-6


def test_scores_far_apart_leave_the_lower_ones_their_chances() -> None:
    """Beside a score of 1e17 no noise has digits left; the two below it still come in either order."""
    sampler = Sampler(PlackettLuce(), slots=3, seed=4)
    seconds = [sampler.draw([5.0, 1e17, 5.0], key=key) for key in range(400)]
    assert {draw.ranking[0] for draw in seconds} == {1}
    ahead = sum(draw.ranking[1] == 0 for draw in seconds)
    assert abs(ahead - 200) < 4 * math.sqrt(100)


def test_the_best_scores_in_order_ties_by_position() -> None:
    g = np.random.default_rng(2)
    for _ in range(300):
        values = g.integers(0, 6, int(g.integers(1, 60))).astype(float) if g.random() < 0.5 else g.normal(size=40)
        order = sorted(range(len(values)), key=lambda item: (-values[item], item))
        for depth in range(1, len(values) + 1):
            assert best(values, depth).tolist() == order[:depth]
        assert places(values, order) == list(range(len(values)))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "expected a table"),
        ({"policy": "thurstone", "sigma": 1.0}, "unknown policy 'thurstone'"),
        ({"policy": "plackett-luce", "temperature": 0.0}, "temperature = 0.0: expected a number above 0"),
        ({"policy": "plackett-luce", "temperature": "fit"}, "temperature = 'fit'"),
        ({"policy": "plackett-luce", "temprature": 1.0}, "Did you mean 'temperature'"),
        ({"policy": "plackett-luce", "scores": "s"}, "leave scores out"),
        ({"policy": "epsilon-greedy"}, "needs the key epsilon"),
        ({"policy": "epsilon-greedy", "epsilon": 1.5}, "epsilon = 1.5: expected a number between 0 and 1"),
        ({"policy": "mallows", "dispersion": 1.0}, "dispersion = 1.0"),
        ({"policy": "swap-neighbours", "swap": 0.6}, "swap = 0.6: expected a number from 0 to 0.5"),
        ({"policy": "mixture"}, "a mixture needs components"),
        ({"policy": "mixture", "components": [{"policy": "top-k"}]}, "component 1 of the mixture has no share"),
        (
            {"policy": "mixture", "components": [{"policy": "top-k", "share": 0}]},
            "share = 0: expected a number above 0",
        ),
    ],
)
def test_a_table_that_is_wrong(table: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        policy_from_table(table)


def test_objects_and_tables_are_the_same_policies() -> None:
    mixed = Mixture([(0.9, TopK()), (0.1, Mallows(0.5))])
    parts = [{"share": 0.9, "policy": "top-k"}, {"share": 0.1, "policy": "mallows", "dispersion": 0.5}]
    assert policy_from_table({"policy": "mixture", "components": parts}) == mixed
    assert policy_from_table({"policy": "swap-neighbours", "swap": 0}) == SwapNeighbours(0.0)
    assert policy_from_table({"policy": "bradley-terry-luce"}) == PlackettLuce(1.0)
