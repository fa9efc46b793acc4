"""A policy over a list of its own: probabilities, draws and marginals over all rankings of the union."""

from __future__ import annotations

import pickle
from itertools import permutations

import numpy as np
import pytest

import foretest as ft
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.kernels.hashing import hash_integers
from foretest.policies import OwnCandidates, Policy
from foretest.policies.own_candidates import places_column, union_column, with_union
from foretest.weights.normaliser import Normaliser
from foretest.weights.slot_marginals import knows_marginals
from tests.own_lists import policies

PLACES = np.array([5, 1, 3, 0], np.int32)  # of the own list's items in a union of six
SCORES = np.array([0.4, -0.3, 1.1, 0.2])
CONTROL_SCORES = np.array([0.2, 0.9, -0.5, 0.1, 0.6])  # of a control that has the first five
POLICIES = policies("s", "r")


def displays(rankings: np.ndarray) -> Displays:
    n = len(rankings)

    def lists(values: np.ndarray) -> Ragged:
        return Ragged(values, np.zeros(n, np.int64), np.full(n, len(values)))

    columns = {
        "s": lists(SCORES), "p": lists(CONTROL_SCORES), "r": lists(np.array([2, 0, 1], np.int32)),
        places_column("own"): lists(PLACES), union_column("own"): np.full(n, 6),
        places_column("first"): lists(np.arange(5, dtype=np.int32)), union_column("first"): np.full(n, 5),
    }  # fmt: skip
    return Displays(columns, Ragged.of(rankings.astype(np.int32)), np.full(n, 6), hash_integers(np.arange(n)))


def over_union(policy: Policy, k: int) -> tuple[np.ndarray, np.ndarray]:
    """All rankings of the union, and their probabilities by the policy's own over its list."""
    every = np.array(list(permutations(range(6), k)))
    own = np.array(list(permutations(range(4), k)))
    inner = displays(own)
    inner = Displays(inner.columns, inner.ranking, np.full(len(own), 4), inner.identity)
    of_own = dict(zip(map(tuple, PLACES[own].tolist()), np.exp(policy.log_prob(inner, inner.ranking)), strict=True))
    return every, np.array([of_own.get(tuple(ranking), 0.0) for ranking in every.tolist()])


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("name", POLICIES)
def test_over_all_rankings(name: str, k: int) -> None:
    policy = OwnCandidates(POLICIES[name], "own")
    every, wanted = over_union(POLICIES[name], k)
    rows = displays(every)
    for rankings in (rows.ranking, Ragged.of(every.astype(np.int32))):
        np.testing.assert_allclose(np.exp(policy.log_prob(rows, rankings)), wanted, rtol=1e-12, atol=1e-15)
    assert wanted.sum() == pytest.approx(1.0, abs=1e-8)
    assert knows_marginals(policy)
    table = policy.slot_marginals(rows.take(np.arange(2)))
    shows = every[:, :, None] == np.arange(6)
    for row in range(2):
        np.testing.assert_allclose(
            table[row].reshape(k, 6), np.einsum("a,aki->ki", wanted, shows), rtol=1e-7, atol=1e-9
        )


@pytest.mark.parametrize("name", POLICIES)
def test_draws_have_these_probabilities(name: str) -> None:
    policy, count = OwnCandidates(POLICIES[name], "own"), 20_000
    every, wanted = over_union(POLICIES[name], 2)
    rows = displays(np.tile([0, 1], (count, 1)))
    drawn = policy.sample(rows, np.random.default_rng(1).random((count, 7))).flat().reshape(-1, 2)
    shares = (drawn[:, None, :] == every).all(axis=2).mean(axis=0)
    assert shares.sum() == pytest.approx(1.0)
    assert (np.abs(shares - wanted) <= 4.5 * np.sqrt(wanted * (1 - wanted) / count) + 1e-12).all()


def test_prefixes_of_rankings_are_priced_too() -> None:
    policy = OwnCandidates(ft.PlackettLuce("s"), "own")
    rows = displays(np.array([[1, 3, 0], [2, 1, 3], [3, 4, 0]]))
    first = Ragged(rows.ranking.values, rows.ranking.starts, np.ones(3, np.int64))
    share = np.exp(SCORES) / np.exp(SCORES).sum()
    np.testing.assert_allclose(np.exp(policy.log_prob(rows, first)), [share[1], 0.0, share[2]], rtol=1e-12)


def test_a_mixture_reads_what_its_components_logged() -> None:
    """Logged probabilities are of the shown ranking, which the components must recognise."""
    mixed = ft.Mixture([(1, ft.PlackettLuce("s", prob="logged")), (1, ft.PlackettLuce("s"))])
    rows = displays(np.array([[1, 3], [2, 1]]))
    rows = Displays({**rows.columns, "logged": np.array([0.25, 0.0])}, rows.ranking, rows.eligible, rows.identity)
    plain = np.exp(OwnCandidates(ft.PlackettLuce("s"), "own").log_prob(rows, rows.ranking))
    got = np.exp(OwnCandidates(mixed, "own").log_prob(rows, rows.ranking))
    np.testing.assert_allclose(got, [(0.25 + plain[0]) / 2, 0.0], rtol=1e-12)


def test_lists_of_different_lengths() -> None:
    places = Ragged.of([np.array(x, np.int32) for x in ([2, 0], [0, 1, 2, 3], [4, 1, 0])])
    scores = Ragged.of([np.array(x) for x in ([0.1, 0.2], [0.4, 0.3, 0.2, 0.1], [1.0, 2.0, 3.0])])
    shown = Ragged.of([np.array(x, np.int32) for x in ([0, 2], [3], [4, 0])])
    union = np.array([3, 4, 5])
    rows = Displays({"s": scores, places_column("own"): places}, shown, union, hash_integers(np.arange(3)))
    policy = OwnCandidates(ft.TopK("s"), "own")
    assert policy.log_prob(rows, shown).tolist() == [0.0, -np.inf, -np.inf]
    assert [row.tolist() for row in policy.sample(rows, np.empty((3, 6)))] == [[0, 2], [0], [0, 1]]
    table = policy.slot_marginals(rows)
    assert [table[i].tolist() for i in range(3)] == [[1, 0, 0, 0, 0, 1], [1, 0, 0, 0], [1, 0, 0, 0, 0, 0, 1, 0, 0, 0]]
    again = rows.take(np.array([2, 2, 0, 1, 0]))
    assert policy.log_prob(again, again.ranking).tolist() == [-np.inf, -np.inf, 0.0, -np.inf, 0.0]


@pytest.mark.parametrize("cap", [0.7, 3.0])
def test_the_normaliser_where_the_control_cannot_show_all(cap: float) -> None:
    """Trials are counted, two-sided draws averaged, all rankings gone through: one q."""
    treatment, control = OwnCandidates(ft.PlackettLuce("s"), "own"), OwnCandidates(ft.PlackettLuce("p"), "first")
    every, t = over_union(ft.PlackettLuce("s"), 2)
    rows = displays(every)
    p = np.exp(control.log_prob(rows, rows.ranking))
    assert p[(every == 5).any(axis=1)].tolist() == [0.0] * 10
    q = float(np.minimum(t, cap * p).sum())
    assert q < 1.0 - t[(every == 5).any(axis=1)].sum() + 1e-12
    count = 600
    many = displays(np.tile([0, 1], (count, 1)))
    exact = Normaliser(treatment, control, "exact").at_cap(many, cap, zero=False)
    np.testing.assert_allclose(exact.q, q, rtol=1e-12)
    drawn = Normaliser(treatment, control, "auto", draws=8)  # so few that enumeration would cost more
    assert not drawn.pair.is_fused
    masses = drawn.at_cap(many, cap, zero=False)
    error = masses.inverse.std() / np.sqrt(count)
    assert 0.0 < error < 0.03 / q
    assert abs(masses.inverse.mean() - 1.0 / q) < 4.0 * error
    two_sided = Normaliser(treatment, control, "two-sided", draws=64).at_cap(many, cap, zero=False)
    assert abs(two_sided.q.mean() - q) < 4.0 * two_sided.q.std() / np.sqrt(count)


def test_the_union_of_one_treatment() -> None:
    rows = displays(np.array([[0, 1]]))
    assert with_union(rows, ft.PlackettLuce("s")) is rows
    assert with_union(rows, OwnCandidates(ft.PlackettLuce("p"), "first")).eligible.tolist() == [5]


def test_it_says_what_it_is() -> None:
    policy = OwnCandidates(ft.Mallows("s", 0.5, prob="p"), "own")
    assert (policy.columns, policy.score_columns, policy.ranking_columns) == (("s", "p"), ("s",), ())
    assert policy.settings() == {
        "policy": "mallows",
        "scores": "s",
        "dispersion": 0.5,
        "prob": "p",
        "candidates": "own",
    }
    assert repr(policy) == "OwnCandidates(Mallows(scores='s', dispersion=0.5, prob='p'), candidates='own')"
    assert (policy.full_support, policy.deterministic, policy.can_draw) == (False, False, True)
    assert OwnCandidates(ft.TopK("s"), "own").deterministic
    assert pickle.loads(pickle.dumps(policy)).settings() == policy.settings()


def test_what_it_refuses() -> None:
    with pytest.raises(ft.BadInput, match="candidates = 3: expected the name of a column"):
        OwnCandidates(ft.PlackettLuce("s"), 3)  # type: ignore[arg-type]
    with pytest.raises(ft.BadInput, match=r'candidates = "own": a policy without scores has no use for a list'):
        OwnCandidates(ft.Logged(prob="p"), "own")
    inner = OwnCandidates(ft.PlackettLuce("s"), "own")
    for nested in (inner, ft.Mixture([(1, inner), (1, ft.PlackettLuce("s"))])):
        with pytest.raises(ft.BadInput, match="a part of the policy has candidates too"):
            OwnCandidates(nested, "own")
