"""Long logs: faults that are found after folding, files and columns that do not fit, and slots that look odd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import foretest as ft
from tests.log.test_long_layout import ROWS, changed
from tests.long_log import LONG, test_of, three_tables


def refused(log: Any, test: ft.OfflineTest | None = None) -> str:
    with pytest.raises(ft.BadInput) as error:
        (test or test_of(LONG)).run(log)
    return str(error.value)


# -- faults after folding ---------------------------------------------------------------------------------------------


def test_a_fault_of_displays_names_the_users_file_and_the_display(tmp_path: Path) -> None:
    """A long log is folded to a temporary file first, whose name and rows say nothing to a user."""
    path = tmp_path / "long.parquet"
    pq.write_table(changed(click=[0.0, 5.0, None, 0.0, 1.0, None]), path)
    test = test_of(LONG, r_max=1)
    expected = (
        f"{path}: column 'click', display 'a': the reward 5 is above r_max = 1; no other display has this fault. Raise"
        " r_max, or fix the reward."
    )
    assert refused(str(path), test) == expected
    for command in (
        lambda: test.check(str(path)),
        lambda: test.pack(str(path), tmp_path / "new" / "packed"),
        lambda: test.save_aggregates(str(path), tmp_path / "sums.parquet"),
        lambda: ft.plan_log(test, str(path)),
    ):
        with pytest.raises(ft.BadInput) as error:
            command()
        assert str(error.value) == expected
    assert [p.name for p in tmp_path.iterdir()] == ["long.parquet"]


def test_a_ranking_that_the_control_cannot_show() -> None:
    swap = ft.OfflineTest(
        log=LONG, control=ft.SwapNeighbours("control_scores", swap=0.1), treatment=ft.PlackettLuce("treatment_scores")
    )
    sentence = refused(changed(), swap)
    assert sentence.startswith("the table: column 'control_scores', display 'a': the control gives probability 0 to")
    assert "no other display has this fault" in sentence


def test_a_fault_of_a_folded_column_names_the_users_own() -> None:
    """The ranking of a display is what the slots say."""
    sentence = refused(changed(), test_of(LONG, examination=[1.0]))
    assert sentence.startswith("the table: column 'place', display 'a': ")


def test_a_stream_keeps_its_name() -> None:
    table = changed(click=[0.0, 5.0, None, 0.0, 1.0, None])
    sentence = refused(table.to_reader(), test_of(LONG, r_max=1))
    assert sentence.startswith("the stream: column 'click', display 'a': the reward 5")


# -- files and columns ------------------------------------------------------------------------------------------------


def test_files_that_differ(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    half = len(ROWS) // 2
    pq.write_table(ROWS.slice(0, half), logs / "a.parquet")
    rest, at = ROWS.slice(half), ROWS.column_names.index("control_scores")
    words = pa.array(["much"] * len(rest))
    for table, what in (
        (rest.drop_columns(["control_scores"]), "b.parquet: there is no column 'control_scores', which "),
        (rest.set_column(at, "control_scores", words), "b.parquet: column 'control_scores' is string, and double in "),
        (rest.append_column("sku", rest["sku"]), "b.parquet: column 'sku' is there 2 times. Rename all but one."),
        (rest.append_column("a\0", rest["sku"]), "b.parquet: the name of column 'a\\x00' has a null character."),
    ):
        pq.write_table(table, logs / "b.parquet")
        assert refused(str(logs)).startswith(f"{logs}/{what}")


def test_a_rewards_table_without_the_reward(tmp_path: Path) -> None:
    tables = three_tables(ROWS)
    tables["rewards"] = tables["rewards"].rename_columns(["view", "sku", "clicks"])
    for name, table in tables.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    paths = {name: str(tmp_path / f"{name}.parquet") for name in tables}
    test = test_of(ft.LogColumns(**{**LONG.written(), "tables": paths}))
    assert refused(None, test) == (
        f"{paths['rewards']} ([log.tables] rewards): there is no column 'click'. Did you mean 'clicks'?"
    )


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64()), pa.duration("s")], ids=["list", "map", "duration"]
)
def test_a_column_without_a_single_value(kind: pa.DataType, tmp_path: Path) -> None:
    values = pa.nulls(6, kind)
    log = ft.LogColumns(**{**LONG.written(), "date": "day"})
    sentence = refused(changed().append_column("day", values), test_of(log))
    assert sentence.startswith("the table: column 'day' is ")
    assert sentence.endswith("expected one number, text or date for each display. Convert it.")


def test_a_duration_of_each_item(tmp_path: Path) -> None:
    log = ft.LogColumns(**{**LONG.written(), "item_features": ["age"]})
    table = changed().append_column("age", pa.array([1] * 6, pa.duration("s")))
    assert refused(table, test_of(log)).startswith("the table: column 'age' is list<item: month_day_nano_interval>")


def test_a_column_in_which_every_value_is_null() -> None:
    log = ft.LogColumns(**{**LONG.written(), "date": "day"})
    assert test_of(log).check(changed().append_column("day", pa.nulls(6))).log["rows"] == 2


def test_a_value_of_nan_in_all_rows_of_a_display() -> None:
    """It is one value, as pandas has it for a value that is missing."""
    log = ft.LogColumns(**{**LONG.written(), "features": ["age"]})
    table = changed().append_column("age", pa.array([float("nan")] * 4 + [3.0] * 2))
    assert test_of(log).check(table).log["rows"] == 2
    other = changed().append_column("age", pa.array([float("nan")] * 3 + [3.0] * 3))
    assert "column 'age', display 'a': it is nan and 3.0 in one display" in refused(other, test_of(log))


def test_a_stream_is_packed_in_one_pass(tmp_path: Path) -> None:
    test_of(LONG).pack(changed().to_reader(), tmp_path / "packed")
    assert test_of(LONG).check(tmp_path / "packed").log["rows"] == 2


def test_a_slot_beyond_the_integers_that_a_float_has() -> None:
    assert "slot 2 is missing" in refused(changed(place=[2**62, 1, None, None, 1, None]))
    assert test_of(LONG).check(changed(click=[0, 2**60, None, 0, 1, None])).log["rows"] == 2


# -- odd slots --------------------------------------------------------------------------------------------------------

LACKS = "every item of every display was shown: the log has no other candidate."
ZERO = "every display has one row whose 'place' is 0, which is read as not shown."


def notes(log: pa.Table, first_slot: int = 1) -> list[str]:
    test = test_of(ft.LogColumns(**{**LONG.written(), "first_slot": first_slot}))
    result, checked = test.run(log), test.check(log)
    for beginning in (LACKS, ZERO):
        both = [[note for note in r.notes if note.startswith(beginning)] for r in (result, checked)]
        assert both[0] == both[1]
    return [note for note in result.notes if note.startswith((LACKS, ZERO))]


def test_a_log_without_candidates_beyond_what_was_shown() -> None:
    shown = ROWS.filter(pc.is_valid(ROWS["place"]))
    [note] = notes(shown)
    assert note.endswith("add a row with a null slot for each.")
    assert notes(ROWS) == []
    one_more = pc.or_(pc.is_valid(ROWS["place"]), pc.equal(ROWS["view"], "d0000"))
    assert notes(ROWS.filter(one_more)) == []  # one display has some


def test_slots_that_seem_to_count_from_0() -> None:
    """One row of slot 0 in every display, none of them clicked: it would be read as not shown."""
    place = pc.subtract(ROWS["place"], 1)
    unclicked = pc.if_else(pc.fill_null(pc.greater(place, 0), False), ROWS["click"], 0.0)
    from_0 = ROWS.set_column(2, "place", place).set_column(3, "click", unclicked)
    several = from_0.filter(
        pc.is_in(from_0["view"], value_set=pc.unique(from_0.filter(pc.equal(place, 1))["view"]))
    )  # displays of one slot would show nothing
    sentence = refused(several)
    assert sentence.startswith("the table: column 'place': every display has one row of slot 0, and candidates without")
    assert "add first_slot = 0 to [log]; where it means that an item was not shown, write null." in sentence
    assert notes(several, first_slot=0) == []
    shown = several.filter(pc.is_valid(several["place"]))
    [note] = notes(shown)  # 0 may as well mean that one candidate was not shown: a question
    assert note.startswith(ZERO)
    assert note.endswith("Where 0 is the best slot, add first_slot = 0 to [log].")
    assert [note[:30] for note in notes(shown, first_slot=0)] == [LACKS[:30]]


def test_a_display_that_shows_slot_0_alone() -> None:
    sentence = refused(changed(place=[0, None, None, None, 0, None], click=[0.0] * 6))
    assert "display 'a': no item was shown" in sentence
    assert sentence.endswith("Where the best slot is 0, add first_slot = 0 to [log].")
