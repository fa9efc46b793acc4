"""What a row to log may hold: types of columns over rows, in both formats, and what is refused."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.serving import BadInput, LogWriter
from foretest.sources import open_source

FORMATS = ("parquet", "jsonl")
NOON = datetime(2024, 3, 1, 12, 0, 0, 5, UTC)


class Country(enum.StrEnum):
    FRANCE = "fr"


def written(folder: Path, format: str, rows: Iterable[dict[str, Any]]) -> pa.Table:
    """Rows through a writer, as Foretest reads them."""
    with LogWriter(folder, format) as log:
        for row in rows:
            log.write(row)
    source = open_source(str(folder))
    [(_, schema)] = source.schemas()
    return pa.Table.from_batches([chunk.batch for part in source.parts(schema.names) for chunk in part()])


COLUMNS: dict[str, tuple[list[Any], list[Any], pa.DataType]] = {
    "integers": ([1, -(2**63), 2**63 - 1], [1, -(2**63), 2**63 - 1], pa.int64()),
    "numbers": ([0.1, 1e-300, -2.0], [0.1, 1e-300, -2.0], pa.float64()),
    "an integer, then a fraction": ([1, 0.5], [1.0, 0.5], pa.float64()),
    "a fraction, then an integer": ([0.5, 1], [0.5, 1.0], pa.float64()),
    "true, then 0": ([True, 0], [1, 0], pa.int64()),
    "true, then a fraction": ([True, 0.5], [1.0, 0.5], pa.float64()),
    "truth values": ([True, False], [True, False], pa.bool_()),
    "text": (["é", "12", "", "a\nb\x00c"], ["é", "12", "", "a\nb\x00c"], pa.string()),
    "null first": ([None, "a"], [None, "a"], pa.string()),
    "null in between": ([1.5, None, 2], [1.5, None, 2.0], pa.float64()),
    "lists": ([[0.1, 2.0], [3.0]], [[0.1, 2.0], [3.0]], pa.list_(pa.float64())),
    "empty lists first": ([[], [3]], [[], [3]], pa.list_(pa.int64())),
    "a list without values, and none": ([["a"], [], None], [["a"], [], None], pa.list_(pa.string())),
    "lists of integers, then of numbers": ([[1], [0.5], []], [[1.0], [0.5], []], pa.list_(pa.float64())),
    "a list of both": ([[1, 0.5]], [[1.0, 0.5]], pa.list_(pa.float64())),
    "truth values and numbers in a list": ([[True, 2], [3]], [[1, 2], [3]], pa.list_(pa.int64())),
    "long integers": ([[2**60 + 1], [1]], [[2**60 + 1], [1]], pa.list_(pa.int64())),
    "tuples": ([("a", "b")], [["a", "b"]], pa.list_(pa.string())),
    "arrays": ([np.arange(3), np.array([1.5], np.float32)], [[0, 1, 2], [1.5]], pa.list_(pa.float64())),
    "numbers of NumPy": ([np.float32(1.5), np.int64(2)], [1.5, 2.0], pa.float64()),
    "truth values of NumPy": ([np.bool_(True)], [True], pa.bool_()),
    "subclasses of text": ([Country.FRANCE, np.str_("de")], ["fr", "de"], pa.string()),
    "lists of those": ([[Country.FRANCE, "de"], np.array(["es"])], [["fr", "de"], ["es"]], pa.list_(pa.string())),
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_comes_back_as_it_was_logged(name: str, format: str, tmp_path: Path) -> None:
    values, expected, kind = COLUMNS[name]
    table = written(tmp_path, format, ({"id": i, "x": value} for i, value in enumerate(values)))
    assert table["x"].to_pylist() == expected
    assert table.schema.field("x").type == kind


@pytest.mark.parametrize("format", FORMATS)
def test_times_are_in_utc(format: str, tmp_path: Path) -> None:
    paris = timezone(timedelta(hours=1))
    rows = [{"t": NOON, "d": date(2024, 3, 1)}, {"t": datetime(2024, 3, 1, 13, 0, 0, 5, paris), "d": date(2024, 3, 2)}]
    table = written(tmp_path, format, rows)
    assert [t.replace(tzinfo=UTC) for t in table["t"].to_pylist()] == [NOON, NOON]
    assert table["d"].to_pylist() == [date(2024, 3, 1), date(2024, 3, 2)]


@pytest.mark.parametrize("format", FORMATS)
def test_a_column_that_a_row_lacks_is_null(format: str, tmp_path: Path) -> None:
    table = written(tmp_path, format, [{"id": 1, "a": "x"}, {"id": 2, "b": 0.5}, {"b": 1, "id": 3, "c": None}])
    assert table.select(["id", "a", "b"]).to_pylist() == [
        {"id": 1, "a": "x", "b": None}, {"id": 2, "a": None, "b": 0.5}, {"id": 3, "a": None, "b": 1.0},
    ]  # fmt: skip
    assert table["c"].null_count == 3


def test_a_row_is_copied(tmp_path: Path) -> None:
    row: dict[str, Any] = {"ranking": [3, 1], "ids": ["c", "a"], "scores": np.array([0.5, 1.5])}
    with LogWriter(tmp_path / "log", "jsonl") as log:
        log.write(row)
        row["ranking"].reverse()
        row["ids"].pop()
        row["scores"][:] = 0.0
        row["late"] = 1
    [file] = (tmp_path / "log").iterdir()
    assert file.read_text() == '{"ranking": [3, 1], "ids": ["c", "a"], "scores": [0.5, 1.5]}\n'


REFUSED: dict[str, tuple[list[dict[Any, Any]], str]] = {
    "text after a number": ([{"u": 12}, {"u": "12"}], r"column 'u' is text, and was a whole number.*two ids\. Convert"),
    "a number after text": ([{"u": "12"}, {"u": 12}], "column 'u' is a whole number, and was text in earlier rows"),
    "a list after a number": ([{"u": 1}, {"u": [1]}], "is a list of whole numbers, and was a whole number in earlier"),
    "an empty list after a number": ([{"u": 1}, {"u": []}], "is an empty list, and was a whole number in earlier rows"),
    "other lists": ([{"u": [1]}, {"u": ["a"]}], "is a list of text, and was a list of whole numbers in earlier rows"),
    "a fraction after long ids": ([{"u": 2**60}, {"u": 0.5}], r"a number, and was a whole number beyond 2\^53"),
    "long ids after a fraction": ([{"u": 0.5}, {"u": 2**60}], r"a whole number beyond 2\^53, and was a number"),
    "a text time": ([{"t": NOON}, {"t": "2024-03-01"}], "column 't' is text, and was a time"),
    "no zone": ([{"t": datetime(2024, 3, 1)}], r"column 't' is a time without a zone: .* datetime.now\(UTC\)"),
    "NaN": ([{"x": math.nan}], "column 'x' is nan: expected a finite number, or None"),
    "infinity in a list": ([{"x": [1.0, -math.inf]}], "column 'x' is -inf: expected a finite number"),
    "None in a list": ([{"x": [1.0, None]}], "column 'x' has null at position 1 of a list"),
    "lists of lists": ([{"x": [[1.0], [2.0]]}], "column 'x' has a list of numbers at position 0 of a list"),
    "ragged lists": ([{"x": [1, [2]]}], "column 'x' has a list of whole numbers at position 1 of a list"),
    "several types in a list": ([{"x": [1, "a"]}], "column 'x' is a list with a whole number and text"),
    "too long": ([{"x": 2**63}], "column 'x' has a whole number that 64 bits cannot hold: log it as text"),
    "too long in a list": ([{"x": [1, 2**63]}], "64 bits cannot hold"),
    "a surrogate": ([{"x": "\ud800"}], "column 'x' has a lone surrogate"),
    "a surrogate in a list": ([{"x": ["a", "\ud800"]}], "column 'x' has a lone surrogate"),
    "a table": ([{"x": {"a": 1}}], "column 'x' is a dict: expected a number, text, true or false, a datetime"),
    "a decimal": ([{"x": Decimal("1.5")}], "column 'x' is a Decimal: expected a number"),
    "a matrix": ([{"x": np.zeros((2, 2))}], "column 'x' is a ndarray: expected"),
    "a time of NumPy": ([{"x": np.datetime64("2024-03-01")}], "column 'x' is a datetime64: expected"),
    "no columns": ([{}], "the row is empty"),
    "a column without a name": ([{"": 1}], "column '': expected a name"),
    "a column that is no text": ([{1: 1}], "column 1: expected a name"),
    "a surrogate as a name": ([{"\ud800": 1}], "has a lone surrogate"),
    "before the year 1": ([{"t": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))}], "a time before the year 1"),
    "too many columns": ([dict.fromkeys(map(str, range(1001)), 1)], "one more than 1,000: log what differs by item as"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, tmp_path: Path) -> None:
    """In the sentence of whoever wrote the row; rows before and after it are logged."""
    rows, message = REFUSED[name]
    good = rows[:-1] or [{"id": 1}]
    with LogWriter(tmp_path / "log", "jsonl") as log:
        for row in good:
            log.write(row)
        with pytest.raises(BadInput, match=message):
            log.write({**rows[-1], "other": "text"} if rows[-1] else {})
        log.write({**good[0], "other": 1})  # the refused row said nothing of the columns it had
    [file] = (tmp_path / "log").iterdir()
    assert len(file.read_text().splitlines()) == len(good) + 1


@pytest.mark.parametrize("format", FORMATS)
def test_a_column_that_is_null_in_a_whole_file(format: str, tmp_path: Path) -> None:
    """Its type follows from other files, before it or after it."""
    for country in (None, "fr", None):
        with LogWriter(tmp_path / "log", format) as log:
            for row in range(40):
                shown = {"ranking": [row % 2], "old": [0.0, 1.0], "new": [1.0, 0.0], "lists": [] if row else ["a"]}
                log.write({"id": f"{country}-{row}", "click": row % 3 == 0, "country": country, **shown})
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking", segments=["country"]),
        control=ft.PlackettLuce("old"), treatment=ft.PlackettLuce("new"), estimators=["ncis"], n_resamples=20,
    )  # fmt: skip
    result = test.run(str(tmp_path / "log"))
    assert result.log["rows"] == 120
