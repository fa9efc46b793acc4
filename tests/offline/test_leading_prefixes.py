"""Which level leads where rewards depend on what else is shown: prefixes, if they depend on what stands above alone."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.offline.leading_level import leading_level
from foretest.results.slot_model import BELOW, DEPENDS, SlotModel, SlotTest
from tests.schemas import validate
from tests.support import SCORES

POINT, SLOT, CASCADE = "point-ncis-adaptive", "slot-ncis-adaptive", "cascade-ncis-adaptive"
LEVELS = [POINT, SLOT, CASCADE]
SCHEMA = json.loads(files("foretest").joinpath("schema/result-1.json").read_text(encoding="utf-8"))


def simulated(rows: int, seed: int, *, above: float = 0.0, below: float = 0.0) -> pa.Table:
    """Three slots of six items; a pair of items changes the odds of a reward by the item above or below."""
    g = np.random.default_rng(seed)
    control = g.normal(scale=0.3, size=(rows, 6))
    treatment = control + g.normal(scale=0.5, size=6)
    ranking = np.argsort(-(control + g.gumbel(size=control.shape)), axis=1)[:, :3]
    pairs = np.random.default_rng(99).choice([-1.0, 1.0], size=(6, 6))
    logit = -1.0 + 0.3 * ranking - 0.2 * np.arange(3)
    for a in range(3):
        for b in range(3):
            if a != b:
                logit[:, a] += (above if b < a else below) * pairs[ranking[:, a], ranking[:, b]]
    slots = (g.random((rows, 3)) < 1.0 / (1.0 + np.exp(-logit))).astype(float)
    return pa.table({
        "click": slots.sum(axis=1), "slot_click": slots.tolist(), "ranking": ranking.tolist(),
        "id": np.arange(rows),
        "control_scores": control.tolist(), "treatment_scores": treatment.tolist(),
    })  # fmt: skip


def built(estimators: list[str] | None = None, **analysis: object) -> ft.OfflineTest:
    log = ft.LogColumns(rewards=["click"], ranking="ranking", id="id", slot_rewards={"click": "slot_click"})
    return ft.OfflineTest(log=log, **SCORES, estimators=estimators or LEVELS, n_resamples=100, **analysis)


WORLDS = {
    "independent": ({}, SLOT),
    "cascade": ({"above": 0.5}, CASCADE),
    "interacting": ({"above": 0.5, "below": 0.5}, POINT),
    "below alone": ({"below": 0.5}, POINT),
}


@pytest.mark.parametrize("world", WORLDS)
def test_who_leads(world: str) -> None:
    effects, leads = WORLDS[world]
    result = built().run(simulated(4000, 3, **effects))
    metric = result.metrics["click"]
    assert metric.slot_model is not None
    assert metric.slot_model.below is not None
    assert metric.headline == leads
    assert metric.slot_model.below.status == ("fail" if leads == POINT else "pass")
    assert metric.slot_model.is_cascade == (leads == CASCADE)
    document = json.loads(result.to_json())
    validate(document, SCHEMA)
    assert document["metrics"]["click"]["slot_model"]["below"]["p_value"] == metric.slot_model.below.p_value
    assert ("items below" in str(result)) == (leads == POINT)


def test_why_prefixes_lead_is_said_everywhere() -> None:
    result = built().run(simulated(4000, 3, above=0.5))
    metric = result.metrics["click"]
    assert metric.headline_reason is not None
    assert metric.headline_reason.startswith(f"{DEPENDS} (p < 0.0001), and the log has no sign that {BELOW} (p = 0.")
    note = f"{CASCADE} leads for click unless the settings name another, because {metric.headline_reason}."
    assert note in result.notes
    assert not any("no estimate by slot leads" in line for line in result.notes)
    page = result.to_html()
    assert f"The headline is {CASCADE}, because {DEPENDS}" in page
    assert "And on what stands below them?" in page
    assert json.loads(result.to_json())["metrics"]["click"]["headline_reason"] == metric.headline_reason


def test_ranges_of_slots_span_rankings_and_those_of_prefixes_reach_them() -> None:
    """In a cascade slots are doubted, prefixes are not; where rewards depend on what stands below, both are."""
    metric = built().run(simulated(4000, 3, above=0.5)).metrics["click"]
    point, slot, cascade = (metric.estimates[key] for key in LEVELS)
    assert slot.range.ci_lower <= point.effect_size_ci_lower <= point.effect_size_ci_upper <= slot.range.ci_upper
    assert cascade.range.ci_lower <= point.effect_size <= cascade.range.ci_upper
    assert not any("depend" in reason for reason in cascade.reasons)
    other = built().run(simulated(4000, 3, above=0.5, below=0.5)).metrics["click"]
    point, slot, cascade = (other.estimates[key] for key in LEVELS)
    assert cascade.range.ci_lower <= point.effect_size_ci_lower <= point.effect_size_ci_upper <= cascade.range.ci_upper
    assert any(reason.startswith(f"{BELOW} (p < 0.0001)") for reason in cascade.reasons)


def test_a_named_headline_stays() -> None:
    table = simulated(4000, 3, above=0.5)
    for label in LEVELS:
        metric = built(headline=label).run(table).metrics["click"]
        assert metric.headline == label
        assert (metric.headline_reason is None) == (label != CASCADE)
    assert built([POINT, SLOT]).run(table).metrics["click"].headline == POINT
    assert built([POINT, CASCADE]).run(simulated(4000, 3)).metrics["click"].headline == POINT


def test_tests_that_were_not_made_give_no_lead() -> None:
    """With sums of an earlier version nothing is known of what stands below: rankings lead."""
    aggregates = built().aggregate(simulated(600, 3)).aggregates
    estimators = aggregates.plan.estimators
    bad, good = SlotTest("fail", None, 1e-5, 9, DEPENDS), SlotTest("pass", None, 0.3, 9, f"no sign that {BELOW}")
    unknown, warns = SlotTest("not made", None, None, 0, ""), SlotTest("warn", None, 0.004, 9, BELOW)

    def first(model: SlotModel | None) -> str | None:
        return leading_level(aggregates, estimators, model, apart=True).first

    assert first(SlotModel(bad, below=good)) == first(SlotModel(good, pairs=bad, below=good)) == CASCADE
    for below in (None, unknown, warns, bad):
        assert first(SlotModel(bad, below=below)) is None
    assert first(SlotModel(good, below=good)) is first(None) is None  # slots and rankings disagree
    assert SlotModel(bad, below=unknown).of_prefixes == SlotModel(bad).of_prefixes == bad
    assert SlotModel(bad, below=warns).of_prefixes == warns


def test_treatments_have_prefixes_of_their_own() -> None:
    log = ft.LogColumns(rewards=["click"], ranking="ranking", id="id", slot_rewards={"click": "slot_click"})
    table = simulated(1500, 5, above=0.5)
    treatments = {"same": SCORES["control"], "other": SCORES["treatment"]}
    test = ft.OfflineTest(log=log, control=SCORES["control"], treatment=treatments, estimators=LEVELS, n_resamples=100)
    same, other = (one.metrics["click"].estimates[CASCADE] for one in test.run(table).treatments)
    assert same.effect_size == pytest.approx(0.0, abs=1e-12)
    alone = built([CASCADE]).run(table).metrics["click"].estimates[CASCADE]
    assert other.treatment == pytest.approx(alone.treatment, rel=1e-12)


@pytest.mark.parametrize("key", [CASCADE, "rips"])
def test_controls_that_prefixes_are_not_for(key: str) -> None:
    """One that is known slot by slot, and one that never varies: the sentences are those of rips."""
    log = built().settings.log
    slots = ft.LoggedSlots(probs="probs")
    table = simulated(50, 1)
    known = table.append_column("probs", pa.array([[0.2, 0.2, 0.2]] * 50))
    with pytest.raises(ft.BadInput, match=f"{key} cannot run: the control is known slot by slot"):
        ft.OfflineTest(log=log, control=slots, treatment=SCORES["treatment"], estimators=[key]).run(known)
    best = np.argsort(-np.array(table["control_scores"].to_pylist()), axis=1)[:, :3]
    fixed = table.set_column(2, "ranking", pa.array(best.tolist()))
    never = ft.EpsilonGreedy(scores="control_scores", epsilon=0.0)
    test = ft.OfflineTest(log=log, control=never, treatment=SCORES["treatment"], estimators=[key], n_resamples=100)
    estimate = test.run(fixed).metrics["click"].estimates[key]
    assert estimate.verdict == "insufficient"
    assert any(reason.startswith("the control is deterministic") for reason in estimate.reasons)
