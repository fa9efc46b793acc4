"""Long logs: the digits of the same displays in one row each, through every source, and every fault by its display."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.log.opening import open_log
from foretest.sources import long_tables
from tests.commands import exit_code_of
from tests.long_log import LONG, SHORT, assert_same, long_log, short_log, test_of, three_tables

DISPLAYS = short_log()
ROWS = long_log(DISPLAYS)
EXPECTED = test_of(SHORT).run(DISPLAYS)

SETTINGS = """
[log]
layout = "long"
display = "view"
item = "sku"
slot = "place"
rewards = ["click"]
unit = "user"
{more}
[control]
policy = "plackett-luce"
scores = "control_scores"

[treatment]
policy = "plackett-luce"
scores = "treatment_scores"

[analysis]
n_resamples = 50
"""


def settings_file(folder: Path, more: str = "") -> str:
    path = folder / "long.toml"
    path.write_text(SETTINGS.format(more=more), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("batch", [7, 1000, 1 << 18])
def test_digits_are_those_of_displays(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the rows are cut into batches."""
    monkeypatch.setattr(long_tables, "_LONG_ROWS", batch)
    assert_same(test_of(LONG).run(ROWS), EXPECTED)


def test_sources(tmp_path: Path) -> None:
    """Files of all kinds, a folder by day, SQL, a relation, a dataframe, a stream."""
    pq.write_table(ROWS, tmp_path / "long.parquet")
    pacsv.write_csv(ROWS, tmp_path / "long.csv")
    for day in range(2):
        (tmp_path / "days" / f"day={day}").mkdir(parents=True)
        part = ROWS.filter(pa.array(np.arange(len(ROWS)) % 2 == day))
        pq.write_table(part, tmp_path / "days" / f"day={day}" / "part.parquet")
    logs: list[Any] = [
        str(tmp_path / "long.parquet"), str(tmp_path / "long.csv"), str(tmp_path / "days"),
        ft.Sql(f"SELECT * FROM '{tmp_path}/long.parquet'"), duckdb.from_arrow(ROWS), ROWS.to_pandas(), ROWS.to_reader(),
    ]  # fmt: skip
    for log in logs:
        assert_same(test_of(LONG).run(log), EXPECTED)


def test_three_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Paths beside the settings file and queries; rewards of one item are added up."""
    for name, table in three_tables(ROWS).items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    more = f"""
[log.tables]
impressions = "impressions.parquet"
candidates = "SELECT * FROM '{tmp_path}/candidates.parquet'"
rewards = "rewards.parquet"
"""
    config = settings_file(tmp_path, more)

    assert_same(ft.OfflineTest.from_toml(config).run(None), EXPECTED)
    assert exit_code_of(monkeypatch, "run", "-c", config, "-o", str(tmp_path / "out"), "--quiet") == 0
    assert exit_code_of(monkeypatch, "check", "-c", config, "--quiet") == 0
    capsys.readouterr()
    assert exit_code_of(monkeypatch, "run", str(tmp_path / "rewards.parquet"), "-c", config) == 2
    assert "[log.tables] name the tables of the log: give no other log" in capsys.readouterr().err


def test_slots_from_0_and_0_for_what_was_not_shown() -> None:
    place = np.array([-1.0 if x is None else x - 1.0 for x in ROWS["place"].to_pylist()])
    from_0 = ROWS.set_column(2, "place", pa.array(place, mask=place < 0))
    columns = ft.LogColumns(**{**LONG.written(), "first_slot": 0})
    assert_same(test_of(columns).run(from_0), EXPECTED)
    frame = ROWS.to_pandas()
    assert frame["place"].isna().any()  # pandas has NaN for what was not shown
    assert_same(test_of(LONG).run(frame), EXPECTED)
    with pytest.raises(
        ft.BadInput, match=r"has a reward and was not shown.*where the best slot is 0, add first_slot = 0"
    ):
        test_of(LONG).run(from_0)
    zeros = ROWS.set_column(2, "place", ROWS["place"].fill_null(0))
    assert_same(test_of(LONG).run(zeros), EXPECTED)


def test_saved_sums_packed_logs_and_plans(tmp_path: Path) -> None:
    test, keys = test_of(LONG), ["ncis", "point-ncis-adaptive", "slot-ncis-adaptive"]
    expected = test_of(SHORT, estimators=keys).run(DISPLAYS)
    some = test_of(LONG, estimators=keys)
    some.save_aggregates(ROWS, tmp_path / "sums.parquet")
    assert_same(some.run(tmp_path / "sums.parquet"), expected)
    assert_same(ft.OfflineTest.from_aggregates(tmp_path / "sums.parquet").run(tmp_path / "sums.parquet"), expected)
    pq.write_table(ROWS, tmp_path / "long.parquet")
    test.pack(tmp_path / "long.parquet", tmp_path / "packed")
    keys = ["point-ncis-adaptive"]
    assert_same(test_of(LONG, estimators=keys).run(tmp_path / "packed"), test_of(SHORT, estimators=keys).run(DISPLAYS))
    one, other = (ft.plan_log(t, log).to_dict() for t, log in ((test, ROWS), (test_of(SHORT), DISPLAYS)))
    first, second = (plan["metrics"]["click"]["smallest_uplift"]["total"] for plan in (one, other))
    assert first == pytest.approx(second, rel=1e-9)


def test_online_arms() -> None:
    half = short_log(seed=8)
    half = half.set_column(half.column_names.index("user"), "user", pa.compute.add(half["user"], 1000))
    result = ft.OnlineTest(log=LONG).run(ROWS, long_log(half))
    other = ft.OnlineTest(log=SHORT).run(DISPLAYS, half)
    one, two = (r.metrics["click"].estimates["online"] for r in (result, other))
    assert one.effect_size == pytest.approx(two.effect_size, rel=1e-12)
    assert one.std_error == pytest.approx(two.std_error, rel=1e-9)


def test_online_arms_with_a_covariate() -> None:
    half = short_log(seed=8)
    half = half.set_column(half.column_names.index("user"), "user", pa.compute.add(half["user"], 1000))
    short = [log.append_column("before", [log["user"].to_numpy() % 5]) for log in (DISPLAYS, half)]
    long = [log.append_column("before", [log["user"].to_numpy() % 5]) for log in (ROWS, long_log(half))]
    one, two = (
        ft.OnlineTest(log=columns, covariate="before").run(*logs).metrics["click"]
        for columns, logs in ((LONG, long), (SHORT, short))
    )
    assert one.estimates["online"].effect_size == pytest.approx(two.estimates["online"].effect_size, rel=1e-12)
    assert one.covariate["coefficient"] == pytest.approx(two.covariate["coefficient"], rel=1e-9)
    assert one.covariate["coefficient"] != 0.0


def test_logged_slot_probabilities_are_of_shown_items() -> None:
    """A column of numbers for the shown items becomes their list by slot."""
    log = ROWS.append_column("prob", pa.array([None if p is None else 0.25 for p in ROWS["place"].to_pylist()]))
    lists = pa.array([[0.25] * len(r) for r in DISPLAYS["ranking"].to_pylist()])
    control, treatment = ft.LoggedSlots(probs="prob"), ft.PlackettLuce("treatment_scores")
    one, other = (
        ft.OfflineTest(log=columns, control=control, treatment=treatment, estimators=["iips"]).run(table)
        for columns, table in ((LONG, log), (SHORT, DISPLAYS.append_column("prob", lists)))
    )
    assert_same(one, other)


def changed(**columns: Any) -> pa.Table:
    """The first display's rows, with other columns; its items are 100 to 104, those in slots 1 and 2 shown."""
    table = pa.table({
        "view": ["a"] * 4 + ["b"] * 2, "sku": [1, 2, 3, 4, 1, 2], "place": [2, 1, None, None, 1, None],
        "click": [0.0, 1.0, None, 0.0, 1.0, None], "control_scores": np.arange(6.0), "treatment_scores": np.ones(6),
        "user": [7, 7, None, 7, 8, 8],
    })  # fmt: skip
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table


def test_one_display_by_hand() -> None:
    source = open_log(changed(), test_of(LONG).settings)
    columns = [
        "view", "sku", "foretest: ranking", "click", "foretest: click by slot", "control_scores", "user",
    ]  # fmt: skip
    rows = pa.Table.from_batches([chunk.batch for part in source.parts(columns) for chunk in part()])
    assert rows.to_pylist() == [
        {"view": "a", "sku": [1, 2, 3, 4], "foretest: ranking": [1, 0], "click": 1.0,
         "foretest: click by slot": [1.0, 0.0], "control_scores": [0.0, 1.0, 2.0, 3.0], "user": 7},
        {"view": "b", "sku": [1, 2], "foretest: ranking": [0], "click": 1.0, "foretest: click by slot": [1.0],
         "control_scores": [4.0, 5.0], "user": 8},
    ]  # fmt: skip


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "a slot twice": ({"place": [1, 1, None, None, 1, None]}, "column 'place', display 'a': slot 1 occurs twice"),
    "a gap": ({"place": [3, 1, None, None, 1, None]}, "column 'place', display 'a': slot 2 is missing"),
    "no first slot": ({"place": [2, 3, None, None, 1, None]}, "column 'place', display 'a': slot 1 is missing"),
    "half a slot": ({"place": [1.5, 1, None, None, 1, None]}, "column 'place', display 'a': a slot is 1.5"),
    "a negative slot": ({"place": [2, 1, -1, None, 1, None]}, "column 'place', display 'a': a slot is -1"),
    "nothing shown": ({"place": [2, 1, None, None, None, None]}, "column 'place', display 'b': no item was shown"),
    "a reward of what was not shown": (
        {"click": [0.0, 1.0, 1.0, 0.0, 1.0, None]},
        "column 'click', display 'a': the item 3 has a reward and was not shown",
    ),
    "an item twice": ({"sku": [1, 2, 3, 3, 1, 2]}, "column 'sku', display 'a': the item 3 is listed twice"),
    "no item": ({"sku": [1, 2, 3, None, 1, 2]}, "column 'sku', display 'a': an item is null"),
    "no display": ({"view": ["a", "a", "a", "a", "b", None]}, "column 'view': a row has no display"),
    "two users": ({"user": [7, 7, 7, 9, 8, 8]}, "column 'user', display 'a': it is 7 and 9 in one display"),
    "a reward of NaN": (
        {"click": [float("nan"), 1.0, None, 0.0, 1.0, None]},
        "column 'click', display 'a': a reward is NaN",
    ),
    "a negative reward": (
        {"click": [-2.0, 1.0, None, 0.0, 1.0, None]},
        "column 'click', display 'a': a reward is -2",
    ),
    "a score of NaN": (
        {"control_scores": [0.0, 1.0, float("nan"), 3.0, 4.0, 5.0]},
        "column 'control_scores', display 'a': the value of an item is NaN",
    ),
    "slots in words": ({"place": ["b", "a", None, None, "a", None]}, "column 'place' is string, expected a number"),
    "rewards in words": ({"click": ["0", "1", None, "0", "1", None]}, "column 'click' is string, expected a number"),
    "items in lists": ({"sku": [[1], [2], [3], [4], [1], [2]]}, "column 'sku' is list<"),
    "no score": (
        {"control_scores": [0.0, 1.0, None, 3.0, 4.0, 5.0]},
        "column 'control_scores', display 'a': an item has no value",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "what"), FAULTS.values(), ids=list(FAULTS))
def test_faults_name_the_display(columns: dict[str, Any], what: str, tmp_path: Path) -> None:
    path = tmp_path / "long.parquet"
    pq.write_table(changed(**columns), path)
    with pytest.raises(ft.BadInput) as error:
        test_of(LONG).run(str(path))
    assert str(error.value).startswith(f"{path}: {what}")


def test_joins_that_lose_something_are_faults(tmp_path: Path) -> None:
    tables = three_tables(ROWS)
    first = tables["impressions"]["view"][0].as_py()
    fewer = tables["candidates"].filter(
        pa.compute.invert(pa.compute.and_(
            pa.compute.equal(tables["candidates"]["view"], first),
            pa.compute.equal(tables["candidates"]["sku"], tables["impressions"]["sku"][0]),
        ))
    )  # fmt: skip
    strange = pa.concat_tables([tables["rewards"], pa.table({"view": [first], "sku": [999], "click": [1.0]})])
    for changes, what in (
        ({"candidates": fewer}, f"column 'control_scores', display {first!r}: an item has no value"),
        ({"rewards": strange}, f"column 'click', display {first!r}: the item 999 has a reward and was not shown"),
    ):
        for name, table in {**tables, **changes}.items():
            pq.write_table(table, tmp_path / f"{name}.parquet")
        paths = {name: str(tmp_path / f"{name}.parquet") for name in tables}
        with pytest.raises(ft.BadInput, match=f"^the tables of the log: {what}"):
            test_of(ft.LogColumns(**{**LONG.written(), "tables": paths})).run(None)


REFUSED = {
    "no slot": ({"slot": None}, '[log] layout = "long" needs slot = "column": where the item was shown'),
    "another layout": ({"layout": "wide"}, "unknown [log] layout 'wide'. Known: display, long."),
    "a ranking too": ({"ranking": "r"}, "[log] ranking is for logs with one row per display"),
    "no layout": ({"layout": "display"}, "[log] display is for logs with one row per display and item"),
    "first slot 2": ({"first_slot": 2}, "[log] first_slot = 2: expected 1 or 0"),
    "one column twice": ({"slot": "sku"}, "[log] names the column 'sku' for two of display, item, slot and rewards"),
    "tables without impressions": ({"tables": {"rewards": "r.parquet"}}, "[log.tables] needs impressions"),
    "an unknown table": ({"tables": {"clicks": "r.parquet"}}, "[log.tables] has an unknown key 'clicks'"),
}


@pytest.mark.parametrize(("change", "what"), REFUSED.values(), ids=list(REFUSED))
def test_settings_that_do_not_fit(change: dict[str, Any], what: str) -> None:
    with pytest.raises(ft.BadInput) as error:
        ft.LogColumns(**{**LONG.written(), **change})
    assert what in str(error.value)


def test_what_long_logs_cannot_have() -> None:
    fixed = ft.OfflineTest(log=LONG, control=ft.PlackettLuce("control_scores"), treatment=ft.Fixed("best"))
    with pytest.raises(ft.BadInput, match=r'policies with candidates of their own, and "fixed", need a log'):
        fixed.run(ROWS)
    with pytest.raises(ft.BadInput, match=r"there is no column 'view'\. Did you mean"):
        test_of(LONG).run(ROWS.rename_columns(["views", *ROWS.column_names[1:]]))
    with pytest.raises(ft.BadInput, match="no log is given"):
        test_of(LONG).run(None)
