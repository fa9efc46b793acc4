"""A history's calibration end to end: the table, the file, and each test by the fit of the others, in plain NumPy."""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from foretest.calibration.file import Calibration
from foretest.cli import main
from foretest.estimators import AdaptivePointNCIS
from foretest.history.run import run_history
from foretest.offline.test import OfflineTest
from foretest.simulate import WORLDS, write_history
from tests.calibration.test_fit import plain_fit
from tests.history.test_run import write
from tests.schemas import validate

pytestmark = [pytest.mark.usefixtures("few_resamples"), pytest.mark.slow]

LABEL, CALIBRATED = "point-ncis-adaptive", "point-ncis-calibrated"
TESTS = 11


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("history"), TESTS).parent


@pytest.fixture(scope="module")
def document(folder: Path) -> dict[str, Any]:
    return run_history(folder / "manifest.toml").to_dict()


def columns(tests: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """x, y, T and s² as agreement.json has them."""
    rows = []
    for test in tests:
        n = test["noise"][LABEL]
        s2 = n["offline_error"] ** 2 + n["online_error"] ** 2 - 2 * n["covariance"]
        x, y = test["offline"][LABEL]["rel_effect_size"], test["online"]["rel_effect_size"]
        rows.append((x, y, test["unsupported"][LABEL]["unsupported"], s2))
    x, y, t, s2 = np.array(rows).T
    return x, y, t, s2


def test_the_fit_is_that_of_the_table_of_tests(document: dict[str, Any]) -> None:
    for name in ("click", "revenue"):
        metric = document["metrics"][name]
        x, y, t, s2 = columns(metric["tests"])
        fit = metric["calibration"][LABEL]
        expected = plain_fit(y - x, t, s2)
        assert (fit["gamma"], fit["variance"], fit["tau2"]) == pytest.approx(expected)
        assert fit["tests"] == TESTS
        half = stats.t.ppf(0.975, TESTS - 1) * expected[1] ** 0.5
        assert fit["used"] == (abs(expected[0] - 1.0) > half)
        assert (fit["reason"] is None) == fit["used"]
    # one fit a metric
    assert document["metrics"]["click"]["calibration"] != document["metrics"]["revenue"]["calibration"]
    assert document["calibration"] == document["metrics"]["click"]["calibration"]


def test_each_test_is_judged_by_the_fit_of_the_others(document: dict[str, Any]) -> None:
    x, y, t, s2 = columns(document["tests"])
    for j, test in enumerate(document["tests"]):
        others = np.arange(TESTS) != j
        gamma, variance, tau2 = plain_fit((y - x)[others], t[others], s2[others])
        estimate, record = test["offline"][CALIBRATED], test["unsupported"][LABEL]
        moved, g = x[j] + (gamma - 1.0) * t[j], gamma - 1.0
        assert estimate["rel_effect_size"] == pytest.approx(moved)
        rows = record["variance"] + 2 * g * record["covariance"] + g * g * record["unsupported_variance"]
        plain = test["offline"][LABEL]
        rows *= max(1.0, plain["predicted_std_error"] / plain["std_error"]) ** 2
        half = stats.norm.ppf(0.95) * np.sqrt(rows + t[j] ** 2 * (variance + tau2))
        assert estimate["rel_effect_size_ci_lower"] == pytest.approx(moved - half)
        assert estimate["effect_size_ci_upper"] == pytest.approx((moved + half) * record["control"])
        assert record["variance"] ** 0.5 == pytest.approx(test["noise"][LABEL]["offline_error"], rel=0.25)
        assert f"calibrated on the other {TESTS - 1} tests: Γ0 = {gamma:.2f}" in estimate["reasons"]
        assert set(estimate) == set(test["offline"]["ncis"])
    row = document["table"][CALIBRATED]
    moved = [test["offline"][CALIBRATED]["rel_effect_size"] for test in document["tests"]]
    assert row["correlation"] == pytest.approx(np.corrcoef(moved, y)[0, 1])
    assert row["tests"] == TESTS
    assert set(row) == set(document["table"][LABEL])


def test_the_noise_of_the_calibrated_is_that_of_its_resamples(document: dict[str, Any], folder: Path) -> None:
    """cov(x + gT, y) = cov(x, y) + g·cov(T, y), from the same resamples of the control's log."""
    test = document["tests"][0]
    g = test["offline"][CALIBRATED]["calibration"]["gamma"] - 1.0
    noise, plain = test["noise"][CALIBRATED], test["noise"][LABEL]
    assert noise["covariance"] == pytest.approx(
        plain["covariance"] + g * test["unsupported"][LABEL]["online_covariance"]
    )
    assert noise["online_error"] == plain["online_error"]


def test_what_drives_the_fit_and_how_it_moved(document: dict[str, Any]) -> None:
    x, y, t, s2 = columns(document["tests"])
    fit = document["calibration"][LABEL]
    pull = t**2 / (s2 + fit["tau2"] * t**2)
    assert [point["weight"] for point in fit["points"]] == pytest.approx(list(pull / pull.sum()))
    assert [point["difference"] for point in fit["points"]] == pytest.approx(list(y - x))
    assert fit["over_time"][-1]["gamma"] == pytest.approx(fit["gamma"])
    third = plain_fit((y - x)[:3], t[:3], s2[:3])
    assert fit["over_time"][2]["gamma"] == pytest.approx(third[0])
    assert [step["tests"] for step in fit["over_time"]] == list(range(1, TESTS + 1))
    assert not fit["by_date"]


def test_the_command_writes_a_file_that_run_reads(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["foretest", "history", str(folder / "manifest.toml"), "-o", str(tmp_path)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert f"point-ncis-adaptive, by {TESTS} tests: what the log does not support was worth" in " ".join(
        printed.split()
    )
    assert "calibration.json" in printed
    document = json.loads((tmp_path / "calibration.json").read_text(encoding="utf-8"))
    validate(document, json.loads((files("foretest") / "schema" / "calibration-1.json").read_text()))
    assert document["settings"]["analysis.weight_bound"] == 3.0
    assert [test["name"] for test in document["tests"]] == [f"t{i}" for i in range(TESTS)]
    read = Calibration.read(tmp_path / "calibration.json")
    test = OfflineTest.from_toml(folder / "settings.toml")
    result = test.run(str(folder / "t0/control.parquet"), calibration=read)
    for name, metric in result.metrics.items():
        learned = read.metrics[name][LABEL]
        assert (CALIBRATED in metric.estimates) == learned.used
        notes = [note for note in result.notes if note.startswith(f"{CALIBRATED} is left out for {name}")]
        assert bool(notes) != learned.used


def test_few_tests_are_shown_and_not_used(tmp_path: Path) -> None:
    agreement = run_history(write(tmp_path, 3))
    assert agreement.calibration is not None
    learned = agreement.calibration.metrics["click"][LABEL]
    assert learned.reason == "only 3 tests: at least 10 are needed"
    assert agreement.to_dict()["table"][CALIBRATED]["tests"] == 3
    alone = run_history(write(tmp_path, 1)).to_dict()
    assert alone["tests"][0]["offline"][CALIBRATED]["rel_effect_size"] is None
    assert alone["tests"][0]["offline"][CALIBRATED]["verdict"] == "insufficient"
    assert alone["table"][CALIBRATED]["tests"] == 0
    assert alone["recommendation"]["estimator"] != CALIBRATED
    assert "Calibration" in agreement.to_html()


def test_a_history_without_the_adaptive_estimator_has_none(tmp_path: Path) -> None:
    agreement = run_history(write(tmp_path, 2), analysis={"estimators": ["cis", "ncis"]})
    assert agreement.calibration is None
    assert agreement.to_dict()["calibration"] == {}
    assert "calibrated" not in " ".join(agreement.to_dict()["table"])
    assert 'id="calibration"' not in agreement.to_html()


def test_days_order_the_tests_and_stand_in_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, 3)
    text = path.read_text()
    for name, day in (("t0", "2026-05-01"), ("t1", '"2026-03-01"'), ("t2", "2026-04-01")):
        text = text.replace(f'name = "{name}"', f'name = "{name}"\ndate = {day}')
    path.write_text(text)
    agreement = run_history(path)
    fit = agreement.to_dict()["calibration"][LABEL]
    assert [step["name"] for step in fit["over_time"]] == ["t1", "t2", "t0"]
    assert fit["by_date"]
    assert fit["dates"] == {"first": "2026-03-01", "last": "2026-05-01"}
    assert agreement.calibration is not None
    assert agreement.calibration.tests[1] == {"name": "t1", "date": "2026-03-01"}


def test_tests_of_other_bounds_share_no_fit(tmp_path: Path) -> None:
    path = write(tmp_path, 2)
    (tmp_path / "other.toml").write_text((tmp_path / "settings.toml").read_text().replace("= 3.0", "= 4.0"))
    path.write_text(path.read_text() + '\nsettings = "other.toml"')
    agreement = run_history(path)
    assert agreement.calibration is not None
    assert agreement.calibration.settings["analysis.weight_bound"] == [3.0, 4.0]
    assert not agreement.calibration.metrics["click"][LABEL].used


def test_an_estimators_own_bound_is_the_calibrations(tmp_path: Path) -> None:
    own = {"estimators": [AdaptivePointNCIS(weight_bound=2.5)]}
    agreement = run_history(write(tmp_path, 2), analysis=own)
    assert agreement.calibration is not None
    assert agreement.calibration.metrics["click"][LABEL].weight_bound == 2.5


def test_estimators_by_slot_have_a_fit_of_their_own(tmp_path: Path) -> None:
    write_history(tmp_path, WORLDS["paper"], tests=3, rows=2000, seed=7)
    both = {"estimators": [LABEL, "slot-ncis-adaptive"], "n_resamples": 100}
    agreement = run_history(tmp_path / "manifest.toml", analysis=both)
    document = agreement.to_dict()
    assert {CALIBRATED, "slot-ncis-calibrated"} < set(document["table"])
    fit = document["calibration"]["slot-ncis-adaptive"]
    assert fit["estimator"] == "slot-ncis-calibrated"
    assert fit["gamma"] != document["calibration"][LABEL]["gamma"]
    for test in document["tests"]:
        plain, moved = (test["offline"][name] for name in ("slot-ncis-adaptive", "slot-ncis-calibrated"))
        t = test["unsupported"]["slot-ncis-adaptive"]["unsupported"]
        assert 0.0 < t < 1.0
        gamma = moved["calibration"]["gamma"]
        assert moved["rel_effect_size"] == pytest.approx(plain["rel_effect_size"] + (gamma - 1.0) * t)
    assert "slot-ncis-calibrated" in agreement.to_html()
