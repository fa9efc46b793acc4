"""The company of a rewarded item: against sums over all rankings, and what is left out."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.policies.logging_mixture import DAY, LOGGER, LoggingMixture, Shares
from foretest.weights.company import DRAWS, FARTHEST, PAIRS, company_excess, has_company, item_worth, pair_signs
from foretest.weights.slot_marginals import shown_marginals

ITEMS, SLOTS, COPIES = 5, 3, 600
SCORES = np.array([1.1, -0.4, 0.3, -2.5, 2.0])
POLICIES = {
    "plackett-luce": ft.PlackettLuce(scores="s", temperature=0.8),
    "mallows": ft.Mallows(scores="s", dispersion=0.6),
    "epsilon-greedy": ft.EpsilonGreedy(scores="s", epsilon=0.4),
    "thurstone": ft.Thurstone(scores="s", sigma=1.2),
    "mixture": ft.Mixture([(0.3, ft.Mallows(scores="s", dispersion=0.8)), (0.7, ft.PlackettLuce(scores="s"))]),
}
RANKINGS = np.array(list(permutations(range(ITEMS), SLOTS)), np.int32)


def by_scores(*arguments: Any, **named: Any) -> np.ndarray:
    """The column of the worth by scores."""
    return company_excess(*arguments, **named)[:, 0]


def displays(rankings: Any, first_key: int = 0, scores: np.ndarray = SCORES, **columns: Any) -> ft.Displays:
    """Displays of the same items, each with a key of its own."""
    count = len(rankings)
    keys = np.arange(first_key, first_key + count).astype(np.uint64)
    lists = ft.Ragged.packed(np.tile(scores, count), np.full(count, len(scores)))
    return ft.Displays({"s": lists, **columns}, ft.Ragged.of(rankings), np.full(count, len(scores)), keys)


def worth_of(policy: Any, scores: np.ndarray) -> np.ndarray:
    """What an item is worth, by its definition."""
    scale = getattr(policy, "temperature", getattr(policy, "sigma", None))
    if scale is None:
        return -np.log1p([np.sum(scores > s) for s in scores])
    x = scores / scale
    odds = np.exp(x) / np.exp(x).sum()
    return np.clip(x - (odds * x).sum(), -2.0, 2.0)


@pytest.mark.parametrize("name", POLICIES)
def test_expectation_is_that_over_all_rankings(name: str) -> None:
    """S − E[S | a_k = i] by enumeration against the mean over many keys: unbiased with so few draws."""
    policy = POLICIES[name]
    prob = np.exp(policy.log_prob(displays(RANKINGS), ft.Ragged.of(RANKINGS)))
    assert prob.sum() == pytest.approx(1.0, rel=1e-6)
    worth = worth_of(policy, SCORES)
    np.testing.assert_allclose(item_worth(policy, displays(RANKINGS[:1])).flat(), worth, rtol=1e-12)
    sums = worth[RANKINGS].sum(axis=1)
    deviations = []
    for number, shown in enumerate(RANKINGS[::7]):
        copies = displays([shown] * COPIES, first_key=COPIES * number)
        found = by_scores(policy, copies, np.ones(COPIES * SLOTS, np.bool_), seed=3)
        for slot, estimates in enumerate(found.reshape(COPIES, SLOTS).T):
            same = RANKINGS[:, slot] == shown[slot]
            expected = worth[shown].sum() - np.average(sums[same], weights=prob[same])
            known = estimates[np.isfinite(estimates)]
            error = known.std(ddof=1) / np.sqrt(len(known))
            deviations.append((known.mean() - expected) / error)
    # 27 means: a largest deviation of 4.2 has a chance of 0.1 %
    assert np.abs(deviations).max() < 4.2


@pytest.mark.parametrize("name", ["plackett-luce", "thurstone"])
def test_pairs_of_items_against_all_rankings(name: str) -> None:
    """α(i)·(Σ β − E[Σ β | a_k = i]) over the items above, by enumeration; worth and α(i)·Σ β of those below less their
    mean given all items down to slot k, of other policies than Plackett-Luce where draws have these."""
    policy = POLICIES[name]
    prob = np.exp(policy.log_prob(displays(RANKINGS), ft.Ragged.of(RANKINGS)))
    alpha, beta = pair_signs(ITEMS)
    assert alpha.shape == beta.shape == (PAIRS, ITEMS)
    assert set(np.unique([alpha, beta])) == {-1.0, 1.0}
    assert len(np.unique(np.vstack([alpha, beta]), axis=0)) > PAIRS  # of 16 rows of 5 signs
    worth = worth_of(policy, SCORES)
    deviations = []
    for number, shown in enumerate(RANKINGS[::19]):
        copies = displays([shown] * COPIES, first_key=COPIES * number)
        found = company_excess(policy, copies, np.ones(COPIES * SLOTS, np.bool_), seed=3)[:, 1:]
        for slot, estimates in enumerate(found.reshape(COPIES, SLOTS, -1).transpose(1, 0, 2)):
            same = RANKINGS[:, slot] == shown[slot]
            own = beta[:, shown[:slot]].sum(axis=1)
            mean = np.average(beta[:, RANKINGS[same, :slot]].sum(axis=2), axis=1, weights=prob[same])
            above, below = np.split(estimates[np.isfinite(estimates[:, 0])], [PAIRS], axis=1)
            if len(above) < COPIES / 2:  # an item that is rare there: too few for a standard error
                assert (name, shown[slot] in (1, 3)) == ("thurstone", True)
                continue
            deviations.append(_deviation(above, alpha[:, shown[slot]] * (own - mean)))
            same = (RANKINGS[:, : slot + 1] == shown[: slot + 1]).all(axis=1)
            factors = np.vstack([worth, alpha[:, [shown[slot]]] * beta])  # of every item
            own = factors[:, shown[slot + 1 :]].sum(axis=1)
            mean = np.average(factors[:, RANKINGS[same, slot + 1 :]].sum(axis=2), axis=1, weights=prob[same])
            if slot == 0 or name == "plackett-luce":
                deviations.append(_deviation(below, own - mean))
    # about 200 means: a largest deviation of 4.7 has a chance of 0.1 %
    assert np.abs(np.concatenate(deviations)).max() < 4.7


def _deviation(estimates: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Of the means from what is expected, in standard errors."""
    error = np.maximum(estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates)), 1e-9)
    return (estimates.mean(axis=0) - expected) / error


def test_the_shown_prefix_alone_decides_what_is_expected_below() -> None:
    """With rewards that depend on the item above, in any way, the terms of the items below keep their mean of 0."""
    g = np.random.default_rng(8)
    policy, rows = POLICIES["plackett-luce"], 20_000
    prob = np.exp(policy.log_prob(displays(RANKINGS), ft.Ragged.of(RANKINGS)))
    shown = RANKINGS[g.choice(len(RANKINGS), rows, p=prob / prob.sum())]
    earns = np.zeros((rows, SLOTS), np.bool_)
    earns[:, 1] = np.isin(shown[:, 0], (0, 3))
    found = company_excess(policy, displays(shown), earns.ravel(), seed=0)[earns.ravel()]
    z = found.sum(axis=0) / np.sqrt(np.square(found).sum(axis=0))
    assert np.abs(z[1 + PAIRS :]).max() < 3.5
    assert np.abs(z[: 1 + PAIRS]).max() > 20.0


def test_draws_add_an_eighth_to_the_variance() -> None:
    """Over rankings of the policy itself the terms have mean 0, and little more variance than S has."""
    g = np.random.default_rng(5)
    policy, rows = POLICIES["plackett-luce"], 20_000
    prob = np.exp(policy.log_prob(displays(RANKINGS), ft.Ragged.of(RANKINGS)))
    shown = RANKINGS[g.choice(len(RANKINGS), rows, p=prob / prob.sum())]
    earns = np.tile([False, True, False], rows)
    terms = by_scores(policy, displays(shown), earns, seed=0)[earns]
    assert abs(terms.mean()) < 3.5 * terms.std() / np.sqrt(rows)
    sums = worth_of(policy, SCORES)[RANKINGS].sum(axis=1)
    variance = 0.0
    for item in range(ITEMS):
        same = RANKINGS[:, 1] == item
        mean = np.average(sums[same], weights=prob[same])
        variance += (prob[same] * (sums[same] - mean) ** 2).sum()
    assert 1.0 < terms.var() / variance < 1.0 + 2.0 / DRAWS


def test_known_marginals_are_those_it_computes() -> None:
    policy, shown = POLICIES["plackett-luce"], displays(RANKINGS)
    earns = np.ones(RANKINGS.size, np.bool_)
    marginals = shown_marginals(policy, shown)
    np.testing.assert_array_equal(by_scores(policy, shown, earns, 0), by_scores(policy, shown, earns, 0, marginals))


def test_a_draw_depends_on_the_display_alone() -> None:
    """Neither other displays nor other slots that earn change an estimate."""
    for policy in POLICIES.values():
        shown, every = displays(RANKINGS), np.ones(RANKINGS.size, np.bool_)
        whole = by_scores(policy, shown, every, 7).reshape(-1, SLOTS)
        some = np.array([3, 11, 40])
        few = np.tile([True, False, True], len(some))
        part = by_scores(policy, shown.take(some), few, 7).reshape(-1, SLOTS)
        np.testing.assert_array_equal(part[:, [0, 2]], whole[some][:, [0, 2]])
        assert np.isnan(part[:, 1]).all()


def test_what_is_left_out() -> None:
    """One slot, an item that no draw has in its slot, and one whose odds are no float; others are not disturbed."""
    for policy in POLICIES.values():
        assert np.isnan(by_scores(policy, displays([[1], [2]]), np.ones(2, np.bool_), 0)).all()
    never = ft.EpsilonGreedy(scores="s", epsilon=1e-9)
    found = by_scores(never, displays([[4, 0, 2], [4, 2, 0]]), np.ones(6, np.bool_), 0)
    assert found[:3].tolist() == [0.0, 0.0, 0.0]  # the best three, always in this company
    assert (found[3], np.isnan(found[4:]).all()) == (0.0, True)
    scores = np.array([0.0, -1.0, 1e300, -1e300, -2.0])
    with np.errstate(all="raise", under="ignore"):
        found = by_scores(
            ft.PlackettLuce(scores="s"), displays([[2, 0, 1], [0, 1, 4]], scores=scores), np.ones(6, np.bool_), 0
        )
    assert np.isfinite(found[0])
    assert np.isnan(found[3:]).all()


def test_masked_items_change_nothing() -> None:
    """Candidates that scores of −1e9 keep out are as good as none, and no one score decides."""
    policy = ft.PlackettLuce(scores="s")
    shown, earns = RANKINGS[:20], np.ones(20 * SLOTS, np.bool_)
    masked = np.concatenate([SCORES, np.full(3, -1e9)])
    np.testing.assert_allclose(
        by_scores(policy, displays(shown, scores=masked), earns, 0),
        by_scores(policy, displays(shown), earns, 0),
        rtol=1e-9,
    )
    assert np.abs(item_worth(policy, displays(shown, scores=masked)).flat()).max() <= FARTHEST


def test_each_row_is_compared_with_its_own_logger() -> None:
    own = {"new": POLICIES["plackett-luce"], "old": POLICIES["mallows"]}
    shares = Shares(np.zeros(1, np.uint64), ("all days",), np.array([[3, 1]]))
    logger = np.array([0, 1, 1, 0])
    pooled = LoggingMixture(own, "new", shares)
    shown = displays(RANKINGS[:4], **{LOGGER: logger, DAY: np.zeros(4, np.uint64)})
    earns = np.ones(4 * SLOTS, np.bool_)
    found = by_scores(pooled, shown, earns, 0).reshape(4, SLOTS)
    for number, policy in enumerate(own.values()):
        alone = by_scores(policy, shown, earns, 0).reshape(4, SLOTS)
        np.testing.assert_array_equal(found[logger == number], alone[logger == number])


def test_which_controls_have_company() -> None:
    assert all(has_company(policy) for policy in POLICIES.values())
    assert not has_company(ft.Logged(prob="p"))
