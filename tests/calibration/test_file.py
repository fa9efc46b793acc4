"""calibration.json: what is written is what is read; what is damaged, of another version or of other settings is
refused by name."""

from __future__ import annotations

import dataclasses
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import foretest as ft
from foretest.calibration.file import Calibration, Learned, common_settings, settings_of
from foretest.calibration.fit import Fit
from foretest.errors import BadInput
from tests.schemas import validate
from tests.support import build_test

SETTINGS = build_test(["point-ncis-adaptive"]).settings
LABEL = "point-ncis-adaptive"


def made(**changes: Any) -> Calibration:
    good = Learned(Fit(1.17, 0.0009, 0.005, 39), 3.0, None, "2026-01-05", "2026-09-30")
    empty = Learned(Fit(float("nan"), float("nan"), float("nan"), 0), 3.0, "no test has an unsupported part")
    whole = Calibration(settings_of(SETTINGS), {"click": {LABEL: good}, "revenue": {LABEL: empty}},
                        [{"name": "t0", "date": "2026-01-05"}, {"name": "t1", "date": None}])  # fmt: skip
    return dataclasses.replace(whole, **changes)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    made().to_json(path)
    document = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    validate(document, json.loads((files("foretest") / "schema" / "calibration-1.json").read_text()))
    assert document["schema"] == 1
    learned = document["metrics"]["click"][LABEL]
    assert (learned["gamma"], learned["tests"], learned["used"]) == (1.17, 39, True)
    assert learned["gamma_ci_lower"] == pytest.approx(1.17 - 2.0243942 * 0.03)
    assert learned["dates"] == {"first": "2026-01-05", "last": "2026-09-30"}
    assert document["metrics"]["revenue"][LABEL]["gamma"] is None
    read = Calibration.read(path)
    assert read.to_dict() == document
    assert read.metrics["click"] == made().metrics["click"]
    assert not read.metrics["revenue"][LABEL].used


def test_every_way_of_cutting_it_short_is_one_sentence(tmp_path: Path) -> None:
    text = made().to_json().rstrip()
    path = tmp_path / "calibration.json"
    for length in range(0, len(text) - 1, 17):
        path.write_text(text[:length], encoding="utf-8")
        with pytest.raises(BadInput, match=r"calibration\.json: .*foretest history"):
            Calibration.read(path)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("schema",), 2, "version 2 of the format"),
        (("kind",), None, "not a calibration"),
        (("metrics", "click", LABEL, "gamma"), "1.2", "gamma is no number"),
        (("metrics", "click", LABEL, "gamma"), None, "gamma is no number"),
        (("metrics", "click", LABEL, "tau2"), -1.0, "below 0"),
        (("metrics", "click", LABEL, "tests"), 3.5, "no count"),
        (("metrics", "click", LABEL, "used"), False, "do not fit"),
        (("metrics", "click"), 5, "damaged"),
        (("metrics", "click", LABEL), {}, "'tests' is missing"),
        (("settings",), None, "damaged"),
    ],
)
def test_what_is_damaged_is_refused(tmp_path: Path, place: tuple[str, ...], value: Any, message: str) -> None:
    document = made().to_dict()
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path = tmp_path / "c.json"
    path.write_text(json.dumps(document))
    with pytest.raises(BadInput, match=message) as caught:
        Calibration.read(path)
    assert "c.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such calibration file"):
        Calibration.read(tmp_path / "missing.json")
    with pytest.raises(BadInput, match=r"cannot be read as a calibration file \(Is a directory\)"):
        Calibration.read(tmp_path)
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="not a text file; a calibration is JSON"):
        Calibration.read(tmp_path / "b.json")
    (tmp_path / "a.json").write_text("[1, 2]")
    with pytest.raises(BadInput, match="not a calibration"):
        Calibration.read(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"draws": 64}, "analysis.draws was 256 and is 64 here"),
        ({"normaliser": "two-sided"}, "analysis.normaliser was auto and is two-sided here"),
    ],
)
def test_other_settings_are_refused_by_name(changes: dict[str, Any], message: str) -> None:
    other = build_test([LABEL], **changes).settings
    with pytest.raises(BadInput, match=message):
        made().refuse_other_settings(other, {LABEL: 3.0})


def test_other_bounds_and_policies_are_refused_by_name() -> None:
    with pytest.raises(BadInput, match=r"analysis.weight_bound was 3 and is 20 here\. Run"):
        made().refuse_other_settings(SETTINGS, {LABEL: 20.0})
    hot, mild = ft.PlackettLuce("control_scores", 2.0), ft.PlackettLuce("treatment_scores", 1.0)
    warm = dataclasses.replace(SETTINGS, control=hot, treatment=mild)
    with pytest.raises(BadInput, match=r"control\.temperature was 1 and is 2 here"):
        made().refuse_other_settings(warm, {LABEL: 3.0})
    mallows = dataclasses.replace(SETTINGS, treatment=ft.Mallows(scores="treatment_scores", dispersion=0.5))
    with pytest.raises(BadInput, match=r"treatment\.dispersion was nothing and is 0.5 here; treatment\.policy was"):
        made().refuse_other_settings(mallows, {LABEL: 3.0})


def test_what_changes_no_uplift_is_free() -> None:
    other = build_test([LABEL], confidence_level=0.8, n_resamples=50, interval="delta", seed=9, cap=7.0).settings
    other = dataclasses.replace(other, treatment=ft.PlackettLuce(scores="new_scores"))
    made().refuse_other_settings(other, {LABEL: 3.0})


def test_settings_of_several_tests() -> None:
    warm = dataclasses.replace(SETTINGS, treatment=ft.PlackettLuce(scores="s", temperature=2.0))
    together, doubt = common_settings([settings_of(SETTINGS), settings_of(warm)])
    assert together["treatment.temperature"] == [1.0, 2.0]
    assert together["control.policy"] == "plackett-luce"
    assert doubt is None
    made(settings=together).refuse_other_settings(warm, {LABEL: 3.0})
    cold = dataclasses.replace(SETTINGS, treatment=ft.PlackettLuce(scores="s", temperature=0.5))
    with pytest.raises(BadInput, match=r"treatment\.temperature was 1 or 2 and is 0.5 here"):
        made(settings=together).refuse_other_settings(cold, {LABEL: 3.0})
    _, doubt = common_settings([settings_of(SETTINGS), settings_of(build_test([LABEL], weight_bound=5.0).settings)])
    assert doubt == "the tests differ in analysis.weight_bound: 3, 5"
