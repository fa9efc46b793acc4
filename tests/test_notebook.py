"""What a user sees of an object: once and shortly, in Python, in IPython and in a notebook with a real kernel."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import numpy as np
import pytest

import foretest as ft
from foretest.aggregation.unit_counts import LIMIT, UnitCounts
from foretest.calibration.file import Learned
from foretest.calibration.fit import Fit
from foretest.estimators import ESTIMATORS
from foretest.formatting import format_number, percent, span
from foretest.policies.logging_mixture import LoggingMixture, Shares
from foretest.results.result import Adjusted, Estimate
from foretest.results.uplift_range import Range
from tests.public_objects import CALIBRATION, public_objects, small_agreement

TABLES = {"result", "check", "online result", "ranked", "agreement"}  # as HTML in a notebook
TEXT_TABLES = TABLES | {"plan"}  # str and repr are tables in 100 columns or fewer

#: the most characters of any other object, and what its text says
SUMMARIES = {
    "metric": (120, ["point-ncis-adaptive", "control 0.4200", "8 estimators"]),
    "estimate": (60, ["neutral"]),
    "treatment": (160, ["'shy'", "rank 2", "audit pass", "click", "revenue"]),
    "segment": (160, ["stratum", "144 displays", "click", "revenue"]),
    "aggregates": (180, ["400 displays, 114 units (user)", "metrics click, revenue", "estimators is, nis, dr, cis"]),
    "folded": (180, ["400 displays, 114 units (user)", "metrics click, revenue", "point-ncis-adaptive", "1 note"]),
    "several folded": (220, ["treatments bold, shy", "segments by stratum"]),
    "calibration": (160, ["40 tests", "click point-ncis-adaptive: Γ0 1.20 (1.18 to 1.22), used", "there is none"]),
    "test": (360, ["OfflineTest(", "scores='treatment_scores'", "cap=2.0", "strata='stratum'"]),
    "several": (700, ["'bold': PlackettLuce", "'shy': PlackettLuce", "role='guardrail', margin=0.01", "cap=3.0"]),
    "online test": (90, ["OnlineTest(", "rewards=('click',)", "confidence_level=0.8"]),
    "settings": (800, ["Settings(", "'bold': PlackettLuce", "analysis=Analysis(cap=3.0, n_resamples=200)"]),
    "analysis": (100, ["Analysis(cap=2.0, weight_bound=3.0, n_resamples=200"]),
    "columns": (100, ["LogColumns(rewards=('click', 'revenue'), unit='user', ranking='ranking', id='id')"]),
    "role": (60, ["MetricRole(role='guardrail', margin=0.01)"]),
    "policy": (80, ["PlackettLuce(scores='control_scores'"]),
    "mixture": (200, ["'share': 0.25", "plackett-luce", "'share': 0.75", "mallows"]),
    "estimator": (60, ["NCIS(", "cap=3.0"]),
}


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    return public_objects()


def test_every_object_is_looked_at(objects: dict[str, Any]) -> None:
    assert {*objects, "agreement"} == {*TEXT_TABLES, *SUMMARIES}


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_repr_is_short_and_has_the_facts(name: str, objects: dict[str, Any]) -> None:
    text, (most, facts) = repr(objects[name]), SUMMARIES[name]
    assert len(text) <= most
    for fact in facts:
        assert fact in text
    assert not re.search(r"array\(|np\.|0x", text)


@pytest.mark.parametrize("name", sorted(TEXT_TABLES - {"agreement"}))
def test_a_result_is_its_table(name: str, objects: dict[str, Any]) -> None:
    text = str(objects[name])
    assert repr(objects[name]) == text
    chosen, _, table = text.partition("Foretest ")
    assert table
    assert bool(chosen) == (name == "ranked")  # which treatment to take comes first
    assert max(len(line) for line in text.splitlines()) <= 100


def test_a_metric_is_its_headline(objects: dict[str, Any]) -> None:
    metric = objects["metric"]
    lead = metric.estimates[metric.headline]
    limits = span(lead.range.rel_ci_lower, lead.range.rel_ci_upper)
    uplift = f"{percent(lead.rel_effect_size, sign=True)} ({limits}), {lead.word}"
    uplift += "" if lead.word == lead.verdict else f" (verdict: {lead.verdict})"
    assert repr(metric) == f"<Metric point-ncis-adaptive: {uplift}; control 0.4200, 8 estimators>"
    assert repr(lead) == f"<Estimate {uplift}>"
    assert f"click {uplift}" in repr(replace(objects["treatment"], metrics={"click": metric}))


NOTHING = Estimate(*[None] * 8, "insufficient", ["no row has a reward"], None)  # type: ignore[arg-type]


def test_nothing_that_is_missing_breaks_a_repr(objects: dict[str, Any]) -> None:
    assert repr(NOTHING) == "<Estimate no uplift, insufficient>"
    assert repr(ft.Metric(None, {}, None, "insufficient")) == "<Metric without headline: insufficient; 0 estimators>"  # type: ignore[arg-type]
    treatment = replace(objects["treatment"], rank=None, metrics={}, audit=None)
    assert repr(treatment) == "<Treatment 'shy': no estimates>"
    rest = replace(objects["segment"], value="other", rows=1, metrics={}, rest=True, values=30)
    assert repr(rest) == "<Segment stratum 'other' of 30 values, 1 display: no estimates>"
    assert repr(replace(rest, values=None)) == "<Segment stratum 'other', 1 display: no estimates>"
    assert repr(replace(objects["folded"].aggregates, units=None)).startswith("<Aggregates of 400 displays, 400 units")
    assert repr(replace(CALIBRATION, metrics={}, tests=[])) == "<Calibration of 0 tests; no fit>"
    for field in ("audit", "weights"):
        assert str(replace(objects["result"], **{field: None})).startswith("Foretest 400 displays")


def test_an_estimated_number_of_units_is_no_count(objects: dict[str, Any]) -> None:
    aggregates = objects["aggregates"]
    in_cells = UnitCounts(np.zeros(0, np.uint64), np.full(LIMIT, 3), lowest=np.full(LIMIT, 0.5))
    more = aggregates.ledger.mapped(lambda account, key, array: array * 1000)
    many = replace(aggregates, ledger=more, units=in_cells)  # LIMIT/0.5 = 262,144 units
    assert repr(many).startswith("<Aggregates of 400,000 displays, about 262,000 units (user);")


def test_an_estimate_says_what_the_table_says() -> None:
    absolute = replace(NOTHING, effect_size=0.02, effect_size_ci_lower=-0.01, effect_size_ci_upper=0.05)
    assert repr(absolute) == (f"<Estimate {format_number(0.02)} (-0.01000 to 0.05000) per display, insufficient>")
    up = replace(NOTHING, rel_effect_size=0.03, rel_effect_size_ci_lower=0.01, rel_effect_size_ci_upper=0.05)
    up = replace(up, verdict="positive", robustness="fragile", word="positive")
    assert repr(up) == "<Estimate +3.0 % (+1.0 % to +5.0 %), positive, fragile>"
    leans = replace(up, word="leans positive", range=Range("band", None, None, -0.01, 0.06))
    assert repr(leans) == "<Estimate +3.0 % (-1.0 % to +6.0 %), leans positive (verdict: positive), fragile>"
    adjusted = Adjusted(0.04, 0.12, "neutral", None, None, None, None)
    assert "positive (adjusted: neutral)" in repr(replace(up, adjusted=adjusted))
    assert "adjusted" not in repr(replace(up, adjusted=replace(adjusted, verdict_adjusted="positive")))


def test_many_of_a_kind_are_counted(objects: dict[str, Any]) -> None:
    metrics = {f"metric {number}": objects["metric"] for number in range(40)}
    text = repr(replace(objects["treatment"], metrics=metrics))
    assert "metric 2 " in text
    assert text.endswith("; 37 more metrics>")
    learned = Learned(Fit(1.2, 0.01, 0.0, 1), 20.0, "only 1 test: at least 10 are needed")
    text = repr(replace(CALIBRATION, metrics={name: {"point-ncis-adaptive": learned} for name in metrics}))
    assert "metric 3 point-ncis-adaptive: Γ0 1.20, not used: only 1 test" in text
    assert text.endswith("; 36 more>")


class Table(ft.Policy):
    """A policy with a large table."""

    def __init__(self, size: int) -> None:
        self.values = list(range(size))


def test_a_policy_with_large_data_is_short_and_its_settings_whole() -> None:
    text = repr(Table(100_000))
    assert text.startswith("Table(values=[0, 1, 2")
    assert text.endswith("99998, 99999])")
    assert len(text) < 330
    assert Table(100_000).settings()["values"] == list(range(100_000))


def test_loggers_show_no_shares_by_day() -> None:
    days = [f"2026-01-{day:02}" for day in range(1, 32)]
    shares = Shares(np.arange(31, dtype=np.uint64), tuple(days), np.ones((31, 2), np.int64))
    loggers = {"old": ft.PlackettLuce("a"), "new": ft.PlackettLuce("b")}
    text = repr(LoggingMixture(loggers, "old", shares))
    assert text == (
        "LoggingMixture(loggers={'old': PlackettLuce(scores='a', temperature=1.0), 'new': PlackettLuce(scores='b',"
        " temperature=1.0)}, baseline='old')"
    )


@pytest.mark.parametrize("key", ESTIMATORS)
def test_estimators_are_short(key: str) -> None:
    assert len(repr(ESTIMATORS[key]())) <= 80


def test_the_repr_of_settings_makes_them_again(objects: dict[str, Any]) -> None:
    names = {name: getattr(ft, name) for name in dir(ft)}
    for name in ("analysis", "columns", "role"):
        assert eval(repr(objects[name]), names) == objects[name]
    for name in ("test", "several"):
        assert repr(eval(repr(objects[name]), names)) == repr(objects[name])


def test_text_is_written_where_rich_takes_python_for_a_notebook(
    objects: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from foretest.cli.output import show_result

    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert "point-ncis-adaptive" in str(objects["result"])
    show_result(objects["result"])
    assert "point-ncis-adaptive" in capsys.readouterr().out


@pytest.mark.slow
def test_a_notebook_shows_every_object_once(
    objects: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    objects = {**objects, "agreement": small_agreement(tmp_path / "history")}
    (tmp_path / "objects.pickle").write_bytes(pickle.dumps(objects))
    shown = {f"objects[{name!r}]": (name, objects[name]) for name in objects}
    cells = [
        "import pickle\nfrom tests.public_objects import LOG\nobjects = pickle.load(open('objects.pickle', 'rb'))",
        *shown,
        "objects['test'].check(LOG)",
        "print(objects['result'])",
        "str(objects['check']) == repr(objects['check'])",
        "objects['result'].metrics",
    ]
    first, *outputs, check, printed, same, metrics = run_cells(cells, tmp_path)
    assert first == []
    for (name, value), output in zip(shown.values(), outputs, strict=True):
        data = only_display(output, name)
        assert data["text/plain"] == repr(value)
        assert len(data["text/plain"]) < 6500, name
        assert set(data) == ({"text/plain", "text/html"} if name in TABLES else {"text/plain"}), name
        if name in TABLES:
            assert re.search("<table|<pre>Foretest", data["text/html"])
    fresh = only_display(check, "check")
    assert fresh["text/plain"] == repr(objects["check"])
    assert "treatment mass kept" in fresh["text/html"]
    assert [(output.output_type, output.name, output.text) for output in printed] == [
        ("stream", "stdout", f"{objects['result']}\n")
    ]
    assert only_display(same, "str")["text/plain"] == "True"
    assert len(only_display(metrics, "metrics")["text/plain"]) < 300


def run_cells(cells: list[str], folder: Path) -> list[list[Any]]:
    """The outputs of each cell of a notebook, run by one kernel in a folder."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell.outputs for cell in notebook.cells]


def only_display(outputs: list[Any], name: str) -> dict[str, str]:
    """What a cell shows, which is the value of its last line and nothing else."""
    assert [output.output_type for output in outputs] == ["execute_result"], name
    return dict(outputs[0].data)
