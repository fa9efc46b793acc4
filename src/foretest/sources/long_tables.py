"""Logs with one row per display and item, in one table or in up to three that are joined, sorted by DuckDB and folded.

Impressions, candidates and rewards are joined on the display and the item, so that nothing is lost: a shown item that
is no candidate, or a reward of an item that was not shown, is a row that folding refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from foretest.background import in_background
from foretest.displays.ragged import is_text
from foretest.errors import BadInput, nearest
from foretest.sources.base import BATCH_ROWS, FOLDED, Part, Source, chunks
from foretest.sources.long_rows import LongColumns, fold_displays
from foretest.sources.queries import connect, errors_explained, quoted

LOG = "log"  # the table where there is one
IMPRESSIONS, CANDIDATES, REWARDS = "impressions", "candidates", "rewards"
_MEMORY = "512MiB"  # beyond it DuckDB sorts and joins on disk
_LONG_ROWS = 1 << 18  # of a batch that is folded at a time


@dataclass(frozen=True)
class LongTables:
    """The displays of a long log. They are sorted for each pass, so that more than one pass is spooled first."""

    tables: Mapping[str, Source]
    columns: LongColumns
    repeatable = False
    rows: ClassVar[None] = None

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        c, long = self.columns, self._schema
        names = [name for name in long.names if name != c.slot]
        folded = c.schema(long, [*names, c.ranking, *c.slot_rewards.values()])
        return [(self._name, folded.with_metadata({FOLDED: b"1"}))]

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        def batches() -> Iterator[pa.RecordBatch]:
            yield from fold_displays(self._sorted(self.columns.needed(columns)), self.columns, self._name, columns)

        return [lambda: chunks(self._name, batches(), columns, batch_rows)]

    @cached_property
    def _name(self) -> str:
        names = [name for source in self.tables.values() for name, _ in source.schemas()]
        return names[0] if len(names) == 1 else "the log" if LOG in self.tables else "the tables of the log"

    @cached_property
    def _schema(self) -> pa.Schema:
        """All columns of the joined rows, as DuckDB gives them."""
        c, where = self.columns, self._where
        for name in (c.display, c.item):
            for table, source in self.tables.items():
                _refuse_missing(source, name, table)
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
            (reward, where[reward], _is_number, "a number (a reward)") for reward in c.rewards if reward in where
        ]
        items = [(c.item, table, _is_key, "an integer or text (the item)") for table in self.tables]
        slots = [(c.slot, where[c.slot], _is_number, "a number (the slot)")]
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
        return f"SELECT {shown} FROM {joined} ORDER BY {keys}"

    @property
    def _times_of_rewards(self) -> list[str]:
        """The columns of the table of rewards that say when these came."""
        times = () if self.columns.times is None else dict.fromkeys(self.columns.times.rewards.values())
        return [name for name in times if self._where.get(name) == REWARDS]

    def _sorted(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The joined rows by display and item."""
        problems: list[Exception] = []
        asked = [self.columns.display, self.columns.item]
        with connect() as database, errors_explained(self._name, problems):
            database.execute(f"SET memory_limit = '{_MEMORY}'")
            database.execute("SET preserve_insertion_order = false")
            for table, source in self.tables.items():
                names = [*asked, *(name for name in columns if self._where.get(name) == table)]
                database.register(table, _reader(source, list(dict.fromkeys(names)), problems))
            with database.sql(self._query(columns)).to_arrow_reader(_LONG_ROWS) as reader:
                yield from reader


def _one_time(name: str, columns: LongColumns) -> str:
    """The time of an item's rewards in SQL; several rewards of one item at several times are an error, for a window
    would count some of them."""
    time, display = quoted(name), quoted(columns.display)
    words = f"column ''{name.replace(chr(39), chr(39) * 2)}'': an item has rewards at several times in the display "
    several = f"error('{words}' || CAST(min({display}) AS VARCHAR) || '. Give one row per rewarded item.')"
    return f"CASE WHEN count(DISTINCT {time}) > 1 THEN {several} ELSE min({time}) END AS {time}"


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )


def _is_key(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_integer(kind)) or is_text(kind)


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
    schema = pa.schema([_schema_of(source).field(name) for name in columns])

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for part in source.parts(columns):
                for chunk in part():
                    yield chunk.batch.select(columns).cast(schema)
        except Exception as error:
            problems.append(error)
            raise

    return pa.RecordBatchReader.from_batches(schema, batches())
