"""Online tests with a window: both arms are read at one time, and late rewards count in neither."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from tests.commands import exit_code_of
from tests.late_log import BEGIN

HOUR = np.timedelta64(3_600_000_000, "us")


class TimedArm:
    """Displays of an arm, some hours long."""

    def __init__(self, first: int, hours: int, seed: int) -> None:
        g = np.random.default_rng(seed)
        rows = 800
        self.user = first + g.integers(0, 150, rows)
        self.shown = BEGIN + (g.random(rows) * hours * 3600).astype("timedelta64[s]").astype("timedelta64[us]")
        self.age = (g.exponential(20 * 3600.0, rows)).astype("timedelta64[s]").astype("timedelta64[us]")
        self.click = (g.random(rows) < 0.3).astype(float)

    def table(self) -> pa.Table:
        at = pa.array(self.shown + self.age, mask=self.click == 0)
        return pa.table({"user": self.user, "click": self.click, "ts": self.shown, "at": at})

    def by_hand(self, read_at: np.datetime64, window: np.timedelta64) -> pa.Table:
        click = np.where(self.age <= window, self.click, 0.0)
        table = pa.table({"user": self.user, "click": click})
        return table.filter(pa.array(read_at - self.shown >= window))


@pytest.mark.parametrize("as_stream", [False, True])
def test_both_arms_have_one_window(as_stream: bool) -> None:
    control, treatment = TimedArm(0, 90, 0), TimedArm(1000, 100, 1)
    columns = {"rewards": ["click"], "unit": "user"}
    test = ft.OnlineTest(log=ft.LogColumns(**columns, time="ts", reward_time="at"), window="30h", n_resamples=60)
    logs = [arm.table().to_reader(100) if as_stream else arm.table() for arm in (control, treatment)]
    found = test.run(*logs)
    read_at = max(control.shown.max(), treatment.shown.max())
    plain = ft.OnlineTest(log=ft.LogColumns(**columns), n_resamples=60)
    wanted = plain.run(*(arm.by_hand(read_at, 30 * HOUR) for arm in (control, treatment)))
    assert [one.pop("last_day") for one in (found.log, found.log["treatment"])] == [
        str(arm.shown[read_at - arm.shown >= 30 * HOUR].max())[:10] for arm in (control, treatment)
    ]
    assert found.log == wanted.log
    assert found.to_dicts() == wanted.to_dicts()
    young = [int((read_at - arm.shown < 30 * HOUR).sum()) for arm in (control, treatment)]
    assert [note for note in found.notes if "their rewards may still come" in note] == [
        f"{name}: {count} displays of the last 30 hours before {str(read_at)[:19]}Z were left out: their rewards may"
        " still come."
        for name, count in zip(("control", "treatment"), young, strict=True)
    ]  # fmt: skip
    assert found.settings["analysis"]["window"] == "30h"


def test_without_a_window_times_change_no_number_and_are_checked() -> None:
    control, treatment = TimedArm(0, 90, 0), TimedArm(1000, 100, 1)
    columns = {"rewards": ["click"], "unit": "user"}
    timed = ft.OnlineTest(log=ft.LogColumns(**columns, time="ts", reward_time="at"), n_resamples=60)
    plain = ft.OnlineTest(log=ft.LogColumns(**columns), n_resamples=60)
    tables = control.table(), treatment.table()
    assert timed.run(*tables).to_dicts() == plain.run(*tables).to_dicts()
    assert "window" not in timed.run(*tables).settings["analysis"]
    wrong = tables[1].set_column(3, "at", pa.nulls(800, pa.timestamp("us")))
    with pytest.raises(ft.BadInput, match=r"the treatment's log: .*column 'at', row .* no time of it"):
        timed.run(tables[0], wrong)


def test_the_command_line_has_a_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, arm in (("control", TimedArm(0, 90, 0)), ("treatment", TimedArm(1000, 100, 1))):
        pq.write_table(arm.table(), f"{name}.parquet")
    settings = '[log]\nrewards = ["click"]\nunit = "user"\ntime = "ts"\nreward_time = "at"\n'
    Path("test.toml").write_text(settings, encoding="utf-8")
    command = ("online", "control.parquet", "treatment.parquet", "-c", "test.toml", "--n-resamples", "20", "--json")
    assert exit_code_of(monkeypatch, *command, "--window", "30h") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["settings"]["analysis"]["window"] == "30h"
    assert sum("their rewards may still come" in note for note in document["notes"]) == 2
    assert document["log"]["rows"] < 800
