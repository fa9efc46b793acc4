"""JSON lines: one object a row. DuckDB looks at all values of all files to find a column's type."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from foretest.background import in_background
from foretest.errors import BadInput
from foretest.sources.files import LogFiles, Piece
from foretest.sources.queries import connect, failures, quoted, sentence
from foretest.sources.text_files import (
    ARROW_TYPES,
    Found,
    explained,
    file_literal,
    odd_one_out,
    open_bytes,
    refuse_empty,
    struct,
    threads_for,
    told,
    whole_file,
)


class JsonFiles(LogFiles["JsonFile"]):
    """Files of JSON lines, in order."""

    def _open(self) -> list[JsonFile]:
        for path in self.paths:
            refuse_empty(path, "JSON lines")
        types = _types(self.paths)
        if list(types) == ["json"]:  # so DuckDB names the column of lines that are no objects
            for path in self.paths:
                _refuse_lines(path)
        return [JsonFile(path, types, threads_for(len(self.paths))) for path in self.paths]

    def remark(self, name: str, column: str) -> str:
        """Which row made the column what it is."""
        return in_background(lambda: odd_one_out(one for path in self.paths for one in _kinds(path, column)))


@dataclass(frozen=True)
class JsonFile:
    """A file of JSON lines, and the types of the whole log's columns."""

    path: Path
    types: dict[str, str]
    threads: int

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in self.types.items()])

    @cached_property
    def rows(self) -> int:
        narrow = _table([self.path], {next(iter(self.types)): "JSON"})

        def count() -> int:
            with connect() as connection, told(self.path, _unreadable):
                [(rows,)] = connection.sql(f"SELECT count(*) FROM {narrow}").fetchall()
            return int(rows)

        return in_background(count)

    def pieces(self, columns: list[str], batch_rows: int) -> list[Piece]:
        chosen = {name: self.types[name] for name in columns}
        query = f"SELECT {', '.join(quoted(name) for name in columns)} FROM {_table([self.path], chosen)}"
        piece = whole_file(self.path, query, None, batch_rows, self.threads)
        return [explained(piece, self.path, _unreadable)]


def _table(paths: list[Path], types: dict[str, str] | None = None) -> str:
    """The files in SQL, read by these types, or looked at."""
    files = ", ".join(file_literal(path) for path in paths)
    how = f"sample_size = -1, maximum_sample_files = {len(paths)}" if types is None else f"columns = {struct(types)}"
    return (
        f"read_json([{files}], format = 'newline_delimited', {how}, union_by_name = true, hive_partitioning = false,"
        " dateformat = '%Y-%m-%d', maximum_depth = -1)"
    )


def _types(paths: list[Path]) -> dict[str, str]:
    """The type of each column of all files."""
    with connect() as connection:
        try:
            found = connection.sql(f"DESCRIBE SELECT * FROM {_table(paths)}").fetchall()
        except failures() as error:
            for path in paths:  # which of them is it?
                _refuse_lines(path)
            raise BadInput(f"{paths[0]}: cannot be read as JSON lines ({sentence(error)}).") from None
        types = {name: _known(kind) for name, kind, *_ in found}
        wide = [name for name, kind in types.items() if kind.startswith("HUGEINT")]
        return {**types, **(_narrowed(connection, paths, {name: types[name] for name in wide}) if wide else {})}


def _narrowed(connection: Any, paths: list[Path], types: dict[str, str]) -> dict[str, str]:
    """Integers on both sides of 0, or beyond int64: the type that holds them."""
    ends = [f"list_{end}({quoted(name)})" if kind.endswith("[]") else quoted(name)
            for name, kind in types.items() for end in ("min", "max")]  # fmt: skip
    query = ", ".join(f"{('min', 'max')[place % 2]}({end})" for place, end in enumerate(ends))
    [found] = connection.sql(f"SELECT {query} FROM {_table(paths, types)}").fetchall()
    narrow = {}
    for place, (name, kind) in enumerate(types.items()):
        least, most = found[2 * place : 2 * place + 2]
        holds = "BIGINT" if most < 2**63 else "UBIGINT" if least >= 0 and most < 2**64 else "VARCHAR"
        narrow[name] = kind.replace("HUGEINT", holds)
    return narrow


def _known(kind: str) -> str:
    """A type as we read it: ids that look like a UUID or a time stay text, and so does what is of several types.

    >>> _known("UUID"), _known("UUID[]"), _known("TIMESTAMP WITH TIME ZONE"), _known("STRUCT(a BIGINT)")
    ('VARCHAR', 'VARCHAR[]', 'TIMESTAMP', 'VARCHAR')
    """
    if kind.startswith("TIMESTAMP"):
        return "TIMESTAMP" if "[" not in kind else "VARCHAR[]"
    if kind in ARROW_TYPES or kind in ("HUGEINT", "HUGEINT[]"):
        return kind
    return "VARCHAR[]" if re.fullmatch(r"\w+\[\]", kind.replace('"', "")) else "VARCHAR"


_WORDS = {"VARCHAR": "text", "UBIGINT": "integers", "BIGINT": "integers", "HUGEINT": "integers", "DOUBLE": "numbers",
          "BOOLEAN": "true or false"}  # fmt: skip


def _kinds(path: Path, column: str) -> list[Found]:
    """How many values of a column are of each kind, and the first of each."""
    table = _table([path], {column: "JSON"})
    query = (
        "SELECT kind, count(*), min(row), arg_min(value, row) FROM (SELECT row_number() OVER () - 1 AS row,"
        f" {quoted(column)} AS value, CAST(json_structure({quoted(column)}) AS VARCHAR) AS kind FROM {table})"
        " WHERE kind <> '\"NULL\"' GROUP BY kind ORDER BY min(row)"
    )
    with connect() as connection, told(path, _unreadable):
        rows = connection.sql(query).fetchall()
    return [Found(path, _words(json.loads(kind)), count, row, value) for kind, count, row, value in rows]


def _words(structure: object) -> str:
    if isinstance(structure, list):
        return f"lists of {_words(structure[0])}"
    return _WORDS.get(structure, "objects") if isinstance(structure, str) else "objects"


def _unreadable(path: Path, error: Exception) -> BadInput:
    _refuse_lines(path)
    return BadInput(f"{path}: cannot be read as JSON lines ({sentence(error)}).")


def _refuse_lines(path: Path) -> None:
    """Name the first line that is no JSON object."""
    number, remedy = 0, "Expected JSON lines: one object a row."
    try:
        with open_bytes(path) as file:
            for number, line in enumerate(file, 1):
                text = line.decode("utf-8-sig")
                if text.strip() and not isinstance(json.loads(text), dict):
                    raise BadInput(f"{path}: line {number} is no JSON object. {remedy}")
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}: line {number} is no JSON object ({error.msg}). {remedy}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: line {number}: not text in UTF-8. Convert the file, or leave it out.") from None
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file or folder.") from None
    except (OSError, EOFError) as error:
        raise BadInput(f"{path}: cannot be read as JSON lines ({error}).") from None
