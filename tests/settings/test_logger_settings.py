"""Several loggers: bad input in a sentence, saved sums, and what the result tells."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.settings.file import settings_from_tables
from tests.loggers import NAMES, ThreeLoggers, build

LOG = ThreeLoggers(rows=300, units=80)
TABLES = {
    "log": {"rewards": ["click"], "ranking": "ranking", "unit": "user", "logger": "policy", "date": "day"},
    "control": [{"name": name, "policy": "plackett-luce", "scores": f"{name}_scores"} for name in NAMES],
    "treatment": {"policy": "plackett-luce", "scores": "treatment_scores"},
    "analysis": {"baseline": "new", "estimators": ["cis"], "cap": 2.0, "n_resamples": 20, "buckets": 64},
}


def refused(match: str, test: ft.OfflineTest, table: pa.Table) -> None:
    with pytest.raises(ft.BadInput, match=match):
        test.run(table)


def changed(**tables):
    return {**TABLES, **tables}


def test_the_settings_file_is_the_python_api():
    found = ft.OfflineTest.from_settings(settings_from_tables(TABLES)).run(LOG.table())
    same = build(["cis"], n_resamples=20, columns={}).run(LOG.table())
    one, other = (r.metrics["click"].estimates["cis"].effect_size for r in (found, same))
    assert one == pytest.approx(other, abs=1e-12)


def test_what_the_result_tells():
    result = build(["cis", "point-ncis-adaptive"], n_resamples=20).run(LOG.table())
    document = json.loads(result.to_json())
    counts = [int((LOG.logger == j).sum()) for j in range(3)]
    assert document["log"]["loggers"] == {
        name: {"rows": n, "share": pytest.approx(n / 300)} for name, n in zip(NAMES, counts, strict=True)
    }
    assert [table["name"] for table in document["settings"]["control"]] == list(NAMES)
    assert document["settings"]["analysis"]["baseline"] == "new"
    assert f"Shown by new {counts[0] / 3:.1f} %, old" in str(result)
    assert "uplifts are relative to new" in str(result)
    assert "click: control (new) 0." in str(result)
    page = result.to_html()
    assert "the control is new" in page
    assert f"new {counts[0] / 3:.1f}\N{NO-BREAK SPACE}%, old" in page
    assert "Was this log drawn from its loggers?" in page


@pytest.mark.parametrize(
    ("tables", "match"),
    [
        (changed(analysis={}), "say which of them the treatment is compared with"),
        (changed(analysis={"baseline": "newer"}), "unknown .*baseline 'newer'. Did you mean 'new'"),
        (changed(log={"rewards": ["click"], "ranking": "ranking"}), "no column says which of them showed a row"),
        (changed(control=TABLES["control"][0] | {"name": "new"}), "unknown key 'name'"),
        (changed(control=[{**TABLES["control"][0]}, {**TABLES["control"][0]}]), "two .*control.* are named 'new'"),
        (changed(control=[{"policy": "plackett-luce", "scores": "s"}]), "control.* number 1 has no name"),
        (
            changed(control={"policy": "plackett-luce", "scores": "new_scores"}, analysis={}),
            r'logger = "policy" is given, and one control',
        ),
        (
            changed(
                control={"policy": "plackett-luce", "scores": "s"}, log={"rewards": ["click"], "ranking": "ranking"}
            ),
            "baseline = 'new' is for several",
        ),
    ],
)
def test_settings_that_do_not_fit(tables, match):
    with pytest.raises(ft.BadInput, match=match):
        settings_from_tables(tables)


def test_an_unknown_logger_in_a_row():
    names = [NAMES[j] for j in LOG.logger]
    names[7] = "newest"
    match = "column 'policy', row 7 .*the logger 'newest' is none of the controls .*no other row has this fault"
    refused(match, build(["cis"]), LOG.table(policy=names))


def test_a_day_without_the_baseline():
    names = ["old" if d == 1 and j == 0 else NAMES[j] for j, d in zip(LOG.logger, LOG.day, strict=True)]
    refused(
        "on the day 2024-05-02 .column 'day'. no row is of the baseline 'new'", build(["cis"]), LOG.table(policy=names)
    )
    # without a date there is no such day
    assert build(["cis"], date=None, n_resamples=5).run(LOG.table(policy=names)).log["loggers"]["new"]["rows"] > 0
    refused("no row is of the baseline 'new'", build(["cis"], date=None), LOG.table(policy=["old"] * 300))


def test_a_logger_that_cannot_be_priced_on_the_others_rows():
    table = LOG.table()
    match = "the logger 'older' cannot be priced on the rows of the others: the log has no column 'older_scores'"
    refused(match, build(["cis"]), table.drop_columns(["older_scores"]))
    scores = [s.tolist() if j == 2 else None for s, j in zip(LOG.scores["older"], LOG.logger, strict=True)]
    match = "column 'older_scores', row .*null, so the logger 'older' cannot be priced on this row"
    refused(match, build(["cis"]), LOG.table(older_scores=pa.array(scores, pa.list_(pa.float64()))))


def numbers(result: ft.Result, key: str) -> list[float]:
    found = result.metrics["click"].estimates[key]
    fields = ("treatment", "effect_size", "std_error", "effect_size_ci_lower", "rel_effect_size_ci_upper")
    return [getattr(found, name) for name in fields]


def test_a_packed_log(tmp_path):
    keys = ("cis", "point-ncis-adaptive")
    test, table = build(keys, n_resamples=50), LOG.table()
    test.pack(table, tmp_path / "packed")
    assert test.run(tmp_path / "packed").notes == test.run(table).notes
    # of another cap health is estimated, from as many cells
    other = build(keys, n_resamples=50, cap=1.5)
    assert numbers(other.run(tmp_path / "packed"), "cis") == pytest.approx(numbers(other.run(table), "cis"), abs=1e-10)
    # another baseline has other rewards of its own: all rows are read
    told = build(keys, n_resamples=50, baseline="old")
    found = told.run(tmp_path / "packed")
    assert numbers(found, "cis") == pytest.approx(numbers(told.run(table), "cis"), abs=1e-10)
    assert any("all rows were read" in note and "baseline" in note for note in found.notes)


def test_saved_days_add_up(tmp_path):
    """Each day's shares belong to its own rows: files of different days are one log, whatever the shares of each."""
    keys = ("ncis", "cis", "point-ncis-adaptive")
    test, table = build(keys, n_resamples=50, r_max=1.0, interval="bernstein"), LOG.table()
    days = [table.filter(pa.array(LOG.day == d)) for d in range(3)]
    paths = [tmp_path / f"{d}.parquet" for d in range(3)]
    for part, path in zip(days, paths, strict=True):
        test.replace(estimators=list(keys), interval="bootstrap").save_aggregates(part, path)
    for interval in ("bootstrap", "delta", "bernstein"):
        asked = keys if interval != "bernstein" else keys[1:]
        question = test.replace(estimators=list(asked), interval=interval)
        whole, merged = question.run(table), question.run(paths)
        for key in asked:
            assert numbers(merged, key) == pytest.approx(numbers(whole, key), abs=1e-10)
        assert merged.log == whole.log
    # one file of them all
    test = test.replace(estimators=list(keys), interval="bootstrap")
    test.save_aggregates(paths, tmp_path / "all.parquet")
    assert numbers(test.run(tmp_path / "all.parquet"), "cis") == pytest.approx(
        numbers(test.run(table), "cis"), abs=1e-10
    )


def test_half_a_day_does_not_add_up(tmp_path):
    for date, match in (("day", "both have rows of the day 2024-05-02"), (None, "name their days in .log. date")):
        test, table = build(["cis"], n_resamples=20, date=date), LOG.table()
        for name, part in (("a", table.slice(0, 150)), ("b", table.slice(150))):
            test.save_aggregates(part, tmp_path / f"{name}.parquet")
        with pytest.raises(ft.BadInput, match=match):
            test.run([tmp_path / "a.parquet", tmp_path / "b.parquet"])


def test_the_online_test_of_the_same_settings_file(tmp_path):
    (tmp_path / "test.toml").write_text(
        '[log]\nrewards = ["click"]\nunit = "user"\nlogger = "policy"\n'
        '[[control]]\nname = "new"\npolicy = "logged"\nprob = "p"\n'
        '[[control]]\nname = "old"\npolicy = "logged"\nprob = "q"\n'
        '[treatment]\npolicy = "logged"\nprob = "t"\n[analysis]\nbaseline = "new"\n'
    )
    arms = (pa.table({"click": [1, 0] * 100, "user": np.arange(200) + 1000 * arm}) for arm in (0, 1))
    found = ft.OnlineTest.from_toml(tmp_path / "test.toml").run(*arms)
    assert found.metrics["click"].control.value == 0.5
