"""`foretest paper` through the real command, small: what it writes, that it is repeatable, and what it refuses."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foretest import cli
from foretest.history.run import run_history
from foretest.paper import run_paper
from foretest.paper.estimators import TABLE_2_KEYS, all_estimators
from foretest.paper.summary import summary
from foretest.simulate import WORLDS, draw_test, write_history
from tests.support import few_resamples_of_tests

TESTS, ROWS, SEED = 3, 2000, 4
OPTIONS = ("--tests", str(TESTS), "--rows", str(ROWS), "--seed", str(SEED))
FIGURES = ["figure-1-weights", "figure-2-cap", "figure-2-estimates", "figure-3-correlation"]
FIGURES += [f"figure-4-{key}" for key in TABLE_2_KEYS]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper") / "out"
    printed, errors = io.StringIO(), io.StringIO()
    with (
        few_resamples_of_tests(), pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors),
    ):  # fmt: skip
        patch.setattr(sys, "argv", ["foretest", "paper", "-o", str(folder), *OPTIONS])
        patch.setattr("foretest.report.pictures.png", lambda spec: b"")  # tests/report/test_pictures.py draws some
        with pytest.raises(SystemExit) as stop:
            cli.main()
    assert not stop.value.code, errors.getvalue()
    assert "Table 2: 3 tests of world paper" in printed.getvalue()
    assert "NCIS 1.79381" in printed.getvalue()
    assert errors.getvalue() == ""
    return folder


@pytest.fixture(scope="module")
def document(out: Path) -> dict[str, Any]:
    text = (out / "paper.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} in paper.json"))
    return content


@pytest.mark.slow
def test_one_folder_and_no_logs(out: Path) -> None:
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "cache", "figures", "paper.json", "report.html"]
    assert not list(out.rglob("*.parquet"))
    expected = {f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg", "vl.json")}
    assert {path.name for path in (out / "figures").iterdir()} == expected


@pytest.mark.slow
def test_every_picture_of_the_summary_is_there(out: Path) -> None:
    text = (out / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    assert sorted(links) == sorted(f"figures/{name}.png" for name in FIGURES)
    assert all((out / link).exists() for link in links)


@pytest.mark.slow
def test_tables_are_whole(out: Path) -> None:
    """Every row of every table has the cells of its header."""
    lines = (out / "README.md").read_text(encoding="utf-8").splitlines()
    tables = [line for line in lines if line.startswith("|")]
    assert len(tables) > 40
    cells = 0
    for line, before in zip(lines, ["", *lines], strict=False):
        if line.startswith("|"):
            assert not before.startswith("|") or line.count("|") == cells, line
            cells = line.count("|")
    assert "nan" not in " ".join(tables).lower()
    assert "None" not in " ".join(lines)


@pytest.mark.slow
def test_the_summary_follows_from_the_numbers(out: Path, document: dict[str, Any]) -> None:
    assert summary(document, FIGURES) == (out / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_table_2_is_that_of_the_history(document: dict[str, Any], tmp_path: Path) -> None:
    """The same seed simulated and analysed with the product's own functions, one step at a time."""
    write_history(tmp_path / "history", WORLDS["paper"], TESTS, ROWS, SEED)
    manifest = tmp_path / "history" / "manifest.toml"
    with few_resamples_of_tests():  # no quantile is compared
        agreement = run_history(manifest, analysis={"estimators": all_estimators()}).to_dict()
    inner = document["agreement"]
    assert [test["name"] for test in inner["tests"]] == [test["name"] for test in agreement["tests"]]
    for key in TABLE_2_KEYS:
        ours = document["table_2"]["rows"][key]["ours"]
        for name in ("correlation", "precision", "fnr", "ci_size", "bias", "rmse", "coverage"):
            assert ours[name] == pytest.approx(agreement["table"][key][name], rel=1e-6), (key, name)
    moves = document["capping"]["rows"]["ncis"]["mean_move"]
    by_hand = [
        test["offline"]["ncis-zero"]["rel_effect_size"] - test["offline"]["ncis"]["rel_effect_size"]
        for test in agreement["tests"]
    ]
    assert moves == pytest.approx(np.mean(by_hand), rel=1e-6)
    seen = [
        sum(row["bias_contribution"] for row in test["offline"]["piece-ncis"]["strata"])
        / (test["offline"]["ncis"]["treatment"] - test["offline"]["ncis"]["effect_size"])
        for test in agreement["tests"]
    ]
    assert document["bias_decomposition"]["tests"]["mean"]["seen_by_strata"] == pytest.approx(np.mean(seen), rel=1e-6)


@pytest.mark.slow
def test_seeds_and_versions_are_recorded(document: dict[str, Any]) -> None:
    run = document["run"]
    assert (run["world"], run["tests"], run["rows"], run["seed"]) == ("paper", TESTS, ROWS, SEED)
    assert run["test_seeds"]["test-002"] == draw_test(WORLDS["paper"], 2, SEED).seed
    assert run["versions"]["numpy"] == np.__version__
    assert run["parameters"]["groups"][0]["name"] == "passers-by"
    assert set(document["cpu_seconds"]) == {"example", "simulate", "tests", "loggers", "normaliser", "decomposition"}


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers(document: dict[str, Any], tmp_path: Path) -> None:
    """In another folder, without a cache, in one process: all but what the clock says."""
    with few_resamples_of_tests():
        study = run_paper(tmp_path, WORLDS["paper"], tests=TESTS, rows=ROWS, seed=SEED)
    again = json.loads(json.dumps(study.to_dict()))
    assert sorted(again) == sorted(document)
    for name in set(document) - {"computation_time", "cpu_seconds"}:
        same(again[name], document[name], name)


def same(a: Any, b: Any, place: str) -> None:
    """Equal, numbers to 1e-6: threads add up in any order."""
    if isinstance(a, dict):
        assert sorted(a) == sorted(b), place
        for key in a:
            same(a[key], b[key], f"{place}.{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), place
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{place}[{k}]")
    elif isinstance(a, float) and isinstance(b, float | int):
        assert a == pytest.approx(b, rel=1e-6, abs=1e-9), place
    else:
        assert a == b, place


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--tests", "0"], "--tests 0: expected at least 1."),
        (["--rows", "0"], "--rows 0: expected at least 1000."),
        (["--seed", "-1"], "--seed -1: expected at least 0."),
        (["--world", "papper"], "Did you mean 'paper'?"),
        (["--rows", "many"], "many"),
        (["--keep-logs"], "--keep-logs"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    code, errors = refused(["-o", str(tmp_path / "out"), *arguments], monkeypatch, capsys)
    assert code == 2
    assert sentence in errors
    assert errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "out"
    place.write_text("mine")
    code, errors = refused(["-o", str(place)], monkeypatch, capsys)
    assert code == 2
    assert "is a file, expected a folder" in errors
    assert place.read_text() == "mine"
    code, errors = refused([], monkeypatch, capsys)
    assert code == 2
    assert "--out" in errors


def refused(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["foretest", "paper", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0), capsys.readouterr().err


@pytest.mark.slow
def test_logs_are_removed_when_something_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from foretest.paper import study

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "run_history", stopped)
    with pytest.raises(KeyboardInterrupt):
        study.run_paper(tmp_path, WORLDS["paper"], tests=1, rows=1000)
    assert list(tmp_path.iterdir()) == []
