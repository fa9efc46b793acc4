"""CSV: a column is of the narrowest type that holds all its values in all files; lists are JSON text, "[1, 2, 3]".

All values are looked at before they are read. A type guessed from the first rows could be wrong for the rest: an id of
007 is not 7, and a list of scores may begin with whole numbers.
"""

from __future__ import annotations

import csv
import re
import zlib
from collections.abc import Iterator
from enum import IntFlag
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from foretest.background import in_background
from foretest.errors import BadInput, RowFault
from foretest.records import dataclass
from foretest.sources.files import Piece
from foretest.sources.local_copies import TextPlace
from foretest.sources.queries import failures, sentence
from foretest.sources.text_files import (
    ARROW_TYPES,
    RowsOfKind,
    TextFiles,
    duckdb_errors_explained,
    file_literal,
    odd_one_out,
    open_bytes,
    reader_of,
    refuse_empty,
    struct,
    whole_file,
)


class Kind(IntFlag):
    """What a value looks like."""

    NATURAL = 1
    NEGATIVE = 2
    BIG = 4  # an integer beyond int64 that fits in uint64
    NUMBER = 8
    BOOL = 16
    DATE = 32
    TIMESTAMP = 64
    TEXT = 128
    NATURALS = 256  # this and what follows are lists
    NEGATIVES = 512  # a list of integers, some below 0
    BIGS = 1024
    NUMBERS = 2048
    TEXTS = 4096


_INTEGER = Kind.NATURAL | Kind.NEGATIVE
_WORDS = {
    Kind.NATURAL: "integers", Kind.NEGATIVE: "integers", Kind.BIG: "integers", Kind.NUMBER: "numbers",
    Kind.BOOL: "true or false", Kind.DATE: "dates", Kind.TIMESTAMP: "times", Kind.TEXT: "text",
    Kind.NATURALS: "lists of integers", Kind.NEGATIVES: "lists of integers", Kind.BIGS: "lists of integers",
    Kind.NUMBERS: "lists of numbers", Kind.TEXTS: "lists of text",
}  # fmt: skip


def _kind(column: str) -> str:
    """The kind of a value, in SQL. An integer is one in its usual form: 007 is text."""
    return rf"""CASE
        WHEN {column} IS NULL THEN 0
        WHEN starts_with(ltrim({column}), '[') THEN CASE
            WHEN regexp_matches({column}, '["'']') THEN {Kind.TEXTS:d}
            WHEN regexp_matches({column}, '[^-0-9,\s\[\]nul]') THEN {Kind.NUMBERS:d}
            WHEN contains({column}, '-') THEN {Kind.NEGATIVES:d}
            WHEN regexp_matches({column}, '[0-9]{{19}}') THEN {Kind.BIGS:d}
            ELSE {Kind.NATURALS:d} END
        WHEN regexp_full_match({column}, '-?[0-9]+') THEN CASE
            WHEN regexp_full_match({column}, '(-?0[0-9]+)|-0') THEN {Kind.TEXT:d}
            WHEN starts_with({column}, '-') AND TRY_CAST({column} AS BIGINT) IS NOT NULL THEN {Kind.NEGATIVE:d}
            WHEN TRY_CAST({column} AS BIGINT) IS NOT NULL THEN {Kind.NATURAL:d}
            WHEN TRY_CAST({column} AS UBIGINT) IS NOT NULL THEN {Kind.BIG:d}
            ELSE {Kind.TEXT:d} END
        WHEN TRY_CAST({column} AS DOUBLE) IS NOT NULL THEN {Kind.NUMBER:d}
        WHEN lower({column}) IN ('true', 'false') THEN {Kind.BOOL:d}
        WHEN NOT regexp_matches({column}, '^\d\d\d\d-\d\d-\d\d') THEN {Kind.TEXT:d}
        WHEN length({column}) = 10 AND TRY_CAST({column} AS DATE) IS NOT NULL THEN {Kind.DATE:d}
        WHEN TRY_CAST({column} AS TIMESTAMP) IS NOT NULL THEN {Kind.TIMESTAMP:d}
        ELSE {Kind.TEXT:d} END"""


class Tally(NamedTuple):
    """What the values of a column look like."""

    kinds: Kind  # of all values
    lists: int  # how many begin as a list
    values: int  # how many are not null

    def __or__(self, other: Tally) -> Tally:
        return Tally(self.kinds | other.kinds, self.lists + other.lists, self.values + other.values)

    @property
    def type(self) -> str:
        """The narrowest type that holds all values. A list among texts is text; a text among lists is a fault."""
        kinds = self.kinds
        if 2 * self.lists > self.values:
            if kinds & Kind.TEXTS:
                return "VARCHAR[]"
            if kinds & Kind.NUMBERS:
                return "DOUBLE[]"
            return "UBIGINT[]" if kinds & Kind.BIGS and not kinds & Kind.NEGATIVES else "BIGINT[]"
        for narrow, name in _NARROW:
            if kinds and not kinds & ~narrow:
                return name
        return "VARCHAR"


_NARROW = [
    (_INTEGER, "BIGINT"),
    (Kind.NATURAL | Kind.BIG, "UBIGINT"),
    (_INTEGER | Kind.NUMBER, "DOUBLE"),
    (Kind.NATURAL | Kind.BIG | Kind.NUMBER, "DOUBLE"),
    (Kind.BOOL, "BOOLEAN"),
    (Kind.DATE, "DATE"),
    (Kind.DATE | Kind.TIMESTAMP, "TIMESTAMP"),
]


class CsvFiles(TextFiles["CsvFile"]):
    """CSV files in order, each with a header."""

    def _open(self) -> list[CsvFile]:
        tables = [_open_csv(place) for place in self.places]
        contents = [_look(self.database, table) for table in tables]
        tallies: dict[str, Tally] = {}
        for content in contents:
            for name, tally in content.tallies:
                tallies[name] = tallies.get(name, Tally(Kind(0), 0, 0)) | tally
        types = {name: tally.type for name, tally in tallies.items()}
        return [
            CsvFile(self.database, table, types, content.rows) for table, content in zip(tables, contents, strict=True)
        ]

    def remark(self, name: str, column: str) -> str:
        """Which row gave the column its type."""
        having = [file for file in self.files if column in file.table.names]
        return in_background(lambda: odd_one_out(group for file in having for group in _kinds(file, column)))


class CsvTable(NamedTuple):
    """A file as text: the names in its header, and what separates its fields."""

    place: TextPlace
    names: list[str]
    separator: str

    @property
    def sql(self) -> str:
        """The table in SQL; a name may be in the header twice, so columns are c0, c1, …"""
        file, columns = self.place.local, struct({f"c{place}": "VARCHAR" for place in range(len(self.names))})
        return (
            f"read_csv({file_literal(file)}, auto_detect = false, header = true, delim = '{self.separator}',"
            f" quote = '\"', escape = '\"', columns = {columns}, hive_partitioning = false)"
        )

    def column(self, name: str) -> str:
        return f"c{self.names.index(name)}"


@dataclass(frozen=True)
class CsvFile:
    """A file whose values have been looked at, so that its types are known."""

    database: Any
    table: CsvTable
    types: dict[str, str]
    rows: int

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, ARROW_TYPES[self.types[name]]) for name in self.table.names])

    def pieces(self, columns: list[str], batch_rows: int) -> list[Piece]:
        query = f"SELECT {', '.join(self._typed(name) for name in columns)} FROM {self.table.sql}"
        piece = whole_file(self.database, self.table.place.path, query, self.rows, batch_rows)
        return [Piece(0, lambda: self._explained(piece, columns))]

    def _typed(self, name: str) -> str:
        column, kind = self.table.column(name), self.types[name]
        if kind.endswith("[]"):
            return f"from_json_strict({column}, '[\"{kind[:-2]}\"]')"
        return column if kind == "VARCHAR" else f"CAST({column} AS {kind})"

    def _explained(self, piece: Piece, columns: list[str]) -> Iterator[pa.RecordBatch]:
        with duckdb_errors_explained(self.table.place, _unreadable):
            try:
                for batch in piece.read():
                    yield batch.rename_columns(columns)
            except failures():
                for name in columns:
                    self._refuse_lists(name)
                raise

    def _refuse_lists(self, name: str) -> None:
        """Refuse a list column with a value that is no list of its type, and name the first."""
        if not self.types[name].endswith("[]"):
            return
        column = self.table.column(name)
        with reader_of(self.database) as connection:
            [(row, value, count)] = connection.sql(
                f"SELECT min(row), arg_min(value, row), count(*) FROM (SELECT row_number() OVER () - 1 AS row,"
                f" {column} AS value, TRY({self._typed(name)}) AS list FROM {self.table.sql})"
                " WHERE value IS NOT NULL AND list IS NULL"
            ).fetchall()
        if count:
            shown = value if len(value) <= 40 else value[:39] + "…"
            fault = RowFault(
                "list", name, np.array([row]), f"{shown!r} is not {_LIST_WORDS[self.types[name]]} as JSON",
                "Lists in CSV are JSON text, as in [1, 2, 3]: write them with json.dumps, or write Parquet.",
            )  # fmt: skip
            raise BadInput(fault.sentence(str(self.table.place.path), row, count))


_LIST_WORDS = {"VARCHAR[]": "a list of texts", "BIGINT[]": "a list of integers", "UBIGINT[]": "a list of integers",
               "DOUBLE[]": "a list of numbers"}  # fmt: skip


def _open_csv(place: TextPlace) -> CsvTable:
    refuse_empty(place, "a CSV file")
    path = place.path
    try:
        with open_bytes(place) as file:
            first = file.readline().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not text in UTF-8, as a CSV file must be. Convert it, or leave it out.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{path}: cannot be read as CSV ({error}).") from None
    separators = "\t" if ".tsv" in path.suffixes else ",;\t|"
    try:
        header = {separator: next(csv.reader([first], delimiter=separator), []) for separator in separators}
    except csv.Error:  # a line that ends in \r alone, or a name of more than 131,072 letters
        what = (
            "lines end in a carriage return alone" if "\r" in first.rstrip("\r\n") else "the header is no line of names"
        )
        raise BadInput(f"{path}: {what}. Write it as CSV with a short header and lines that end in \\n.") from None
    separator = max(separators, key=lambda s: len(header[s]))
    return CsvTable(place, header[separator], separator)


class Content(NamedTuple):
    """What a file holds."""

    tallies: list[tuple[str, Tally]]  # of each column by its name, which may be there twice
    rows: int


def _look(database: Any, table: CsvTable) -> Content:
    """Look at all values of a file."""
    columns = [f"c{place}" for place in range(len(table.names))]
    kinds = ", ".join(f"{_kind(column)} AS {column}" for column in columns)
    tallies = ", ".join(
        f"bit_or({column}), count_if({column} >= {Kind.NATURALS:d}), count_if({column} > 0)" for column in columns
    )
    with reader_of(database) as connection, duckdb_errors_explained(table.place, _unreadable):
        [(rows, *rest)] = connection.sql(
            f"SELECT count(*), {tallies} FROM (SELECT {kinds} FROM {table.sql})"
        ).fetchall()  # fmt: skip
    triples = [rest[place : place + 3] for place in range(0, len(rest), 3)]
    looked = [Tally(Kind(kinds or 0), lists or 0, values or 0) for kinds, lists, values in triples]
    return Content(list(zip(table.names, looked, strict=True)), rows)


def _kinds(file: CsvFile, column: str) -> list[RowsOfKind]:
    """How many values of a column are of each kind, and the first of each."""
    name = file.table.column(column)
    query = (
        f"SELECT kind, count(*), min(row), arg_min(value, row) FROM (SELECT row_number() OVER () - 1 AS row,"
        f" {name} AS value, {_kind(name)} AS kind FROM {file.table.sql}) WHERE kind > 0 GROUP BY kind ORDER BY min(row)"
    )
    with reader_of(file.database) as connection, duckdb_errors_explained(file.table.place, _unreadable):
        rows = connection.sql(query).fetchall()
    return [
        RowsOfKind(file.table.place.path, _WORDS[Kind(kind)], count, row, value) for kind, count, row, value in rows
    ]


def _unreadable(place: TextPlace, error: Exception) -> BadInput:
    """What DuckDB could not parse, with the line that its error names."""
    path, text = place.path, place.renamed(str(error))
    line = re.search(r"CSV Error on Line: (\d+)", text)
    if line is None:
        return BadInput(f"{path}: cannot be read as CSV ({place.renamed(sentence(error))}).")
    widths = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
    if widths is not None:
        what = f"{widths[2]} fields, where the header has {widths[1]} names"
    elif "unterminated quote" in text:
        what = "a quote that is not closed"
    elif "unicode" in text:
        what = "not text in UTF-8"
    else:
        what = " ".join(text.partition("Possible")[0].splitlines()[2:]).strip().rstrip(".")
    return BadInput(f"{path}: line {line[1]} (the header is line 1): {what}. Fix it, or leave the file out.")
