"""Slots against rankings: the limits in plain NumPy, worlds where slots influence each other and where they do not."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.inference.slot_agreement import slot_agreement
from foretest.inference.uplift_range import reaching
from foretest.report.estimator_words import headline_reason
from foretest.report.many import treatments_section
from foretest.results.uplift_range import Range
from tests.estimators.test_common_checks import apart
from tests.support import SCORES, SmallLog, build_test

BOTH = ["point-ncis-adaptive", "slot-ncis-adaptive"]


def terms(log: SmallLog, key: str, bound: float) -> tuple[np.ndarray, np.ndarray]:
    """d = (w̃ − 1) r and t = (w̃ − w̄) r of every row; w̄ is w̃ times q."""
    at = np.arange(log.rows)
    if key == "point-ncis-adaptive":
        t, p = np.exp(log.log_t)[:, None], np.exp(log.log_p)[:, None]
        shown, shares = np.exp(log.log_w)[:, None], np.ones((log.rows, 1))
    else:
        t, p = log.marginals(log.log_t), log.marginals(log.log_p)
        items = log.rankings[log.shown]
        shown = np.stack([t[at, k, items[:, k]] / p[at, k, items[:, k]] for k in range(log.k)], axis=1)
        shares = log.shares["click"]
    low, high = np.full(shown.shape, -60.0), np.full(shown.shape, np.log(bound) + 1e-12)
    for _ in range(200):
        c = np.exp((low + high) / 2)
        fits = c <= bound * np.minimum(t, c[:, :, None] * p).sum(axis=2)
        low, high = np.where(fits, np.log(c), low), np.where(fits, high, np.log(c))
    capped = np.minimum(shown, np.exp(low))
    h = capped / np.minimum(t, np.exp(low)[:, :, None] * p).sum(axis=2)
    h, capped = (h * shares).sum(axis=1), (capped * shares).sum(axis=1)
    return (h - 1.0) * log.click, (h - capped) * log.click


def test_limits_are_the_formula() -> None:
    """Clustered by unit, where no two units fall into one bucket; the settings' own gamma plays no part."""
    log = SmallLog(rows=300, units=60, seed=12)
    log.unit = apart(60)[log.unit]
    test = build_test(BOTH, interval="delta", gamma=5.0, weight_bound=1.5)
    aggregates, _, _ = test.aggregate(log.table())
    estimates = test.run(log.table()).metrics["click"].estimates
    agreement = slot_agreement(aggregates, aggregates.plan.estimators, 0, estimates)
    assert agreement is not None
    (ds, ts), (dp, tp) = (terms(log, key, 1.5) for key in reversed(BOTH))
    down, up = 1 - 1 / 1.15, 0.3

    def error(x: np.ndarray) -> float:
        sums = np.array([(x - x.mean())[log.unit == u].sum() for u in np.unique(log.unit)])
        return float(np.sqrt(len(sums) / (len(sums) - 1) * (sums**2).sum()) / log.rows)

    low, high = (ds - down * ts) - (dp + up * tp), (ds + up * ts) - (dp - down * tp)
    assert agreement.difference == pytest.approx((ds - dp).mean(), rel=1e-6)
    assert agreement.interval.lower == pytest.approx(low.mean() - 1.6448536 * error(low), rel=1e-6)
    assert agreement.interval.upper == pytest.approx(high.mean() + 1.6448536 * error(high), rel=1e-6)
    assert min(tp.sum(), ts.sum()) > 0.0
    assert agreement.p_value == 1.0  # 0 is inside


def test_p_value_is_that_of_the_nearer_end() -> None:
    """No weight exceeds the bound, so that there is no band, and p is the two-sided one of the difference."""
    log = simulated(influence=True, rows=400)
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", slot_rewards={"click": "slot_click"})
    test = ft.OfflineTest(log=columns, **SCORES, estimators=BOTH, buckets=2**13, n_resamples=10)  # p has none in it
    metric = test.run(log).metrics["click"]
    assert metric.slots is not None
    half = metric.slots["ci_upper"] - metric.slots["difference"]
    # by slot to rounding: P_t of all items of a slot add up to 1 within a last bit, on some processors exactly
    assert [metric.estimates[key].unsupported for key in BOTH] == pytest.approx([0.0, 0.0], abs=1e-15)
    z = abs(metric.slots["difference"]) / (half / 1.6448536269514722)
    assert metric.slots["p_value"] == pytest.approx(math.erfc(z / math.sqrt(2.0)), rel=1e-9)


def simulated(influence: bool, rows: int = 20_000, *, shuffled: bool = False) -> pa.Table:
    """Two slots of four items; the second earns by its own item, or where `influence` by the item above it. Where
    `shuffled`, items stand in any order in the lists, so that no test by their positions can find that."""
    g = np.random.default_rng(21)
    control = g.normal(size=(rows, 4))
    treatment = control + np.array([1.0, 0.0, 0.0, -1.0])
    ranking = np.argsort(-(control + g.gumbel(size=control.shape)), axis=1)[:, :2]
    decides = ranking[:, 0] if influence else ranking[:, 1]
    rate = np.where(decides == 0, 0.4, 0.05)
    click = (g.random(rows) < rate).astype(float)
    slots = np.stack([np.zeros(rows), click], axis=1)
    if shuffled:
        order = np.argsort(g.random((rows, 4)), axis=1)
        control, treatment = (np.take_along_axis(scores, order, axis=1) for scores in (control, treatment))
        ranking = np.take_along_axis(np.argsort(order, axis=1), ranking, axis=1)
    return pa.table({
        "click": click, "slot_click": slots.tolist(), "ranking": ranking.tolist(), "user": np.arange(rows),
        "control_scores": control.tolist(), "treatment_scores": treatment.tolist(),
    })  # fmt: skip


def test_slots_that_influence_each_other_are_found_out() -> None:
    """Clicks in slot 2 come with item 0 above it, which the treatment shows more: by slot little of that is seen."""
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", slot_rewards={"click": "slot_click"})
    test = ft.OfflineTest(log=columns, **SCORES, estimators=BOTH)
    result = test.run(simulated(influence=True))
    metric = result.metrics["click"]
    assert metric.slots is not None
    assert metric.slots["disagree"]
    assert metric.estimates["point-ncis-adaptive"].verdict == "positive"
    slot, point = (metric.estimates[key].effect_size for key in reversed(BOTH))
    assert slot < 0.5 * point
    assert metric.headline == "point-ncis-adaptive"
    assert metric.verdict == "positive"
    assert any("slots influence each other" in r for r in metric.estimates["slot-ncis-adaptive"].reasons)
    assert "not by slot, because rewards depend on what else is shown" in headline_reason(result, metric)
    assert "slots influence each other" in str(result)
    assert result.to_dict()["metrics"]["click"]["slots"]["disagree"]
    asked = test.replace(headline="slot-ncis-adaptive").run(simulated(influence=True)).metrics["click"]
    assert asked.headline == "slot-ncis-adaptive"  # who asks for it has it, and the reason


def test_a_disagreement_that_chance_may_explain_widens_the_range() -> None:
    """p between .001 and .1: slots lead, and their range spans the interval by ranking."""
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", slot_rewards={"click": "slot_click"})
    result = ft.OfflineTest(log=columns, **SCORES, estimators=BOTH).run(simulated(influence=True, rows=400))
    metric = result.metrics["click"]
    assert metric.slots is not None
    assert (metric.slots["disagree"], metric.slots["refuted"]) == (True, False)
    assert 0.001 < metric.slots["p_value"] < 0.1
    assert metric.headline == "slot-ncis-adaptive"
    slot, point = (metric.estimates[key] for key in reversed(BOTH))
    assert slot.range is not None
    assert slot.unsupported == pytest.approx(0.0, abs=1e-15)  # so that the range is noise, but for rankings
    assert slot.range.ci_lower == pytest.approx(slot.effect_size_ci_lower, rel=1e-9)
    assert slot.effect_size_ci_lower < point.effect_size_ci_lower
    assert slot.range.ci_upper == point.effect_size_ci_upper > slot.effect_size_ci_upper
    assert slot.range.rel_ci_upper == point.rel_effect_size_ci_upper
    assert any("So its range spans the interval of point-ncis-adaptive" in reason for reason in slot.reasons)
    assert "not slot-ncis-adaptive" not in headline_reason(result, metric)


@pytest.mark.parametrize(("other", "spanning", "word"), [
    (-0.01, True, "neutral"), (-0.01, False, "leans positive"), (0.01, True, "leans positive"),
])  # fmt: skip
def test_no_word_against_an_estimate_that_disagrees(other: float, spanning: bool, word: str) -> None:
    """By slot the noise interval is above 0; by ranking the uplift has the same sign, or the other."""
    limits = Range("band", 0.005, 0.1, 0.05, 1.0)
    slot = ft.Estimate(0.13, 0.01, 0.03, 0.01, 0.05, 0.3, 0.1, 0.5, "positive", [], 99.0, range=limits, word="positive")
    point = ft.Estimate(0.1, 0.03, other, -0.06, 0.04, other / 0.1, -0.6, 0.4, "neutral", [], 99.0)
    reached = reaching(slot, point, 0.1, spanning=spanning)
    assert reached.range.ci_lower == (-0.06 if spanning else -0.01)
    assert reached.word == word


def test_where_they_agree_the_range_reaches_to_the_uplift_by_ranking() -> None:
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", slot_rewards={"click": "slot_click"})
    test = ft.OfflineTest(log=columns, **SCORES, estimators=BOTH)
    metric = test.run(simulated(influence=False, rows=800)).metrics["click"]
    slot, point = (metric.estimates[key] for key in reversed(BOTH))
    assert not metric.slots["disagree"]
    assert slot.unsupported == pytest.approx(0.0, abs=1e-15)
    assert slot.range.ci_lower == point.effect_size < slot.effect_size_ci_lower
    assert slot.range.ci_upper == pytest.approx(slot.effect_size_ci_upper, rel=1e-9)
    assert slot.range.rel_ci_lower == point.rel_effect_size
    assert slot.reasons == ["its range reaches to point-ncis-adaptive, which assumes nothing of slots"]
    within = test.run(simulated(influence=False, rows=1000)).metrics["click"].estimates["slot-ncis-adaptive"]
    assert within.range.ci_lower == pytest.approx(within.effect_size_ci_lower, rel=1e-9)  # it holds rankings already
    assert within.reasons == []


def test_slots_that_do_not_are_left_in_the_lead() -> None:
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", slot_rewards={"click": "slot_click"})
    metric = ft.OfflineTest(log=columns, **SCORES, estimators=BOTH).run(simulated(influence=False)).metrics["click"]
    assert metric.slots is not None
    assert not metric.slots["disagree"]
    assert metric.slots["ci_lower"] < 0.0 < metric.slots["ci_upper"]
    assert metric.headline == "slot-ncis-adaptive"
    alone = ft.OfflineTest(log=columns, **SCORES, estimators=["slot-ncis-adaptive"]).run(simulated(influence=False))
    assert alone.metrics["click"].slots is None
    assert "slots" not in alone.to_dict()["metrics"]["click"]


def top_ranked(rows: int = 20_000) -> tuple[pa.Table, dict[str, float]]:
    """Three slots of six items that earn by their own item and place alone, shown by Plackett-Luce, and the true
    uplifts of a treatment that shows the best three items (`top`) and of a softer one (`soft`)."""
    g = np.random.default_rng(31)
    control, liking, place = 0.5 * g.normal(size=(rows, 6)), g.normal(size=(rows, 6)), np.array([1.0, 0.7, 0.5])
    rate = np.minimum(0.16 * np.exp(0.46 * liking), 1.0)
    soft = control + 0.4 * liking

    def expected(rankings: np.ndarray) -> np.ndarray:
        return np.take_along_axis(rate, rankings, axis=1) * place

    def drawn(scores: np.ndarray) -> np.ndarray:
        return np.argsort(-(scores + g.gumbel(size=scores.shape)), axis=1)[:, :3]

    values = {
        "control": np.mean([expected(drawn(control)).sum(axis=1).mean() for _ in range(15)]),
        "soft": np.mean([expected(drawn(soft)).sum(axis=1).mean() for _ in range(15)]),
        "top": expected(np.argsort(-liking, axis=1)[:, :3]).sum(axis=1).mean(),
    }
    ranking = drawn(control)
    slots = (g.random((rows, 3)) < expected(ranking)).astype(float)
    log = pa.table({
        "click": slots.sum(axis=1), "slot_click": slots.tolist(), "ranking": ranking.tolist(), "user": np.arange(rows),
        "control": control.tolist(), "top": liking.tolist(), "soft": soft.tolist(),
    })  # fmt: skip
    return log, {name: float(values[name] / values["control"] - 1.0) for name in ("top", "soft")}


@pytest.mark.slow
def test_an_insufficient_estimate_by_ranking_is_no_judge() -> None:
    """A treatment that always shows its best ranking: its uplift is 0 by construction by ranking, and right by slot."""
    log, truth = top_ranked()
    assert 0.35 < truth["top"] < 0.6
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", slot_rewards={"click": "slot_click"})
    policies = {"top": ft.EpsilonGreedy(scores="top", epsilon=0.0), "soft": ft.PlackettLuce(scores="soft")}
    test = ft.OfflineTest(
        log=columns, control=ft.PlackettLuce(scores="control"), treatment=policies, estimators=BOTH, n_resamples=200,
        weight_bound=20.0,
    )  # fmt: skip
    result = test.run(log)
    top, soft = (treatment.metrics["click"] for treatment in result.treatments)
    assert top.slots is not None
    assert top.slots["ci_lower"] > 0.0  # apart, if they were compared
    assert (top.slots["compared"], top.slots["disagree"]) == (False, False)
    by_rank = top.estimates["point-ncis-adaptive"]
    assert (by_rank.verdict, by_rank.rel_effect_size) == ("insufficient", pytest.approx(0.0, abs=0.02))
    assert top.headline == soft.headline == "slot-ncis-adaptive"
    assert top.verdict == soft.verdict == "positive"
    for metric, name in ((top, "top"), (soft, "soft")):
        lead = metric.estimates["slot-ncis-adaptive"]
        error = lead.std_error / metric.control.value
        assert abs(lead.rel_effect_size - truth[name]) < 3.0 * error
    assert any("could not be checked" in reason for reason in top.estimates["slot-ncis-adaptive"].reasons)
    assert soft.estimates["slot-ncis-adaptive"].reasons == []
    assert "could not be checked, because point-ncis-adaptive has too little" in headline_reason(result, top)
    assert [t.rank for t in result.treatments] == [1, 2]
    assert result.winner == "top"
    assert "top, " in str(result).splitlines()[0]


def test_the_comparison_does_not_decide_who_leads() -> None:
    """Slots influence each other in a way that only the treatment's rewards show: the range by slot says so, for the
    treatment that moves the item at fault and not for another; who leads is the same for both."""
    log = simulated(influence=True, shuffled=True)
    near = (np.array(log["control_scores"].to_pylist()) + np.array([0.0, 0.3, -0.3, 0.0])).tolist()
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", slot_rewards={"click": "slot_click"})
    policies = {"far": SCORES["treatment"], "near": ft.PlackettLuce(scores="near")}
    test = ft.OfflineTest(
        log=columns, control=SCORES["control"], treatment=policies, estimators=BOTH, n_resamples=200,
        metrics={"click": {"role": "goal"}},
    )  # fmt: skip
    result = test.run(log.append_column("near", pa.array(near)))
    far, close = (treatment.metrics["click"] for treatment in result.treatments)
    assert (far.headline, close.headline) == ("slot-ncis-adaptive", "slot-ncis-adaptive")
    assert far.slots is not None
    assert close.slots is not None
    assert (far.slots["refuted"], close.slots["disagree"]) == (True, False)
    slot, point = (far.estimates[key] for key in reversed(BOTH))
    assert slot.range is not None
    assert slot.range.ci_lower <= point.effect_size_ci_lower
    assert slot.range.ci_upper >= point.effect_size_ci_upper > 2 * slot.effect_size_ci_upper
    assert any("slots influence each other here" in reason for reason in slot.reasons)
    assert not any("influence each other" in reason for reason in close.estimates["slot-ncis-adaptive"].reasons)


def test_each_treatment_keeps_its_own_headline() -> None:
    """The control hardly explores: what one treatment shows slots support, of another only exposure supports enough."""
    g = np.random.default_rng(5)
    rows, theta = 4000, [1.0, 0.7]
    scores = 4.0 * g.normal(size=(rows, 4))
    ranking = np.argsort(-(scores + g.gumbel(size=scores.shape)), axis=1)[:, :2]
    slots = (g.random((rows, 2)) < 0.3 * np.array(theta)).astype(float)
    swapped = scores.copy()
    best, second = np.argsort(-scores, axis=1)[:, :2].T
    swapped[np.arange(rows), best], swapped[np.arange(rows), second] = (
        scores[np.arange(rows), second], scores[np.arange(rows), best],
    )  # fmt: skip
    log = pa.table({
        "click": slots.sum(axis=1), "slot_click": slots.tolist(), "ranking": ranking.tolist(), "user": np.arange(rows),
        "control_scores": scores.tolist(), "far": swapped.tolist(), "near": (scores + 0.1).tolist(),
        "half": np.where(np.arange(rows) % 2, "odd", "even"),
    })  # fmt: skip
    columns = ft.LogColumns(
        rewards=["click"], unit="user", ranking="ranking", slot_rewards={"click": "slot_click"}, segments=["half"]
    )
    policies = {name: ft.PlackettLuce(scores=name) for name in ("far", "near")}
    keys = ["slot-ncis-adaptive", "exposure-ncis-adaptive"]
    test = ft.OfflineTest(
        log=columns, control=SCORES["control"], treatment=policies, estimators=keys, n_resamples=200,
        metrics={"click": {"role": "goal"}}, examination=theta, weight_bound=5.0,
    )  # fmt: skip
    result = test.run(log)
    by_name = {treatment.name: treatment.metrics["click"] for treatment in result.treatments}
    far, close = by_name["far"], by_name["near"]
    assert (far.headline, close.headline) == ("exposure-ncis-adaptive", "slot-ncis-adaptive")
    for treatment in result.treatments:
        metric = treatment.metrics["click"]
        assert metric.verdict == metric.estimates[metric.headline].verdict
        assert {segment.metrics["click"].headline for segment in treatment.segments} == {metric.headline}
    order = sorted(
        result.treatments, key=lambda t: -t.metrics["click"].estimates[t.metrics["click"].headline].effect_size
    )
    assert [t.rank for t in order] == [1, 2]
    text = str(result)
    assert "by exposure-ncis-adaptive: far" in text
    assert "by slot-ncis-adaptive: near" in text
    panel = treatments_section(result, 1).panels[0]
    assert panel.table.columns[-1] == "estimator"
    assert {row[1]: row[-1] for row in panel.table.rows} == {"far": far.headline, "near": close.headline}
