"""Rows as a file, Parquet or JSON lines, complete or not there at all."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from foretest.serving.row_values import BOOL, DATE, INTEGER, LONG, NOTHING, NUMBER, TEXT, TIME, Kind, as_kind

Row = dict[str, Any]
_ROWS_AT_ONCE = 25  # turned into columns in one go: other threads of the service wait meanwhile


class Columns(NamedTuple):
    """The columns of a file: their types, and which of them had a narrower one in some row."""

    kinds: Mapping[str, Kind]
    mixed: frozenset[str]

    def conform(self, rows: Sequence[Row]) -> Iterator[Row]:
        """Rows with every column, null where a row lacks it, and numbers of the column's type."""
        nulls: Row = dict.fromkeys(self.kinds)
        for row in rows:
            whole = {**nulls, **row}
            for name in self.mixed:
                whole[name] = as_kind(whole[name], self.kinds[name])
            yield whole


def import_for(format: str) -> None:
    """Write a file to nowhere: what that imports is imported now, not during a request, and not at the end of the
    process, when some modules can be imported no more."""
    kinds = {base: Kind(base) for base in (NUMBER, TEXT)} | {"numbers": Kind(NUMBER, True), "texts": Kind(TEXT, True)}
    FORMATS[format](
        io.BytesIO(), [{NUMBER: 1.0, TEXT: "a", "numbers": np.ones(1), "texts": ("a",)}], Columns(kinds, frozenset())
    )


def write_file(place: Path, rows: Sequence[Row], columns: Columns) -> None:
    """Write beside its place, to the disk, and rename. Until then its name begins with a dot and ends in .tmp: no
    pattern such as *.parquet, and no reader of a folder, takes it for a part of the log."""
    beside = place.with_name(f".{place.name}.tmp")
    try:
        with beside.open("wb") as file:
            FORMATS[place.suffix[1:]](file, rows, columns)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(place)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    with suppress(OSError):  # the rows are in the log by now: writing them again would count them twice
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _write_parquet(file: BinaryIO, rows: Sequence[Row], columns: Columns) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {
        NOTHING: pa.null(), BOOL: pa.bool_(), INTEGER: pa.int64(), LONG: pa.int64(), NUMBER: pa.float64(),
        TEXT: pa.string(), TIME: pa.timestamp("us", "UTC"), DATE: pa.date32(),
    }  # fmt: skip
    batches = []
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        part = list(columns.conform(rows[begin : begin + _ROWS_AT_ONCE]))
        arrays = {
            name: _arrow([row[name] for row in part], kind, kinds[kind.base]) for name, kind in columns.kinds.items()
        }
        batches.append(pa.record_batch(arrays))
    pq.write_table(pa.Table.from_batches(batches), file)


def _arrow(values: list[Any], kind: Kind, of_values: Any) -> Any:
    """A column of Arrow; lists of numbers are put together, which is quicker than one by one."""
    import pyarrow as pa

    if not kind.in_list:
        return pa.array(values, of_values)
    if kind.base not in (INTEGER, LONG, NUMBER):
        return pa.array(values, pa.list_(of_values))
    dtype = np.float64 if kind.base == NUMBER else np.int64
    lists = [np.asarray(() if value is None else value, dtype) for value in values]
    ends = np.cumsum([0, *map(len, lists)], dtype=np.int32)
    mask = pa.array([value is None for value in values])
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(np.concatenate(lists)), mask=mask)


def _write_json(file: BinaryIO, rows: Sequence[Row], columns: Columns) -> None:
    for row in columns.conform(rows):
        file.write(json.dumps(row, ensure_ascii=False, allow_nan=False, default=_in_json).encode() + b"\n")


def _in_json(value: Any) -> Any:
    """A time in UTC as 2024-03-01T10:00:00.000000Z, a date as 2024-03-01, an array as a list."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value.isoformat()


#: what writes each format, by the ending of its files
FORMATS: dict[str, Callable[[BinaryIO, Sequence[Row], Columns], None]] = {
    "parquet": _write_parquet,
    "jsonl": _write_json,
}
