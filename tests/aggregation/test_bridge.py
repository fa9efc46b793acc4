"""The proposal has the density that is said, and both means of a bridge are those of an enumeration."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.special import expit

import foretest as ft
from foretest.aggregation import bridge as study
from foretest.aggregation.bridge import DRAWS, bridge

SCORES = [[0.3, 2.0, 1.0, -1.0], [0.0, 1.0, 0.5]]
DISPLAYS = ft.Displays(
    {"s": ft.Ragged.of(SCORES)}, ft.Ragged.of([[0, 1], [0, 1]]), np.array([4, 3]), np.arange(2, dtype=np.uint64)
)
WEIGHTS = np.array([[[1.0, 5.0, 2.0, 0.5], [3.0, 1.0, 2.0, 2.0]], [[2.0, 1.0, 4.0, 0.0], [1.0, 1.0, 1.0, 0.0]]])


def density(display: int, ranking: tuple[int, ...]) -> float:
    """g of a ranking, slot after slot."""
    p, left = 1.0, list(range(len(SCORES[display])))
    for k, item in enumerate(ranking):
        w = WEIGHTS[display, k]
        p *= w[item] / w[left].sum()
        left.remove(item)
    return p


def of_all(rankings: list[tuple[int, ...]], display: int) -> np.ndarray:
    """log g of some rankings of a display, by the kernel; other rows are filled up."""
    filled = [rankings[i % len(rankings)] for i in range(DRAWS)]
    both = [filled, [(0, 1)] * DRAWS] if display == 0 else [[(0, 1)] * DRAWS, filled]
    log_g = study._log_density(WEIGHTS, ft.Ragged.of([np.array(r, np.int32) for part in both for r in part]))
    return log_g.reshape(2, DRAWS)[display, : len(rankings)]


@pytest.mark.parametrize("display", [0, 1])
def test_the_density_is_that_of_the_draws(display: int) -> None:
    rankings = list(permutations(range(len(SCORES[display])), 2))
    p = np.exp(of_all(rankings, display))
    assert p == pytest.approx([density(display, r) for r in rankings], rel=1e-12)
    assert p.sum() == pytest.approx(1.0, rel=1e-12)
    g = np.random.default_rng(0)
    counts = np.zeros(len(rankings))
    for _ in range(40):
        drawn = study._propose(WEIGHTS, DISPLAYS.slots, g.random((2 * DRAWS, 5))).padded(-1).reshape(2, DRAWS, 2)
        for i, ranking in enumerate(rankings):
            counts[i] += (drawn[display] == ranking).all(axis=1).sum()
    n = 40 * DRAWS
    assert counts.sum() == n
    assert (np.abs(counts - n * p) < 4.5 * np.sqrt(n * p * (1.0 - p))).all()


@pytest.mark.parametrize("total", [1.0, 0.4, 3.0])
def test_both_means_are_those_of_an_enumeration(total: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """E_g[π/(π + g)] and E_s[g/(π + g)] with π = total·s; the first is `total` times the second."""
    monkeypatch.setattr(study, "_slot_weights", lambda *_: WEIGHTS)
    policy = ft.PlackettLuce("s")

    class Scaled:
        def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> np.ndarray:
            return policy.log_prob(displays, rankings) + np.log(total)

        sample = staticmethod(policy.sample)

    g = np.random.default_rng(1)
    many = [bridge(Scaled(), DISPLAYS, g.random((2 * 3 * DRAWS, 5))) for _ in range(60)]  # type: ignore[arg-type]
    for display in (0, 1):
        rankings = list(permutations(range(len(SCORES[display])), 2))
        rows = DISPLAYS.take(np.full(len(rankings), display))
        s = np.exp(policy.log_prob(rows, ft.Ragged.of([np.array(r, np.int32) for r in rankings])))
        log_ratio = np.log(total * s) - of_all(rankings, display)
        up, down = (np.exp(of_all(rankings, display)) * expit(log_ratio)).sum(), (s * expit(-log_ratio)).sum()
        assert up == pytest.approx(total * down, rel=1e-12)
        error = np.sqrt(np.mean([one.variance[display] for one in many]) / len(many))
        assert np.mean([one.of_proposal[display] for one in many]) == pytest.approx(up, abs=4.0 * error)
        assert np.mean([one.of_policy[display] for one in many]) == pytest.approx(down, abs=4.0 * error)


def test_a_right_policy_is_within_its_error() -> None:
    """z of 200 displays: mean 0 and variance 1, within 4 standard errors."""
    g = np.random.default_rng(2)
    scores = g.normal(size=(200, 9)).tolist()
    ranking = ft.Ragged.of([np.arange(4, dtype=np.int32)] * 200)
    displays = ft.Displays({"s": ft.Ragged.of(scores)}, ranking, np.full(200, 9), np.arange(200, dtype=np.uint64))
    for policy in (ft.PlackettLuce("s"), ft.Mallows("s", 0.4), ft.EpsilonGreedy("s", 0.3)):
        found = bridge(policy, displays, g.random((200 * 3 * DRAWS, 10)))
        z = (found.of_proposal - found.of_policy) / np.sqrt(found.variance)
        assert abs(z.mean()) < 4.0 / np.sqrt(200)
        assert abs(z.var() - 1.0) < 4.0 * np.sqrt(2.0 / 200)


def test_what_is_no_number_is_no_probability() -> None:
    class Broken(ft.PlackettLuce):
        def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> np.ndarray:
            return np.full(len(displays), np.nan)

    found = bridge(Broken("s"), DISPLAYS, np.random.default_rng(3).random((2 * 3 * DRAWS, 5)))
    assert found.of_proposal.tolist() == [1.0, 1.0]
    assert found.of_policy.tolist() == [0.0, 0.0]
