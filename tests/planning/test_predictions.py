"""What a plan predicts of exploration, met by logs that were simulated with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.planning.plan import plan_log
from foretest.simulate import WORLDS
from tests.planning.explored_worlds import LEVELS, ExploredWorld, policy_of

RERANKER = replace(WORLDS["reranker"], slots=4, candidates=8, min_candidates=8, position_decay=0.7)
SHARPER = replace(RERANKER, temperature=1.0, candidates=6, min_candidates=6)


def measured(world: ExploredWorld, table: dict[str, Any], level: str, examination: Any) -> tuple[float, float]:
    """The standard error and half the width of the band, relative to the control, of a log with that exploration."""
    control, label = policy_of(table), LEVELS[level]
    metric = world.test(control, examination, label).run(world.table(control)).metrics["click"]
    estimate = metric.estimates[label]
    band = estimate.sensitivity
    assert estimate.std_error is not None
    assert band is not None
    assert metric.control.value is not None
    return estimate.std_error, (band["effect_size_upper"] - band["effect_size_lower"]) / 2.0 / metric.control.value


def chosen(rows: list[dict[str, Any]], **parameter: Any) -> dict[str, Any]:
    [(name, value)] = parameter.items()
    [row] = [row for row in rows if (row["settings"] or {}).get(name) == value and row["kind"] != "uniform"]
    return row


@pytest.mark.slow
def test_from_a_production_that_never_varies() -> None:
    """By exposure: the curve given, or fitted from the exploration. Standard errors within 20 %."""
    world = ExploredWorld(RERANKER, 40_000)
    document = plan_log(world.test(world.control, world.theta), world.table(world.control)).to_dict()
    rows = document["metrics"]["click"]["exploration"]
    warm = [row for row in rows if row["kind"] == "plackett-luce"][2]
    value = world.value(world.control)
    kinds = set()
    for row in (rows[0], chosen(rows, swap=0.1), chosen(rows, epsilon=0.2), warm):
        level = row["levels"]["exposure"]
        kinds.add(level["examination"])
        curve = world.theta if level["examination"] == "given" else "fit"
        error, half = measured(world, row["settings"], "exposure", curve)
        assert level["std_error"] == pytest.approx(error, rel=0.2), row["settings"]
        if curve == "fit":  # else steeper and flatter curves are in it
            assert level["smallest_uplift"]["identification"] == pytest.approx(half, abs=0.02)
        true_cost = 1.0 - world.value(policy_of(row["settings"])) / value
        assert row["cost_ci_lower"] - 0.005 < true_cost < row["cost_ci_upper"] + 0.005
    assert kinds == {"given", "fit"}


@pytest.mark.slow
def test_from_a_production_that_explores() -> None:
    """At all levels, with more exploration than now. Standard errors within 20 %."""
    world = ExploredWorld(SHARPER, 25_000)
    document = plan_log(world.test(world.control, "fit"), world.table(world.control)).to_dict()
    rows = document["metrics"]["click"]["exploration"]
    shares = {row["epsilon"]: row for row in rows if row["kind"] == "uniform"}
    for row in (shares[0.2], chosen(rows, temperature=2.0), chosen(rows, temperature=4.0)):
        for level, outlook in row["levels"].items():
            if outlook["reason"] is None:
                error, half = measured(world, row["settings"], level, "fit")
                assert outlook["std_error"] == pytest.approx(error, rel=0.2), (row["settings"], level)
                assert outlook["smallest_uplift"]["identification"] == pytest.approx(half, abs=0.03), level
    assert all(shares[0.2]["levels"][level]["reason"] is None for level in LEVELS)
    for level, now in document["metrics"]["click"]["levels"].items():
        assert shares[0.0]["levels"][level]["std_error"] == pytest.approx(now["std_error"], rel=0.2)


def test_the_recommended_table_makes_the_control_of_a_log() -> None:
    world = ExploredWorld(RERANKER, 4_000)
    document = plan_log(world.test(world.control, world.theta), world.table(world.control)).to_dict()
    choice = document["recommended"]
    assert choice["metric"] == "click"
    assert choice["level"] == "exposure"
    control = policy_of(choice["settings"])
    result = world.test(control, world.theta, "exposure-ncis-adaptive").run(world.table(control))
    assert isinstance(result, ft.Result)
    assert not result.health["control_deterministic"]


@pytest.mark.slow
def test_what_the_cheapest_exploration_promises() -> None:
    """Logs of as many displays with the recommended control: both parts on average, and the true cost.
    `benchmarks/explore.py` has the spread over many logs."""
    world = ExploredWorld(SHARPER, 8_000)
    now = plan_log(world.test(world.control, "fit"), world.table(world.control), uplift=0.05).to_dict()
    choice = now["explore"]["recommended"]
    assert choice["value"] is not None  # it has to explore
    promised = choice["levels"][choice["level"]]
    logs = [measured(world, choice["settings"], choice["level"], "fit") for _ in range(4)]
    error, half = np.mean(logs, axis=0)  # one log's error has itself an error of a tenth
    assert promised["std_error"] == pytest.approx(error, rel=0.2)
    assert promised["smallest_uplift"]["identification"] == pytest.approx(half, abs=0.02)
    true_cost = 1.0 - world.value(policy_of(choice["settings"])) / world.value(world.control)
    assert choice["cost_ci_lower"] - 0.005 < true_cost < choice["cost_ci_upper"] + 0.005
