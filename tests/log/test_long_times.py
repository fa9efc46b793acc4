"""Long logs whose rewards come late: the time of each item's reward counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from tests.late_log import BEGIN
from tests.long_log import LONG, SHORT, assert_same, long_log, short_log, test_of, three_tables

HOUR = 3_600_000_000
ROWS = 200


class Rows:
    """Long rows with times of displays and of clicks, of which some shown items have two."""

    def __init__(self) -> None:
        g = np.random.default_rng(0)
        short = short_log(ROWS)
        # both slots earn in every third display, at times of their own
        both = [[1.0, 1.0] if i % 3 == 0 else row for i, row in enumerate(short["slot_click"].to_pylist())]
        self.slots, self.ages = np.array(both), g.integers(1, 48 * HOUR, (ROWS, 2))
        self.shown = np.arange(ROWS) * HOUR
        self.short = self.with_slots(short, self.slots)
        long = long_log(self.short)
        view = np.array([int(name[1:]) for name in long["view"].to_pylist()])
        place = np.array([0 if p is None else p for p in long["place"].to_pylist()])
        age = np.where(place > 0, self.ages[view, np.maximum(place - 1, 0)], 0)
        clicked = np.array([bool(c) for c in long["click"].to_pylist()])
        times = BEGIN + (self.shown[view] + age).astype("timedelta64[us]")
        self.long = long.append_column("ts", pa.array(BEGIN + self.shown[view].astype("timedelta64[us]")))
        self.long = self.long.append_column("at", pa.array(times, mask=~clicked))
        self.long = self.long.append_column("age", pa.array(age / 1e6, mask=~clicked))

    @staticmethod
    def with_slots(short: pa.Table, slots: np.ndarray) -> pa.Table:
        columns = {"slot_click": pa.array(slots.tolist()), "click": pa.array(slots.sum(axis=1))}
        for name, array in columns.items():
            short = short.set_column(short.schema.get_field_index(name), name, array)
        return short

    def by_hand(self, window: int) -> pa.Table:
        """One row per display, as a window of plain NumPy leaves it."""
        in_time, old = self.ages <= window, self.shown[-1] - self.shown >= window
        return self.with_slots(self.short, np.where(in_time, self.slots, 0.0)).filter(pa.array(old))


def columns(**more: Any) -> ft.LogColumns:
    named = {name: getattr(LONG, name) for name in ("rewards", "unit", "layout", "display", "item", "slot")}
    return ft.LogColumns(**{**named, "time": "ts", "reward_time": "at", **more})


@pytest.fixture(scope="module")
def rows() -> Rows:
    return Rows()


@pytest.mark.parametrize("more", [{}, {"reward_time": None, "reward_age": "age"}])
def test_each_item_has_its_own_time(rows: Rows, more: dict[str, Any]) -> None:
    found = test_of(columns(**more), window="24h").run(rows.long)
    wanted = test_of(SHORT).run(rows.by_hand(24 * HOUR))
    assert found.log["rows"] == wanted.log["rows"] == ROWS - 24
    assert found.log["positives"] == wanted.log["positives"]
    assert_same(found, wanted)
    one_late = (rows.slots > 0).any(axis=1) & ((rows.slots == 0) | (rows.ages > 24 * HOUR)).all(axis=1)
    assert found.late_rewards is not None
    assert found.late_rewards["late"] == {"click": int(one_late[: ROWS - 24].sum())}


def test_ages_are_of_the_first_reward(rows: Rows) -> None:
    ages = test_of(columns()).aggregate(rows.long).aggregates.ages
    assert ages is not None
    assert ages.rewarded.sum() == (rows.slots > 0).any(axis=1).sum()
    first = np.where(rows.slots > 0, rows.ages, np.iinfo(np.int64).max).min(axis=1)
    first = first[first < np.iinfo(np.int64).max] / 1e6
    edges = 10.0 ** (np.arange(9 * 32 + 1) / 32)
    assert np.array_equal(ages.rewarded[0], np.bincount((first[:, None] > edges).sum(axis=1), minlength=len(edges) + 1))


def test_tables_of_rewards_have_one_time_an_item(tmp_path: Path, rows: Rows) -> None:
    tables = three_tables(rows.long)
    shown = rows.long.filter(pa.compute.is_valid(rows.long["place"]))
    tables["impressions"] = shown.select(["view", "sku", "place", "user", "ts"])
    tables["rewards"] = shown.filter(pa.compute.greater(shown["click"], 0)).select(["view", "sku", "click", "at"])
    paths = {name: str(tmp_path / f"{name}.parquet") for name in tables}
    for name, table in tables.items():
        pq.write_table(table, paths[name])
    test = test_of(columns(tables=paths), window="24h")
    assert_same(test.run(None), test_of(SHORT).run(rows.by_hand(24 * HOUR)))
    again = tables["rewards"].slice(0, 1)
    later = pa.compute.add(again["at"], pa.scalar(HOUR, pa.duration("us")))
    pq.write_table(pa.concat_tables([tables["rewards"], again.set_column(3, "at", later)]), paths["rewards"])
    with pytest.raises(ft.BadInput, match="column 'at': an item has rewards at several times in the display d"):
        test.run(None)


def test_bad_times_name_the_display(rows: Rows) -> None:
    at = rows.long.schema.get_field_index("at")
    clicked = int(np.flatnonzero(np.asarray(rows.long["at"].is_valid()))[0])
    times = rows.long["at"].to_pylist()
    view = rows.long["view"][clicked].as_py()
    faults = {None: "the row has a reward in 'click' and no time", BEGIN.item().replace(year=2025): "before the"}
    for value, message in faults.items():
        times[clicked] = value
        wrong = rows.long.set_column(at, "at", pa.array(times, rows.long["at"].type))
        with pytest.raises(ft.BadInput, match=f"column 'at', display '{view}': .*{message}"):
            test_of(columns(), window="24h").run(wrong)
    ts = rows.long.schema.get_field_index("ts")
    pairs = zip(rows.long["view"].to_pylist(), rows.long["ts"].to_pylist(), strict=True)
    none = pa.array([None if view == "d0007" else time for view, time in pairs])
    with pytest.raises(ft.BadInput, match="column 'ts', display 'd0007': the time of the display is null"):
        test_of(columns(), window="24h").run(rows.long.set_column(ts, "ts", none))
