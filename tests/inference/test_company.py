"""Slots and their company: z by plain NumPy, its size and power, what follows from it, and every way to run."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation.aggregates import Aggregates
from foretest.inference.company import FEWEST_UNITS, company_test, with_company
from foretest.report.estimator_words import headline_reason
from foretest.results.slot_model import SlotModel, SlotTest
from tests.schemas import validate
from tests.support import SCORES, SmallLog, build_test

BOTH = ["point-ncis-adaptive", "slot-ncis-adaptive"]
SCHEMA = json.loads(files("foretest").joinpath("schema/result-1.json").read_text(encoding="utf-8"))


def simulated(rows: int, seed: int, *, compete: bool = False, rate: float = 0.3, items: int = 6) -> pa.Table:
    """Three slots, each clicked by its item's worth and its place; where they compete, by its share of all worth."""
    g = np.random.default_rng(seed)
    control = g.normal(size=(rows, items))
    treatment = control + 0.3 * g.normal(size=(rows, items))
    ranking = np.argsort(-(control + g.gumbel(size=control.shape)), axis=1)[:, :3]
    worth = np.exp(np.take_along_axis(control, ranking, axis=1)) * np.array([1.0, 0.7, 0.5])
    clicked = worth / worth.sum(axis=1, keepdims=True) if compete else worth / (worth + 3.0)
    slots = (g.random(worth.shape) < rate * clicked).astype(float)
    return pa.table({
        "click": slots.sum(axis=1), "slot_click": slots.tolist(), "ranking": ranking.tolist(), "id": np.arange(rows),
        "user": np.arange(rows) // 2, "control_scores": control.tolist(), "treatment_scores": treatment.tolist(),
    })  # fmt: skip


def built(estimators: list[str] = BOTH, control: Any = SCORES["control"], **settings: Any) -> ft.OfflineTest:
    columns = ft.LogColumns(
        rewards=["click"], unit="user", ranking="ranking", id="id", slot_rewards={"click": "slot_click"}
    )
    options = {"interval": "delta", "weight_bound": 20.0, **settings}
    return ft.OfflineTest(
        log=columns, control=control, treatment=SCORES["treatment"], estimators=estimators, **options
    )  # fmt: skip


def company_of(aggregates: Aggregates, metric: int = 0) -> SlotTest:
    test = company_test(aggregates, aggregates.plan.estimators, metric)
    assert test is not None
    return test


def z_of(log: pa.Table) -> float:
    z = company_of(built(["iips"]).aggregate(log).aggregates).z
    assert z is not None
    return z


def test_z_is_the_sum_of_terms_by_unit() -> None:
    """With several metrics and rewarded slots a row; the sum of units' sums over the root of their squares."""
    log = SmallLog(rows=700, units=260, m=5, k=3)
    aggregates = build_test(["iips"], metrics=("click", "revenue")).aggregate(log.table()).aggregates
    columns = aggregates.rewarded.columns()
    for m, name in enumerate(("click", "revenue")):
        terms, unit = columns["company", m], columns["unit"]
        rewarded = columns["r", m] > 0.0
        assert np.isfinite(terms[rewarded]).all()
        sums = np.array([terms[(unit == u) & rewarded].sum() for u in np.unique(unit[rewarded])])
        found = company_of(aggregates, m)
        assert found.z == pytest.approx(sums.sum() / np.sqrt((sums**2).sum()), rel=1e-12), name
        assert found.rewards == rewarded.sum()
    # clicks are of one slot, revenue of all three, in shares
    assert company_of(aggregates, 0).z != pytest.approx(company_of(aggregates, 1).z, rel=1e-3)


def test_terms_are_rewards_times_the_company_beyond_expectation() -> None:
    """Averaged over seeds, S − E[S | a_k] by enumeration; the same rows whatever the seed."""
    log = SmallLog(rows=12, units=12, m=4, k=2, seed=3)
    log.click = np.ones(log.rows)
    runs = [build_test(["iips"], seed=seed).aggregate(log.table()).aggregates for seed in range(60)]
    found = np.array([run.rewarded.columns()["company", 0] for run in runs])
    keys = runs[0].rewarded.columns()["key"]
    expected = []
    for row in range(log.rows):
        x = log.control[row]
        odds = np.exp(x) / np.exp(x).sum()
        worth = np.clip(x - (odds * x).sum(), -2.0, 2.0)
        shown, prob = log.rankings[log.shown[row]], np.exp(log.log_p[row])
        slot = int(log.shares["click"][row].argmax())
        same = log.rankings[:, slot] == shown[slot]
        other = worth[log.rankings[:, 1 - slot]]
        expected.append(worth[shown[1 - slot]] - np.average(other[same], weights=prob[same]))
    from foretest.kernels.hashing import hash_integers

    place = {int(key): row for row, key in enumerate(hash_integers(np.arange(log.rows)))}
    expected = np.array([expected[place[int(key)]] for key in keys])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.abs((found.mean(axis=0) - expected) / error).max() < 4.2


def test_right_logs_pass_and_competing_slots_fail() -> None:
    """Twelve right logs: |z| above 3.9 has a chance of 0.1 %. Slots that share what there is: weaker company."""
    right = np.array([z_of(simulated(1500, seed)) for seed in range(12)])
    assert np.abs(right).max() < 3.9
    assert 0.5 < right.std() < 1.7
    assert z_of(simulated(8000, 1, compete=True)) < -4.0


@pytest.mark.slow
def test_size_over_right_logs() -> None:
    """A hundred right logs: more than two failures at .001, or six at .01, have a chance below 0.1 %."""
    z = np.array([z_of(simulated(700, 1000 + seed)) for seed in range(100)])
    assert (np.abs(z) > 3.29).sum() <= 2
    assert (np.abs(z) > 2.576).sum() <= 6
    assert 0.78 < z.std() < 1.24


@pytest.mark.parametrize(
    "control",
    [ft.Mallows(scores="control_scores", dispersion=0.7), ft.EpsilonGreedy(scores="control_scores", epsilon=0.5)],
    ids=["mallows", "epsilon-greedy"],
)  # fmt: skip
def test_other_controls(control: Any) -> None:
    """Rankings of the control itself, clicks by the item alone: they pass, on draws that match."""
    g = np.random.default_rng(2)
    rows, items = 1500, 5
    scores = g.normal(size=(rows, items))
    lists = ft.Ragged.packed(scores.ravel(), np.full(rows, items))
    blank = ft.Ragged.packed(np.zeros(3 * rows, np.int32), np.full(rows, 3))
    displays = ft.Displays({"control_scores": lists}, blank, np.full(rows, items), np.arange(rows).astype(np.uint64))
    ranking = control.sample(displays, g.random((rows, items + 1))).flat().reshape(rows, 3)
    slots = (g.random((rows, 3)) < 0.3 + 0.2 * (ranking == 0)).astype(float)
    log = pa.table({
        "click": slots.sum(axis=1), "slot_click": slots.tolist(), "ranking": ranking.tolist(), "id": np.arange(rows),
        "user": np.arange(rows), "control_scores": scores.tolist(), "treatment_scores": scores.tolist(),
    })  # fmt: skip
    found = company_of(built(["iips"], control).aggregate(log).aggregates)
    assert found.z is not None
    assert abs(found.z) < 3.9
    assert found.rewards > 0.8 * (slots.sum(axis=1) > 0).sum()


def test_rows_without_unit_and_id_have_draws_of_their_own() -> None:
    """Equal rows would err together, and the variance by row would not see it."""
    log = pa.table({
        "click": np.ones(400), "slot_click": [[1.0, 0.0]] * 400, "ranking": [[1, 0]] * 400,
        "control_scores": [[0.0, 1.0, 0.5]] * 400, "treatment_scores": [[0.5, 1.0, 0.5]] * 400,
    })  # fmt: skip
    columns = ft.LogColumns(rewards=["click"], ranking="ranking", slot_rewards={"click": "slot_click"})
    aggregates = ft.OfflineTest(log=columns, **SCORES, estimators=["iips"]).aggregate(log).aggregates
    assert len(np.unique(aggregates.rewarded.columns()["company", 0])) > 5


# -- what could not be tested -----------------------------------------------------------------------------------------


def test_why_it_was_not_made() -> None:
    log = simulated(400, 1)
    few = company_of(built().aggregate(log.slice(0, 60)).aggregates)
    assert (few.status, few.z, few.p_value) == ("not made", None, None)
    assert re.fullmatch(rf"it needs {FEWEST_UNITS} units whose rewards have company that varies, not \d+", few.sentence)
    nothing = log.set_column(0, "click", pa.array(np.zeros(400)))
    nothing = nothing.set_column(1, "slot_click", pa.array([[0.0, 0.0, 0.0]] * 400))
    assert company_of(built().aggregate(nothing).aggregates).sentence == "no reward was earned beside other items"
    greedy = np.argsort(-np.array(log["control_scores"].to_pylist()), axis=1)[:, :3].tolist()
    certain = log.set_column(2, "ranking", pa.array(greedy))
    control = ft.EpsilonGreedy(scores="control_scores", epsilon=0.0)
    fixed = company_of(built(["iips"], control).aggregate(certain).aggregates)
    assert fixed.sentence == "the control always shows the same items beside a rewarded one"


class Unscored:
    """A user's own policy that does not say which columns are scores of items."""

    columns = ("control_scores",)

    def log_prob(self, displays: ft.Displays, rankings: ft.Ragged) -> np.ndarray:
        return SCORES["control"].log_prob(displays, rankings)

    def sample(self, displays: ft.Displays, uniforms: np.ndarray) -> ft.Ragged:
        return SCORES["control"].sample(displays, uniforms)


def test_a_control_without_scores_cannot_be_compared() -> None:
    found = company_of(built(["rips"], Unscored()).aggregate(simulated(300, 1)).aggregates)
    assert (found.status, found.rewards) == ("not made", 0)
    assert found.sentence == "it needs the control's scores, and sums folded by this version"


def test_no_test_without_slots() -> None:
    result = built(["point-ncis-adaptive"]).run(simulated(300, 1))
    assert result.metrics["click"].slot_model is None
    assert "slot_model" not in result.to_dict()["metrics"]["click"]


def test_sums_from_before_say_so() -> None:
    aggregates = built().aggregate(simulated(300, 1)).aggregates
    for part in aggregates.rewarded.parts:
        del part["company", 0]
    assert company_of(aggregates).sentence == "these sums are of an earlier version: fold the log again"


# -- what follows -----------------------------------------------------------------------------------------------------


def test_where_it_fails_slots_do_not_lead() -> None:
    log = simulated(8000, 1, compete=True)
    result = built().run(log)
    metric = result.metrics["click"]
    assert metric.slot_model is not None
    company = metric.slot_model.company
    assert (company.status, company.fails, company.warns) == ("fail", True, True)
    assert company.sentence.endswith("rewarded items appear next to weaker ones than chance would put there")
    assert metric.headline == "point-ncis-adaptive"
    assert "not by slot, because rewards depend on what else is shown" in headline_reason(result, metric)
    assert any(note.startswith("no estimate by slot leads for click") for note in result.notes)
    slot, point = metric.estimates["slot-ncis-adaptive"], metric.estimates["point-ncis-adaptive"]
    assert slot.range.ci_lower <= point.effect_size_ci_lower < point.effect_size_ci_upper <= slot.range.ci_upper
    spans = "so its range spans the interval of point-ncis-adaptive. Trust that one"
    assert any(spans in reason for reason in slot.reasons)
    document = json.loads(result.to_json())
    validate(document, SCHEMA)
    written = document["metrics"]["click"]["slot_model"]["company"]
    assert written == {
        "status": "fail", "z": company.z, "p_value": company.p_value, "rewards": company.rewards,
        "sentence": company.sentence,
    }  # fmt: skip
    assert re.search(r"company of slots +FAILED +rewards depend on what else is shown", str(result))
    assert "Do slots depend on their company? ✗ Failed: rewards depend" in result.to_html()
    asked = built(headline="slot-ncis-adaptive").run(log).metrics["click"]
    assert asked.headline == "slot-ncis-adaptive"  # who asks for it has it, and the reason


def test_no_estimate_is_to_be_trusted_where_the_audit_fails() -> None:
    log = simulated(8000, 1, compete=True)
    names = {"control_scores": "treatment_scores", "treatment_scores": "control_scores"}
    swapped = log.rename_columns([names.get(name, name) for name in log.column_names])
    result = built().run(swapped)
    assert result.audit is not None
    assert result.audit.outcome == "fail"
    for estimate in result.metrics["click"].estimates.values():
        assert [reason.partition(" (")[0] for reason in estimate.reasons] == ["the propensity audit failed"]
    assert "Trust that one" not in " ".join(str(result).split())
    kept = built(ignore_audit=True).run(swapped).metrics["click"].estimates["slot-ncis-adaptive"]
    assert any("range spans the interval of point-ncis-adaptive" in reason for reason in kept.reasons)


def test_where_it_passes_nothing_changes() -> None:
    result = built().run(simulated(1500, 3))
    metric = result.metrics["click"]
    assert metric.slot_model.company.status == "pass"
    assert metric.headline == "slot-ncis-adaptive"
    assert metric.estimates["slot-ncis-adaptive"].reasons == []
    assert re.search(r"company of slots +passed +no sign that rewards depend", str(result))
    assert "Do slots depend on their company? ✓ Passed" in result.to_html()


def warned(estimators: list[str], **settings: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Estimates before and after a test that warns, where the uplift by ranking is far above that by slot."""
    from dataclasses import replace

    test = built(estimators, **settings)
    aggregates, log = test.aggregate(simulated(1500, 3)).aggregates, simulated(1500, 3)
    before = test.run(log).metrics["click"].estimates
    if "point-ncis-adaptive" in before:
        before = {**before, "point-ncis-adaptive": replace(
            before["point-ncis-adaptive"], effect_size=0.5, effect_size_ci_lower=-0.001, effect_size_ci_upper=0.6,
            rel_effect_size=2.0, rel_effect_size_ci_lower=-0.004, rel_effect_size_ci_upper=2.4,
        )}  # fmt: skip
    test = SlotTest("warn", -2.8, 0.005, 900, "rewards depend on what else is shown")
    return before, with_company(before, aggregates.plan.estimators, aggregates.plan, SlotModel(test), 0.25)


def test_where_it_warns_the_range_spans_that_of_rankings() -> None:
    before, after = warned([*BOTH, "iips", "rips"])
    slot, plain = after["slot-ncis-adaptive"], before["slot-ncis-adaptive"]
    assert (slot.range.ci_upper, slot.range.rel_ci_upper) == (0.6, 2.4)
    assert (slot.range.ci_lower, slot.range.kind) == (plain.range.ci_lower, "band")
    assert slot.reasons == [
        "rewards depend on what else is shown (p = 0.005), so its range spans the interval of point-ncis-adaptive"
    ]
    assert all(after[key] == before[key] for key in ("point-ncis-adaptive", "iips", "rips"))


def test_the_word_follows_the_range() -> None:
    """A negative word at most leans once the range reaches across 0."""
    from dataclasses import replace

    from foretest.inference.uplift_range import reaching
    from foretest.results.uplift_range import Range

    before, _ = warned(BOTH)
    below = replace(
        before["slot-ncis-adaptive"], effect_size_ci_lower=-0.3, effect_size_ci_upper=-0.1, word="negative",
        range=Range("band", -0.4, -0.05, -0.8, -0.1),
    )  # fmt: skip
    reached = reaching(below, before["point-ncis-adaptive"], 0.25)
    assert (reached.word, reached.range) == ("leans negative", Range("band", -0.4, 0.5, -0.8, 2.0))
    few = replace(below, betting={"ci_lower": -0.5, "ci_upper": 0.2})
    assert reaching(few, before["point-ncis-adaptive"], 0.25).word == "neutral"
    assert reaching(replace(below, word="insufficient"), below, 0.25).word == "insufficient"


def test_without_rankings_to_reach_to() -> None:
    before, after = warned(["slot-ncis-adaptive"])
    assert after["slot-ncis-adaptive"].range == before["slot-ncis-adaptive"].range
    assert (
        after["slot-ncis-adaptive"]
        .reasons[-1]
        .endswith("no estimate by ranking has enough evidence to be set beside it")
    )
