"""SQL over files, and DuckDB relations: what DuckDB computes is read in batches."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import pyarrow as pa

from foretest.background import in_background
from foretest.errors import BadInput
from foretest.records import dataclass
from foretest.sources.base import BATCH_ROWS, Part, chunks
from foretest.sources.lake_tables import refuse_lake_tables
from foretest.stores import without_credentials

_MOST_MEMORY = 2 << 30  # bytes for one query; beyond it DuckDB uses a temporary file
_SQL, _RELATION = "the SQL query", "the DuckDB relation"


@dataclass(frozen=True)
class Sql:
    """A log that a SQL query gives, one row per display: a way to join scores that are in another table.

    DuckDB runs it. Files are named like tables: SELECT … FROM 'logs/*.parquet' JOIN 'scores.parquet' USING (id).

    Parameters
    ----------
    query: the text of the query.

    >>> import foretest as ft
    >>> ft.Sql("SELECT * FROM 'log.parquet' JOIN 'scores.parquet' USING (display_id)").query[:8]
    'SELECT *'
    """

    query: str

    def __post_init__(self) -> None:
        if not isinstance(self.query, str):
            raise BadInput(f"Sql(…) is given a {type(self.query).__name__}: expected the text of a query.")


@dataclass(frozen=True)
class SqlQuery:
    """The rows of a query. It runs again for every pass, for the columns that the pass needs."""

    query: str
    repeatable = True
    rows: ClassVar[None] = None

    @cached_property
    def _schema(self) -> pa.Schema:
        def look() -> pa.Schema:
            with connect() as connection, errors_explained(_SQL):
                return _schema_of(connection.sql(_one_select(connection, self.query)))

        return in_background(look)

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return [(_SQL, self._schema)]

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        def batches() -> Iterator[pa.RecordBatch]:
            with connect() as connection, errors_explained(_SQL):
                query = _one_select(connection, self.query)
                yield from _read(connection.sql(query), columns, batch_rows)

        return [lambda: chunks(_SQL, batches(), columns, batch_rows)]


@dataclass(frozen=True)
class Relation:
    """A DuckDB relation of the user's own connection, with its settings. It runs again for every pass."""

    relation: Any
    repeatable = True
    rows: ClassVar[None] = None

    @cached_property
    def _schema(self) -> pa.Schema:
        with errors_explained(_RELATION):
            return _schema_of(self.relation)

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return [(_RELATION, self._schema)]

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        def batches() -> Iterator[pa.RecordBatch]:
            with errors_explained(_RELATION):
                yield from _read(self.relation, columns, batch_rows)

        return [lambda: chunks(_RELATION, batches(), columns, batch_rows)]


def _schema_of(relation: Any) -> pa.Schema:
    return relation.limit(0).to_arrow_table().schema


def _read(relation: Any, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
    with relation.project(", ".join(quoted(name) for name in columns)).to_arrow_reader(batch_rows) as reader:
        yield from reader


def _one_select(connection: Any, query: str) -> str:
    """The query, if it is one that gives rows: nothing is written or changed."""
    import duckdb

    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise BadInput(f"{_SQL}: expected one SELECT, as in SELECT * FROM 'log.parquet'.")
    _refuse_places(connection, query)
    return query


def _refuse_places(connection: Any, query: str) -> None:
    """Refuse a query that reads an address, for which DuckDB would have to download an extension, or the files of a
    table of a lake, of which some may be deleted. A text that is only compared with a column is none that is read."""
    [(text,)] = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    try:
        places = list(_places_read(json.loads(text)))
    except RecursionError:
        raise BadInput(f"{_SQL}: it is nested too deeply.") from None
    for place in places:
        if "://" in place:
            raise BadInput(
                f"{_SQL}: it reads {without_credentials(place)}, and a query reads local files only. Give the address"
                " as LOG, or in [log.tables], without a query; or copy the file here."
            )
    refuse_lake_tables(
        filter(None, map(_folder_of, places)), "Give the folder of the table as the log, without a query."
    )


def _places_read(node: Any) -> Iterator[str]:
    """The files and addresses that a parsed query names as tables, or gives to functions of tables."""
    if isinstance(node, list):
        for part in node:
            yield from _places_read(part)
    elif isinstance(node, dict):
        names = [str(node.get("table_name", ""))] if node.get("type") == "BASE_TABLE" else []
        if node.get("type") == "TABLE_FUNCTION":
            names += _texts(node.get("function"))
        yield from (name for name in names if re.search(r"[/\\.*]", name))  # not the name of a table, or a word
        for part in node.values():
            yield from _places_read(part)


def _texts(node: Any) -> Iterator[str]:
    """All texts in a part of a parsed query: how constants are written differs between versions of DuckDB."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, list | dict):
        for part in node.values() if isinstance(node, dict) else node:
            yield from _texts(part)


def _folder_of(place: str) -> Path | None:
    """The folder where the files of a name or pattern begin; None of what is no file, such as the name of a table."""
    before = re.split(r"[*?[{]", place)[0]
    path = Path(place if before == place else os.path.dirname(before) or ".")
    if "\0" in place or not os.path.exists(path):
        return None
    return path if path.is_dir() else path.parent


def open_database(memory: int = _MOST_MEMORY, *, in_order: bool = True) -> Any:
    """A new DuckDB: rows keep their order unless nobody asks for it, memory is bounded, what does not fit in it is in
    the folder of temporary files until the database is closed, and no extension is fetched or loaded."""
    import duckdb

    database = duckdb.connect(
        config={
            "threads": os.cpu_count() or 1,
            "temp_directory": str(Path(tempfile.gettempdir()) / f"foretest-duckdb-{uuid4().hex}"),
            "preserve_insertion_order": in_order,
            "enable_external_file_cache": False,  # it would keep in memory what is read only once
            "python_enable_replacements": False,  # a name in SQL is a file or a table, never a Python variable
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
    [(most,)] = database.execute("SELECT current_setting('memory_limit')").fetchall()
    database.execute(f"SET memory_limit = '{min(memory, _bytes(most) // 2) >> 20}MiB'")
    database.execute("SET enable_progress_bar = false")
    return database


@contextmanager
def connect(memory: int = _MOST_MEMORY, *, in_order: bool = True) -> Iterator[Any]:
    """A database for one query, which cannot change its settings."""
    database = open_database(memory, in_order=in_order)
    try:
        database.execute("SET lock_configuration = true")
        yield database
    finally:
        database.close()


def _bytes(text: str) -> int:
    """The bytes of an amount of memory as DuckDB writes it; it knows the limits of the machine and the container.

    >>> _bytes("18.8 GiB") >> 20
    19251
    """
    number, unit = text.split()
    return int(float(number) * 1024 ** ["bytes", "KiB", "MiB", "GiB", "TiB"].index(unit))


@contextmanager
def errors_explained(name: str, problems: Sequence[Exception] = ()) -> Iterator[None]:
    """DuckDB's errors as one sentence that begins with the name; `problems` are those of what it reads, which come
    first."""
    try:
        yield
    except failures() as error:
        if problems:
            raise problems[0] from None
        raise BadInput(f"{name}: {sentence(error)}.") from None
    except (UnicodeDecodeError, RuntimeError) as error:
        # a name in a damaged file: DuckDB hands it on as it is, and its Python bindings cannot decode it
        if isinstance(error, RuntimeError) and "str(): conversion error" not in str(error):
            raise
        raise BadInput(f"{name}: the name of a column is not text in UTF-8. Is a file damaged?") from None


def failures() -> tuple[type[Exception], ...]:
    """The errors of a query: before its first batch it raises one of DuckDB's, later one of Arrow's."""
    import duckdb

    return (duckdb.Error, pa.ArrowException, OSError)


def sentence(error: Exception) -> str:
    """The message of a DuckDB error, without the quoted query and the list of settings."""
    lines = re.split(r"\n(?:LINE |Possible |See also |\s+file = )", str(error))[0].splitlines()
    return " ".join(line.strip() for line in lines if line.strip()).rstrip(".") or type(error).__name__


def quoted(name: str) -> str:
    """A name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as a literal in SQL."""
    return "'" + text.replace("'", "''") + "'"
