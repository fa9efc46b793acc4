"""The online test: the shape of its result, its command, and every bad input."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest import cli
from foretest.online import unit_days
from foretest.online.test import OnlineTest
from tests.online.support import SCHEMA, flat, online
from tests.schemas import validate


def test_result_has_the_offline_shape(two: Any) -> None:
    document = online(rewards=("click", "revenue"), split=(0.4, 0.6)).run(*(pa.table(part) for part in two)).to_dict()
    validate(document, SCHEMA)
    assert document["log"]["units"] == 300
    assert document["log"]["treatment"]["units"] == 340
    assert document["log"]["treatment"]["positives"]["click"] == int(two[1]["click"].sum())
    assert document["settings"]["online"] == {"split": [0.4, 0.6]}
    assert list(document["metrics"]) == ["click", "revenue"]
    assert list(document["metrics"]["click"]["estimates"]) == ["online"]
    assert document["metrics"]["click"]["headline"] == "online"


def test_an_offline_result_has_no_online_lines() -> None:
    table = pa.table({"click": [1, 0] * 20, "p": [0.5] * 40})
    logged = ft.Logged(prob="p")
    offline = ft.OfflineTest(log=ft.LogColumns(rewards=["click"]), control=logged, treatment=logged, estimators=["cis"])
    assert "sample ratio" not in str(offline.run(table))


# -- the command line and its bad input -------------------------------------------------------------------------------

SETTINGS = """\
[log]
rewards = ["click"]
unit = "user"

[analysis]
n_resamples = 100
"""
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `foretest online` in this process, in a folder with settings and two logs."""
    monkeypatch.chdir(tmp_path)
    Path("test.toml").write_text(SETTINGS, encoding="utf-8")
    pq.write_table(flat(1000, 100), "control.parquet")
    pq.write_table(flat(1000, 200, 5000), "treatment.parquet")

    def run(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["foretest", "online", *args])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        output = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return stop.value.code, output.out, output.err

    return run


BOTH = ("control.parquet", "treatment.parquet", "-c", "test.toml")


def test_command(command: Command) -> None:
    code, out, err = command(*BOTH, "-o", "out")
    assert (code, err) == (0, "")
    assert "sample ratio" in out
    assert "positive" in out
    assert "50.0 : 50.0 % of units, designed 50 : 50 (p = 1) as designed" in out
    assert out.rstrip().endswith("Written: out/result.json, out/report.html")
    validate(json.loads(Path("out/result.json").read_text(encoding="utf-8")), SCHEMA)
    assert max(map(len, out.splitlines())) <= 80


def test_command_json_options_and_exit_codes(command: Command) -> None:
    code, out, _ = command(*BOTH, "--json", "--interval", "delta", "--confidence-level", "0.99", "--seed", "3")
    analysis = json.loads(out)["settings"]["analysis"]
    assert code == 0
    assert (analysis["interval"], analysis["confidence_level"], analysis["seed"]) == ("delta", 0.99, 3)
    assert analysis["n_resamples"] == 100
    swapped = ("treatment.parquet", "control.parquet", "-c", "test.toml", "--fail-on", "negative")
    assert command(*swapped)[0] == 3
    assert command(*BOTH, "--fail-on", "negative")[0] == 0


def test_arms_may_be_folders_and_globs(command: Command) -> None:
    Path("t").mkdir()
    table = pq.read_table("treatment.parquet")
    pq.write_table(table.slice(0, 300), "t/1.parquet")
    pq.write_table(table.slice(300), "t/2.parquet")
    whole = json.loads(command(*BOTH, "--json")[1])
    for treatment in ("t", "t/*.parquet"):
        parts = json.loads(command("control.parquet", treatment, "-c", "test.toml", "--json")[1])
        assert parts["log"] == whole["log"]
        assert parts["metrics"]["click"]["estimates"]["online"]["effect_size_ci_lower"] == pytest.approx(
            whole["metrics"]["click"]["estimates"]["online"]["effect_size_ci_lower"], rel=1e-9
        )


def test_policies_in_the_settings_are_not_asked(command: Command) -> None:
    """The file of an offline test serves: its policies, estimators and features are left aside."""
    more = (
        SETTINGS.replace('unit = "user"', 'unit = "user"\nranking = "shown"\nid = "key"\nfeatures = ["age"]')
        + 'interval = "bernstein"\nestimators = ["cis"]\nr_max = 1.0\nvalue = "v"\n'
        '[control]\npolicy = "nowhere:Nothing"\n[treatment]\npolicy = "plackett-luce"\nscores = "s"\n'
        "[online]\nsplit = [0.5, 0.5]\n"
    )
    Path("test.toml").write_text(more, encoding="utf-8")
    code, out, err = command(*BOTH, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["settings"]["analysis"]["interval"] == "delta"
    assert 'interval = "bernstein" is for offline tests' in json.loads(out)["notes"][0]


def test_an_examination_curve_in_the_settings_is_not_asked(command: Command) -> None:
    """It is of slots, which an online test does not read."""
    slots = SETTINGS.replace("[analysis]", 'slot_rewards = {click = "slot_click"}\nranking = "shown"\n\n[analysis]')
    Path("test.toml").write_text(f"{slots}examination = [1.0, 0.5]\n", encoding="utf-8")
    assert command(*BOTH)[0::2] == (0, "")


def broken(**columns: Any) -> pa.Table:
    table = {"user": np.arange(5000, 6000), "click": np.arange(1000) % 5 == 0, **columns}
    return pa.table({name: column for name, column in table.items() if column is not None})


def with_values(*places: tuple[int, Any]) -> list[Any]:
    values: list[Any] = [0.0] * 1000
    for place, value in places:
        values[place] = value
    return values


BAD_LOGS: dict[str, tuple[pa.Table, str]] = {
    "no reward column": (
        broken(click=None),
        "the treatment's log: treatment.parquet: no column 'click'. Expected a number or bool column (a reward); the"
        " log has: user.",
    ),
    "no unit column": (
        broken(user=None, uses=np.arange(1000)),
        "the treatment's log: treatment.parquet: no column 'user'. Did you mean 'uses'? Expected an integer or string"
        " column (the unit); the log has: click, uses.",
    ),
    "rewards are text": (
        broken(click=["1"] * 1000),
        "the treatment's log: treatment.parquet: column 'click' is string, expected a number or bool column (a"
        " reward). Convert it, or name another column.",
    ),
    "units are floats": (
        broken(user=np.arange(1000.0)),
        "the treatment's log: treatment.parquet: column 'user' is double, expected an integer or string column (the"
        " unit). Convert it, or name another column.",
    ),
    "units of another type": (
        broken(user=[str(k) for k in range(1000)]),
        "the treatment's log: treatment.parquet: column 'user' is string, but int64 in the control's,"
        " control.parquet: it must be of one type in both. Convert one of them.",
    ),
    "null rewards": (
        broken(click=with_values((7, None), (9, None))),
        "the treatment's log: treatment.parquet: column 'click', row 7 (the first row is 0): the value is null; 2 rows"
        " have this fault. Every row needs one: fill it, or leave the row out.",
    ),
    "negative reward": (
        broken(click=with_values((12, -2.5))),
        "the treatment's log: treatment.parquet: column 'click', row 12 (the first row is 0): the reward is negative"
        " (-2.5); no other row has this fault. Rewards must be 0 or more. If it may have losses, write"
        " [metrics.click] signed = true.",
    ),
    "NaN reward": (
        broken(click=with_values((3, float("nan")))),
        "the treatment's log: treatment.parquet: column 'click', row 3 (the first row is 0): the reward is NaN; no"
        " other row has this fault. Every row needs a finite number: fix it, or leave the row out.",
    ),
    "units in both arms": (
        broken(user=np.arange(880, 1880)),
        "120 units are in both arms (column 'user'; the control has 1,000, the treatment 1,000): a unit must see one"
        " policy only. Leave such units out of both logs.",
    ),
    "one unit in both arms": (
        broken(user=np.arange(999, 1999)),
        "1 unit is in both arms (column 'user'; the control has 1,000, the treatment 1,000): a unit must see one"
        " policy only. Leave such units out of both logs.",
    ),
}  # fmt: skip


def refused(answer: tuple[int, str, str], message: str) -> None:
    code, out, err = answer
    assert err == f"foretest: {message}\n"
    assert (code, out) == (2, "")
    assert not Path("out").exists()


@pytest.mark.parametrize("kind", BAD_LOGS)
def test_bad_logs(kind: str, command: Command) -> None:
    table, message = BAD_LOGS[kind]
    pq.write_table(table, "treatment.parquet", row_group_size=300)
    refused(command(*BOTH, "-o", "out"), message)


def test_the_control_s_faults_are_named_too(command: Command) -> None:
    pq.write_table(broken(click=with_values((7, None))), "control.parquet")
    refused(
        command(*BOTH, "-o", "out"),
        "the control's log: control.parquet: column 'click', row 7 (the first row is 0): the value is null; no"
        " other row has this fault. Every row needs one: fill it, or leave the row out.",
    )


def test_faults_of_a_stream_are_named_too() -> None:
    """A stream passes once: its first fault is found in the batches at hand and those to come."""
    table = broken(click=with_values((412, -1.0), (700, -3.0)))
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=100))
    expected = r"^the treatment's log: the stream: column 'click', row 412 .* negative \(-1\); 2 rows have this fault"
    with pytest.raises(ft.BadInput, match=expected):
        online().run(flat(100, 10), stream)


def test_progress_counts_the_rows_of_both_arms(two: Any) -> None:
    seen: dict[str, int] = {}

    def progress(stage: str, total: int | None, rows: int) -> None:
        assert total == len(two[stage == "treatment"]["user"])
        seen[stage] = seen.get(stage, 0) + rows

    online().run(*(pa.table(part) for part in two), progress=progress, batch_rows=100)
    assert seen == {"control": len(two[0]["user"]), "treatment": len(two[1]["user"])}


def test_names_are_text_and_no_markup() -> None:
    tables = [flat(100, 40).rename_columns(["[red]user", "[b]click"]), flat(100, 50, 500)]
    tables[1] = tables[1].rename_columns(["[red]user", "[b]click"])
    shown = str(online("[red]user", ("[b]click",)).run(*tables))
    assert "100 units ([red]user), 40 with [b]click" in shown


def test_the_same_log_twice(command: Command) -> None:
    refused(
        command("control.parquet", "./control.parquet", "-c", "test.toml", "-o", "out"),
        "control.parquet: this file is in the control's log and in the treatment's. Leave one out.",
    )
    table = flat(100, 10)
    with pytest.raises(ft.BadInput, match="the same log is given as control and as treatment"):
        online(None).run(table, table)


def test_a_missing_log(command: Command) -> None:
    refused(
        command("control.parquet", "treatments.parquet", "-c", "test.toml", "-o", "out"),
        "the treatment's log: treatments.parquet: no such file or folder. Did you mean 'treatment.parquet'?",
    )


def test_only_some_logs_given(command: Command) -> None:
    assert command("control.parquet", "-c", "test.toml")[0] == 2
    code, _, err = command("control.parquet", "treatment.parquet", "more.parquet", "-c", "test.toml")
    assert (code, "unexpected argument 'more.parquet'" in err) == (2, True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("[log]\nunit = 'user'\n", "[log] rewards is missing: name the reward columns, as in rewards = [\"click\"]."),
        (SETTINGS + "[online]\nsplit = [0.5, 0.6]\n",
         "[online] split = [0.5, 0.6]: expected two shares that sum to 1, as in [0.5, 0.5]."),
        (SETTINGS + "[online]\nshare = 1\n", "[online] has an unknown key 'share'. Known: split, covariate,"
                                            " sequential, sequential_units."),
        (SETTINGS + "[offline]\n", "the settings file has an unknown key 'offline'. Did you mean 'online'?"
                                   " Known: log, control, treatment, metrics, analysis, online."),
        ("", "the table [log] is missing: it names the columns of the log, as in rewards = [\"click\"]."),
    ],
)  # fmt: skip
def test_bad_settings(settings: str, message: str, command: Command) -> None:
    Path("test.toml").write_text(settings, encoding="utf-8")
    refused(command(*BOTH, "-o", "out"), f"test.toml: {message}")


def test_bad_options(command: Command) -> None:
    refused(
        command(*BOTH, "-o", "out", "--interval", "bernstein"),
        'on the command line: interval = "bernstein" is not for online tests. Known: bootstrap, delta.',
    )
    refused(
        command(*BOTH, "-o", "out", "--confidence-level", "95"),
        "on the command line: confidence_level = 95.0: expected a number above 0 and below 1. For 95.0 % write 0.95.",
    )


def test_bad_dates(command: Command) -> None:
    Path("test.toml").write_text(SETTINGS.replace("[log]", '[log]\ndate = "day"'), encoding="utf-8")
    code, _, err = command(*BOTH)
    assert (code, "control.parquet: no column 'day'" in err) == (2, True)
    day = pa.array(["2026-01-01"] * 1000)
    pq.write_table(pq.read_table("control.parquet").append_column("day", day), "control.parquet")
    pq.write_table(broken(day=with_values()), "treatment.parquet")
    code, _, err = command(*BOTH)
    expected = "column 'day' is double, expected a date, timestamp, string or integer column (the day)"
    assert (code, expected in err) == (2, True)
    pq.write_table(broken(day=["2026-01-01", None] * 500), "treatment.parquet")
    code, _, err = command(*BOTH)
    assert (code, "column 'day', row 1 (the first row is 0): the value is null; 500 rows" in err) == (2, True)
    pq.write_table(broken(day=np.arange(1000) + 10**9), "treatment.parquet")
    assert command(*BOTH)[0] == 0
    pq.write_table(pa.concat_tables([broken(day=np.arange(1000) + k) for k in (0, 10**9)]), "treatment.parquet")
    code, _, err = command(*BOTH)
    assert (code, "the treatment's log: the date column has more than 1,000 days" in err) == (2, True)


def test_contamination_beyond_the_limit_is_of_the_smallest_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_days, "LIMIT", 1000)
    with pytest.raises(
        ft.BadInput, match=r"^\d+ units are in both arms \(column 'user'\), of the .* units of smallest"
    ):
        online().run(flat(8000, 100), flat(8000, 100, 4000))
    online().run(flat(8000, 100), flat(8000, 100, 8000))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"cap": 3.0}, "the online test has no setting 'cap'."),
        ({"buckts": 3}, "the online test has no setting 'buckts'. Did you mean 'buckets'?"),
        ({"interval": "bernstein"}, "is not for online tests. Known: bootstrap, delta."),
        ({"split": (1, 1)}, r"\[online\] split = \(1, 1\): expected two shares"),
        ({"seed": -1}, "seed = -1: expected a whole number of at least 0."),
    ],
)
def test_bad_keywords(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ft.BadInput, match=message):
        online(**keywords)


def test_the_public_name() -> None:
    assert ft.OnlineTest is OnlineTest
