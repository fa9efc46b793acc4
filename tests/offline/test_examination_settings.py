"""Every form of `[analysis] examination`: what it weighs with, what the result says of it, and how days add up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from tests.support import EXPOSURE_KEYS, SmallLog, build_test

LOG = SmallLog(rows=900, units=300, m=5, k=3, seed=21)
KEYS, METRICS = list(EXPOSURE_KEYS), ("click", "revenue")
STEEP, FLAT = (1.0, 0.3, 0.1), (1.0, 0.8, 0.7)
DEVICE = np.where(np.arange(LOG.rows) % 3 == 0, "phone", "desktop")
BY_DEVICE = {"column": "device", "curves": {"phone": STEEP, "desktop": FLAT}}
TABLE = LOG.table(device=pa.array(DEVICE), small=pa.array((DEVICE == "phone").tolist()))


def run(examination: Any, **more: Any) -> ft.Result:
    return build_test(KEYS, metrics=METRICS, examination=examination, interval="delta", **more).run(TABLE)


def expected(key: str, metric: str, curves: dict[str, Any]) -> float:
    """The value with a curve for each device, in plain NumPy."""
    each = {device: LOG.exposure_weights(key, 3.0, curve) for device, curve in curves.items()}
    h = np.where((DEVICE == "phone")[:, None], each["phone"], each["desktop"])
    return float(((h * LOG.shares[metric]).sum(axis=1) * getattr(LOG, metric)).mean())


FORMS: dict[str, tuple[Any, dict[str, dict[str, Any]]]] = {
    "a list": (STEEP, {m: dict.fromkeys(("phone", "desktop"), STEEP) for m in METRICS}),
    "by device": (BY_DEVICE, {m: {"phone": STEEP, "desktop": FLAT} for m in METRICS}),
    "by metric": (
        {"click": STEEP, "revenue": FLAT},
        {"click": dict.fromkeys(("phone", "desktop"), STEEP), "revenue": dict.fromkeys(("phone", "desktop"), FLAT)},
    ),
    "by metric and device": (
        {"click": BY_DEVICE, "revenue": FLAT},
        {"click": {"phone": STEEP, "desktop": FLAT}, "revenue": dict.fromkeys(("phone", "desktop"), FLAT)},
    ),
    "by a bool": (
        {"column": "small", "curves": {"true": STEEP, "false": FLAT}},
        {m: {"phone": STEEP, "desktop": FLAT} for m in METRICS},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_metric_is_weighed_with_its_own_curves(form: str) -> None:
    examination, curves = FORMS[form]
    result = run(examination)
    for metric in METRICS:
        for key in KEYS:
            value = result.metrics[metric].estimates[key].treatment
            assert value == pytest.approx(expected(key, metric, curves[metric]), rel=1e-8), (metric, key)
        assert result.metrics[metric].examination["kind"] == "given"


def test_a_metric_that_is_not_named_is_fitted() -> None:
    """And the one that is named is not: its digits are those of a run on its own."""
    mixed, alone, fitted = run({"click": STEEP}), run(STEEP), run("fit")
    kinds = {name: metric.examination["kind"] for name, metric in mixed.metrics.items()}
    assert kinds == {"click": "given", "revenue": "fit"}
    assert mixed.metrics["click"].estimates == alone.metrics["click"].estimates
    assert mixed.metrics["revenue"].estimates == fitted.metrics["revenue"].estimates
    assert mixed.metrics["revenue"].examination == fitted.metrics["revenue"].examination
    same = run({"click": STEEP, "revenue": "fit"})
    assert same.metrics["revenue"].estimates == mixed.metrics["revenue"].estimates


@pytest.mark.parametrize("form", FORMS)
def test_an_earlier_result_gives_its_curves_back(form: str, tmp_path: Path) -> None:
    first = run(FORMS[form][0])
    first.to_json(tmp_path / "result.json")
    again = run(str(tmp_path / "result.json"))
    for metric in METRICS:
        assert again.metrics[metric].estimates == first.metrics[metric].estimates
        assert again.metrics[metric].examination == first.metrics[metric].examination


def test_a_fitted_curve_is_given_to_the_next_log(tmp_path: Path) -> None:
    """The error of the fit stays behind: the next run takes the numbers as they are, and widens its range instead."""
    fitted = run("fit")
    fitted.to_json(tmp_path / "result.json")
    again = run(tmp_path / "result.json")
    for metric in METRICS:
        ours, theirs = (r.metrics[metric] for r in (again, fitted))
        assert ours.examination["kind"] == "given"
        assert ours.examination["theta"] == pytest.approx(theirs.examination["theta"])
        one, other = (m.estimates["exposure-ncis-adaptive"] for m in (ours, theirs))
        assert one.treatment == pytest.approx(other.treatment, rel=1e-12)
        assert one.std_error is not None
        assert other.std_error is not None
        assert one.std_error != pytest.approx(other.std_error, rel=1e-3)
        assert one.curves


@pytest.mark.parametrize("form", ["by a bool", "an earlier result"])
def test_days_add_up_under_one_curve(form: str, tmp_path: Path) -> None:
    if form == "an earlier result":
        run("fit").to_json(tmp_path / "result.json")
        examination: Any = str(tmp_path / "result.json")
    else:
        examination = FORMS[form][0]
    test = build_test(KEYS, metrics=METRICS, examination=examination, interval="delta")
    for day, rows in {"a": TABLE.slice(0, 320), "b": TABLE.slice(320)}.items():
        pq.write_table(rows, tmp_path / f"{day}.parquet")
        test.save_aggregates(tmp_path / f"{day}.parquet", tmp_path / f"{day}.sums")
    days = [tmp_path / "a.sums", tmp_path / "b.sums"]
    whole = test.run(TABLE)
    for merged in (test.run(days), ft.OfflineTest.from_aggregates(days).run(days)):
        for metric in METRICS:
            assert merged.metrics[metric].examination == whole.metrics[metric].examination
            for key in KEYS:
                ours, theirs = (r.metrics[metric].estimates[key] for r in (merged, whole))
                assert ours.treatment == pytest.approx(theirs.treatment, rel=1e-12)
                assert ours.std_error == pytest.approx(theirs.std_error, rel=1e-9)
                assert ours.range.ci_upper == pytest.approx(theirs.range.ci_upper, rel=1e-9)


def test_days_under_different_curves_do_not_add_up(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "log.parquet")
    for name, curve in {"a": STEEP, "b": FLAT}.items():
        build_test(KEYS, examination=curve).save_aggregates(tmp_path / "log.parquet", tmp_path / f"{name}.sums")
    days = [tmp_path / "a.sums", tmp_path / "b.sums"]
    with pytest.raises(ft.BadInput, match="examination"):
        ft.OfflineTest.from_aggregates(days).run(days)
    with pytest.raises(ft.BadInput, match="examination"):
        build_test(KEYS, examination=FLAT).run(tmp_path / "a.sums")


@pytest.mark.parametrize("examination", ["fit", None, {"click": STEEP}], ids=repr)
def test_days_leave_out_what_would_be_fitted(examination: Any, tmp_path: Path) -> None:
    """One metric to fit is enough: an estimator runs for all or for none."""
    pq.write_table(TABLE, tmp_path / "log.parquet")
    test = build_test(["slot-ncis-adaptive", *KEYS], metrics=METRICS, examination=examination)
    test.save_aggregates(tmp_path / "log.parquet", tmp_path / "a.sums")
    result = ft.OfflineTest.from_aggregates(tmp_path / "a.sums").run(tmp_path / "a.sums")
    assert list(result.metrics["click"].estimates) == ["slot-ncis-adaptive"]
    assert [note for note in result.notes if "would differ from file to file" in note]
    alone = build_test(KEYS, metrics=METRICS, examination=examination)
    with pytest.raises(
        ft.BadInput, match="pbm, exposure-ncis-adaptive cannot run: a curve that is fitted would differ"
    ):
        alone.save_aggregates(tmp_path / "log.parquet", tmp_path / "b.sums")
    assert not (tmp_path / "b.sums").exists()


SETTINGS = """
[log]
rewards = ["click", "revenue"]
unit = "user"
ranking = "ranking"
slot_rewards = {click = "slot_click", revenue = "slot_revenue"}
[control]
policy = "plackett-luce"
scores = "control_scores"
[treatment]
policy = "plackett-luce"
scores = "treatment_scores"
[analysis]
"""


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("[1.0, 0.3, 0.1]", STEEP),
        ('"fit"', "fit"),
        ('{column = "device", curves = {phone = [1.0, 0.3, 0.1], desktop = [1.0, 0.8, 0.7]}}', BY_DEVICE),
        ('{click = [1.0, 0.3, 0.1], revenue = "fit"}', {"click": STEEP, "revenue": "fit"}),
        ('{click = {column = "device", curves = {phone = [1, 0.3, 0.1], desktop = [1.0, 0.8, 0.7]}}}',
         {"click": BY_DEVICE}),
    ],
)  # fmt: skip
def test_the_settings_file_has_every_form(line: str, value: Any, tmp_path: Path) -> None:
    (tmp_path / "test.toml").write_text(f"{SETTINGS}examination = {line}\n", encoding="utf-8")
    assert ft.OfflineTest.from_toml(tmp_path / "test.toml").settings.analysis.examination == value


def test_the_path_of_a_result_is_relative_to_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(STEEP).to_json(tmp_path / "june.json")
    (tmp_path / "test.toml").write_text(f'{SETTINGS}examination = "june.json"\n', encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    setting = ft.OfflineTest.from_toml(tmp_path / "test.toml").settings.analysis.examination
    assert setting in (STEEP, dict.fromkeys(METRICS, STEEP))


@pytest.mark.parametrize("how", ["run", "check", "save"])
def test_rankings_longer_than_the_curve(how: str, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "log.parquet")
    test = build_test(KEYS, examination={"column": "device", "curves": {"phone": STEEP[:2], "desktop": FLAT}})
    sentence = "the row shows 3 items, and the examination curve for 'phone' has 2 numbers"
    calls: dict[str, Any] = {
        "run": lambda: test.run(tmp_path / "log.parquet"),
        "check": lambda: test.check(tmp_path / "log.parquet"),
        "save": lambda: test.save_aggregates(tmp_path / "log.parquet", tmp_path / "a.sums"),
    }
    with pytest.raises(ft.BadInput, match=sentence):
        calls[how]()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.parquet"]


def test_a_score_that_is_no_number_is_refused_before_a_curve_is_fitted() -> None:
    """Marginals of such scores would never be done."""
    log = SmallLog(rows=200, units=90, seed=7)
    scores = log.control.tolist()
    rewarded = int(np.flatnonzero(log.click > 0)[3])
    scores[rewarded][1] = float("nan")
    table = log.table()
    table = table.set_column(table.column_names.index("control_scores"), "control_scores", pa.array(scores))
    with pytest.raises(ft.BadInput, match=rf"column 'control_scores', row {rewarded} .*: a score is NaN"):
        build_test(["exposure-ncis-adaptive"], examination="fit").run(table)
