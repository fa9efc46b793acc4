"""What text files (CSV, JSON lines) share: DuckDB parses them, and where it cannot, one sentence says so."""

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
from foretest.sources.files import File, LogFiles, Piece
from foretest.sources.local_copies import LocalCopies, TextPlace
from foretest.sources.paths import file_ends
from foretest.sources.queries import failures, literal, open_database
from foretest.stores import Location
from foretest.stores.remote import changed

ARROW_TYPES = {
    "VARCHAR": pa.string(), "BIGINT": pa.int64(), "UBIGINT": pa.uint64(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us"), "VARCHAR[]": pa.list_(pa.string()),
    "BIGINT[]": pa.list_(pa.int64()), "UBIGINT[]": pa.list_(pa.uint64()), "DOUBLE[]": pa.list_(pa.float64()),
}  # fmt: skip


def open_bytes(place: TextPlace) -> IO[bytes]:
    """The file, decompressed if its name ends in .gz."""
    path = place.local
    return gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb")  # type: ignore[return-value]


def refuse_empty(place: TextPlace, kind: str) -> None:
    """Refuse a file of 0 bytes; `kind` is what it should be, as in "a CSV file"."""
    if file_ends(place.local, 1)[2] == 0:
        raise BadInput(f"{place.path}: the file is empty (0 bytes), not {kind}. Write it again, or leave it out.")


def file_literal(path: Path) -> str:
    """A path in SQL, with the characters of a pattern escaped, so that it names this file alone."""
    return literal(re.sub(r"([*?\[])", r"[\1]", str(path)))


def struct(types: dict[str, str]) -> str:
    """Names and types of columns as a struct in SQL."""
    return "{" + ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in types.items()) + "}"


class TextFiles(LogFiles[File]):
    """Text files in order, read by one DuckDB: all readers share its threads and memory."""

    @cached_property
    def database(self) -> Any:
        return open_database()

    @cached_property
    def places(self) -> list[TextPlace]:
        """Where the bytes of each file are."""
        return self._copies.places(self.paths)

    @cached_property
    def _copies(self) -> LocalCopies:
        return LocalCopies()


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
def duckdb_errors_explained(
    place: TextPlace, sentence_for: Callable[[TextPlace, Exception], BadInput]
) -> Iterator[None]:
    """DuckDB's errors about a file as one sentence; a file that cannot be opened any more is refused as such."""
    try:
        yield
    except failures() as error:
        file_ends(place.local, 1)
        raise sentence_for(place, error) from None


def whole_file(database: Any, path: Location, query: str, rows: int | None, batch_rows: int) -> Piece:
    """The rows that a query gives from one file, in order; `rows` is their number where they were counted before."""

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


def explained_piece(piece: Piece, place: TextPlace, sentence_for: Callable[[TextPlace, Exception], BadInput]) -> Piece:
    """A piece whose errors of DuckDB's are explained as one sentence."""

    def read() -> Iterator[pa.RecordBatch]:
        with duckdb_errors_explained(place, sentence_for):
            yield from piece.read()

    return Piece(piece.row, read)


# -- why a column has the type it has ---------------------------------------------------------------------------------


class RowsOfKind(NamedTuple):
    """The rows of one file whose values in a column are of one kind."""

    path: Location
    kind: str  # "integers", "numbers", …
    rows: int  # how many
    row: int  # the first of them
    value: Any  # of the first


def odd_one_out(groups: Iterable[RowsOfKind]) -> str:
    """The kind of value in most rows, and the first row with another; empty where there is none.

    >>> groups = [RowsOfKind(Path("a.csv"), "integers", 98, 0, "1"), RowsOfKind(Path("a.csv"), "text", 2, 31, "yes")]
    >>> odd_one_out(groups)
    " (most rows hold integers, but row 31 of a.csv, the first row being 0, holds 'yes')"
    """
    groups = list(groups)
    counts: dict[str, int] = {}
    for group in groups:
        counts[group.kind] = counts.get(group.kind, 0) + group.rows
    most = max(counts, key=lambda kind: counts[kind], default="")
    odd = [group for group in groups if group.kind != most and not _fits(group.kind, most)]
    if not odd:
        return ""
    text = str(odd[0].value)
    shown = repr(text if len(text) <= 40 else text[:39] + "…")
    place = f"row {odd[0].row} of {odd[0].path}, the first row being 0,"
    return f" (most rows hold {most}, but {place} holds {shown})"


def _fits(kind: str, other: str) -> bool:
    """Are values of one kind also of the other? Integers are numbers."""
    return (kind, other) in {("integers", "numbers"), ("lists of integers", "lists of numbers")}
