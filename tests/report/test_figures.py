"""Which figures a result has, and under which names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import foretest as ft
from foretest.cli import app
from foretest.history.agreement import figures as agreement_row
from foretest.history.agreement_result import Agreement
from foretest.report.figures import file_name
from tests.report.charts.test_correlation import pairs
from tests.report.support import HOSTILE, assert_sound, simulated_tests
from tests.support import SmallLog, build_test

LOG = SmallLog()


def test_a_run_has_the_weights_and_two_a_metric() -> None:
    result = build_test(["cis"], metrics=("click", "revenue")).run(LOG.table())
    figures = result.figures()
    assert list(figures) == ["weights", "cap-click", "cap-estimates-click", "cap-revenue", "cap-estimates-revenue"]
    for spec in figures.values():
        assert_sound(spec)


def test_a_run_by_exposure_has_its_curve() -> None:
    log = SmallLog(k=3)
    result = build_test(["exposure-ncis-adaptive"], examination=(1.0, 0.6, 0.4)).run(log.table())
    assert list(result.figures())[-1] == "examination-click"
    assert_sound(result.figures()["examination-click"])


def test_a_check_has_the_weights_an_empty_log_none_of_them() -> None:
    assert list(build_test(["cis"]).check(LOG.table()).figures()) == ["weights"]
    assert list(build_test(["cis"]).run(LOG.table().slice(0, 0)).figures()) == ["cap-click", "cap-estimates-click"]


def test_an_online_test_has_none() -> None:
    test = ft.OnlineTest(log=ft.LogColumns(rewards=["click"]))
    assert test.run(pa.table({"click": [1, 0] * 50}), pa.table({"click": [1, 1] * 50})).figures() == {}


def agreement(*metrics: str, labels: tuple[str, ...] = ("cis", "ncis")) -> Agreement:
    """Three tests, their offline estimates under every label."""
    tests = []
    for test in simulated_tests(3):
        offline = dict.fromkeys(labels, test["offline"]["cis"])
        part = {"online": test["online"], "offline": offline, "noise": {}}
        tests.append({"name": test["name"], "metrics": dict.fromkeys(metrics, part)})
    row: dict[str, Any] = {"tests": 3, **agreement_row(pairs(), resamples=20)}
    return Agreement(tests, [], {metric: dict.fromkeys(labels, row) for metric in metrics}, 0, 0.9)


def test_a_history_has_one_for_each_estimator() -> None:
    figures = agreement("click", "revenue").figures()
    first = ["correlation", "decisions-cis", "decisions-ncis"]
    assert list(figures) == [*first, *(f"{name}-revenue" for name in first)]
    assert "90 % interval" in str(figures["decisions-cis"])
    for spec in figures.values():
        assert_sound(spec)


def test_names_are_safe_for_files_and_never_the_same() -> None:
    assert file_name(HOSTILE) == "a.b-c-script-q-p-x-y-img-src-x-onerror-alert-1"
    assert file_name("../../etc/passwd") == "etc-passwd"
    assert len(file_name("x" * 500)) == 80
    assert file_name("クリック") == "figure"
    names = list(agreement("click", labels=("a b", "a/b", "A-B")).figures())
    assert names == ["correlation", "decisions-a-b", "decisions-a-b-2", "decisions-A-B-3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import pyarrow.parquet as pq

    place = tmp_path_factory.mktemp("log")
    pq.write_table(LOG.table(), place / "log.parquet")
    (place / "test.toml").write_text(
        '[log]\nrewards = ["click"]\nunit = "user"\nranking = "ranking"\nid = "id"\n'
        '[control]\npolicy = "plackett-luce"\nscores = "control_scores"\n'
        '[treatment]\npolicy = "plackett-luce"\nscores = "treatment_scores"\n'
        '[analysis]\nestimators = ["cis"]\n'
    )
    return place


def run(*words: str) -> int:
    code = app(list(words), exit_on_error=False, print_error=False, result_action="return_value")
    return int(code or 0)


def test_the_command_writes_them_when_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, settings = str(folder / "log.parquet"), str(folder / "test.toml")
    assert run("run", log, "-c", settings, "-o", str(folder / "plain")) == 0
    assert sorted(path.name for path in (folder / "plain").iterdir()) == ["report.html", "result.json"]
    assert run("run", log, "-c", settings, "-o", str(folder / "out"), "--figures") == 0
    written = sorted(path.name for path in (folder / "out" / "figures").iterdir())
    names = ("cap-click", "cap-estimates-click", "weights")
    assert written == sorted(f"{name}.{kind}" for name in names for kind in ("png", "svg", "vl.json"))
    said = ", ".join(str(folder / "out" / name) for name in ("result.json", "report.html", "figures"))
    assert f"Written: {said}\n" in capsys.readouterr().out


def test_figures_without_a_folder_are_refused(folder: Path) -> None:
    with pytest.raises(ft.BadInput, match="-o OUT"):
        run("run", str(folder / "log.parquet"), "-c", str(folder / "test.toml"), "--figures")
