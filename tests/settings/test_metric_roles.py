"""Roles of metrics: directions, guardrails with a margin, and what --fail-on looks at."""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest import cli
from foretest.inference.guardrails import guardrail_of, outcome, with_roles
from foretest.results.result import Adjusted, Control, Estimate, Metric
from foretest.settings.metric_roles import MetricRole, role_of
from tests.schemas import validate

SCHEMA = json.loads(files("foretest").joinpath("schema/result-1.json").read_text(encoding="utf-8"))
METRICS = ("click", "bounce", "cost")


def log(rows: int = 4000) -> pa.Table:
    """The treatment raises clicks and bounces by 40 %, and leaves costs as they are, with hardly any noise."""
    g = np.random.default_rng(0)
    event = np.arange(rows) % 2 == 0
    weight = np.where(event, 1.4, 0.6)
    return pa.table({
        "click": event.astype(float), "bounce": event.astype(float), "cost": np.ones(rows),
        "p": np.full(rows, 0.4), "t": 0.4 * weight, "u": 0.4 * g.permutation(weight), "user": np.arange(rows),
    })  # fmt: skip


def asked(metrics: Any = None, **more: Any) -> ft.OfflineTest:
    treatment = more.pop("treatment", ft.Logged(prob="t"))
    return ft.OfflineTest(
        log=ft.LogColumns(rewards=METRICS), control=ft.Logged(prob="p"), treatment=treatment,
        estimators=["cis"], metrics=metrics, n_resamples=200, **more,
    )  # fmt: skip


def metric(lower: float | None, upper: float | None, verdict: str = "neutral", adjusted: Any = None) -> Metric:
    e = Estimate(None, None, None, None, None, None, lower, upper, verdict, [], None, adjusted=adjusted)
    return Metric(Control(1.0, None, None, None), {"cis": e}, "cis", verdict)


@pytest.mark.parametrize(
    ("direction", "lower", "upper", "said"),
    [
        ("increase", -0.009, 0.02, "pass"),  # the bad end is within the margin of 1 %
        ("increase", -0.011, 0.02, "unclear"),
        ("increase", -0.05, -0.011, "fail"),  # all of it beyond
        ("increase", -0.05, -0.009, "unclear"),
        ("decrease", -0.02, 0.009, "pass"),
        ("decrease", -0.02, 0.011, "unclear"),
        ("decrease", 0.011, 0.05, "fail"),
        ("increase", None, None, "unclear"),
    ],
)
def test_guardrails(direction: str, lower: float | None, upper: float | None, said: str) -> None:
    role = MetricRole(role="guardrail", direction=direction, margin=0.01)
    assert guardrail_of(metric(lower, upper), role) == said
    assert guardrail_of(metric(lower, upper, "insufficient"), role) == "unclear"


def test_a_guardrail_of_several_treatments_takes_the_interval_that_holds_for_all() -> None:
    role = MetricRole(role="guardrail", margin=0.01)
    wide = Adjusted(0.5, 1.0, "neutral", None, None, -0.02, 0.03)
    assert guardrail_of(metric(-0.005, 0.02, adjusted=wide), role) == "unclear"


def test_outcomes_follow_the_direction() -> None:
    table = {(v, d): outcome(v, d) for v in ("positive", "negative", "neutral", "insufficient")
             for d in ("increase", "decrease")}  # fmt: skip
    assert table == {
        ("positive", "increase"): "better", ("positive", "decrease"): "worse",
        ("negative", "increase"): "worse", ("negative", "decrease"): "better",
        ("neutral", "increase"): "neutral", ("neutral", "decrease"): "neutral",
        ("insufficient", "increase"): "insufficient", ("insufficient", "decrease"): "insufficient",
    }  # fmt: skip


def test_defaults() -> None:
    assert role_of({}, "click").role == "goal"
    assert role_of({"bounce": MetricRole(direction="decrease")}, "bounce").role == "goal"
    roles = {"click": MetricRole(role="goal"), "bounce": MetricRole(direction="decrease")}
    assert [role_of(roles, name).role for name in METRICS] == ["goal", "secondary", "secondary"]
    plain = {"click": metric(0.0, 1.0)}
    assert with_roles(plain, {}) == plain


ROLES = {
    "click": MetricRole(role="goal"),
    "bounce": {"role": "guardrail", "direction": "decrease", "margin": 0.05},
    "cost": {"direction": "decrease"},
}


def test_the_result_tells_roles_and_outcomes() -> None:
    found = asked(ROLES).run(log())
    document = json.loads(found.to_json())
    validate(document, SCHEMA)
    metrics = document["metrics"]
    told = {
        n: {k: m.get(k) for k in ("role", "direction", "verdict", "outcome", "guardrail")} for n, m in metrics.items()
    }
    assert told == {
        "click": {"role": "goal", "direction": "increase", "verdict": "positive", "outcome": "better",
                  "guardrail": None},
        "bounce": {"role": "guardrail", "direction": "decrease", "verdict": "positive", "outcome": "worse",
                   "guardrail": "fail"},
        "cost": {"role": "secondary", "direction": "decrease", "verdict": "neutral", "outcome": "neutral",
                 "guardrail": None},
    }  # fmt: skip
    assert metrics["bounce"]["margin"] == 0.05
    assert document["settings"]["metrics"]["bounce"] == {"role": "guardrail", "direction": "decrease", "margin": 0.05}
    text = str(found)
    assert "click (goal): control" in text
    assert "guardrail: fail (it may get worse by less than 5.0 %)" in text
    assert "lower is better: worse" in text
    bare = json.loads(asked().run(log()).to_json())
    assert not {"role", "direction", "outcome", "guardrail", "margin"} & set(bare["metrics"]["click"])


def test_treatments_are_ranked_by_the_first_goal_in_its_direction() -> None:
    treatments = {"more": ft.Logged(prob="t"), "as_much": ft.Logged(prob="u")}
    up = asked({"click": {"role": "goal"}}, treatment=treatments).run(log())
    down = asked({"bounce": {"role": "goal", "direction": "decrease"}}, treatment=treatments).run(log())
    assert [t.rank for t in up.treatments] == [1, 2]
    assert [t.rank for t in down.treatments] == [2, 1]
    assert "ranked by their uplift in bounce" in str(down)
    assert all(t.metrics["bounce"].role is not None for t in down.treatments)


def test_saved_sums_remember_roles_and_take_others(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    asked(ROLES).save_aggregates(log(), path)
    again = ft.OfflineTest.from_aggregates(path).run(path)
    assert again.metrics["bounce"].role == asked(ROLES).run(log()).metrics["bounce"].role
    other = asked({"bounce": {"role": "goal"}}).run(path)
    assert other.metrics["click"].role is not None
    assert other.metrics["click"].role["role"] == "secondary"


SETTINGS = """\
[log]
rewards = ["click", "bounce", "cost"]
[control]
policy = "logged"
prob = "p"
[treatment]
policy = "logged"
prob = "t"
[analysis]
estimators = ["cis"]
n_resamples = 100
"""


def exit_code(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["foretest", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert isinstance(stop.value.code, int)
    return stop.value.code


@pytest.mark.parametrize(
    ("tables", "fail_on", "code"),
    [
        ("", "neutral", 3),  # any metric: costs do not change
        ('[metrics.click]\nrole = "goal"', "neutral", 0),  # the goal alone
        ('[metrics.click]\nrole = "goal"', "negative", 0),
        ('[metrics.bounce]\nrole = "goal"\ndirection = "decrease"', "negative", 3),  # it rises, which is worse
        ('[metrics.bounce]\ndirection = "decrease"', "negative", 3),  # no roles: any metric, in its direction
        ('[metrics.click]\nrole = "goal"\n[metrics.bounce]\nrole = "guardrail"\ndirection = "decrease"\nmargin = 0.1',
         "guardrail", 3),
        ('[metrics.click]\nrole = "goal"\n[metrics.bounce]\nrole = "guardrail"\nmargin = 0.1', "guardrail", 0),
        ("", "guardrail", 0),
    ],
)  # fmt: skip
def test_fail_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: str, fail_on: str, code: int) -> None:
    pq.write_table(log(), tmp_path / "log.parquet")
    (tmp_path / "test.toml").write_text(SETTINGS + tables)
    paths = (str(tmp_path / "log.parquet"), "-c", str(tmp_path / "test.toml"))
    assert exit_code(monkeypatch, "run", *paths, "--fail-on", fail_on) == code


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ('[metrics.clik]\nrole = "goal"', "there is no metric 'clik'. Did you mean 'click'?"),
        ('[metrics.click]\nrole = "gaol"', "[metrics.click] unknown role 'gaol'. Did you mean 'goal'?"),
        ('[metrics.click]\ndirection = "up"', "[metrics.click] unknown direction 'up'."),
        ('[metrics.click]\nrole = "guardrail"\nmargin = 0', "margin = 0: expected a number above 0 and below 1."),
        ('[metrics.click]\nrole = "guardrail"\nmargin = -0.1', "margin = -0.1: expected a number above 0 and below 1."),
        ('[metrics.click]\nrole = "goal"\nmargin = 0.1', "margin = 0.1 is for a guardrail"),
        ('[metrics.click]\nrole = "guardrail"', 'role = "guardrail" needs a margin'),
        ('[metrics.click]\nroles = "goal"', "[metrics.click] has an unknown key 'roles'. Did you mean 'role'?"),
        ('[metrics.click]\nrole = "secondary"', "[metrics] gives roles, but none is the goal"),
        ("[metrics]\nclick = 3", "[metrics.click] = 3: expected a table"),
    ],
)  # fmt: skip
def test_bad_roles_are_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tables: str, said: str
) -> None:
    pq.write_table(log(100), tmp_path / "log.parquet")
    (tmp_path / "test.toml").write_text(SETTINGS + tables)
    out = tmp_path / "out"
    paths = (str(tmp_path / "log.parquet"), "-c", str(tmp_path / "test.toml"), "-o", str(out))
    assert exit_code(monkeypatch, "run", *paths) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1
    assert not out.exists()


def test_an_online_test_has_roles_too() -> None:
    settings = asked(ROLES).settings
    g = np.random.default_rng(1)
    arms = [
        pa.table({name: (g.random(5000) < rate).astype(float) for name in METRICS}) for rate in (0.3, 0.5)
    ]  # fmt: skip
    found = ft.OnlineTest.from_settings(settings).run(*arms)
    validate(json.loads(found.to_json()), SCHEMA)
    assert found.metrics["bounce"].role is not None
    assert found.metrics["bounce"].role["guardrail"] == "fail"
