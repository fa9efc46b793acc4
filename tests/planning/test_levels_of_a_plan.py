"""foretest plan by slot and by exposure, and for a production that never varies: numbers, words, JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from scipy.stats import norm

import foretest as ft
from foretest.planning.plan import PlanResult, plan_log
from foretest.simulate import WORLDS
from foretest.terminal.policy_tables import toml_lines
from tests.planning.explored_worlds import ExploredWorld
from tests.planning.test_plan import LOG, SCHEMA, by_slot
from tests.schemas import validate

FACTOR = norm.ppf(0.95) + norm.ppf(0.8)
RERANKER = replace(WORLDS["reranker"], slots=3, candidates=5, min_candidates=5)
WORLD = ExploredWorld(RERANKER, 5_000)
NEVER_VARIES = WORLD.table(WORLD.control)


def document_of(test: ft.OfflineTest, log: pa.Table) -> dict[str, Any]:
    document = plan_log(test, log).to_dict()
    validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    json.dumps(document, allow_nan=False)
    return document


@pytest.fixture(scope="module")
def given() -> dict[str, Any]:
    return document_of(WORLD.test(WORLD.control, WORLD.theta), NEVER_VARIES)


@pytest.fixture(scope="module")
def explored() -> dict[str, Any]:
    return document_of(by_slot("point-ncis-adaptive").replace(examination=[1.0, 0.5]), LOG.table())


def test_levels_are_those_of_a_run(explored: dict[str, Any]) -> None:
    labels = {"ranking": "point-ncis-adaptive", "slot": "slot-ncis-adaptive", "exposure": "exposure-ncis-adaptive"}
    test = by_slot(*labels.values()).replace(examination=[1.0, 0.5], interval="delta")
    metric = test.run(LOG.table()).metrics["click"]
    control, levels = metric.control.value, explored["metrics"]["click"]["levels"]
    assert control is not None
    assert list(levels) == list(labels)
    assert levels["ranking"]["smallest_uplift"] == explored["metrics"]["click"]["smallest_uplift"]
    for name, label in labels.items():
        estimate = metric.estimates[label]
        assert estimate.std_error is not None
        assert estimate.sensitivity is not None
        parts = levels[name]["smallest_uplift"]
        assert parts["sampling"] == pytest.approx(FACTOR * estimate.std_error / control)
        half = (estimate.sensitivity["effect_size_upper"] - estimate.sensitivity["effect_size_lower"]) / 2.0
        sizes = [estimate.effect_size, *(curve["effect_size"] for curve in estimate.curves or [])]
        moved = (max(sizes) - min(sizes)) / 2.0  # by steeper and flatter curves
        assert parts["identification"] == pytest.approx((half + moved) / control)
        assert levels[name]["estimator"] == label
        assert levels[name]["treatment"] == pytest.approx(estimate.treatment)
    assert explored["gamma_slots"] == [1.3, 2.0]


def test_the_control_as_it_is_costs_nothing_and_is_predicted_as_measured(explored: dict[str, Any]) -> None:
    click = explored["metrics"]["click"]
    now = click["exploration"][0]
    assert (now["kind"], now["epsilon"]) == ("uniform", 0.0)
    assert now["cost"] == pytest.approx(0.0, abs=1e-12)
    for name in ("ranking", "slot"):  # by exposure this log could fit the curve that it was given
        level = click["levels"][name]
        assert now["levels"][name]["std_error"] == pytest.approx(level["std_error"], rel=0.1)
    assert now["levels"]["exposure"]["examination"] == "fit"
    assert {row["kind"] for row in click["exploration"]} == {
        "uniform", "swap-neighbours", "plackett-luce", "epsilon-greedy",
    }  # fmt: skip
    for row in click["exploration"]:
        assert row["settings"] is not None
        assert row["cost_level"] == "exposure"
        assert row["cost"] <= row["cost_at_most"] + 3.0 * row["cost_std_error"] + 1e-9


def test_a_control_that_never_varies_has_an_answer(given: dict[str, Any]) -> None:
    click = given["metrics"]["click"]
    for name in ("ranking", "slot"):
        level = click["levels"][name]
        assert level["smallest_uplift"]["total"] is None
        assert level["to_halve"] is None
        assert level["reason"].startswith("the control never varies")
    exposure = click["levels"]["exposure"]
    assert exposure["reason"] is None
    assert exposure["examination"] == "given"
    rows = {(row["kind"], row["epsilon"]): row for row in click["exploration"]}
    assert rows["uniform", 0.0]["levels"]["exposure"]["std_error"] == pytest.approx(exposure["std_error"], rel=0.1)
    assert given["recommended"]["level"] == "exposure"
    assert given["recommended"]["smallest_uplift"]["total"] < exposure["smallest_uplift"]["total"]


def test_without_a_curve_slots_are_left() -> None:
    document = document_of(WORLD.test(WORLD.control, None), NEVER_VARIES)
    click = document["metrics"]["click"]
    assert list(click["levels"]) == ["ranking", "slot"]
    assert any(note.startswith("exposure was left out: the log does not show how likely") for note in document["notes"])
    assert [row["cost"] for row in click["exploration"]] == [0.0, *[None] * (len(click["exploration"]) - 1)]
    hottest = [row for row in click["exploration"] if row["kind"] == "plackett-luce"][-1]
    assert hottest["levels"]["slot"]["smallest_uplift"]["total"] is not None
    assert "at a cost that this log does not tell" in document["recommended"]["sentence"]


def test_only_exposure_listed() -> None:
    """As the settings of a production that never varies have it."""
    test = WORLD.test(WORLD.control, WORLD.theta, "exposure-ncis-adaptive")
    document = document_of(test, NEVER_VARIES)
    assert document["headline"] == "point-ncis-adaptive"
    assert "planned for point-ncis-adaptive: exposure-ncis-adaptive goes by slot" in " ".join(document["notes"])


def test_a_fixed_ranking_as_control() -> None:
    shown = NEVER_VARIES.append_column("served", NEVER_VARIES["ranking"])
    document = document_of(WORLD.test(ft.Fixed(ranking="served"), WORLD.theta), shown)
    rows = document["metrics"]["click"]["exploration"]
    assert {row["kind"] for row in rows} == {"uniform"}
    assert rows[-1]["levels"]["exposure"]["reason"] is None


def test_metrics_without_slots_have_rankings_alone() -> None:
    log = ft.LogColumns(
        rewards=["click", "revenue"], unit="user", ranking="ranking", id="id", slot_rewards={"click": "slot_click"}
    )
    settings = by_slot("point-ncis-adaptive").settings
    test = ft.OfflineTest(
        log=log, control=settings.control, treatment=settings.treatment, estimators=["point-ncis-adaptive"]
    )
    metrics = document_of(test, LOG.table())["metrics"]
    assert list(metrics["click"]["levels"]) == ["ranking", "slot", "exposure"]
    assert list(metrics["revenue"]["levels"]) == ["ranking"]
    assert all(list(row["levels"]) == ["ranking"] for row in metrics["revenue"]["exploration"])
    assert metrics["revenue"]["exploration"][1]["cost_level"] == "ranking"


def test_a_curve_for_each_value_of_a_column() -> None:
    table = LOG.table(device=["phone" if i % 2 else "desktop" for i in range(LOG.rows)])
    curves = {"column": "device", "curves": {"phone": [1.0, 0.4], "desktop": [1.0, 0.8]}}
    document = document_of(by_slot("point-ncis-adaptive").replace(examination=curves), table)
    levels = [row["levels"]["exposure"] for row in document["metrics"]["click"]["exploration"]]
    assert {level["examination"] for level in levels} == {"given"}  # one curve for all is what a log could fit


def test_saved_aggregates_have_the_levels_that_were_folded(tmp_path: Path) -> None:
    test = by_slot("slot-ncis-adaptive", "point-ncis-adaptive")
    test.save_aggregates(LOG.table(), tmp_path / "a.parquet")
    saved = document_of(test, tmp_path / "a.parquet")  # type: ignore[arg-type]
    assert list(saved["metrics"]["click"]["levels"]) == ["ranking", "slot"]
    assert saved["metrics"]["click"]["exploration"] is None
    assert saved["recommended"] is None


def test_streams_and_parts_give_the_same() -> None:
    whole = LOG.table()
    test = by_slot("point-ncis-adaptive").replace(examination=[1.0, 0.5])
    stream = pa.RecordBatchReader.from_batches(whole.schema, whole.to_batches(max_chunksize=500))
    once, again = (document_of(test, log)["metrics"]["click"]["exploration"] for log in (whole, stream))
    for row, other in zip(once, again, strict=True):
        assert row["settings"] == other["settings"]
        for name in ("cost", "cost_std_error", "cost_at_most", "treatment_mass_kept"):
            assert row[name] == pytest.approx(other[name], rel=1e-9, abs=1e-12)
        for name, level in row["levels"].items():
            assert level["reason"] == other["levels"][name]["reason"]
            assert level["std_error"] == pytest.approx(other["levels"][name]["std_error"], rel=1e-9)
            if level["reason"] is None:
                assert level["smallest_uplift"] == pytest.approx(other["levels"][name]["smallest_uplift"], rel=1e-9)


def test_words_in_80_columns(given: dict[str, Any], explored: dict[str, Any]) -> None:
    for document in (given, explored):
        text = str(PlanResult(document))
        assert max(map(len, text.splitlines())) <= 80
        for words in ("exposure", "neighbours swapped, 0.05", "random rankings in 10 %", "Recommended (by click): ",
                      "[control]", "more log to halve it", "in all, split 50 : 50"):  # fmt: skip
            assert words in text
    assert "by ranking and slot: the control never varies" in " ".join(str(PlanResult(given)).split())
    assert sum(line.startswith("* ") for line in str(PlanResult(given)).splitlines()) == 1


def test_settings_as_toml() -> None:
    import tomllib

    table = {"policy": "mixture", "components": [
        {"share": 0.9, "policy": "top-k", "scores": 'a "b"'},
        {"share": 0.1, "policy": "epsilon-greedy", "epsilon": 1.0},
    ]}  # fmt: skip
    assert tomllib.loads("\n".join(toml_lines("control", table))) == {"control": table}


def test_no_reward_and_rewards_of_short_displays_alone() -> None:
    """A curve that is fitted has the slots of rewarded displays; others may be longer."""
    nothing = LOG.table(click=[0.0] * LOG.rows, slot_click=pa.array([[0.0, 0.0]] * LOG.rows))
    document = document_of(by_slot("point-ncis-adaptive"), nothing)
    assert document["metrics"]["click"]["smallest_uplift"]["total"] is None
    assert document["recommended"] is None
    short = [i % 2 == 0 for i in range(LOG.rows)]
    rankings = LOG.table()["ranking"].to_pylist()
    table = LOG.table(
        ranking=pa.array([r[:1] if one else r for r, one in zip(rankings, short, strict=True)], pa.list_(pa.int32())),
        click=[float(one and click > 0) for one, click in zip(short, LOG.click, strict=True)],
        slot_click=pa.array(
            [[float(click > 0)] if one else [0.0, 0.0] for one, click in zip(short, LOG.click, strict=True)],
            pa.list_(pa.float64()),
        ),
    )
    levels = document_of(by_slot("point-ncis-adaptive"), table)["metrics"]["click"]["levels"]
    assert all(level["smallest_uplift"]["total"] > 0.0 for level in levels.values())
