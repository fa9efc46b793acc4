"""Plans of logs of several policies: the numbers of a pooled log, and users online by the baseline's rows."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pytest
from scipy.special import ndtri

import foretest as ft
from foretest.online.comparison import POWER
from foretest.planning import plan_log
from tests.loggers import NAMES, ThreeLoggers, build
from tests.support import SmallLog

FACTOR = ndtri(0.95) + ndtri(POWER)


def one_policy(log: SmallLog, loggers: bool) -> ft.OfflineTest:
    """A test of the same log: of one control, or of two loggers that are the same policy."""
    scores = ft.PlackettLuce(scores="control_scores")
    several: dict[str, Any] = {"logger": "policy"} if loggers else {}
    return ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", **several),
        control={"a": scores, "b": scores} if loggers else scores,
        treatment=ft.PlackettLuce(scores="treatment_scores"),
        estimators=["point-ncis-adaptive"],
        weight_bound=3.0,
        buckets=64,
        **({"baseline": "a"} if loggers else {}),
    )


def test_two_loggers_that_are_one_policy_have_the_plan_of_one() -> None:
    log = SmallLog(rows=1200, units=900, m=4, seed=3)
    by = np.random.default_rng(0).choice(["a", "b"], 900)[log.unit]  # a user sees one of them
    table = log.table().append_column("policy", pa.array(by))
    one = plan_log(one_policy(log, False), table).to_dict()
    both = plan_log(one_policy(log, True), table).to_dict()
    mine, theirs = both["metrics"]["click"], one["metrics"]["click"]
    for name in ("control", "treatment"):
        assert mine[name] == pytest.approx(theirs[name], rel=1e-12)
    parts, expected = mine["smallest_uplift"], theirs["smallest_uplift"]
    assert parts["identification"] == pytest.approx(expected["identification"], rel=1e-12)
    # rows are measured from their own logger's mean, which is nearly that of all
    assert parts["sampling"] == pytest.approx(expected["sampling"], rel=0.01)
    sampling, rest = parts["sampling"], parts["identification"]
    assert mine["to_halve"]["times"] == pytest.approx((2.0 * sampling / (sampling - rest)) ** 2, rel=1e-12)
    jsonschema.validate(both, json.loads((files("foretest") / "schema" / "plan-1.json").read_text()))


def test_the_baselines_rows_alone_say_how_users_vary() -> None:
    """The other logger's rows are the baseline's once more, of other users: users vary as in the baseline's log."""
    log = SmallLog(rows=600, units=300, m=4, seed=3)
    alone = log.table()
    other = alone.set_column(alone.schema.get_field_index("user"), "user", pa.array(log.unit + 10_000))
    other = other.set_column(other.schema.get_field_index("id"), "id", pa.array(np.arange(log.rows) + 10_000))
    named = [part.append_column("policy", pa.array([name] * log.rows)) for name, part in (("a", alone), ("b", other))]
    variances = []
    for loggers, table in ((False, alone), (True, pa.concat_tables(named))):
        click = plan_log(one_policy(log, loggers), table).to_dict()["metrics"]["click"]
        variances.append(click["online_units"] * (click["smallest_uplift"]["total"] * click["control"] / FACTOR) ** 2)
    assert variances[1] == pytest.approx(variances[0], rel=2.0 / click["online_units"])  # both are rounded up


def test_users_of_an_online_test_are_those_of_the_baselines_rows() -> None:
    log = ThreeLoggers(rows=1500, units=400, seed=2)
    plan = plan_log(build(["point-ncis-adaptive"], baseline="new"), log.table()).to_dict()
    click = plan["metrics"]["click"]
    own = log.logger == NAMES.index("new")
    r, unit, n = log.click[own], log.unit[own], int(own.sum())
    bucket = log.buckets(64)[own]
    sums = np.bincount(bucket, weights=r - r.mean(), minlength=64)
    units = len(np.unique(unit))
    error = np.sqrt(64 / 63 * (sums @ sums)) / n
    uplift = click["smallest_uplift"]["total"] * click["control"]
    assert click["online_units"] == int(np.ceil(error**2 * units * 4.0 * (FACTOR / uplift) ** 2))
    assert click["exploration"] is None
    assert plan["recommended"] is None
    notes = " ".join(plan["notes"])
    for words in (
        "several loggers (new, old, older)",
        "rows of the baseline new alone",
        "exploration would buy is left",
    ):
        assert words in notes


def test_the_pooled_log_has_the_smallest_uplift_of_its_own_test() -> None:
    log = ThreeLoggers(rows=1500, units=400, seed=2)
    test = build(["point-ncis-adaptive"], interval="delta")
    found = test.run(log.table()).metrics["click"]
    smallest = plan_log(test, log.table()).to_dict()["metrics"]["click"]["smallest_uplift"]
    estimate = found.estimates["point-ncis-adaptive"]
    assert estimate.std_error is not None
    assert found.control.value is not None
    assert smallest["sampling"] == pytest.approx(FACTOR * estimate.std_error / found.control.value, rel=1e-9)


def test_saved_aggregates_of_several_loggers_have_a_plan_without_online(tmp_path: Any) -> None:
    log, test = ThreeLoggers(rows=600, seed=4), build(["point-ncis-adaptive"])
    test.save_aggregates(log.table(), tmp_path / "a.foretest")
    plan = plan_log(test, str(tmp_path / "a.foretest")).to_dict()
    click = plan["metrics"]["click"]
    assert click["smallest_uplift"]["total"] > 0.0
    assert click["online_units"] is None
    assert any("they need the rows of the baseline" in note for note in plan["notes"])
