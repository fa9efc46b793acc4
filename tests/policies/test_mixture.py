"""Mixtures against the sum of their parts."""

from __future__ import annotations

import pickle
from itertools import permutations

import numpy as np
import pytest

from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import uniforms
from foretest.policies import EpsilonGreedy, Logged, Mallows, Mixture, PlackettLuce, Policy
from foretest.policies.pricing import shown_log_prob


def rows_of(n: int, ranking: Ragged, **columns: object) -> Displays:
    one = Ragged(np.array([0.0, 1.0, 0.4]), np.zeros(n, np.int64), np.full(n, 3))
    other = Ragged(np.array([1.0, -1.0, 600.0]), np.zeros(n, np.int64), np.full(n, 3))
    return Displays({"s": one, "other": other, **columns}, ranking, one.lengths, hash_integers(np.arange(n)))


RANKINGS = Ragged.of(np.array(list(permutations(range(3), 2)), np.int32))
PARTS: list[tuple[float, Policy]] = [(3, PlackettLuce("s")), (1, Mallows("s", 0.3)), (4, PlackettLuce("other"))]


def test_log_probability_is_the_log_of_the_weighted_sum() -> None:
    rows = rows_of(6, RANKINGS)
    parts = np.array([policy.log_prob(rows, RANKINGS) for _, policy in PARTS])
    expected = np.log(np.array([3, 1, 4]) / 8 @ np.exp(parts))
    got = Mixture(PARTS).log_prob(rows, Ragged(RANKINGS.values, RANKINGS.starts, RANKINGS.lengths))
    np.testing.assert_allclose(got, expected, rtol=1e-13)


def test_tiny_parts_do_not_underflow() -> None:
    rows = rows_of(1, Ragged.of([np.array([1], np.int32)]))
    policy = Mixture([(1.0, PlackettLuce("other", 0.5)), (3.0, PlackettLuce("other", 0.5))])
    # log p = (−1 − 600)·2, far below the smallest double
    assert policy.log_prob(rows, rows.ranking)[0] == pytest.approx(-1202.0, rel=1e-12)


def test_no_part_shows_the_ranking() -> None:
    rows = rows_of(1, Ragged.of([np.array([0], np.int32)]))
    assert Mixture([(1, EpsilonGreedy("s", 0.0)), (1, EpsilonGreedy("s", 0.0))]).log_prob(rows, rows.ranking) == -np.inf


def test_shares_of_the_draws() -> None:
    # greedy on one list shows item 1, on the other item 2
    n = 40_000
    rows = rows_of(n, Ragged.of([np.zeros(1, np.int32)] * n))
    u = uniforms(0, 0, np.arange(n, dtype=np.uint64), 0, 1, 4)[:, 0]
    drawn = Mixture([(0.2, EpsilonGreedy("s", 0.0)), (0.6, EpsilonGreedy("other", 0.0))]).sample(rows, u).flat()
    assert set(drawn.tolist()) == {1, 2}
    assert abs((drawn == 1).mean() - 0.25) <= 4 * np.sqrt(0.25 * 0.75 / n)


def test_what_a_part_logged_is_used_for_the_shown_ranking_alone() -> None:
    p = np.array([0.25, 0.5])
    rows = rows_of(2, Ragged.of([np.array([1], np.int32), np.array([2], np.int32)]), p=p)
    computed = np.exp(PlackettLuce("s").log_prob(rows, rows.ranking))
    logged = Mixture([(0.5, PlackettLuce("other", prob="p")), (0.5, PlackettLuce("s"))])
    assert logged.columns == ("other", "p", "s")
    assert logged.score_columns == ("other", "s")
    got = shown_log_prob(logged, rows, is_control=True)
    np.testing.assert_allclose(got, np.log((p + computed) / 2), rtol=1e-13)
    other = Ragged.of([np.array([0], np.int32), np.array([0], np.int32)])
    expected = np.log(
        (np.exp(PlackettLuce("other").log_prob(rows, other)) + np.exp(PlackettLuce("s").log_prob(rows, other))) / 2
    )
    np.testing.assert_allclose(logged.log_prob(rows, other), expected, rtol=1e-13)


def test_what_the_mixture_logged_overrides_its_parts() -> None:
    rows = rows_of(2, Ragged.of([np.array([1], np.int32)] * 2), p=np.array([0.25, 0.5]))
    policy = Mixture(PARTS, prob="p")
    assert policy.columns == ("s", "other", "p")
    np.testing.assert_allclose(shown_log_prob(policy, rows, is_control=True), np.log([0.25, 0.5]))


def test_it_can_draw_and_has_support_as_its_parts_have() -> None:
    greedy, softmax, logged = EpsilonGreedy("s", 0.0), PlackettLuce("s"), Logged(prob="p")
    assert Mixture([(1, greedy), (1, softmax)]).full_support
    assert not Mixture([(1, greedy)]).full_support
    assert Mixture([(1, greedy), (1, softmax)]).can_draw
    assert not Mixture([(1, greedy), (1, logged)]).can_draw


def test_settings_list_the_parts() -> None:
    policy = Mixture([(1, PlackettLuce("s")), (3, Mallows("other", 0.5))], log_prob="lp")
    assert policy.settings() == {
        "policy": "mixture",
        "components": [
            {"share": 0.25, "policy": "plackett-luce", "scores": "s", "temperature": 1.0},
            {"share": 0.75, "policy": "mallows", "scores": "other", "dispersion": 0.5},
        ],
        "log_prob": "lp",
    }
    assert repr(policy).startswith("Mixture(components=[{'share': 0.25, 'policy': 'plackett-luce'")
    assert pickle.loads(pickle.dumps(policy)).settings() == policy.settings()


@pytest.mark.parametrize("share", [0, -1.0, np.nan, np.inf, True, "half"])
def test_a_wrong_share_is_refused(share: object) -> None:
    with pytest.raises(BadInput, match=r"^share = .*: expected a number above 0\.$"):
        Mixture([(share, PlackettLuce("s"))])  # type: ignore[list-item]


def test_no_parts_are_refused() -> None:
    with pytest.raises(BadInput, match=r"^a mixture needs at least one component\.$"):
        Mixture([])


def test_mixtures_of_mixtures_draw_as_they_price() -> None:
    inner = Mixture([(1, PlackettLuce("s")), (2, Mallows("s", 0.3))])
    nested = Mixture([(1, Mixture([(3, inner), (1, EpsilonGreedy("s", 0.5))])), (1, PlackettLuce("other", 500.0))])
    n = 40_000
    ranking = Ragged.of(np.array(list(permutations(range(3))), np.int32))
    rows = rows_of(n, Ragged.packed(np.zeros(3 * n, np.int32), np.full(n, 3)))
    u = uniforms(0, 0, hash_integers(np.arange(n)), 0, 1, 4)[:, 0, :]
    drawn = nested.sample(rows, u).flat().reshape(n, 3)
    expected = np.exp(nested.log_prob(rows_of(6, ranking), Ragged.packed(ranking.flat(), ranking.lengths)))
    counts = np.array([(drawn == ranking[i]).all(axis=1).sum() for i in range(6)])
    assert counts.sum() == n
    assert (np.abs(counts - n * expected) < 4 * np.sqrt(n * expected * (1 - expected))).all()


def test_components_are_pairs() -> None:
    with pytest.raises(BadInput, match="pairs"):
        Mixture([PlackettLuce("s")])
