"""What is enumerated and what is drawn: the rule by itself, and values on both sides of it against all rankings."""

from __future__ import annotations

from itertools import permutations
from math import perm
from typing import Any

import numpy as np
import pytest

from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.kernels.hashing import hash_integers
from foretest.policies import EpsilonGreedy, Mallows, Mixture, PlackettLuce
from foretest.weights import inverse_mass
from foretest.weights.enumeration_cost import FEW_RANKINGS, MOST, Purpose, most_enumerated
from foretest.weights.normaliser import Normaliser
from foretest.weights.policy_pair import FROM_CONTROL, FROM_TREATMENT

DRAWS = {Purpose.REWARDED: 256, Purpose.SAMPLED: 32}
BOTH = [True, False]


class Own(PlackettLuce):
    """Plackett-Luce without its kernel, which counts how many rankings it was asked to price, and to draw."""

    def __init__(self, scores: str, temperature: float = 1.0) -> None:
        super().__init__(scores, temperature)
        self._priced, self._drawn = [0], [0]

    def log_prob(self, displays: Displays, rankings: Ragged) -> Any:
        self._priced[0] += len(rankings)
        return super().log_prob(displays, rankings)

    def sample(self, displays: Displays, uniforms: Any) -> Any:
        self._drawn[0] += len(displays)
        return super().sample(displays, uniforms)


def predicted(m: int, k: int, *, fused: bool) -> float:
    """What a display of a run costs, in enumerated rankings, where one in ten is rewarded; parts as measured.

    A sampled display has 32 draws in any case. A rewarded row enumerates for the cap and for the adaptive cap (other
    policies once for both), and draws for the path where it has more than 1 000 rankings. Where it is drawn by other
    policies, it has 256 draws and some 64 trials.
    """
    rankings = perm(m, k)
    sampled, rewarded = (
        rankings if k == 1 or rankings <= most_enumerated(DRAWS[purpose], purpose, fused=fused) else None
        for purpose in (Purpose.SAMPLED, Purpose.REWARDED)
    )
    if not fused:
        return 48.0 + (sampled or 0.0) + 0.1 * (1.5 * (256.0 + 64.0) if rewarded is None else rewarded)
    path = 2560.0 if rankings > FEW_RANKINGS and k > 1 else 0.0
    return 1020.0 + (sampled or 0.0) + 0.1 * (10_000.0 if rewarded is None else 3700.0 + path + 2.0 * rewarded)


@pytest.mark.parametrize("fused", BOTH)
def test_no_neighbour_is_predicted_to_cost_three_times_as_much(fused: bool) -> None:
    for m in range(1, 200):
        for k in range(1, min(m, 12) + 1):
            here = predicted(m, k, fused=fused)
            for other in [(m + 1, k), (m, k + 1)] if k < m else [(m + 1, k)]:
                there = predicted(*other, fused=fused)
                assert max(here, there) <= 3.0 * min(here, there), (m, k, other)


@pytest.mark.parametrize("fused", BOTH)
@pytest.mark.parametrize("purpose", Purpose)
def test_more_draws_never_mean_less_enumeration(purpose: Purpose, fused: bool) -> None:
    limits = [most_enumerated(draws, purpose, fused=fused) for draws in range(1, 5000, 7)]
    assert limits == sorted(limits)
    assert limits[-1] <= MOST
    assert limits[0] >= (FEW_RANKINGS if fused else perm(4, 4))  # exact whatever the settings


def test_what_stays_exact_by_default() -> None:
    """Two Plackett-Luce policies as ever for rewarded rows, and up to 1 000 rankings everywhere."""
    assert most_enumerated(256, Purpose.REWARDED, fused=True) == 12_000
    assert most_enumerated(32, Purpose.SAMPLED, fused=True) >= 1_000
    assert most_enumerated(32, Purpose.SAMPLED, fused=True) < perm(12, 4)
    assert most_enumerated(256, Purpose.REWARDED, fused=False) < perm(7, 4) < 1_000


# -- values ------------------------------------------------------------------------------------------------------------


def displays(n: int, m: int, k: int, seed: int = 0, copies: int = 1) -> Displays:
    """n displays, each `copies` times with draws of its own."""
    rng = np.random.default_rng(seed)
    p = np.repeat(rng.normal(size=(n, m)), copies, axis=0)
    t = 0.7 * p + np.repeat(rng.normal(size=(n, m)), copies, axis=0)
    shown = Ragged.of(np.tile(np.arange(k, dtype=np.int32), (len(p), 1)))
    columns = {"t": Ragged.of(t), "p": Ragged.of(p)}
    return Displays(columns, shown, columns["t"].lengths, hash_integers(np.arange(len(p))))


def exact_q(rows: Displays, row: int, own: Normaliser, cap: float) -> float:
    rankings = Ragged.of(np.array(list(permutations(range(rows.eligible[row]), int(rows.slots[row]))), np.int32))
    same = rows.take(np.full(len(rankings), row))
    log_t, log_p = own.treatment.log_prob(same, rankings), own.control.log_prob(same, rankings)
    return float(np.exp(np.minimum(log_t, log_p + np.log(cap))).sum())


MIXTURE = Mixture([(0.8, PlackettLuce("p", 0.2)), (0.2, PlackettLuce("p"))])
CONTROLS = {
    "own": Own("p"), "mixture": MIXTURE, "mallows": Mallows("p", 0.6), "epsilon-greedy": EpsilonGreedy("p", 0.4),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTROLS)
def test_what_is_drawn_now_has_the_mean_of_all_rankings(name: str) -> None:
    """7 items in 4 slots have 840 rankings, which other policies than Plackett-Luce no longer go through."""
    rows, own = displays(1, 7, 4, copies=300), Normaliser(PlackettLuce("t"), CONTROLS[name], draws=64)
    q = exact_q(rows, 0, own, 1.5)
    found = own.at_cap(rows, 1.5, zero=False)
    assert not found.stuck.any()
    for sample, expected in [(found.inverse, 1.0 / q), (found.q, q)]:
        se = sample.std(ddof=1) / np.sqrt(len(sample))
        assert se > 0.0
        assert abs(sample.mean() - expected) < 4.0 * se
    exact = Normaliser(own.treatment, own.control, "exact").at_cap(rows.take(np.arange(3)), 1.5, zero=False)
    np.testing.assert_allclose(exact.inverse, 1.0 / q, rtol=1e-10)


@pytest.mark.parametrize("name", CONTROLS)
def test_small_displays_stay_exact(name: str) -> None:
    rows, own = displays(5, 6, 4), Normaliser(PlackettLuce("t"), CONTROLS[name])
    found, drawn = own.at_cap(rows, 1.5, zero=False), np.zeros((5, 16))
    expected = [exact_q(rows, i, own, 1.5) for i in range(5)]
    np.testing.assert_allclose(1.0 / found.inverse, expected, rtol=1e-10)
    small = displays(5, 4, 3)
    expected = [exact_q(small, i, own, 1.5) for i in range(5)]
    np.testing.assert_allclose(own.mass(small, 1.5, zero=False, log_w=drawn), expected, rtol=1e-10)


def test_the_sample_of_displays_is_drawn_where_enumeration_is_dear() -> None:
    """Health of 12 items in 4 slots comes from the draws that are there, unless all rankings are asked for."""
    rows, log_w = displays(2, 12, 4), np.log(np.full((2, 16), 3.0))
    own = Normaliser(PlackettLuce("t"), PlackettLuce("p"))
    np.testing.assert_allclose(own.mass(rows, 1.5, zero=False, log_w=log_w), 1.5 / 3.0)
    exact = Normaliser(own.treatment, own.control, "exact").mass(rows, 1.5, zero=False, log_w=log_w)
    np.testing.assert_allclose(exact, [exact_q(rows, i, own, 1.5) for i in range(2)], rtol=1e-10)


def test_a_batch_prices_all_rankings_once() -> None:
    rows, own = displays(6, 5, 3), Normaliser(Own("t"), Own("p"))
    batch = own.for_batch(rows)
    some, caps, bounds = np.array([4, 1]), np.array([1.0, 3.0]), np.array([2.0, 20.0])
    found = batch.at_cap(rows, 1.5, zero=False), batch.at_adaptive_cap(rows, 2.0)
    along = batch.path(rows, np.zeros(6), caps, bounds)
    assert own.treatment._priced[0] == 6 * perm(5, 3)
    for one, other in zip(found, (own.at_cap(rows, 1.5, zero=False), own.at_adaptive_cap(rows, 2.0)), strict=True):
        for mine, theirs in zip(one, other, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    for mine, theirs in zip(along, own.path(rows.take(some), np.zeros(2), caps, bounds), strict=True):
        np.testing.assert_array_equal(mine[some], theirs)


# -- trials ------------------------------------------------------------------------------------------------------------


def test_a_long_wait_ends_with_the_few_likely_rankings() -> None:
    """Sharp policies that disagree: q of 1e-4 and far less, exactly, without a hundred thousand trials."""
    rows = displays(40, 6, 3, seed=3)
    own = Normaliser(PlackettLuce("t", 0.03), PlackettLuce("p", 0.03), "midzuno-sen", draws=8)
    found = own.at_cap(rows, 100.0, zero=False)
    q = np.array([exact_q(rows, i, own, 100.0) for i in range(40)])
    rare = q < 1e-5  # not one in a hundred of them passes 1 024 trials
    assert rare.sum() > 10
    assert not found.stuck.any()
    np.testing.assert_allclose(found.inverse[rare], 1.0 / q[rare], rtol=1e-5)


def test_trials_of_dear_policies_are_bounded() -> None:
    """Past the bound, or a few trials after it, a row is stuck: its q then comes from two-sided draws."""
    rows, own = displays(60, 6, 3, seed=3), Normaliser(Own("t", 0.1), Own("p", 0.1), "midzuno-sen", draws=8)
    found = own.at_cap(rows, 1.5, zero=False)
    q = np.array([exact_q(rows, i, own, 1.5) for i in range(60)])
    most = inverse_mass.MOST_DEAR_TRIALS
    assert found.stuck[q < 1e-3 / most].all()
    assert not found.stuck[q > 20.0 / most].any()
    assert 0 < found.stuck.sum() < 60


def different_rankings(own: Normaliser, policy: Own, rows: Displays, stream: int, count: int) -> int:
    """How many different rankings the displays have among so many draws each."""
    several = rows.take(np.repeat(np.arange(len(rows)), count))
    drawn = policy.sample(several, own.pair.uniforms(rows, stream, 0, count)).padded(-1)
    return sum(len({tuple(ranking) for ranking in part.tolist()}) for part in np.split(drawn, len(rows)))


@pytest.mark.parametrize("promises", BOTH)
def test_every_ranking_of_a_batch_is_priced_once(promises: bool) -> None:
    """Bounds, cap, adaptive cap and path share the two-sided draws; only trials are priced beside them."""
    rows, draws = displays(40, 7, 4), 256
    own = Normaliser(Own("t"), Own("p"), draws=draws)
    own.control.full_support = promises
    batch = own.for_batch(rows)
    batch.at_bounds(rows, (20.0, 100.0))
    both = [(own.treatment, FROM_TREATMENT), (own.control, FROM_CONTROL)]
    of_draws = sum(different_rankings(own, policy, rows, stream, draws // 2) for policy, stream in both)
    assert of_draws < len(rows) * draws
    assert own.control._priced[0] == own.treatment._priced[0] == of_draws
    batch.at_adaptive_cap(rows, 20.0)
    batch.path(rows, np.zeros(len(rows)), np.array([1.0, 100.0]), np.array([20.0]))
    assert own.control._priced[0] == of_draws
    assert not batch.at_cap(rows, 100.0, zero=False).stuck.any()
    trials = own.control._priced[0] - of_draws
    # to the first acceptance, four at a time; to the 64th the treatment's 128 draws suffice where q is near 1
    assert 4 * len(rows) <= trials <= 8 * len(rows) if promises else trials == 0


def test_no_trials_where_they_are_hopeless() -> None:
    """Weights beyond the cap in nearly every draw: 768 trials would not give 64 acceptances, and none are made."""
    rows, own = displays(30, 8, 4, seed=1), Normaliser(Own("t"), Own("p", 0.01), draws=256)
    own.control.full_support = False
    found = own.for_batch(rows).at_cap(rows, 100.0, zero=False)
    trials = own.treatment._drawn[0] - 30 * 128
    q = np.array([exact_q(rows, i, own, 100.0) for i in range(30)])
    hopeless = q < 0.001
    assert 3 < hopeless.sum() < 30
    assert found.stuck[hopeless].all()
    assert not found.stuck[q > 0.2].any()
    assert trials <= (inverse_mass.MOST_DEAR_COUNTED - 128) * (~hopeless).sum()
