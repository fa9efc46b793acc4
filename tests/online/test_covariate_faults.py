"""A bad covariate gets one clear sentence with its place and a remedy, exit code 2, and nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from tests.commands import exit_code_of

SETTINGS = """\
[log]
rewards = ["click"]
unit = "user"

[online]
covariate = "before"

[analysis]
n_resamples = 50
"""
NEW_UNITS = "A unit that has no time before the test needs a number too: write 0, or the mean of the others."
ONE_NUMBER = (
    "A covariate is one number per unit, from before the test: give every row of a unit the same, or leave [online]"
    " covariate out."
)
ROWS = 1000


def log(first: int = 0, **columns: Any) -> pa.Table:
    """Two displays of each user, 500 rows apart."""
    user = np.arange(ROWS) % 500
    usual = {
        "user": user + first,
        "click": (np.arange(ROWS) % 7 == 0).astype(float),
        "before": (user % 11).astype(float),
    }
    return pa.table({**usual, **columns})


def before(*changes: tuple[int, float | None]) -> list[float | None]:
    values: list[float | None] = log()["before"].to_pylist()
    for row, value in changes:
        values[row] = value
    return values


@pytest.fixture
def refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs `foretest online` on a treatment's log, and gives the message it is refused with."""
    monkeypatch.chdir(tmp_path)

    def run(treatment: pa.Table, settings: str = SETTINGS, *options: str) -> str:
        pq.write_table(log(), "control.parquet")
        pq.write_table(treatment, "treatment.parquet", row_group_size=300)
        Path("test.toml").write_text(settings, encoding="utf-8")
        command = ("online", "control.parquet", "treatment.parquet", "-c", "test.toml", "-o", "out", *options)
        code = exit_code_of(monkeypatch, *command)
        shown = capsys.readouterr()
        assert (code, shown.out) == (2, "")
        assert not Path("out").exists()
        return shown.err.removeprefix("foretest: ").removesuffix("\n")

    return run


PLACE = "the treatment's log: treatment.parquet: column 'before', row"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"before": before((4, None), (9, None))},
         f"{PLACE} 4 (the first row is 0): the value is null; 2 rows have this fault. {NEW_UNITS}"),
        ({"before": before((700, float("nan")))},
         f"{PLACE} 700 (the first row is 0): the covariate is NaN; no other row has this fault. {NEW_UNITS}"),
        ({"before": before((3, float("inf")))},
         f"{PLACE} 3 (the first row is 0): the covariate is infinite; no other row has this fault. {NEW_UNITS}"),
        ({"before": before((3, 1e200))},
         f"{PLACE} 3 (the first row is 0): the covariate is 1e+200, beyond 1e+100; no other row has this fault. Sums of"
         " such numbers and of their squares cannot be represented: fix it, or leave the row out."),
        ({"before": ["3"] * ROWS},
         "the treatment's log: treatment.parquet: column 'before' is string, expected a number column (the covariate,"
         " from before the test). Convert it, or name another column."),
        # rows 7 and 507 are of one user, in two row groups
        ({"before": before((507, 8.5))},
         f"{PLACE} 507 (the first row is 0): the covariate is 8.5, and 7 in another row of the unit 5007; no other row"
         f" has this fault. {ONE_NUMBER}"),
        ({"before": before((7, 8.5), (8, 0.25))},
         None),
    ],
)  # fmt: skip
def test_bad_columns(columns: dict[str, Any], message: str | None, refusal: Any) -> None:
    found = refusal(log(5000, **columns))
    if message is not None:
        assert found == message
        return
    # of two users who vary, one is named
    assert found.startswith(f"{PLACE} ")
    assert "(2 units vary)" in found
    assert found.endswith(ONE_NUMBER)


def test_a_column_that_one_log_lacks(refusal: Any) -> None:
    found = refusal(log(5000).rename_columns(["user", "click", "befor"]))
    assert found == (
        "the treatment's log: treatment.parquet: no column 'before'. Did you mean 'befor'? Expected a number column"
        " (the covariate, from before the test); the log has: user, click, befor."
    )


def test_a_reward_as_covariate(refusal: Any) -> None:
    found = refusal(log(5000), SETTINGS.replace('"before"', '"click"'))
    assert found == (
        'test.toml: [online] covariate = "click" is also a reward: a covariate is from before the test, and a reward'
        " would take its own effect out of the uplift. Name the column of the time before, or leave it out."
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("covariate = 3", "[online] covariate = 3: expected the name of a column."),
        ('covariate = ""', "[online] covariate = '': expected the name of a column."),
        ("sequential = 1", "[online] sequential = 1: expected true or false."),
        ("sequential_units = 1", "[online] sequential_units = 1: expected a whole number of at least 2."),
        ('covariates = "before"', "[online] has an unknown key 'covariates'. Did you mean 'covariate'? Known: split,"
                                  " covariate, sequential, sequential_units."),
    ],
)  # fmt: skip
def test_bad_settings(line: str, message: str, refusal: Any) -> None:
    assert refusal(log(5000), SETTINGS.replace('covariate = "before"', line)) == f"test.toml: {message}"


def test_bad_options(refusal: Any) -> None:
    found = refusal(log(5000), SETTINGS, "--sequential-units", "0")
    assert found == "on the command line: [online] sequential_units = 0: expected a whole number of at least 2."


def test_thinned_units(refusal: Any) -> None:
    keep = {"keep": np.full(ROWS, 0.5)}
    found = refusal(log(5000, **keep), SETTINGS.replace("[log]", '[log]\nkeep = "keep"'))
    assert found == (
        '[online] covariate = "before" needs every unit, and [log] keep = "keep" says that rows were left out, so that'
        " units of column 'user' may be missing altogether. Leave covariate out, or give logs that were not thinned."
    )


def test_a_stream_passes_once() -> None:
    """The place of a fault that only both rows of a unit show is gone by then: values, and no row."""
    table = log(5000, before=before((507, 8.5)))
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=100))
    test = ft.OnlineTest(log=ft.LogColumns(rewards=["click"], unit="user"), covariate="before")
    with pytest.raises(ft.BadInput) as refused:
        test.run(log(), stream)
    assert str(refused.value) == (
        f"the treatment's log: column 'before': 1 unit of column 'user' has several values, one of them 7 and 8.5."
        f" {ONE_NUMBER}"
    )


def test_rows_that_a_window_leaves_out_are_counted_in_the_place() -> None:
    shown = np.datetime64("2026-01-01T00:00:00", "us") + np.arange(ROWS)[::-1] * np.timedelta64(60_000_000, "us")
    columns = {"ts": shown, "age": np.zeros(ROWS), "before": before((607, 8.5))}
    names = ft.LogColumns(rewards=["click"], unit="user", time="ts", reward_age="age")
    test = ft.OnlineTest(log=names, covariate="before", window="1h")
    with pytest.raises(ft.BadInput, match="column 'before', row 607 "):
        test.run(log(**{**columns, "before": before()}), log(5000, **columns))


def test_the_same_zero_has_two_signs() -> None:
    signed = log(5000)["before"].to_numpy().copy()
    signed[:500][signed[:500] == 0.0] = -0.0
    test = ft.OnlineTest(log=ft.LogColumns(rewards=["click"], unit="user"), covariate="before")
    assert test.run(log(), log(5000, before=signed)).metrics["click"].covariate is not None
