"""Times that cannot be: one sentence with file, column, row and remedy, exit code 2, and nothing is written."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.displays.durations import duration_of
from foretest.sources import Chunk
from tests.commands import exit_code_of
from tests.late_log import READ_AT, LateLog, late_test

SETTINGS = """\
[log]
rewards = ["click"]
unit = "user"
ranking = "ranking"
time = "ts"
reward_time = "clicked_at"

[control]
policy = "plackett-luce"
scores = "control_scores"

[treatment]
policy = "plackett-luce"
scores = "treatment_scores"

[analysis]
window = "36h"
n_resamples = 20
estimators = ["ncis"]
"""
AGES = SETTINGS.replace('reward_time = "clicked_at"', 'reward_age = "seconds"')


def changed(table: pa.Table, name: str, change: Callable[[list[Any]], None]) -> pa.Table:
    """The table with some values of a column changed."""
    values = table[name].to_pylist()
    change(values)
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values, table[name].type))


def cast(table: pa.Table, name: str, kind: pa.DataType) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, table[name].cast(kind))


def first_reward(table: pa.Table) -> int:
    return int(np.flatnonzero(np.asarray(table["click"]) > 0)[0])


def null_at_rewards(values: list[Any]) -> None:
    values[:] = [None] * len(values)


def early_at(row: int) -> Callable[[list[Any]], None]:
    def change(values: list[Any]) -> None:
        for place in range(row, len(values)):
            values[place] = None if values[place] is None else datetime(2026, 2, 1)

    return change


def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], table: pa.Table, settings: str
) -> str:
    """The message of a run that is refused; it writes nothing."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(table, "log.parquet")
    Path("test.toml").write_text(settings, encoding="utf-8")
    assert exit_code_of(monkeypatch, "run", "log.parquet", "-c", "test.toml", "-o", "out") == 2
    assert not Path("out").exists()
    captured = capsys.readouterr()
    assert captured.out == ""
    return " ".join(captured.err.split())


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return LateLog().table()


def test_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], table: pa.Table
) -> None:
    rewarded = np.flatnonzero(np.asarray(table["click"]) > 0)
    first, count = int(rewarded[0]), len(rewarded)

    def said(changed_table: pa.Table, settings: str = SETTINGS.replace('window = "36h"\n', "")) -> str:
        return run(tmp_path, monkeypatch, capsys, changed_table, settings)

    def null_time(values: list[Any]) -> None:
        values[5] = values[9] = None

    text = said(changed(table, "ts", null_time))
    assert "log.parquet: column 'ts', row 5 (the first row is 0): the time of the display is null; 2 rows have" in text
    text = said(changed(table, "clicked_at", null_at_rewards))
    assert f"column 'clicked_at', row {first} (the first row is 0): the row has a reward in 'click' and no time" in text
    assert f"{count} rows have this fault. Every reward needs one: fill it, or leave the row out." in text
    text = said(changed(table, "clicked_at", early_at(first)))
    assert (
        f"column 'clicked_at', row {first} (the first row is 0): the reward is of 2026-02-01, before the display's"
        in text
    )
    assert f"{count} rows have this fault. No reward comes before its display" in text

    def negative(values: list[Any]) -> None:
        values[first] = -3.0

    text = said(changed(table, "seconds", negative), AGES)
    assert f"column 'seconds', row {first} (the first row is 0): the age of the reward is negative (-3); no" in text
    text = said(table, SETTINGS.replace("time =", 'read_at = "2026-03-05"\ntime =', 1))
    shown = np.asarray(table["ts"])
    later = np.flatnonzero(shown > np.datetime64("2026-03-05"))
    assert f"column 'ts', row {later[0]} (the first row is 0): the display is of {shown[later[0]]}"[:70] in text
    assert f"after read_at = 2026-03-05; {len(later)} rows have this fault. [log] read_at is when the log was" in text


def test_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], table: pa.Table
) -> None:
    text = run(tmp_path, monkeypatch, capsys, cast(table, "ts", pa.int64()), SETTINGS)
    assert "column 'ts' is int64, expected a timestamp, or text as in 2026-03-08T14:30:00 (of the display)." in text
    text = run(tmp_path, monkeypatch, capsys, cast(table, "clicked_at", pa.int64()), SETTINGS)
    assert "column 'clicked_at' is int64, expected a timestamp, or text as in 2026-03-08T14:30:00 (of the rew" in text
    text = run(tmp_path, monkeypatch, capsys, cast(table, "seconds", pa.string()), AGES)
    assert "column 'seconds' is string, expected a number column (seconds from display to reward)." in text
    text = run(tmp_path, monkeypatch, capsys, table.drop_columns(["ts"]), SETTINGS)
    assert "no column 'ts'." in text

    def no_time(values: list[Any]) -> None:
        values[3] = "yesterday"

    words = changed(cast(table, "ts", pa.string()), "ts", no_time)
    text = run(tmp_path, monkeypatch, capsys, words, SETTINGS)
    assert "column 'ts', row 3 (the first row is 0): 'yesterday' is no time; no other row has this fault." in text


SETTINGS_REFUSED = {
    SETTINGS.replace('reward_time = "clicked_at"', 'reward_time = "clicked_at"\nreward_age = "seconds"'): (
        "[log] reward_time and [log] reward_age are both given"
    ),
    SETTINGS.replace('reward_time = "clicked_at"\n', ""): 'window = "36h" needs to know when displays were shown',
    SETTINGS.replace('time = "ts"\n', ""): "[log] reward_time is given without time",
    SETTINGS.replace('"36h"', '"fortnight"'): "[analysis] window = 'fortnight': expected a duration above 0",
    SETTINGS.replace('"36h"', "7"): "[analysis] window = 7: expected a duration above 0",
    SETTINGS.replace('"36h"', '"0d"'): "[analysis] window = '0d': expected a duration above 0",
    SETTINGS.replace("time =", 'read_at = "soon"\ntime =', 1): "[log] read_at = 'soon': expected a time",
    SETTINGS.replace("time =", "read_at = 5\ntime =", 1): "[log] read_at = 5: expected a time",
    SETTINGS.replace('time = "ts"', 'time = "user"', 1): "[log] time and [log] unit both name the column 'user'",
    SETTINGS.replace('"clicked_at"', '{clic = "clicked_at"}'): "[log] reward_time names 'clic', which is no reward",
    SETTINGS.replace('"clicked_at"', "{}"): "[log] reward_time = {}: expected the name of a column",
    SETTINGS.replace('["click"]', '["click", "revenue"]').replace('"clicked_at"', '{click = "clicked_at"}'): (
        "[log] reward_time has no column for the reward 'revenue'"
    ),
}  # fmt: skip


def test_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], table: pa.Table
) -> None:
    for settings, message in SETTINGS_REFUSED.items():
        assert message in run(tmp_path, monkeypatch, capsys, table, settings), settings


def test_a_packed_long_log_is_refused(tmp_path: Path) -> None:
    log = ft.LogColumns(rewards=["click"], layout="long", display="view", item="sku", slot="place", time="ts",
                        reward_time="at")  # fmt: skip
    test = ft.OfflineTest(log=log, control=ft.PlackettLuce(scores="c"), treatment=ft.PlackettLuce(scores="t"))
    rows = pa.table({"view": ["a"], "sku": [1], "place": [1], "click": [0], "c": [0.0], "t": [0.0],
                     "ts": ["2026-01-01"], "at": pa.array([None], pa.timestamp("us"))})  # fmt: skip
    with pytest.raises(ft.BadInput, match='layout = "long" and the times of its rewards cannot be packed'):
        test.pack(rows, tmp_path / "packed")
    assert not (tmp_path / "packed").exists()


def test_read_at_may_be_a_time_of_toml_or_python() -> None:
    for value in (date(2026, 3, 8), datetime(2026, 3, 8), datetime(2026, 3, 8, 1, tzinfo=timezone(timedelta(hours=1)))):
        assert late_test({"read_at": value}).settings.log.read_at == READ_AT
    assert duration_of("window", " 1.5 h ") == 5_400_000_000


def test_faults_and_positions_are_of_the_rows_that_the_file_has() -> None:
    # rows 0 to 2 are young and left out; the fault of a later row keeps its number, as do buckets by position
    shown = pa.array(["2026-03-07T23:00:00"] * 3 + ["2026-03-01T00:00:00"] * 3)
    log = pa.table({"click": [1.0, 0.0, 0.0, 0.0, -1.0, 0.0], "ts": shown, "at": shown, "p": [0.5] * 6})
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], time="ts", reward_time="at", read_at=READ_AT), window="2h",
        control=ft.Logged(prob="p"), treatment=ft.Logged(prob="p"), estimators=["ncis"],
    )  # fmt: skip
    with pytest.raises(ft.BadInput, match=re.escape("column 'click', row 4 (the first row is 0): the reward is neg")):
        test.run(log)
    wrong = log.set_column(0, "click", pa.array([0.0] * 6)).set_column(3, "p", pa.array([0.5, 2.0, 0.5, 0.5, 0.5, 2.0]))
    with pytest.raises(ft.BadInput, match=r"column 'p', row 5 \(the first row is 0\): .*; no other row has this fault"):
        test.run(wrong)
    [batch] = log.to_batches()
    chunk = Chunk(batch, "log", 10, 100, places=np.array([3, 5]), left_out=4)
    assert chunk.positions().tolist() == [103, 105]


def test_aggregate_without_read_at_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], table: pa.Table
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(table, "log.parquet")
    Path("test.toml").write_text(SETTINGS, encoding="utf-8")
    command = ("aggregate", "log.parquet", "-c", "test.toml", "-o", "a.parquet")
    assert exit_code_of(monkeypatch, *command) == 2
    assert "in saved aggregates needs [log] read_at, when the log was read" in " ".join(capsys.readouterr().err.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.parquet", "test.toml"]
