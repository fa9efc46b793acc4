"""foretest plan: each number against its closed form; words, JSON, and what cannot be planned."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import norm

import foretest as ft
from foretest.planning.plan import PlanResult, plan_log
from foretest.planning.smallest_uplift import SmallestUplift, online_units, to_halve
from foretest.terminal.plan import render_plan
from tests.schemas import validate
from tests.support import SmallLog, build_test

LOG = SmallLog(rows=3000, units=900, spread=1.2, seed=31)
SCHEMA = Path(ft.__file__).parent / "schema" / "plan-1.json"
FACTOR = norm.ppf(0.95) + norm.ppf(0.8)


def table(**extra: Any) -> pa.Table:
    return LOG.table(day=[f"2026-01-{1 + i % 5:02d}" for i in range(LOG.rows)], **extra)


def dated(**analysis: Any) -> ft.OfflineTest:
    test = build_test(metrics=("click", "revenue"), **analysis)
    log = ft.LogColumns(rewards=["click", "revenue"], unit="user", ranking="ranking", id="id", date="day")
    return ft.OfflineTest(
        log=log, control=test.settings.control, treatment=test.settings.treatment, cap=2.0, weight_bound=3.0,
        value="v", strata="stratum", **analysis,
    )  # fmt: skip


@pytest.fixture(scope="module")
def outlook() -> dict[str, Any]:
    return plan_log(dated(), table()).to_dict()


def test_parts_against_the_rows(outlook: dict[str, Any]) -> None:
    """By unit: se² = C/(C−1)·Σ_u (Σ d − n_u d̄)²/n², and t = (w̃ − w̄) r of enumerated rows."""
    t, p, bound = np.exp(LOG.log_t), np.exp(LOG.log_p), 3.0
    h = LOG.adaptive(bound)
    low, high = np.full(LOG.rows, -60.0), np.full(LOG.rows, np.log(bound) + 1e-12)
    for _ in range(200):
        mid = (low + high) / 2
        fits = np.exp(mid) <= bound * np.minimum(t, np.exp(mid)[:, None] * p).sum(axis=1)
        low, high = np.where(fits, mid, low), np.where(fits, high, mid)
    capped = np.minimum(np.exp(LOG.log_w), np.exp(low))
    for name, r in (("click", LOG.click), ("revenue", LOG.revenue)):
        d = (h - 1.0) * r
        by_unit = np.bincount(LOG.unit, d - d.mean())
        units = len(np.unique(LOG.unit))
        error = np.sqrt(units / (units - 1.0) * np.square(by_unit).sum()) / LOG.rows
        smallest = outlook["metrics"][name]["smallest_uplift"]
        # 900 units in 1 024 buckets: some share one
        assert smallest["sampling"] == pytest.approx(FACTOR * error / r.mean(), rel=0.06)
        half = 0.5 * (0.3 + 1.0 - 1.0 / 1.15) * ((h - capped) * r).mean()
        assert smallest["identification"] == pytest.approx(half / r.mean(), rel=1e-6)
        assert smallest["total"] == pytest.approx(smallest["sampling"] + smallest["identification"])


def test_the_facts_of_the_log(outlook: dict[str, Any]) -> None:
    assert outlook["log"] == {"rows": 3000, "units": len(np.unique(LOG.unit)), "days": 5}
    assert (outlook["headline"], outlook["power"], outlook["confidence_level"]) == ("point-ncis-adaptive", 0.8, 0.9)
    assert outlook["gamma"] == [1.15, 1.3]
    validate(outlook, json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_half_of_it_with_so_much_more(outlook: dict[str, Any]) -> None:
    parts, needed = (outlook["metrics"]["click"][key] for key in ("smallest_uplift", "to_halve"))
    sampling, identification = parts["sampling"], parts["identification"]
    assert sampling > identification
    assert sampling / math.sqrt(needed["times"]) + identification == pytest.approx(parts["total"] / 2.0)
    assert needed["more_days"] == math.ceil((needed["times"] - 1.0) * 5)
    assert to_halve(SmallestUplift(0.02, 0.0), 7) == (pytest.approx(4.0), 21)
    assert to_halve(SmallestUplift(0.02, 0.02), 7) == (None, None)
    assert to_halve(SmallestUplift(0.02, 0.01), None).more_days is None


def test_online_users_by_simulation() -> None:
    """With as many users as are asked for, four A/B tests in five show the uplift."""
    g = np.random.default_rng(4)
    rate, uplift, level = 0.05, 0.01, 0.9
    users = 5000  # of the log, one display each
    error = math.sqrt(rate * (1.0 - rate) / users)
    factor = norm.ppf(0.5 + level / 2) + norm.ppf(0.8)
    count = online_units(error, users, uplift, factor, (0.5, 0.5))
    assert count is not None
    tests, arm = 4000, count // 2
    control, treatment = (g.binomial(arm, p, tests) / arm for p in (rate, rate + uplift))
    spread = np.sqrt((control * (1 - control) + treatment * (1 - treatment)) / arm)
    shown = (treatment - control - norm.ppf(0.5 + level / 2) * spread > 0.0).mean()
    # the treatment's variance is 1.2 times the control's, which is what the plan takes: a little less power
    assert shown == pytest.approx(0.8, abs=0.05)
    assert online_units(error, users, uplift, factor, (0.1, 0.9)) == pytest.approx(count / 4 * (10 + 1 / 0.9), abs=2)
    assert online_units(None, users, uplift, factor, (0.5, 0.5)) is None


def test_online_users_of_a_run(outlook: dict[str, Any]) -> None:
    control = dated().run(table()).metrics["click"].control
    assert control.std_error is not None
    assert control.value is not None
    click = outlook["metrics"]["click"]
    variance = control.std_error**2 * outlook["log"]["units"]
    expected = variance * 4.0 * (FACTOR / (click["smallest_uplift"]["total"] * control.value)) ** 2
    assert click["online_units"] == math.ceil(expected)


def test_words_in_80_columns(outlook: dict[str, Any]) -> None:
    text = str(PlanResult(outlook))
    assert max(map(len, text.splitlines())) <= 80
    for words in ("5 days", "at 90 % confidence and 80 % power", "smallest uplift it could show", "as it is",
                  "users in all, split 50 : 50"):  # fmt: skip
        assert words in text


def test_a_log_without_days_a_stream_and_aggregates(outlook: dict[str, Any], tmp_path: Path) -> None:
    plain = build_test(metrics=("click", "revenue"))
    document = plan_log(plain, LOG.table()).to_dict()
    assert document["log"]["days"] is None
    assert document["metrics"]["click"]["smallest_uplift"] == outlook["metrics"]["click"]["smallest_uplift"]
    assert " x  the log, of other users" in str(PlanResult(document))
    whole = table()
    stream = pa.RecordBatchReader.from_batches(whole.schema, whole.to_batches(max_chunksize=700))
    again = plan_log(dated(), stream).to_dict()
    for name in ("click", "revenue"):
        for part, value in outlook["metrics"][name]["smallest_uplift"].items():
            assert again["metrics"][name]["smallest_uplift"][part] == pytest.approx(value, rel=1e-9)
    assert again["log"] == outlook["log"]
    assert again["metrics"]["click"]["exploration"] == outlook["metrics"]["click"]["exploration"]
    place = tmp_path / "a.parquet"
    dated().save_aggregates(whole, place)
    saved = plan_log(dated(), place).to_dict()
    assert saved["metrics"]["click"]["smallest_uplift"] == outlook["metrics"]["click"]["smallest_uplift"]
    assert saved["metrics"]["click"]["exploration"] is None
    assert any("saved aggregates" in note for note in saved["notes"])


def test_days_are_those_of_the_column() -> None:
    stamps = np.datetime64("2026-03-01T22:00:00", "s") + np.arange(LOG.rows) * np.timedelta64(3600, "s")
    document = plan_log(dated(), LOG.table(day=stamps)).to_dict()
    assert document["log"]["days"] == len(np.unique(stamps.astype("datetime64[D]")))


def test_logged_policies() -> None:
    g = np.random.default_rng(5)
    p = 0.2 + 0.6 * g.random(2000)
    columns = {
        "click": g.random(2000) < 0.2,
        "p": p,
        "t": np.clip(p * g.uniform(0.2, 1.2, 2000), 0, 1),
        "u": g.integers(0, 300, 2000),
    }
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="u"), control=ft.Logged(prob="p"), treatment=ft.Logged(prob="t"),
        estimators=["ncis"],
    )  # fmt: skip
    document = plan_log(test, pa.table(columns)).to_dict()
    validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    metric = document["metrics"]["click"]
    w = columns["t"] / p
    width = 0.5 * (0.3 + 1.0 - 1.0 / 1.15)
    expected = width * (1.0 - w.mean()) * metric["treatment"] / metric["control"]
    assert metric["smallest_uplift"]["identification"] == pytest.approx(expected)
    assert metric["exploration"] is None
    assert any("a policy is logged" in note for note in document["notes"])


def test_nothing_to_plan_with() -> None:
    for log in (LOG.table(click=np.zeros(LOG.rows)), LOG.table().slice(0, 0)):
        document = plan_log(build_test(), log).to_dict()
        validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
        assert document["metrics"]["click"]["smallest_uplift"]["total"] is None
        assert "nothing can be planned: " in str(PlanResult(document))


def test_a_change_that_the_log_supports_in_full_has_no_floor() -> None:
    near = SmallLog(rows=2000, units=400, spread=0.1, seed=7)
    click = plan_log(build_test(), near.table()).to_dict()["metrics"]["click"]
    assert click["smallest_uplift"]["identification"] == pytest.approx(0.0, abs=1e-12)
    assert click["to_halve"]["times"] == pytest.approx(4.0)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from foretest.cli import app

    pq.write_table(table(), tmp_path / "log.parquet")
    (tmp_path / "test.toml").write_text(
        '[log]\nrewards = ["click"]\nunit = "user"\nranking = "ranking"\nid = "id"\ndate = "day"\n'
        '[control]\npolicy = "plackett-luce"\nscores = "control_scores"\n'
        '[treatment]\npolicy = "plackett-luce"\nscores = "treatment_scores"\n'
    )
    given = ["plan", str(tmp_path / "log.parquet"), "-c", str(tmp_path / "test.toml")]
    assert app([*given, "-o", str(tmp_path / "out")], result_action="return_value") == 0
    assert "smallest uplift it could show" in capsys.readouterr().out
    assert app([*given, "--json"], result_action="return_value") == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "out" / "plan.json").read_text())


def by_slot(*estimators: str) -> ft.OfflineTest:
    log = ft.LogColumns(
        rewards=["click"], unit="user", ranking="ranking", id="id", slot_rewards={"click": "slot_click"}
    )
    settings = build_test().settings
    return ft.OfflineTest(log=log, control=settings.control, treatment=settings.treatment, estimators=list(estimators))


def test_whole_rankings_are_planned_for_where_slots_lead() -> None:
    both = plan_log(by_slot("slot-ncis-adaptive", "point-ncis-adaptive"), LOG.table()).to_dict()
    alone = plan_log(by_slot("point-ncis-adaptive"), LOG.table()).to_dict()
    assert both["headline"] == "point-ncis-adaptive"
    assert both["metrics"] == alone["metrics"]
    assert "planned for point-ncis-adaptive: slot-ncis-adaptive goes by slot" in " ".join(both["notes"])
    assert not any("by slot" in note for note in alone["notes"])


def test_slots_alone_are_planned_for_beside_rankings() -> None:
    alone = plan_log(by_slot("slot-ncis-adaptive", "iips"), LOG.table()).to_dict()
    assert alone["headline"] == "point-ncis-adaptive"
    assert alone["metrics"] == plan_log(by_slot("point-ncis-adaptive"), LOG.table()).to_dict()["metrics"]
    prefixes = plan_log(by_slot("cascade-ncis-adaptive"), LOG.table()).to_dict()
    assert "planned for point-ncis-adaptive: cascade-ncis-adaptive has no plan of its own." in prefixes["notes"]
    assert prefixes["metrics"] == alone["metrics"]


def test_slots_under_zero_capping_cannot_be_planned_for() -> None:
    with pytest.raises(
        ft.BadInput, match=r"starts from whole rankings, and point-ncis-adaptive cannot run: .* max capping"
    ):
        plan_log(by_slot("iips").replace(capping="zero"), LOG.table())


def test_an_estimated_number_of_units_is_marked_and_rounded() -> None:
    """150 600 rows, each a unit of its own: beyond 2^17 units their number is estimated, and never above the rows."""
    rows = 150_600
    columns = {"click": np.arange(rows) % 50 == 0, "user": np.arange(rows), "p": np.full(rows, 0.5)}
    log = pa.table({**columns, "t": np.where(np.arange(rows) % 3 == 0, 0.6, 0.4)})
    roles = ft.LogColumns(rewards=["click"], unit="user")
    policies = {"control": ft.Logged(prob="p"), "treatment": ft.Logged(prob="t")}
    test = ft.OfflineTest(log=roles, **policies, estimators=["ncis"], n_resamples=50)
    for facts in (test.run(log).log, (document := plan_log(test, log).to_dict())["log"]):
        assert (facts["rows"], facts["units_approximate"]) == (rows, True)
        assert isinstance(facts["units"], int)
        assert 0.99 * rows < facts["units"] <= rows
    validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    document["log"]["units"] = rows
    assert "150,600 displays, about 150,000 units (user)" in render_plan(document)
