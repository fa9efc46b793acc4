"""Windows: a reward later than the window does not count, a display younger than it is left out, in every road."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import foretest as ft
from tests.late_log import BEGIN, READ_AT, LateLog, late_test
from tests.loggers import NAMES, ThreeLoggers

HOUR = np.timedelta64(3_600_000_000, "us")
WINDOW = 36 * HOUR
UNTIMED = {"time": None, "reward_time": None}


@pytest.fixture(scope="module")
def late() -> LateLog:
    return LateLog()


@pytest.fixture(scope="module")
def table(late: LateLog) -> pa.Table:
    return late.table()


def by_hand(late: LateLog, window: np.timedelta64 = WINDOW) -> pa.Table:
    """The log as a window of plain NumPy leaves it."""
    in_time, old = late.age <= window, late.read_at - late.time >= window
    table, click = late.table(), np.where(in_time, late.click, 0.0)
    table = table.set_column(table.schema.get_field_index("click"), "click", pa.array(click))
    place = table.schema.get_field_index("slot_click")
    return table.set_column(place, "slot_click", late.small.slots("click", click)).filter(pa.array(old))


def assert_same(found: ft.Result, wanted: ft.Result, rel: float = 1e-12) -> None:
    """Both have the same rows, estimates and limits."""
    assert (found.log["rows"], found.log["positives"]) == (wanted.log["rows"], wanted.log["positives"])
    mine, theirs = found.to_dicts(), wanted.to_dicts()
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs, strict=True):
        for key, value in other.items():
            assert one[key] == (pytest.approx(value, rel=rel) if isinstance(value, float) else value), key


def test_a_window_is_as_if_late_rewards_and_young_displays_were_not_there(late: LateLog, table: pa.Table) -> None:
    found = late_test({"read_at": READ_AT}, window="36h").run(table)
    assert_same(found, late_test(UNTIMED).run(by_hand(late)))
    young = int((late.read_at - late.time < WINDOW).sum())
    lost = int(((late.click > 0) & (late.age > WINDOW) & (late.read_at - late.time >= WINDOW)).sum())
    assert young > 50
    assert lost > 5
    assert found.notes[0] == (
        f"{young} displays of the last 36 hours before 2026-03-08 were left out: their rewards may still come."
    )
    assert found.notes[1] == (
        f"rewards that came more than 36 hours after their display do not count: {lost} of 'click'."
    )
    assert found.late_rewards == {
        "read_at": "2026-03-08", "window": "36h", "left_out": young, "late": {"click": lost}
    }  # fmt: skip
    assert found.settings["analysis"]["window"] == "36h"


def test_both_limits_are_inclusive() -> None:
    window = np.timedelta64(60_000_000, "us")
    tick = np.timedelta64(1, "us")
    read = BEGIN + 10 * window
    shown = np.array([BEGIN, BEGIN, read - window, read - window + tick])
    came = pa.array([BEGIN + window, BEGIN + window + tick, None, None])
    log = pa.table({"click": [1, 1, 0, 0], "ts": shown, "at": came, "p": [0.5] * 4})
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], time="ts", reward_time="at", read_at="2026-03-01T00:10:00Z"),
        control=ft.Logged(prob="p"), treatment=ft.Logged(prob="p"), estimators=["ncis"], window="1m", n_resamples=10,
    )  # fmt: skip
    result = test.run(log)
    assert result.log["rows"] == 3  # at the window's age to the microsecond it is old enough
    assert result.log["positives"] == {"click": 1}  # and so is the reward early enough


def test_without_read_at_ages_run_to_the_latest_time(late: LateLog, table: pa.Table) -> None:
    latest = str(late.time.max())
    assert_same(late_test(window="36h").run(table), late_test({"read_at": latest}, window="36h").run(table))
    stream = table.to_reader(100)
    assert_same(late_test(window="36h").run(stream), late_test(window="36h").run(table))


def test_ages_zones_and_text_say_the_same(late: LateLog, table: pa.Table) -> None:
    wanted = late_test({"read_at": READ_AT}, window="2d").run(table)
    assert_same(
        late_test({"read_at": READ_AT, "reward_time": None, "reward_age": "seconds"}, window="48h").run(table), wanted
    )
    paris = pa.timestamp("ns", "Europe/Paris")
    zoned, text = table, table
    for name in ("ts", "clicked_at"):
        place, utc = table.schema.get_field_index(name), table[name].cast(pa.timestamp("us", "UTC"))
        zoned = zoned.set_column(place, name, utc.cast(paris))
        text = text.set_column(place, name, pc.strftime(table[name].cast(pa.timestamp("s")), "%Y-%m-%dT%H:%M:%S"))
    assert_same(late_test({"read_at": "2026-03-08T01:00:00+01:00"}, window="2d").run(zoned), wanted)
    assert_same(late_test({"read_at": READ_AT, "reward_time": {"click": "clicked_at"}}, window="2d").run(text), wanted)


def test_daily_files_add_up_under_one_window(tmp_path: Path, late: LateLog, table: pa.Table) -> None:
    test = late_test({"read_at": READ_AT}, window="36h")
    cuts = [late.time < BEGIN + 3 * 24 * HOUR, late.time >= BEGIN + 3 * 24 * HOUR]
    for day, rows in enumerate(cuts):
        pq.write_table(table.filter(pa.array(rows)), tmp_path / f"{day}.parquet")
        test.save_aggregates(str(tmp_path / f"{day}.parquet"), tmp_path / f"{day}.sums")
    files = [str(tmp_path / f"{day}.sums") for day in range(2)]
    whole = test.run(table)
    found = late_test(window="36h").run(files)  # read_at is each file's own
    assert_same(found, whole, rel=1e-9)
    assert found.late_rewards == whole.late_rewards
    assert found.notes[:2] == whole.notes[:2]
    with pytest.raises(ft.BadInput, match='made with window = "36h", the settings say "7d"'):
        late_test(window="7d").run(files)
    first = late_test({"read_at": "2026-03-04"}, window="36h")
    first.save_aggregates(str(tmp_path / "0.parquet"), tmp_path / "early.sums")
    both = late_test(window="36h").run([str(tmp_path / "early.sums"), files[1]])
    assert "before each log was read were left out" in both.notes[0]
    old = late.read_at - late.time >= WINDOW
    early = (np.datetime64("2026-03-04", "us") - late.time >= WINDOW) & cuts[0]
    assert both.log["rows"] == int((early | (old & cuts[1])).sum())


def test_saved_aggregates_need_to_know_when_the_log_was_read(tmp_path: Path, table: pa.Table) -> None:
    pq.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(ft.BadInput, match=r'window = "7d" in saved aggregates needs \[log\] read_at'):
        late_test(window="7d").save_aggregates(str(tmp_path / "log.parquet"), tmp_path / "a.sums")
    assert not (tmp_path / "a.sums").exists()
    late_test().save_aggregates(str(tmp_path / "log.parquet"), tmp_path / "a.sums")
    result = late_test().run(str(tmp_path / "a.sums"))
    assert result.late_rewards is None
    assert any("the ages of rewards were left out" in note for note in result.notes)
    assert result.metrics["click"].days is not None


def test_a_packed_log_keeps_its_times(tmp_path: Path, table: pa.Table) -> None:
    pq.write_table(table, tmp_path / "log.parquet")
    test = late_test({"read_at": READ_AT}, window="36h", estimators=["point-ncis-adaptive"], weight_bound=20.0)
    test.pack(str(tmp_path / "log.parquet"), tmp_path / "packed")
    found = test.run(str(tmp_path / "packed"))
    assert_same(found, test.run(table))
    assert any("packed, but all rows were read: sums by day and ages are of all rows" in note for note in found.notes)


def test_shares_of_loggers_are_of_the_displays_that_count() -> None:
    log = ThreeLoggers(rows=300)
    shown = BEGIN + np.arange(300) * HOUR
    clicks = np.asarray(log.table()["click"]) > 0
    table = log.table(ts=shown, at=pa.array(shown + HOUR, mask=~clicks))
    columns = {"rewards": ["click"], "unit": "user", "ranking": "ranking", "id": "id", "logger": "policy"}
    rest: dict[str, Any] = {
        "control": {name: ft.PlackettLuce(scores=f"{name}_scores") for name in NAMES}, "baseline": "new",
        "treatment": ft.PlackettLuce(scores="treatment_scores"), "estimators": ["ncis"], "n_resamples": 20,
    }  # fmt: skip
    times = {"time": "ts", "reward_time": "at"}
    found = ft.OfflineTest(log=ft.LogColumns(**columns, **times), window="99h", **rest).run(table)
    wanted = ft.OfflineTest(log=ft.LogColumns(**columns), **rest).run(table.slice(0, 201))
    assert found.log["rows"] == 201
    assert found.log["loggers"] == wanted.log["loggers"]
    assert_same(found, wanted)


def test_check_and_plan_leave_out_the_same(late: LateLog, table: pa.Table) -> None:
    test = late_test({"read_at": READ_AT}, window="36h")
    check = test.check(table)
    rows = int((late.read_at - late.time >= WINDOW).sum())
    assert check.log["rows"] == rows
    assert "were left out: their rewards may still come." in check.notes[0]
    plan = ft.plan_log(test, table).to_dict()
    assert plan["log"]["rows"] == rows
    assert any("were left out: their rewards may still come." in note for note in plan["notes"])


def test_a_window_that_leaves_nothing_is_refused(tmp_path: Path, table: pa.Table) -> None:
    test = late_test({"read_at": READ_AT}, window="30d")
    with pytest.raises(ft.BadInput, match=r'window = "30d" leaves out all 600 displays: each is younger .* 2026-03-08'):
        test.run(table)
    assert test.check(table).log["rows"] == 0
    pq.write_table(table, tmp_path / "log.parquet")
    test.save_aggregates(str(tmp_path / "log.parquet"), tmp_path / "young.sums")  # others may be older
    assert test.aggregate(str(tmp_path / "young.sums")).aggregates.rows == 0


def test_times_in_text_files(tmp_path: Path, table: pa.Table) -> None:
    rows = table.slice(0, 200).to_pylist()
    for row in rows:
        row["ts"] = row["ts"].isoformat()
        row["clicked_at"] = None if row["clicked_at"] is None else row["clicked_at"].isoformat()
    (tmp_path / "log.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    with open(tmp_path / "log.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0])
        writer.writerows([json.dumps(v) if isinstance(v, list) else v for v in row.values()] for row in rows)
    test = late_test({"read_at": READ_AT}, window="36h", estimators=["ncis"])
    wanted = test.run(table.slice(0, 200))
    for name in ("log.jsonl", "log.csv"):
        assert_same(test.run(str(tmp_path / name)), wanted)
