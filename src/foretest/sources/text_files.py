"""What files of text share: DuckDB parses them, and one sentence says where it could not."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa

from foretest.errors import BadInput
from foretest.sources.files import File, LogFiles, Piece, changed
from foretest.sources.paths import file_ends
from foretest.sources.queries import failures, literal, open_database

ARROW_TYPES = {
    "VARCHAR": pa.string(), "BIGINT": pa.int64(), "UBIGINT": pa.uint64(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us"), "VARCHAR[]": pa.list_(pa.string()),
    "BIGINT[]": pa.list_(pa.int64()), "UBIGINT[]": pa.list_(pa.uint64()), "DOUBLE[]": pa.list_(pa.float64()),
}  # fmt: skip


def open_bytes(path: Path) -> IO[bytes]:
    """The file, unpacked where it is compressed."""
    return gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb")  # type: ignore[return-value]


def refuse_empty(path: Path, kind: str) -> None:
    if file_ends(path, 1)[2] == 0:
        raise BadInput(f"{path}: the file is empty (0 bytes), not {kind}. Write it again, or leave it out.")


def file_literal(path: Path) -> str:
    """A path in SQL: this very file, whatever characters of a pattern its name has."""
    return literal(re.sub(r"([*?\[])", r"[\1]", str(path)))


def struct(types: dict[str, str]) -> str:
    """Names and types of columns in SQL."""
    return "{" + ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in types.items()) + "}"


class TextFiles(LogFiles[File]):
    """Files that one DuckDB reads: its readers share threads and memory."""

    @cached_property
    def database(self) -> Any:
        return open_database()


@contextmanager
def reader_of(database: Any) -> Iterator[Any]:
    """A connection for one reader."""
    connection = database.cursor()
    try:
        connection.execute("SET enable_progress_bar = false")
        yield connection
    finally:
        connection.close()


@contextmanager
def told(path: Path, sentence_for: Callable[[Path, Exception], BadInput]) -> Iterator[None]:
    """DuckDB's errors about a file as one sentence; that the file went away is told first."""
    try:
        yield
    except failures() as error:
        file_ends(path, 1)
        raise sentence_for(path, error) from None


def whole_file(database: Any, path: Path, query: str, rows: int | None, batch_rows: int) -> Piece:
    """The rows that a query gives of one file, in order; `rows` where they were counted before."""

    def read() -> Iterator[pa.RecordBatch]:
        seen = 0
        with reader_of(database) as connection, connection.sql(query).to_arrow_reader(batch_rows) as reader:
            for batch in reader:
                seen += batch.num_rows
                for begin in range(0, batch.num_rows, batch_rows):
                    yield batch.slice(begin, batch_rows)
        if rows is not None and seen != rows:
            raise changed(path)

    return Piece(0, read)


def explained(piece: Piece, path: Path, sentence_for: Callable[[Path, Exception], BadInput]) -> Piece:
    """The same piece; what DuckDB cannot read is told."""

    def read() -> Iterator[pa.RecordBatch]:
        with told(path, sentence_for):
            yield from piece.read()

    return Piece(piece.row, read)


# -- why a column has the type it has ---------------------------------------------------------------------------------


class Found(NamedTuple):
    """Rows of one file whose values are of one kind."""

    path: Path
    kind: str  # "integers", "numbers", …
    rows: int
    row: int  # the first
    value: Any


def odd_one_out(found: Iterable[Found]) -> str:
    """What most rows hold, and the first that does not.

    >>> rows = [Found(Path("a.csv"), "integers", 98, 0, "1"), Found(Path("a.csv"), "text", 2, 31, "yes")]
    >>> odd_one_out(rows)
    " (most rows hold integers, but row 31 of a.csv, the first row being 0, holds 'yes')"
    """
    found = list(found)
    counts: dict[str, int] = {}
    for one in found:
        counts[one.kind] = counts.get(one.kind, 0) + one.rows
    most = max(counts, key=lambda kind: counts[kind], default="")
    odd = [one for one in found if one.kind != most and not _fits(one.kind, most)]
    if not odd:
        return ""
    text = str(odd[0].value)
    shown = repr(text if len(text) <= 40 else text[:39] + "…")
    place = f"row {odd[0].row} of {odd[0].path}, the first row being 0,"
    return f" (most rows hold {most}, but {place} holds {shown})"


def _fits(kind: str, other: str) -> bool:
    """An integer is a number too."""
    return (kind, other) in {("integers", "numbers"), ("lists of integers", "lists of numbers")}
