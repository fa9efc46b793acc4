"""What is to be found in a few columns before the fold is found in one scan, and in a second one only where it must."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.engines.logger_shares import LoggerShares
from foretest.engines.scan import scan, with_answers
from foretest.errors import BadInput
from foretest.offline.prepare_and_fold import SEARCHES
from foretest.settings.settings import Settings
from foretest.settings.winsorising import found_limits
from foretest.sources import open_source
from foretest.sources.tables import ArrowTable

DAY = 86_400_000_000


def log(rows: int = 600) -> pa.Table:
    g = np.random.default_rng(3)
    shown = g.integers(0, 8, rows)
    return pa.table({
        "gain": g.integers(0, 40, rows).astype(float),
        "policy": pa.array(np.array(["new", "old"])[g.integers(0, 2, rows)]),
        "day": pa.array([f"2024-05-0{day + 1}" for day in shown.tolist()]),
        "time": pa.array(shown * DAY + g.integers(0, DAY, rows), pa.timestamp("us")),
        "age": g.uniform(0, 86_400, rows),
        "p_old": np.full(rows, 0.5),
        "p_new": np.full(rows, 0.4),
        "p": np.full(rows, 0.3),
    })  # fmt: skip


def settings(**analysis: Any) -> Settings:
    return ft.OfflineTest(
        log=ft.LogColumns(rewards=["gain"], logger="policy", date="day", time="time", reward_age="age"),
        control={"old": ft.Logged(prob="p_old"), "new": ft.Logged(prob="p_new")},
        treatment=ft.Logged(prob="p"),
        metrics={"gain": {"winsorise": 0.9}},
        baseline="old",
        **analysis,
    ).settings


class Scans:
    """A log that remembers which columns each scan of it read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.columns: list[set[str]] = []
        parts = ArrowTable.parts

        def remembered(table: ArrowTable, columns: Any, *more: Any) -> Any:
            self.columns.append(set(columns))
            return parts(table, columns, *more)

        monkeypatch.setattr(ArrowTable, "parts", remembered)


def test_what_depends_on_nothing_is_found_in_one_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    scans, table = Scans(monkeypatch), log()
    found = with_answers(settings(), open_source(table), SEARCHES, threads=1)
    assert scans.columns == [{"gain", "policy", "day", "time", "age"}]
    gains = np.sort(table["gain"].to_numpy())
    gains = gains[gains > 0.0]
    assert found_limits(found) == {"gain": gains[int(np.ceil(0.9 * len(gains))) - 1]}
    latest = table["time"].to_numpy().max().astype("datetime64[us]").astype(int)
    assert found.log.read_at == np.datetime_as_string(np.datetime64(int(latest), "us")).rstrip("0") + "Z"
    shares = found.control.shares.to_dict()  # type: ignore[attr-defined]
    pairs = list(zip(table["day"].to_pylist(), table["policy"].to_pylist(), strict=True))
    assert shares == {
        day: [pairs.count((day, "old")), pairs.count((day, "new"))] for day in sorted(set(table["day"].to_pylist()))
    }


def test_under_a_window_the_rest_waits_for_the_time_of_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    scans, table = Scans(monkeypatch), log()
    found = with_answers(settings(window="2d"), open_source(table), SEARCHES, threads=1)
    assert scans.columns == [{"time"}, {"gain", "policy", "day", "time", "age"}]
    assert "2024-05-08" not in found.control.shares.to_dict()  # type: ignore[attr-defined]


def test_the_fault_of_the_first_search_is_told_wherever_others_would_meet_one() -> None:
    table = log()
    times = table["time"].to_pylist()
    times[500] = None  # what the first search meets
    table = table.set_column(3, "time", pa.array(times, pa.timestamp("us")))
    table = table.set_column(1, "policy", pa.array([None, *table["policy"].to_pylist()[1:]]))
    source = open_source(table)
    with pytest.raises(BadInput, match="column 'time', row 500 "):
        with_answers(settings(), source, SEARCHES)
    with pytest.raises(BadInput, match="'policy'"):
        scan(source, [LoggerShares(settings())])


def test_of_no_row_nothing_is_found() -> None:
    without = settings()
    empty = open_source(log().slice(0, 0))
    with pytest.raises(BadInput, match="no row of the log has a reward"):
        with_answers(without, empty, SEARCHES)
    assert with_answers(without, empty, [SEARCHES[0]]) == without
