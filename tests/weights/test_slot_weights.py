"""Estimators by slot: values against enumeration, slots without support, weights of any size, and every road."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.inference.row_terms import uplift_terms
from tests.support import SCORES, SLOT_KEYS, SmallLog, build_test
from tests.weights.test_slot_marginals import Plain

KEYS = [key for key in SLOT_KEYS if key != "niips"]  # a ratio, which has tests of its own
LOG = SmallLog()


@pytest.mark.slow
def test_ten_items_in_three_slots_enumerated() -> None:
    """Value and standard error by unit of all four, marginals and prefixes summed over all 720 rankings."""
    log = SmallLog(rows=40, units=15, m=10, k=3, seed=4)
    result = build_test(KEYS, metrics=("click", "revenue"), interval="delta", buckets=1 << 16).run(log.table())
    for metric, r in (("click", log.click), ("revenue", log.revenue)):
        for key in KEYS:
            h = log.weights(key, 2.0, 3.0, metric=metric)
            found = result.metrics[metric].estimates[key]
            assert found.treatment == pytest.approx((h * r).mean(), rel=1e-6)
            d = (h - 1.0) * r
            terms = np.array([(d - d.mean())[log.unit == u].sum() for u in np.unique(log.unit)])
            count = len(terms)
            error = np.sqrt(count / (count - 1) * (terms**2).sum()) / log.rows
            assert found.std_error == pytest.approx(error, rel=1e-6)
            assert found.effective_positives == pytest.approx((h * r).sum() ** 2 / ((h * r) ** 2).sum(), rel=1e-6)
    adaptive = log.slot_weights("slot-ncis-adaptive", 3.0)
    assert adaptive.max() == pytest.approx(3.0, rel=1e-9)  # the bound is met: caps matter here


POLICIES = {
    "mallows": ft.Mallows(scores="control_scores", dispersion=0.7),
    "thurstone": ft.Thurstone(scores="control_scores", sigma=1.5),
    "epsilon-greedy": ft.EpsilonGreedy(scores="control_scores", epsilon=0.5),
    "mixture": ft.Mixture([
        (0.5, ft.PlackettLuce(scores="control_scores")), (0.5, ft.Mallows(scores="control_scores", dispersion=0.8)),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", POLICIES)
def test_other_controls_enumerated(name: str) -> None:
    """The same sums with π_p of another policy, by its own log_prob, which is tested elsewhere."""
    log = SmallLog(rows=60, units=20, seed=6)
    policy, count = POLICIES[name], len(log.rankings)
    rows = np.repeat(np.arange(log.rows), count)
    displays = ft.Displays(
        {"control_scores": ft.Ragged.of(log.control)}, ft.Ragged.of(log.rankings[log.shown]),
        np.full(log.rows, log.m), np.arange(log.rows).astype(np.uint64),
    ).take(rows)  # fmt: skip
    rankings = ft.Ragged.of(np.tile(log.rankings, (log.rows, 1)).astype(np.int32))
    log.log_p = policy.log_prob(displays, rankings).reshape(log.rows, count)
    test = ft.OfflineTest(
        log=build_test(KEYS).settings.log, control=policy, treatment=SCORES["treatment"], estimators=KEYS,
        weight_bound=3.0, interval="delta",
    )  # fmt: skip
    estimates = test.run(log.table()).metrics["click"].estimates
    for key in KEYS:
        h = log.weights(key, 2.0, 3.0)
        assert estimates[key].treatment == pytest.approx((h * log.click).mean(), rel=1e-6)


def test_unbiased_where_a_slot_earns_by_its_own_item() -> None:
    """A log that holds every ranking in exact proportions: iips and rips give the treatment's value, is too.

    Three items, two slots, control uniform over the 6 rankings; slot k earns place_k·appeal of its item.
    """
    rankings = list(permutations(range(3), 2))
    appeal, place = np.array([1.0, 3.0, 0.5]), np.array([1.0, 0.25])
    slots = np.array([[place[k] * appeal[a[k]] for k in range(2)] for a in rankings])
    table = pa.table({
        "r": slots.sum(axis=1), "slots": slots.tolist(), "ranking": [list(a) for a in rankings],
        "control_scores": [[0.0, 0.0, 0.0]] * 6, "treatment_scores": [[0.0, 2.0, 1.0]] * 6,
    })  # fmt: skip
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["r"], ranking="ranking", slot_rewards={"r": "slots"}), **SCORES,
        estimators=["is", *KEYS], weight_bound=1.2,
    )  # fmt: skip
    estimates = test.run(table).metrics["r"].estimates
    odds = np.exp([0.0, 2.0, 1.0])
    truth = sum(
        odds[a[0]] / odds.sum() * odds[a[1]] / (odds.sum() - odds[a[0]]) * slots[i].sum()
        for i, a in enumerate(rankings)
    )
    for key in ("is", "iips", "rips"):
        assert estimates[key].treatment == pytest.approx(truth, rel=1e-8)
    # a bound of 1.2 leaves hardly anything of a treatment that differs: near the control
    assert estimates["slot-ncis-adaptive"].treatment < truth


def test_a_slot_without_support_has_weight_one() -> None:
    """A deterministic treatment: in each slot one item, which the control shows there with P < 1/b in some rows."""
    log = SmallLog(rows=300, seed=2)
    treatment = ft.EpsilonGreedy(scores="treatment_scores", epsilon=0.0)
    test = ft.OfflineTest(
        log=build_test(KEYS).settings.log, control=SCORES["control"], treatment=treatment,
        estimators=["slot-ncis-adaptive"], weight_bound=6.0,
    )  # fmt: skip
    estimate = test.run(log.table()).metrics["click"].estimates["slot-ncis-adaptive"]
    p, best = log.marginals(log.log_p), np.argsort(-log.treatment, axis=1, kind="stable")[:, : log.k]
    shown, total, infeasible = log.rankings[log.shown], 0.0, 0
    for i in np.flatnonzero(log.click):
        k = int(log.shares["click"][i].argmax())
        reach = p[i, k, best[i, k]]  # P_p(W > 0) in this slot
        if reach < 1.0 / 6.0:
            infeasible += 1
            total += 1.0
        elif shown[i, k] == best[i, k]:
            total += 1.0 / reach  # c̃ = 1/P_p, q = 1
    assert 0 < infeasible < log.click.sum()
    assert estimate.treatment == pytest.approx(total / log.rows, rel=1e-9)
    assert estimate.unsupported_rows == infeasible
    assert estimate.verdict == "insufficient"
    assert any("no support" in reason for reason in estimate.reasons)


@pytest.mark.parametrize("key", ["iips", "rips"])
def test_uncapped_weights_of_any_size(key: str) -> None:
    """Three items, two slots, scores up to 300 apart: weights from 1e-250 to 1e250, against rational arithmetic."""
    g = np.random.default_rng(11)
    n = 30
    t, p = g.uniform(-300, 300, (n, 3)), g.uniform(-300, 300, (n, 3))
    rankings = np.array([g.permutation(3)[:2] for _ in range(n)])
    slots = g.integers(0, 2, (n, 2)).astype(float)
    table = pa.table({
        "r": slots.sum(axis=1), "slots": slots.tolist(), "ranking": rankings.tolist(),
        "control_scores": p.tolist(), "treatment_scores": t.tolist(),
    })  # fmt: skip
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["r"], ranking="ranking", slot_rewards={"r": "slots"}), **SCORES, estimators=[key],
    )  # fmt: skip

    def price(scores: np.ndarray, ranking: Any, slot: int) -> Fraction:
        odds = [Fraction(float(np.exp(s - scores.max()))) for s in scores]
        total = sum(odds)
        if slot == 0:
            return odds[ranking[0]] / total
        if key == "rips":
            return odds[ranking[0]] / total * odds[ranking[1]] / (total - odds[ranking[0]])
        before = [i for i in range(3) if i != ranking[1]]
        return sum(odds[i] / total * odds[ranking[1]] / (total - odds[i]) for i in before)

    terms = [
        sum(
            Fraction(slots[i, k]) * price(t[i], rankings[i], k) / price(p[i], rankings[i], k)
            for k in range(2) if slots[i, k]
        )
        for i in range(n)
    ]  # fmt: skip
    estimate = test.run(table).metrics["r"].estimates[key]
    assert max(terms) > Fraction(10) ** 150
    assert estimate.treatment == pytest.approx(float(sum(terms) / n), rel=1e-7)
    positives = sum(terms) ** 2 / sum(x * x for x in terms)
    assert estimate.effective_positives == pytest.approx(float(positives), rel=1e-7)
    assert np.isfinite([estimate.std_error, estimate.effect_size_ci_lower, estimate.effect_size_ci_upper]).all()


def test_a_policy_that_does_not_know_its_marginals_is_drawn_from() -> None:
    """Within the noise of the draws of the exact answer, no uplift for equal policies, and a note that says so."""
    columns = build_test(KEYS).settings.log
    plain = {role: Plain(policy) for role, policy in SCORES.items()}
    for policy, role in zip(plain.values(), plain, strict=True):
        policy.columns = (f"{role}_scores",)
    exact = ft.OfflineTest(log=columns, **SCORES, estimators=KEYS).run(LOG.table()).metrics["click"].estimates
    result = ft.OfflineTest(log=columns, **plain, estimators=KEYS).run(LOG.table())
    drawn = result.metrics["click"].estimates
    assert sum("counted over 1,024 draws" in note for note in result.notes) == 2
    assert drawn["rips"].treatment == pytest.approx(exact["rips"].treatment, rel=1e-9)
    for key in ("iips", "slot-ncis-adaptive"):
        assert drawn[key].treatment == pytest.approx(exact[key].treatment, rel=0.05)
    same = {"control": plain["control"], "treatment": plain["control"]}
    none = ft.OfflineTest(log=columns, **same, estimators=KEYS).run(LOG.table()).metrics["click"].estimates
    for key in KEYS:
        assert abs(none[key].effect_size) < 1e-12


def test_a_metric_without_slots_has_the_other_estimators() -> None:
    columns = ft.LogColumns(
        rewards=["revenue", "click"], unit="user", ranking="ranking", id="id", slot_rewards={"click": "slot_click"}
    )
    test = ft.OfflineTest(log=columns, **SCORES, estimators=["cis", "iips"], headline="iips")
    result = test.run(LOG.table())
    assert list(result.metrics["click"].estimates) == ["cis", "iips"]
    assert result.metrics["click"].headline == "iips"
    assert list(result.metrics["revenue"].estimates) == ["cis"]
    assert result.metrics["revenue"].headline == "cis"
    assert any("iips was left out for revenue" in note for note in result.notes)
    assert "iips" in result.to_html()


def test_by_default_it_runs_and_leads() -> None:
    columns = build_test(KEYS).settings.log
    result = ft.OfflineTest(log=columns, **SCORES, strata="stratum").run(LOG.table())
    metric = result.metrics["click"]
    assert set(KEYS) <= set(metric.estimates)
    assert metric.headline == "slot-ncis-adaptive"
    without = ft.OfflineTest(log=build_test().settings.log, **SCORES, strata="stratum").run(LOG.table())
    assert not set(KEYS) & set(without.metrics["click"].estimates)
    assert sum("by slot were left out" in note for note in without.notes) == 1
    assert without.metrics["click"].headline == "point-ncis-adaptive"


@pytest.mark.parametrize("key", ["slot-ncis-adaptive", "cascade-ncis-adaptive"])
@pytest.mark.parametrize("interval", ["bernstein", "betting"])
def test_bounded_intervals_hold_the_estimate(interval: str, key: str) -> None:
    test = build_test([key], interval=interval, r_max=1.0)
    estimate = test.run(LOG.table()).metrics["click"].estimates[key]
    assert estimate.effect_size_ci_lower < estimate.effect_size < estimate.effect_size_ci_upper
    aggregates, _, _ = test.aggregate(LOG.table())
    [estimator] = aggregates.plan.estimators
    terms = uplift_terms(aggregates, aggregates.plan.weighting(estimator), 0)
    wanted = (LOG.weights(key, 2.0, 3.0) - 1.0) * LOG.click
    np.testing.assert_allclose(np.sort(terms), np.sort(wanted[LOG.click > 0]), atol=1e-8)


def answers(result: Any) -> np.ndarray:
    """Value, error and limits of both metrics and all four, and what the test of their company says."""
    names = ("treatment", "std_error", "effect_size_ci_lower", "effect_size_ci_upper")
    estimates = [
        getattr(metric.estimates[key], name) for metric in result.metrics.values() for key in KEYS for name in names
    ]
    tests = [metric.slot_model.company for metric in result.metrics.values()]
    return np.array([*estimates, *(number for test in tests for number in (test.z, test.p_value, test.rewards))])


def test_lists_of_other_arrow_types() -> None:
    test, log = build_test(KEYS, metrics=("click", "revenue")), SmallLog(rows=500, units=300)
    table = log.table()
    clicks = pa.array((log.shares["click"] * log.click[:, None] > 0).tolist(), pa.large_list(pa.bool_()))
    other = table.set_column(9, "slot_click", clicks)
    np.testing.assert_allclose(answers(test.run(other)), answers(test.run(table)), rtol=1e-9, atol=1e-12)
