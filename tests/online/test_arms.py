"""The arms of an online test: nothing depends on how a log is cut; days and units within their limits."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foretest.displays.merging import merged
from foretest.online import unit_days
from foretest.online.unit_days import UnitDays
from foretest.results.result import Result
from tests.online.support import online


def numbers_of(result: Result) -> list[float]:
    flat: list[float] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, float | int) and not isinstance(value, bool):
            flat.append(value)

    document = result.to_dict()
    walk([document["log"], document["metrics"], document["health"]])
    return flat


@pytest.mark.parametrize("limit", [None, 150], ids=["exact", "sampled"])
def test_order_batches_and_threads_change_no_digit(
    two: Any, limit: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if limit is not None:
        monkeypatch.setattr(unit_days, "LIMIT", limit)
    g = np.random.default_rng(0)
    tables = []
    for part in two:
        days = [f"2026-05-{1 + d:02d}" for d in g.integers(0, 6, len(part["user"]))]
        tables.append(pa.table({**part, "day": days}))
    test = online(rewards=("click", "revenue"), date="day", n_resamples=100)
    base = test.run(*tables)
    shuffled = [table.take(g.permutation(len(table))) for table in tables]
    for name, table in zip("ct", shuffled, strict=True):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=97)
    others = [
        test.run(*shuffled, batch_rows=50),
        *(test.run(tmp_path / "c.parquet", tmp_path / "t.parquet", threads=k, batch_rows=31) for k in (1, 4)),
        test.run(*(pa.RecordBatchReader.from_batches(t.schema, t.to_batches(max_chunksize=13)) for t in shuffled)),
    ]
    for other in others:
        assert numbers_of(other) == pytest.approx(numbers_of(base), rel=1e-9, abs=1e-15)
        assert other.notes == base.notes
    assert (base.health["sample_ratio"]["sampled_share"] < 1.0) == (limit is not None)


def test_arms_add_up(two: Any) -> None:
    test = online()
    table, other = (pa.table(part) for part in two)
    whole = test.arms(table, other).control
    halves = merged([test.arms(half, other).control for half in (table.slice(0, 500), table.slice(500))])
    np.testing.assert_array_equal(halves.n, whole.n)
    np.testing.assert_allclose(halves.r, whole.r, rtol=1e-12)
    assert (halves.rows, halves.n_units, halves.rows_by_day) == (whole.rows, whole.n_units, whole.rows_by_day)


@pytest.mark.parametrize(
    "written",
    [
        [date(2026, 1, 1), date(2026, 1, 2)],
        [datetime(2026, 1, 1, 23, 59), datetime(2026, 1, 2, 0, 1)],
        # 23:00 at -01:00 is midnight in UTC
        [datetime(2026, 1, 1, 5, tzinfo=UTC), datetime(2026, 1, 1, 23, tzinfo=timezone(timedelta(hours=-1)))],
        ["2026-01-01T10:00:00", "2026-01-02 11:00:00"],
    ],
    ids=["date", "timestamp", "time zone", "text"],
)
def test_days_of_every_type(written: list[Any]) -> None:
    table = pa.table({"click": [1, 0], "day": written})
    arms = online(None, date="day").arms(table, table.slice(0, 1))
    assert arms.control.rows_by_day == {"2026-01-01": 1, "2026-01-02": 1}


def test_other_days_are_read_as_written() -> None:
    table = pa.table({"click": [1, 0], "day": [20260101, 20260102]})
    assert list(online(None, date="day").arms(table, table.slice(1)).control.rows_by_day) == ["20260101", "20260102"]


def test_unit_days_keep_within_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_days, "LIMIT", 100)
    monkeypatch.setattr(unit_days, "MOST_UNIT_DAYS", 50)
    g = np.random.default_rng(0)
    hashes = g.integers(0, 2**63, 60).astype(np.uint64) * np.uint64(2)
    pairs = np.repeat(hashes, 3), np.tile(np.arange(3), 60)
    whole, parts = UnitDays(["a", "b", "c"]), UnitDays(["a", "b", "c"])
    whole.add(*pairs, np.ones(180))
    for k in range(3):
        part = UnitDays(["a", "b", "c"])
        part.add(pairs[0][k::3], pairs[1][k::3], np.ones(60))
        parts = merged([parts, part])
    for counted in (whole, parts):
        assert len(counted.pairs()[0]) == 48  # 16 whole units of 3 days
        assert counted.highest == np.sort(hashes)[16] - 1
        units = counted.weighted(counted.highest)
        assert units is not None
        assert units.days == dict.fromkeys("abc", (16.0, 16.0))
