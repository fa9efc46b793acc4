"""JSON lines: one object per row. DuckDB looks at all values of all files to find a column's type."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from foretest.background import in_background
from foretest.errors import BadInput
from foretest.records import dataclass
from foretest.sources.files import Piece
from foretest.sources.local_copies import TextPlace
from foretest.sources.queries import quoted, sentence
from foretest.sources.text_files import (
    ARROW_TYPES,
    RowsOfKind,
    TextFiles,
    duckdb_errors_explained,
    explained_piece,
    file_literal,
    odd_one_out,
    open_bytes,
    reader_of,
    refuse_empty,
    struct,
    whole_file,
)


class JsonFiles(TextFiles["JsonFile"]):
    """Files of JSON lines, in order."""

    def _open(self) -> list[JsonFile]:
        files = [JsonFile(self.database, place, _types(self.database, place)) for place in self.places]
        wide: dict[str, str] = {}
        for name, kind in (pair for file in files for pair in file.types.items()):
            wide[name] = _wider(wide.get(name, _NOTHING), kind)
        types = {name: _narrowed(files, name, kind) for name, kind in wide.items()}
        return [replace(file, types={name: types[name] for name in file.types}) for file in files]

    def remark(self, name: str, column: str) -> str:
        """Which row gave the column its type."""
        having = [file for file in self.files if column in file.types]
        return in_background(lambda: odd_one_out(group for file in having for group in _kinds(file, column)))


@dataclass(frozen=True)
class JsonFile:
    """A file of JSON lines, and the types of its columns in the whole log."""

    database: Any
    place: TextPlace
    types: dict[str, str]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in self.types.items()])

    @cached_property
    def rows(self) -> int:
        [(rows,)] = in_background(lambda: self.ask("count(*)", {next(iter(self.types)): "JSON"}))
        return int(rows)

    def pieces(self, columns: list[str], batch_rows: int) -> list[Piece]:
        table = _table(self.place, {name: self.types[name] for name in columns})
        query = f"SELECT {', '.join(quoted(name) for name in columns)} FROM {table}"
        piece = whole_file(self.database, self.place.path, query, None, batch_rows)
        return [explained_piece(piece, self.place, _unreadable)]

    def ask(self, what: str, types: dict[str, str]) -> list[Any]:
        """The rows of a small query, its columns read with these types."""
        with reader_of(self.database) as connection, duckdb_errors_explained(self.place, _unreadable):
            rows: list[Any] = connection.sql(f"SELECT {what} FROM {_table(self.place, types)}").fetchall()
        return rows


def _table(place: TextPlace, types: dict[str, str] | None = None) -> str:
    """The file in SQL, read with these types; without them, with those that DuckDB finds in all its rows."""
    how = "sample_size = -1" if types is None else f"columns = {struct(types)}"
    return (
        f"read_json({file_literal(place.local)}, format = 'newline_delimited', {how}, hive_partitioning = false,"
        " dateformat = '%Y-%m-%d')"
    )


def _types(database: Any, place: TextPlace) -> dict[str, str]:
    """The types of a file's columns as DuckDB finds them, narrowed to those that we read."""
    refuse_empty(place, "JSON lines")
    with reader_of(database) as connection, duckdb_errors_explained(place, _unreadable):
        columns = connection.sql(f"DESCRIBE SELECT * FROM {_table(place)}").fetchall()
    types = {name: _known(kind) for name, kind, *_ in columns}
    if list(types) == ["json"]:  # DuckDB's name for the column where lines are no objects
        _refuse_lines(place)
    return types


_NOTHING = "NULL"
_INTEGERS = {"BIGINT", "UBIGINT", "HUGEINT"}


def _known(kind: str) -> str:
    """A type as we read it: ids that look like a UUID or a time stay text, and so do values of several types.

    >>> _known("UUID"), _known("UUID[]"), _known("TIMESTAMP WITH TIME ZONE"), _known("STRUCT(a BIGINT)")
    ('VARCHAR', 'VARCHAR[]', 'TIMESTAMP', 'VARCHAR')
    """
    kind = kind.replace('"', "")
    if kind.endswith("[]"):
        inner = _known(kind[:-2])
        return f"{inner}[]" if inner in {*_INTEGERS, _NOTHING, "DOUBLE"} else "VARCHAR[]"
    if kind.startswith("TIMESTAMP"):
        return "TIMESTAMP"
    return kind if kind in {*_INTEGERS, _NOTHING, "DOUBLE", "BOOLEAN", "DATE"} else "VARCHAR"


def _wider(one: str, other: str) -> str:
    """The narrowest type that holds the values of both.

    >>> _wider("BIGINT", "DOUBLE"), _wider("BIGINT[]", "UBIGINT[]"), _wider("DATE", "BIGINT"), _wider("DATE", "NULL")
    ('DOUBLE', 'HUGEINT[]', 'VARCHAR', 'DATE')
    """
    if one.endswith("[]") and other.endswith("[]"):
        return _wider(one[:-2], other[:-2]) + "[]"
    both = {one, other} - {_NOTHING}
    if len(both) < 2:
        return both.pop() if both else _NOTHING
    if both <= _INTEGERS:
        return "HUGEINT"
    if both <= _INTEGERS | {"DOUBLE"}:
        return "DOUBLE"
    return "TIMESTAMP" if both == {"DATE", "TIMESTAMP"} else "VARCHAR"


def _narrowed(files: list[JsonFile], name: str, kind: str) -> str:
    """The type of a column: text where all values are null; for integers that may be beyond int64, by their range."""
    if kind.removesuffix("[]") == _NOTHING:
        return kind.replace(_NOTHING, "VARCHAR")
    if kind.removesuffix("[]") != "HUGEINT":
        return kind
    column = quoted(name)
    ends = f"min(list_min({column})), max(list_max({column}))" if "[" in kind else f"min({column}), max({column})"
    ranges = [file.ask(ends, {name: kind})[0] for file in files if name in file.types]
    lowest = min((low for low, _ in ranges if low is not None), default=0)
    highest = max((high for _, high in ranges if high is not None), default=0)
    holds = "BIGINT" if highest < 2**63 else "UBIGINT" if lowest >= 0 and highest < 2**64 else "VARCHAR"
    return kind.replace("HUGEINT", holds)


_WORDS = {"VARCHAR": "text", "UBIGINT": "integers", "BIGINT": "integers", "HUGEINT": "integers", "DOUBLE": "numbers",
          "BOOLEAN": "true or false"}  # fmt: skip


def _kinds(file: JsonFile, column: str) -> list[RowsOfKind]:
    """How many values of a column are of each kind, and the first of each."""
    name = quoted(column)
    inner = f"row_number() OVER () - 1 AS row, {name} AS value, CAST(json_structure({name}) AS VARCHAR) AS kind"
    query = (
        f"SELECT kind, count(*), min(row), arg_min(value, row) FROM (SELECT {inner} FROM"
        f" {_table(file.place, {column: 'JSON'})}) WHERE kind <> '\"NULL\"' GROUP BY kind ORDER BY min(row)"
    )
    with reader_of(file.database) as connection, duckdb_errors_explained(file.place, _unreadable):
        rows = connection.sql(query).fetchall()
    return [
        RowsOfKind(file.place.path, _words(json.loads(kind)), count, row, value) for kind, count, row, value in rows
    ]


def _words(structure: object) -> str:
    if isinstance(structure, list):
        return f"lists of {_words(structure[0])}"
    return _WORDS.get(structure, "objects") if isinstance(structure, str) else "objects"


def _unreadable(place: TextPlace, error: Exception) -> BadInput:
    _refuse_lines(place)
    return BadInput(f"{place.path}: cannot be read as JSON lines ({place.renamed(sentence(error))}).")


def _refuse_lines(place: TextPlace) -> None:
    """Refuse a file with a line that is no JSON object, and name the first."""
    path, number, remedy = place.path, 0, "Expected JSON lines: one object per row."
    try:
        with open_bytes(place) as file:
            for number, line in enumerate(file, 1):
                text = line.decode("utf-8-sig")
                if text.strip() and not isinstance(json.loads(text), dict):
                    raise BadInput(f"{path}: line {number} is no JSON object. {remedy}")
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}: line {number} is no JSON object ({error.msg}). {remedy}") from None
    except RecursionError:
        raise BadInput(f"{path}: line {number} is nested too deeply. {remedy}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: line {number}: not text in UTF-8. Convert the file, or leave it out.") from None
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file or folder.") from None
    except BadInput:
        raise
    except ValueError:
        raise BadInput(f"{path}: line {number} has a number of thousands of digits. {remedy}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{path}: cannot be read as JSON lines ({error}).") from None
