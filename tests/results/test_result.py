"""The result object: JSON that validates, rows, tables, files written whole."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from jsonschema import ValidationError

import foretest as ft
from foretest.files import json_ready, write_whole
from tests.schemas import validate
from tests.support import SmallLog, build_test

LOG = SmallLog()
SCHEMA = json.loads(files("foretest").joinpath("schema/result-1.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def result() -> ft.Result:
    return build_test(metrics=("click", "revenue")).run(LOG.table())


def strictly(text: str) -> Any:
    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_json_validates_and_holds_the_contract(result: ft.Result) -> None:
    document = strictly(result.to_json())
    validate(document, SCHEMA)
    assert document["foretest"] == ft.__version__
    assert document["schema"] == 1
    assert document["log"] == {
        "rows": 400,
        "units": len(set(LOG.unit)),
        "positives": {"click": int(LOG.click.sum()), "revenue": int(LOG.click.sum())},
    }
    assert document["metrics"]["click"]["headline"] == "point-ncis-adaptive"
    assert document["settings"]["control"] == {
        "policy": "plackett-luce",
        "scores": "control_scores",
        "temperature": 1.0,
    }
    assert document["settings"]["analysis"]["estimators"] == list(document["metrics"]["click"]["estimates"])


@pytest.mark.parametrize("rows", [0, 1, 400])
def test_every_size_of_log_validates(rows: int) -> None:
    validate(strictly(build_test().run(LOG.table().slice(0, rows)).to_json()), SCHEMA)


def test_the_schema_can_refuse(result: ft.Result) -> None:
    document = result.to_dict()
    document["metrics"]["click"]["verdict"] = "maybe"
    with pytest.raises(ValidationError):
        validate(document, SCHEMA)


def test_rows_and_frames(result: ft.Result) -> None:
    rows = result.to_dicts()
    assert [(r["metric"], r["estimator"]) for r in rows][:2] == [("click", "is"), ("click", "nis")]
    assert len(rows) == 16
    frame = result.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.loc[0, "treatment"] == result.metrics["click"].estimates["is"].treatment


def test_files_are_written_whole(result: ft.Result, tmp_path: Path) -> None:
    path = tmp_path / "new" / "result.json"
    text = result.to_json(path)
    assert path.read_text(encoding="utf-8") == text
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")  # cannot be encoded: fails in the middle
    assert path.read_text(encoding="utf-8") == text
    assert [p.name for p in path.parent.iterdir()] == ["result.json"]


def test_finite() -> None:
    assert json_ready({"a": np.float64(1.5), "b": [float("nan"), np.inf, np.int64(3)], 4: (True, None, "x")}) == {
        "a": 1.5, "b": [None, None, 3], "4": [True, None, "x"],
    }  # fmt: skip


def test_table_reads_in_100_columns(result: ft.Result) -> None:
    text = str(result)
    assert max(len(line) for line in text.splitlines()) <= 100
    for word in ("effective sample size", "treatment mass kept", "click", "revenue", "point-ncis-adaptive", "verdict"):
        assert word in text
    assert text == repr(result)
    # health stands above the results
    assert text.index("unsupported rows") < text.index("estimator")


def test_both_numbers_of_effective_rewards_say_what_they_are_of(result: ft.Result) -> None:
    lines = " ".join(str(result).split())
    assert re.search(r"effective click [\d,.]+ rewards of equal weight, at cap [\d.]+ [\d,.]+ by the weights of", lines)
    assert f"by {result.metrics['click'].headline}" in result.to_html()


def test_a_check_does_not_count_unsupported_rows() -> None:
    check = str(build_test(["ncis"], metrics=("click",)).check(LOG.table()))
    assert re.search(r"unsupported rows +- +counted by run", check)


def test_too_few_units_have_no_interval() -> None:
    """Three displays: what a bootstrap of them gives is no interval, and is not shown as one."""
    rewarded = np.flatnonzero(LOG.table()["click"].to_numpy())[:3]
    result = build_test(["cis", "ncis"], metrics=("click",)).run(LOG.table().take(rewarded))
    estimate = result.metrics["click"].estimates["cis"]
    assert (estimate.verdict, estimate.effect_size_ci_lower is None) == ("insufficient", False)
    [line] = [line for line in str(result).splitlines() if line.startswith("  cis  ")]
    assert re.search(r"%  +-  insufficient +-  insufficient", line)
    assert "no interval" in repr(estimate)
    assert "no interval" in result.to_html()


def test_html_shows_names_as_text() -> None:
    name = "<img src=x onerror=alert(1)>"
    table = LOG.table().rename_columns([name if c == "click" else c for c in LOG.table().column_names])
    html = build_test(["ncis"], metrics=(name,)).run(table)._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html
