"""The number of a policy with the greatest likelihood, against a plain search for the maximum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.policies import EpsilonGreedy, OwnCandidates, PlackettLuce, Policy, Thurstone
from foretest.policies.likelihood_fit import CannotFit, LikelihoodFit, fit_number
from foretest.policies.own_candidates import places_column
from tests.support import log_softmax_ranking


def number_of(policy: Policy, displays: Displays, m: np.ndarray | None = None) -> LikelihoodFit:
    return fit_number(policy, displays, np.ones(len(displays)) if m is None else m)


def displays_of(scores: np.ndarray, rankings: np.ndarray) -> Displays:
    rows, items = scores.shape
    ranking = Ragged.packed(rankings.astype(np.int32).ravel(), np.full(rows, rankings.shape[1]))
    return Displays({"s": Ragged.of(list(scores))}, ranking, np.full(rows, items), np.arange(rows, dtype=np.uint64))


def drawn(policy: Policy, rows: int, items: int, slots: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and rankings that a policy drew."""
    g = np.random.default_rng(seed)
    scores = g.normal(size=(rows, items))
    shown = displays_of(scores, np.zeros((rows, slots)))
    return scores, policy.sample(shown, g.random((rows, items + 1))).flat().reshape(rows, slots)


def greatest(log_likelihood: Callable[[float], float], low: float, high: float) -> float:
    return float(minimize_scalar(lambda x: -log_likelihood(x), bounds=(low, high), options={"xatol": 1e-9}).x)


def test_plackett_luce() -> None:
    scores, rankings = drawn(PlackettLuce("s", 0.6), 300, 5, 2)
    m = np.random.default_rng(1).integers(1, 4, 300).astype(float)

    def log_likelihood(t: float) -> float:
        return sum(w * log_softmax_ranking(s / t, a) for w, s, a in zip(m, scores, rankings, strict=True))

    fit = number_of(PlackettLuce("s"), displays_of(scores, rankings), m)
    best = greatest(log_likelihood, 0.1, 5.0)
    assert fit.value == pytest.approx(best, rel=1e-5)
    h = 1e-3
    curvature = sum(c * log_likelihood(best * np.exp(k * h)) for c, k in ((1, 1), (-2, 0), (1, -1))) / h**2
    assert fit.information == pytest.approx(-curvature, rel=1e-3)
    at = [(log_softmax_ranking(scores[7] / (fit.value * np.exp(k * h)), rankings[7])) for k in (1, -1)]
    assert fit.slope[7] == pytest.approx((at[0] - at[1]) / (2 * h), rel=1e-5)
    assert m @ fit.slope == pytest.approx(0.0, abs=1e-5)


def test_a_row_that_stands_for_several_counts_as_its_copies() -> None:
    scores, rankings = drawn(PlackettLuce("s", 0.6), 200, 5, 2)
    m = np.random.default_rng(2).integers(1, 4, 200)
    weighted = number_of(PlackettLuce("s"), displays_of(scores, rankings), m.astype(float))
    copied = number_of(PlackettLuce("s"), displays_of(np.repeat(scores, m, axis=0), np.repeat(rankings, m, axis=0)))
    assert weighted.value == pytest.approx(copied.value, rel=1e-7)
    assert weighted.information == pytest.approx(copied.information, rel=1e-6)


def test_epsilon_greedy() -> None:
    scores, rankings = drawn(EpsilonGreedy("s", 0.3), 400, 4, 2)

    def log_likelihood(e: float) -> float:
        total = 0.0
        for s, ranking in zip(scores, rankings, strict=True):
            left = list(np.argsort(-s, kind="stable"))
            for item in ranking:
                total += np.log((1.0 - e) * (left[0] == item) + e / len(left))
                left.remove(item)
        return total

    fit = number_of(EpsilonGreedy("s", 0.5), displays_of(scores, rankings))
    assert fit.value == pytest.approx(greatest(log_likelihood, 0.01, 0.99), rel=1e-5)


def test_thurstone() -> None:
    scores, rankings = drawn(Thurstone("s", 0.8), 40, 3, 1)

    def log_prob(s: np.ndarray, item: int, sigma: float) -> float:
        others = np.delete(s, item)
        density = lambda u: norm.pdf((u - s[item]) / sigma) / sigma * norm.cdf((u - others) / sigma).prod()  # noqa: E731
        return float(np.log(quad(density, s[item] - 9 * sigma, s[item] + 9 * sigma, epsabs=1e-12)[0]))

    def log_likelihood(sigma: float) -> float:
        return sum(log_prob(s, a[0], sigma) for s, a in zip(scores, rankings, strict=True))

    fit = number_of(Thurstone("s"), displays_of(scores, rankings))
    h = 1e-2
    slope = (log_likelihood(fit.value * np.exp(h)) - log_likelihood(fit.value * np.exp(-h))) / (2 * h)
    assert slope / fit.information == pytest.approx(0.0, abs=1e-3)  # on the logarithm of sigma


def test_items_of_the_policys_own() -> None:
    scores, rankings = drawn(PlackettLuce("s", 0.6), 200, 5, 2)
    plain = displays_of(scores, rankings)
    places = Ragged.of([np.arange(5, dtype=np.int64)] * 200)
    own = Displays({**plain.columns, places_column("c"): places}, plain.ranking, plain.eligible, plain.identity)
    assert number_of(OwnCandidates(PlackettLuce("s"), "c"), own).value == number_of(PlackettLuce("s"), plain).value


@pytest.mark.parametrize("policy", [PlackettLuce("s", 1e-4), EpsilonGreedy("s", 0.0)])
def test_a_log_that_does_not_explore(policy: Policy) -> None:
    scores, rankings = drawn(policy, 300, 4, 2)
    with pytest.raises(CannotFit, match=r"the log does not explore: more than 99 % of its displays have a ranking of"):
        number_of(policy, displays_of(scores, rankings))


def test_nearly_no_exploration_is_refused_by_share_of_displays() -> None:
    """199 of 200 displays have scores 100 apart, where one ranking is nearly certain at any temperature of the rest."""
    scores, rankings = drawn(PlackettLuce("s", 0.6), 800, 3, 1)
    certain = np.arange(800) % 200 != 0
    scores[certain] = [0.0, 100.0, -100.0]
    rankings[certain] = 1
    with pytest.raises(CannotFit, match="does not explore"):
        number_of(PlackettLuce("s"), displays_of(scores, rankings))


def test_scores_that_say_nothing() -> None:
    scores, rankings = drawn(PlackettLuce("s", 0.6), 300, 4, 2)
    with pytest.raises(CannotFit, match="the scores of each display are alike"):
        number_of(PlackettLuce("s"), displays_of(np.zeros_like(scores), rankings))
    with pytest.raises(CannotFit, match="does not follow the scores"):
        number_of(PlackettLuce("s"), displays_of(-scores, rankings))
    with pytest.raises(CannotFit, match="does not follow the scores"):
        number_of(EpsilonGreedy("s", 0.5), displays_of(-scores, rankings))
