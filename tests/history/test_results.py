"""Histories whose tests are given as results: the same tests as from logs, and what the missing covariance leaves
open."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foretest.calibration.fit import History
from foretest.errors import BadInput
from foretest.history.run import run_history
from foretest.offline.test import OfflineTest
from foretest.online.test import OnlineTest
from foretest.simulate import WORLDS, write_history
from tests.history.test_run import SETTINGS, write

pytestmark = pytest.mark.usefixtures("few_resamples")

LABEL = "point-ncis-adaptive"
SCHEMA = json.loads((files("foretest") / "schema" / "agreement-1.json").read_text())


def sums(log: Path, metric: str = "click") -> dict[str, Any]:
    """n, mean and variance of a metric by user."""
    table = pq.read_table(log, columns=["user", metric]).group_by("user").aggregate([(metric, "sum")])
    values = table[f"{metric}_sum"].to_numpy().astype(float)
    return {"n": len(values), "mean": float(values.mean()), "variance": float(values.var(ddof=1))}


def arms(folder: Path, metric: str = "click") -> dict[str, Any]:
    return {arm: sums(folder / f"{arm}.parquet", metric) for arm in ("control", "treatment")}


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def manifest(folder: Path, tests: list[dict[str, Any]], top: str = 'settings = "settings.toml"') -> Path:
    """A manifest of these [[test]] tables."""
    lines = [top]
    for table in tests:
        lines += ["[[test]]", *(f"{key} = {toml(value)}" for key, value in table.items())]
    (folder / "results.toml").write_text("\n".join(lines))
    return folder / "results.toml"


def given_as_sums(folder: Path, tests: int = 3, **more: Any) -> Path:
    """The history of `write`, with the sums of its arms in place of the treatment's log."""
    write(folder, tests)
    tables = [
        {"name": f"t{i}", "control": f"t{i}/control.parquet", "online": arms(folder / f"t{i}"), **more}
        for i in range(tests)
    ]
    return manifest(folder, tables)


def given_as_files(folder: Path, tests: int = 3, **more: Any) -> Path:
    """The same without any log: a result.json is the offline side."""
    write(folder, tests)
    for i in range(tests):
        result = OfflineTest.from_toml(folder / "settings.toml").run(str(folder / f"t{i}/control.parquet"))
        result.to_json(folder / f"t{i}/result.json")
    tables = [
        {"name": f"t{i}", "offline": f"t{i}/result.json", "online": arms(folder / f"t{i}"), **more}
        for i in range(tests)
    ]
    return manifest(folder, tables, "")


def test_offline_is_as_from_logs_and_the_covariance_is_bounded(tmp_path: Path) -> None:
    document = run_history(given_as_sums(tmp_path)).to_dict()
    jsonschema.validate(document, SCHEMA)
    logs = run_history(tmp_path / "manifest.toml").to_dict()
    assert "notes" not in logs
    assert len(document["notes"]) == 1
    assert document["notes"][0].startswith("t0, t1, t2: the online side is given as results")
    assert list(document["metrics"]) == ["click"]  # the first; nothing is given of the other
    for mine, theirs in zip(document["tests"], logs["tests"], strict=True):
        assert mine["offline"]["cis"] == theirs["offline"]["cis"]
        n, c = 90, mine["noise"][LABEL]
        given = arms(tmp_path / mine["name"])
        own = np.sqrt(given["control"]["variance"] / given["control"]["n"])
        share = own * given["treatment"]["mean"] / given["control"]["mean"] ** 2
        assert given["control"]["n"] <= n
        assert c["covariance"] == 0.0
        assert c["covariance_bound"] == pytest.approx(c["offline_error"] * share, rel=1e-12)
        assert c["offline_error"] == pytest.approx(theirs["noise"][LABEL]["offline_error"], rel=1e-12)
        assert abs(theirs["noise"][LABEL]["covariance"]) <= c["covariance_bound"]


def test_figures_at_both_ends(tmp_path: Path) -> None:
    """Γ0 with every covariance at −bound and at +bound, in plain NumPy."""
    agreement = run_history(given_as_sums(tmp_path))
    document = agreement.to_dict()
    tests = document["tests"]
    calibration = document["calibration"][LABEL]
    unknown = calibration["unknown_covariance"]
    assert unknown["tests"] == 3
    for name, sign in (("at_lowest", -1.0), ("at_highest", 1.0)):
        parts = [(t["online"]["rel_effect_size"] - t["offline"][LABEL]["rel_effect_size"],
                  t["unsupported"][LABEL]["unsupported"],
                  t["noise"][LABEL]["offline_error"] ** 2 + t["noise"][LABEL]["online_error"] ** 2
                  - 2.0 * sign * t["noise"][LABEL]["covariance_bound"]) for t in tests]  # fmt: skip
        fit = History(*np.array(parts).T).fit()
        assert unknown[name]["gamma"] == pytest.approx(fit.gamma)
        assert unknown[name]["tau2"] == pytest.approx(fit.tau2)
    shown = " ".join(str(agreement).split())
    ends = [
        f"{end['gamma']:.2f} ({end['gamma_ci_lower']:.2f} to {end['gamma_ci_upper']:.2f})"
        for end in (unknown["at_lowest"], unknown["at_highest"])
    ]
    assert f"at its two bounds Γ0 is {ends[0]} and {ends[1]}" in shown
    assert "Note: t0, t1, t2: the online side is given as results" in shown
    page = agreement.to_html()
    assert "the online side is given as results" in page
    assert f"at its two bounds Γ0 is {ends[0]} and {ends[1]}" in page


def test_nothing_shared_has_no_covariance(tmp_path: Path) -> None:
    document = run_history(given_as_sums(tmp_path, 2, shared_units=0)).to_dict()
    assert "notes" not in document
    assert document["calibration"][LABEL]["unknown_covariance"] is None
    assert "deconvolved_correlation_low" not in document["table"]["cis"]
    for test in document["tests"]:
        assert all((n["covariance"], n["covariance_bound"]) == (0.0, None) for n in test["noise"].values())


def test_a_result_file_says_what_the_log_says(tmp_path: Path) -> None:
    """Estimates, unsupported parts and the fit; standard errors are the delta method's, which files have."""
    from_files = run_history(given_as_files(tmp_path)).to_dict()
    jsonschema.validate(from_files, SCHEMA)
    from_logs = run_history(given_as_sums(tmp_path)).to_dict()
    for mine, theirs in zip(from_files["tests"], from_logs["tests"], strict=True):
        assert mine["online"] == theirs["online"]
        assert mine["audit"] == theirs["audit"]
        assert mine["bounds"] == theirs["bounds"]
        for label in ("cis", "ncis", LABEL):
            assert mine["offline"][label] == theirs["offline"][label]
        part, expected = mine["unsupported"][LABEL], theirs["unsupported"][LABEL]
        for name in ("unsupported", "control", "variance", "covariance", "unsupported_variance", "weight_bound"):
            assert part[name] == pytest.approx(expected[name], rel=1e-9), name
        assert part["enough"] == expected["enough"]
        assert mine["noise"][LABEL]["offline_error"] == mine["offline"][LABEL]["rel_std_error"]
    fit, expected = (one["calibration"][LABEL] for one in (from_files, from_logs))
    assert fit["gamma"] == pytest.approx(expected["gamma"], abs=0.1 * expected["gamma_ci_upper"])
    assert from_files["confidence_level"] == 0.9
    assert next(iter(from_files["settings"].values()))["analysis"]["weight_bound"] == 3.0


def test_a_file_of_an_earlier_version_counts_in_the_fit_alone(tmp_path: Path) -> None:
    path = given_as_files(tmp_path)
    for i in range(3):
        file = tmp_path / f"t{i}/result.json"
        document = json.loads(file.read_text())
        for estimate in document["metrics"]["click"]["estimates"].values():
            for name in ("unsupported_noise", "range", "word"):
                estimate.pop(name, None)
        file.write_text(json.dumps(document))
    document = run_history(path).to_dict()
    jsonschema.validate(document, SCHEMA)
    assert document["calibration"][LABEL]["tests"] == 3
    assert "point-ncis-calibrated" not in document["tests"][0]["offline"]
    assert any("does not have the error of the unsupported part" in note for note in document["notes"])
    estimate = document["tests"][0]["offline"][LABEL]
    assert estimate["range"]["rel_ci_lower"] == estimate["rel_effect_size_ci_lower"]


def test_the_cache_knows_results(tmp_path: Path) -> None:
    path, cache = given_as_sums(tmp_path, 2), tmp_path / "cache"
    assert run_history(path, cache=cache).reused == 0
    assert run_history(path, cache=cache).reused == 2
    text = path.read_text()
    path.write_text(text.replace("n = ", "n = 1", 1))
    assert run_history(path, cache=cache).reused == 1
    path.write_text(text.replace("[[test]]", "[[test]]\nshared_units = 20", 1))
    assert run_history(path, cache=cache).reused == 1


def test_metrics_by_name_and_by_rows(tmp_path: Path) -> None:
    write(tmp_path, 1)
    by_metric = {name: {**arms(tmp_path / "t0", name), "by": "rows"} for name in ("revenue", "click")}
    table = {"name": "t0", "control": "t0/control.parquet", "online": by_metric}
    document = run_history(manifest(tmp_path, [table])).to_dict()
    assert set(document["metrics"]) == {"click", "revenue"}
    assert any("by rows" in note for note in document["notes"])
    uplift = {"revenue": {"uplift": 0.1, "std_error": 0.05}}
    document = run_history(manifest(tmp_path, [{**table, "online": uplift}])).to_dict()
    [test] = document["tests"]
    assert test["online"]["rel_effect_size"] == 0.1
    noise = test["noise"]["cis"]
    assert noise["covariance_bound"] == pytest.approx(noise["offline_error"] * 0.05)
    assert any("all of it may be shared" in note for note in document["notes"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_of_results(tmp_path: Path, kind: str) -> None:
    path = given_as_sums(tmp_path, 2)
    expected = run_history(path).to_dict()
    rows = []
    for i in range(2):
        given = arms(tmp_path / f"t{i}")
        sides = {f"{arm}_{key}": value for arm, values in given.items() for key, value in values.items()}
        rows.append({"name": f"t{i}", "control": f"t{i}/control.parquet", **sides, "shared_units": None})
    table = pa.Table.from_pylist(rows)
    if kind == "csv":
        table.to_pandas().to_csv(tmp_path / "past.csv", index=False)
    else:
        pq.write_table(table, tmp_path / "past.parquet")
    top = f'settings = "settings.toml"\nresults = "past.{kind}"'
    found = run_history(manifest(tmp_path, [], top)).to_dict()
    assert found["tests"] == expected["tests"]
    [file] = found["provenance"]["inputs"]["results"]["files"]
    assert file["name"] == f"past.{kind}"
    beside = {"name": "t2", "control": "t0/control.parquet", "treatment": "t0/treatment.parquet"}
    mixed = run_history(manifest(tmp_path, [beside], top)).to_dict()
    assert [test["name"] for test in mixed["tests"]] == ["t2", "t0", "t1"]
    assert mixed["calibration"][LABEL]["unknown_covariance"]["tests"] == 2


DERIVED = """
[metrics.value]
sum = {revenue = 1.0, click = -0.5}
[metrics.worth]
ratio = ["revenue", "click"]
"""


def test_sums_of_rewards_have_results_and_ratios_need_logs(tmp_path: Path) -> None:
    write(tmp_path, 1)
    (tmp_path / "settings.toml").write_text(SETTINGS + DERIVED)
    given = {"control": {"n": 90, "mean": 0.4, "variance": 0.3}, "treatment": {"n": 90, "mean": 0.5, "variance": 0.3}}
    table = {"name": "t0", "control": "t0/control.parquet", "online": {"value": given}}
    document = run_history(manifest(tmp_path, [table])).to_dict()
    [test] = document["metrics"]["value"]["tests"]
    assert test["online"]["rel_effect_size"] == pytest.approx(0.25)
    alone = OfflineTest.from_toml(tmp_path / "settings.toml").run(str(tmp_path / "t0/control.parquet"))
    assert test["offline"]["cis"]["effect_size"] == alone.metrics["value"].estimates["cis"].effect_size
    assert test["unsupported"] == {}
    assert "t0: worth: left out of the history, which has rewards and sums of them." in document["notes"]
    with pytest.raises(BadInput, match="the metric 'worth', which is a ratio or per unit"):
        run_history(manifest(tmp_path, [{**table, "online": {"worth": given}}]))
    logs = run_history(tmp_path / "manifest.toml").to_dict()
    assert list(logs["metrics"]) == ["click", "revenue", "value", "worth"]
    assert "notes" not in logs
    [test] = logs["metrics"]["value"]["tests"]
    online = OnlineTest.from_toml(tmp_path / "settings.toml").run(
        str(tmp_path / "t0/control.parquet"), str(tmp_path / "t0/treatment.parquet")
    )
    assert test["online"]["rel_effect_size"] == online.metrics["value"].estimates["online"].rel_effect_size
    assert test["noise"]["cis"]["offline_error"] > 0.0


@pytest.mark.slow
def test_a_simulated_history_is_calibrated_as_from_logs(tmp_path: Path) -> None:
    """Every measured covariance is within its bound, and Γ0 of the logs is near that of the results: no further than
    the covariances that are not known can move it."""
    write_history(tmp_path, WORLDS["rewards"], tests=12, rows=1500, seed=3)
    analysis = {"estimators": [LABEL], "n_resamples": 300, "draws": 64, "interval": "delta"}
    logs = run_history(tmp_path / "manifest.toml", analysis=analysis).to_dict()
    names = [test["name"] for test in logs["tests"]]
    tables = [{"name": n, "control": f"{n}/control.parquet", "online": arms(tmp_path / n)} for n in names]
    found = run_history(manifest(tmp_path, tables), analysis=analysis).to_dict()
    for mine, theirs in zip(found["tests"], logs["tests"], strict=True):
        assert mine["online"]["rel_effect_size"] == pytest.approx(theirs["online"]["rel_effect_size"], abs=0.02)
        assert abs(theirs["noise"][LABEL]["covariance"]) < mine["noise"][LABEL]["covariance_bound"]
    fit, expected = found["calibration"][LABEL], logs["calibration"][LABEL]
    unknown = fit["unknown_covariance"]
    ends = [fit["gamma"], unknown["at_lowest"]["gamma"], unknown["at_highest"]["gamma"]]
    span = max(ends) - min(ends)
    assert abs(fit["gamma"] - expected["gamma"]) <= max(span, 0.05)
    assert fit["tests"] == expected["tests"] == 12
