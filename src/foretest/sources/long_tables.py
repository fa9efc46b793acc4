"""Logs with one row per display and item, in one table or in up to three that are joined, sorted by DuckDB and folded.

Impressions, candidates and rewards are joined on the display and the item, so that nothing is lost: a shown item that
is no candidate, or a reward of an item that was not shown, is a row that folding refuses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from foretest.background import in_background
from foretest.displays.column_types import is_key, is_number
from foretest.errors import BadInput, nearest
from foretest.records import dataclass
from foretest.sources.base import BATCH_ROWS, FOLDED, Chunk, Part, Source, chunks, refuse_repeated, short
from foretest.sources.long_rows import LongColumns, Marks, fold_displays
from foretest.sources.queries import connect, errors_explained, quoted

LOG = "log"  # the table where there is one
IMPRESSIONS, CANDIDATES, REWARDS = "impressions", "candidates", "rewards"
_MEMORY = 512 << 20  # bytes; beyond it DuckDB sorts and joins on disk
_LONG_ROWS = 1 << 18  # of a batch that is folded at a time


@dataclass(frozen=True)
class LongTables:
    """The displays of a long log. They are sorted for each pass, so that more than one pass is spooled first."""

    tables: Mapping[str, Source]
    columns: LongColumns
    left_out: tuple[str, ...] = ()  # columns that displays have no value of
    marks: list[Marks] = field(default_factory=list, compare=False)  # of the last pass
    repeatable = False
    rows: ClassVar[None] = None

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        c, long = self.columns, self._schema
        names = [name for name in long.names if name not in (c.slot, *self.left_out)]
        folded = c.schema(long, [*names, c.ranking, *c.slot_rewards.values()])
        return [(self._name, folded.with_metadata({FOLDED: b"1"}))]

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        by_row = {*self.columns.by_item, *self.columns.by_slot}
        for name in columns:
            kind = self._schema.field(name).type if name in self._schema.names else pa.null()
            if not _has_one_value(kind):
                each = "item" if name in by_row else "display"
                raise BadInput(
                    f"{self._name}: column '{name}' is {kind}, expected one number, text or date for each {each}."
                    " Convert it."
                )

        def batches() -> Iterator[pa.RecordBatch]:
            marks = Marks()
            self.marks[:] = [marks]
            rows = self._sorted(self.columns.needed(columns))
            yield from fold_displays(rows, self.columns, self._name, columns, marks)

        return [lambda: chunks(self._name, batches(), columns, batch_rows)]

    def notes(self) -> list[str]:
        """What a reader should ask of the log, once it was read."""
        return [note for marks in self.marks for note in marks.notes(self.columns)]

    def without_differing(self, needed: Collection[str]) -> LongTables:
        """Without columns that nobody needs and that have no value, or several, in a display, to write all others.

        To find these the log is read once more; of a stream, which cannot be, all columns are taken.
        """
        [(_, schema)] = self.schemas()
        others = [name for name in self._of_displays(schema.names) if name not in needed]
        plain = [name for name in others if _has_one_value(self._schema.field(name).type)]
        twice = all(source.repeatable for source in self.tables.values())
        differing = in_background(lambda: self._differing(plain)) if plain and twice else []
        return replace(self, left_out=(*(name for name in others if name not in plain), *differing))

    def _differing(self, columns: Sequence[str]) -> list[str]:
        """The columns with more than one value in a display."""
        several = ", ".join(f"min({quoted(n)}) IS DISTINCT FROM max({quoted(n)}) AS {quoted(n)}" for n in columns)
        some = ", ".join(f"bool_or({quoted(n)})" for n in columns)
        with self._rows_of(columns) as (database, rows):
            by_display = f"SELECT {several} FROM ({rows}) GROUP BY {quoted(self.columns.display)}"
            [found] = database.sql(f"SELECT {some} FROM ({by_display})").fetchall()
        return [name for name, differs in zip(columns, found, strict=True) if differs]

    def _of_displays(self, columns: Sequence[str]) -> list[str]:
        """The columns with one value for each display, among those of the folded log."""
        c = self.columns
        made = (c.display, c.item, c.ranking, *c.slot_rewards.values(), *c.rewards, *c.by_item, *c.by_slot)
        return [name for name in columns if name not in made]

    @cached_property
    def _name(self) -> str:
        names = [name for source in self.tables.values() for name, _ in source.schemas()]
        return names[0] if len(names) == 1 else "the log" if LOG in self.tables else "the tables of the log"

    @cached_property
    def _schema(self) -> pa.Schema:
        """All columns of the joined rows, as DuckDB gives them."""
        c, where = self.columns, self._where
        for table, source in self.tables.items():
            for file, schema in source.schemas():
                for name in schema.names:
                    refuse_repeated(file, schema, name)
                    if "\0" in name:  # DuckDB takes it for the end
                        raise BadInput(f"{file}: the name of column {name!r} has a null character. Rename it.")
            for name in (c.display, c.item):
                _refuse_missing(source, name, table)
        for reward in c.rewards if REWARDS in self.tables else ():
            _refuse_missing(self.tables[REWARDS], reward, REWARDS)
        owner = IMPRESSIONS if IMPRESSIONS in self.tables else LOG
        _refuse_missing(self.tables[owner], c.slot, owner)
        self._refuse_types()
        names = [c.display, c.item, *where]

        def look() -> pa.Schema:
            with connect() as database, errors_explained(self._name):
                empty = {table: _schema_of(source).empty_table() for table, source in self.tables.items()}
                for table, rows in empty.items():
                    database.register(table, rows)
                return database.sql(self._query(names)).to_arrow_table().schema

        return in_background(look)

    def _refuse_types(self) -> None:
        """Refuse items that are no keys, and slots and rewards that are no numbers."""
        c, where = self.columns, self._where
        rewards = [
            (reward, where[reward], _is_number_or_null, "a number (a reward)")
            for reward in c.rewards
            if reward in where
        ]
        items = [(c.item, table, is_key, "an integer or text (the item)") for table in self.tables]
        slots = [(c.slot, where[c.slot], _is_number_or_null, "a number (the slot)")]
        for name, table, is_right, what in (*items, *slots, *rewards):
            source, schema = self.tables[table].schemas()[0]
            kind = schema.field(name).type
            if not is_right(kind):
                raise BadInput(f"{source}: column '{name}' is {kind}, expected {what}. Convert it.")

    @cached_property
    def _where(self) -> dict[str, str]:
        """The table of every column but display and item: slots are those of impressions, rewards of their own table,
        any other of the candidates if these have it."""
        c, where = self.columns, dict[str, str]()
        for table in (CANDIDATES, IMPRESSIONS, LOG, REWARDS):
            for name in _schema_of(self.tables[table]).names if table in self.tables else ():
                where.setdefault(name, table)
        for table, names in ((IMPRESSIONS, [c.slot]), (REWARDS, c.rewards)):
            if table in self.tables:
                where |= dict.fromkeys(names, table)
        return {name: table for name, table in where.items() if name not in (c.display, c.item)}

    def _query(self, columns: Sequence[str]) -> str:
        c, keys = self.columns, f"{quoted(self.columns.display)}, {quoted(self.columns.item)}"
        own = {name: f"{self._where[name]}.{quoted(name)}" for name in columns if name in self._where}
        shown = ", ".join(own.get(name, quoted(name)) for name in columns)
        order = [t for t in (CANDIDATES, IMPRESSIONS, LOG) if t in self.tables]
        joined = order[0] + "".join(f" FULL JOIN {table} USING ({keys})" for table in order[1:])
        if REWARDS in self.tables:
            sums = ", ".join(f"sum({quoted(name)}) AS {quoted(name)}" for name in c.rewards)
            sums += "".join(f", {_one_time(name, c)}" for name in self._times_of_rewards)
            once = f"(SELECT {keys}, {sums} FROM {REWARDS} GROUP BY {keys})"
            joined += f" FULL JOIN {once} AS {REWARDS} USING ({keys})"
        return f"SELECT {shown} FROM {joined}"

    @property
    def _times_of_rewards(self) -> list[str]:
        """The columns of the table of rewards that say when these came."""
        times = () if self.columns.times is None else dict.fromkeys(self.columns.times.rewards.values())
        return [name for name in times if self._where.get(name) == REWARDS]

    def _sorted(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The joined rows by display and item."""
        with self._rows_of(columns) as (database, rows):
            keys = f"{quoted(self.columns.display)}, {quoted(self.columns.item)}"
            with database.sql(f"{rows} ORDER BY {keys}").to_arrow_reader(_LONG_ROWS) as reader:
                yield from reader

    @contextmanager
    def _rows_of(self, columns: Sequence[str]) -> Iterator[tuple[Any, str]]:
        """A database with the tables, and the query of their joined rows."""
        problems: list[Exception] = []
        asked = [self.columns.display, self.columns.item]
        with connect(_MEMORY, in_order=False) as database, errors_explained(self._name, problems):
            for table, source in self.tables.items():
                names = [*asked, *(name for name in columns if self._where.get(name) == table)]
                database.register(table, _reader(source, list(dict.fromkeys(names)), problems))
            yield database, self._query(list(dict.fromkeys([*asked, *columns])))


def _has_one_value(kind: pa.DataType) -> bool:
    """Can values of the type be compared, and written?"""
    return not (pa.types.is_nested(kind) or pa.types.is_interval(kind))


def _one_time(name: str, columns: LongColumns) -> str:
    """The time of an item's rewards in SQL; several rewards of one item at several times are an error, for a window
    would count some of them."""
    time, display = quoted(name), quoted(columns.display)
    words = f"column ''{name.replace(chr(39), chr(39) * 2)}'': an item has rewards at several times in the display "
    several = f"error('{words}' || CAST(min({display}) AS VARCHAR) || '. Give one row per rewarded item.')"
    return f"CASE WHEN count(DISTINCT {time}) > 1 THEN {several} ELSE min({time}) END AS {time}"


def _is_number_or_null(kind: pa.DataType) -> bool:
    """A number, or a column in which every value is null."""
    return is_number(kind) or bool(pa.types.is_null(kind))


def _schema_of(source: Source) -> pa.Schema:
    """The schema of a table's first file."""
    return source.schemas()[0][1]


def _refuse_missing(source: Source, column: str, table: str) -> None:
    name, schema = source.schemas()[0]
    if column not in schema.names:
        role = "" if table == LOG else f" ([log.tables] {table})"
        raise BadInput(f"{name}{role}: there is no column '{column}'.{nearest(column, schema.names)}")


def _reader(source: Source, columns: list[str], problems: list[Exception]) -> pa.RecordBatchReader:
    """The rows of a table as one stream; what goes wrong in it is remembered, for DuckDB hides it."""
    [(first, of_first), *others] = source.schemas()
    schema = pa.schema([of_first.field(name) for name in columns])
    for name, other in others:
        missing = next((column for column in columns if column not in other.names), None)
        if missing is not None:
            raise BadInput(f"{name}: there is no column '{missing}', which {first} has. Add it, or leave the file out.")

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for part in source.parts(columns):
                for chunk in part():
                    yield _as(schema, chunk, first)
        except Exception as error:
            problems.append(error)
            raise

    return pa.RecordBatchReader.from_batches(schema, batches())


def _as(schema: pa.Schema, chunk: Chunk, first: str) -> pa.RecordBatch:
    """A batch with the columns and types of the first file."""
    arrays = []
    for wanted in schema:
        column = chunk.batch[wanted.name]
        try:
            arrays.append(column.cast(wanted.type))
        except pa.ArrowException as error:
            raise BadInput(
                f"{chunk.source}: column '{wanted.name}' is {column.type}, and {wanted.type} in {first}"
                f" ({short(error)}). Write both as one type."
            ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
