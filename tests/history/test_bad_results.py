"""Results of past tests that are wrong: one sentence with file, test, key and remedy, exit code 2, nothing written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foretest.errors import BadInput
from foretest.history.manifest import read_manifest
from foretest.history.run import run_history
from tests.history.test_run import SETTINGS

ARM = "{n = 100, mean = 0.2, variance = 0.16}"
ARMS = f"online = {{control = {ARM}, treatment = {ARM}}}"
GOOD = f"""
settings = "settings.toml"
[[test]]
name = "a"
control = "a.parquet"
{ARMS}
"""


def refused(folder: Path, text: str) -> str:
    """Why a manifest is refused."""
    path = folder / "manifest.toml"
    path.write_text(text)
    (folder / "settings.toml").write_text(SETTINGS)
    with pytest.raises(BadInput) as error:
        run_history(path)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def test_the_manifest_is_good_but_for_its_log(tmp_path: Path) -> None:
    assert "a.parquet: no such file" in refused(tmp_path, GOOD)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n = 100", "n = 1", "test 'a': online.control.n = 1: expected a whole number of at least 2"),
        ("n = 100", "n = 10.5", "test 'a': online.control.n = 10.5: expected a whole number"),
        ("n = 100, ", "", "test 'a': online.control: n is missing: give n, mean and variance"),
        ("mean = 0.2", "mean = 0", "test 'a': online.control.mean = 0: expected a number other than 0"),
        ("mean = 0.2", "mean = nan", "test 'a': online.control.mean = nan: expected a number other than 0"),
        ("variance = 0.16", "variance = -0.1", "test 'a': online.control.variance = -0.1: expected a number of at"),
        ("variance = 0.16", "variance = inf", "test 'a': online.control.variance = inf: expected a finite number"),
        ("variance", "var", "test 'a': online.control has an unknown key 'var'. Did you mean 'variance'?"),
        ("treatment = ", "treated = ", "test 'a': online has an unknown key 'treated'. Did you mean 'treatment'?"),
        (f"control = {ARM}, ", "", "test 'a': online: control is missing: give control and treatment"),
        (f"{{control = {ARM}, ", f"{{by = \"user\", control = {ARM}, ", "test 'a': online.by = 'user': expected"),
        (ARMS, "online = 3", "test 'a': online = 3: expected a table"),
        (ARMS, "online = {}", "test 'a': online = {}: expected a table"),
        (ARMS, "online = {uplift = 0.1}", "test 'a': online: std_error is missing: give uplift and std_error"),
        (ARMS, "online = {uplift = nan, std_error = 1}", "test 'a': online.uplift = nan: expected a finite number"),
        (ARMS, "online = {uplift = 2.8, std_error = 1.1}", "test 'a': online.uplift = 2.8 would be +280%"),
        (ARMS, "online = {uplift = 0.1, std_error = 0}", "test 'a': online.std_error = 0: expected a number above 0"),
        (ARMS, "online = {uplift = 0.1, std_error = 1, by = \"rows\"}", "test 'a': online.by is for the sums of two"),
        (ARMS, f"{ARMS[:-1]}, uplift = 0.1}}", "test 'a': online has control and uplift: give the sums"),
        (ARMS, f"{ARMS}\ntreatment = \"b.parquet\"", "test 'a': treatment and online are both given for the online"),
        (ARMS, "", "test 'a': treatment is missing: give the treatment's log, or the results in online"),
        ('control = "a.parquet"', "", "test 'a': control is missing: give the control's log, or offline"),
        (ARMS, f"{ARMS}\noffline = \"r.json\"", "test 'a': control and offline are both given for the offline side"),
        ('control = "a.parquet"\n' + ARMS, 'offline = "r.json"\ntreatment = "b.parquet"',
         "test 'a': the treatment's log is compared with the control's"),
        (ARMS, f"{ARMS}\nshared_units = -1", "test 'a': shared_units = -1: expected a whole number of at least 0"),
        (ARMS, f"{ARMS}\nshared_units = 101", "test 'a': shared_units = 101, and the control arm has n = 100"),
        (ARMS, 'treatment = "b.parquet"\nshared_units = 3', "test 'a': shared_units is for results in online"),
        (ARMS, "online = {clik = {uplift = 0.1, std_error = 1}}",
         "test 'a': online names the metric 'clik', which is not in the settings. Did you mean 'click'?"),
        ("settings = ", "results = 3\nsettings = ", "results = 3: expected text"),
    ],
)  # fmt: skip
def test_results_in_the_manifest(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    assert refused(tmp_path, GOOD.replace(old, new, 1)).startswith(message)


TABLE = """name,metric,control,control_n,control_mean,control_variance,treatment_n,treatment_mean,treatment_variance
a,click,a.parquet,100,0.2,0.16,100,0.25,0.2
a,revenue,a.parquet,100,0.4,0.5,100,0.5,0.6
b,,a.parquet,100,0.2,0.16,100,0.25,0.2
"""
TOP = 'settings = "settings.toml"\nresults = "past.csv"\n'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name,", "test,", "unknown column 'test'."),
        ("control_variance", "control_var", "unknown column 'control_var'. Did you mean 'control_variance'?"),
        (",treatment_n,", ",by,", "there is no column 'treatment_n', which belongs to control_n"),
        ("a,revenue", "a,click", "test 'a', row 1 (the first row is 0): the metric 'click' occurs twice"),
        ("b,,", "a,,", "test 'a': online has two results of 'click', one by its name and one without"),
        ("0.4,0.5,100", "0.4,-0.5,100", "test 'a', row 1 (the first row is 0): control_variance = -0.5: expected"),
        ("0.4,0.5,100", ",0.5,100", "test 'a', row 1 (the first row is 0): control_mean = None: expected a number"),
        ("b,,a.parquet,100,0.2,0.16,100,0.25,0.2", "b,,a.parquet,,,,,,", "row 2 (the first row is 0): no result: fill"),
        ("b,,", ",,", "row 2 (the first row is 0): name is missing"),
        ("a,revenue,a", "a,revenue,b", "test 'a', row 1 (the first row is 0): control is 'b.parquet', and 'a.parquet'"),
        ("a,revenue", "a,profit", "test 'a': online names the metric 'profit', which is not in the settings"),
        (TABLE, TABLE.splitlines()[0] + "\n", "no rows: give one for each A/B test"),
        (TABLE, "name,uplift\na,0.1\n", "there is no column 'std_error', which belongs to uplift, std_error"),
        (TABLE, "name,control\na,a.parquet\n", "there are no results: give the columns control_n"),
    ],
)  # fmt: skip
def test_a_table_of_results(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TABLE
    (tmp_path / "past.csv").write_text(TABLE.replace(old, new, 1))
    assert message in refused(tmp_path, TOP)


def test_names_differ_between_table_and_manifest(tmp_path: Path) -> None:
    (tmp_path / "past.csv").write_text(TABLE)
    listed = TOP + '[[test]]\nname = "a"\ncontrol = "a.parquet"\ntreatment = "b.parquet"\n'
    assert refused(tmp_path, listed) == "two tests are named 'a'."
    (tmp_path / "past.csv").unlink()
    assert "past.csv: no such file" in refused(tmp_path, TOP)


NUMBERS = (
    "treatment", "std_error", "effect_size", "effect_size_ci_lower", "effect_size_ci_upper", "rel_effect_size",
    "rel_effect_size_ci_lower", "rel_effect_size_ci_upper", "effective_positives", "rel_std_error",
)  # fmt: skip
ESTIMATE = {**dict.fromkeys(NUMBERS, 0.1), "verdict": "positive", "reasons": [], "unsupported": 0.05}
RESULT: dict[str, Any] = {
    "foretest": "0.1.0", "schema": 1, "log": {"rows": 10, "units": 5, "positives": {"click": 3}},
    "settings": {"log": {"rewards": ["click"]}, "control": {"policy": "plackett-luce"},
                 "treatment": {"policy": "plackett-luce"}, "analysis": {"confidence_level": 0.9, "seed": 0}},
    "metrics": {"click": {"control": {"value": 0.1}, "estimates": {"point-ncis-adaptive": ESTIMATE}}},
    "health": {},
}  # fmt: skip
FILES = f'[[test]]\nname = "a"\noffline = "r.json"\n{ARMS}\n'


def changed(*path: str, value: Any) -> dict[str, Any]:
    """The result with one member changed; of `None` without it."""
    document = json.loads(json.dumps(RESULT))
    place = document
    for name in path[:-1]:
        place = place[name]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (changed("schema", value=2), "written under schema 2, and this Foretest reads schema 1"),
        (changed("health", value={"sample_ratio": {}}), "the result of an online test"),
        (changed("treatments", value=[1]), "a result of several treatments"),
        (changed("metrics", value={}), "a result without estimates"),
        (changed("health", value=None), "not a result of foretest run"),
        (changed("log", "units", value="5"), "damaged (log.units is no count)"),
        (changed("settings", "analysis", value=None), "damaged ('analysis' is missing)"),
        (changed("settings", "analysis", "confidence_level", value=3), "damaged (settings.analysis.confidence_level"),
        (changed("metrics", "click", "estimates", "point-ncis-adaptive", "verdict", value="good"),
         "damaged (metrics.click.estimates.point-ncis-adaptive.verdict is 'good')"),
        (changed("metrics", "click", "estimates", "point-ncis-adaptive", "rel_std_error", value="x"),
         "rel_std_error is no number)"),
        (changed("metrics", "click", "estimates", value=3), "damaged ("),
        (changed("metrics", value={"revenue": RESULT["metrics"]["click"]}), ""),
    ],
)  # fmt: skip
def test_a_result_file(tmp_path: Path, document: dict[str, Any], message: str) -> None:
    (tmp_path / "r.json").write_text(json.dumps(document))
    text = FILES if message else FILES.replace(ARMS, "online = {click = {uplift = 0.1, std_error = 0.1}}")
    said = refused(tmp_path, text)
    assert said.startswith("test 'a': ")
    assert (message or "online names the metric 'click', which is not in") in said


@pytest.mark.parametrize("content", [b"", b'{"foretest": ', b"\xff\xfe", b"[" * 5000, b"3"])
def test_a_file_that_is_no_result(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r.json").write_bytes(content)
    assert "r.json" in refused(tmp_path, FILES)
    (tmp_path / "r.json").unlink()
    assert "r.json: no such result file" in refused(tmp_path, FILES)


def test_a_small_result_file_is_enough(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps(RESULT))
    (tmp_path / "manifest.toml").write_text(FILES)
    [test] = run_history(tmp_path / "manifest.toml").to_dict()["tests"]
    assert test["offline"]["point-ncis-adaptive"]["word"] == "leans positive"
    assert test["online"]["rel_effect_size"] == 0.0


def test_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from foretest import cli

    (tmp_path / "manifest.toml").write_text(GOOD.replace("n = 100", "n = 0", 1))
    monkeypatch.setattr("sys.argv", ["foretest", "history", str(tmp_path / "manifest.toml"), "-o", str(tmp_path / "o")])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert "test 'a': online.control.n = 0" in errors
    assert not (tmp_path / "o").exists()


def test_days_and_numbers_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "past.csv").write_text(
        "name,uplift,std_error,control,date,shared_units\n7,0.1,0.02,a.parquet,2026-03-02,0\n"
    )
    (tmp_path / "manifest.toml").write_text(TOP)
    [entry] = read_manifest(tmp_path / "manifest.toml").tests
    assert (entry.name, entry.date, entry.shared_units) == ("7", "2026-03-02", 0)
    assert entry.online is not None
    assert entry.online[""] == (0.1, 0.02)
