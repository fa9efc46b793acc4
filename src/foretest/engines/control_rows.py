"""A pass that keeps some rows of a log as they are: those that a control is fitted on, and those on which it is found
how sums move with what is fitted.

Rows are those of the smallest hashes of their units, so that no order of rows changes the choice; they travel as Arrow
batches, with their numbers, which are their units where the log names none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.aggregation.control_fit import is_fitted_on
from foretest.aggregation.flat import array_row, batch_of, from_batches, tree_row
from foretest.background import in_background
from foretest.displays.arrow_numbers import to_arrow
from foretest.displays.batch import Displays, Hashes
from foretest.displays.ragged import plain, takeable
from foretest.engines.local import Progress, fold_in_threads
from foretest.engines.spark import fold_in_tasks
from foretest.kernels.random import derive
from foretest.log.reader import Reader
from foretest.log.rows import Rows
from foretest.policies.logging_mixture import LOGGER
from foretest.policies.pricing import refuse_not_finite
from foretest.records import dataclass
from foretest.sources import ROW_NUMBER, Chunk, Source
from foretest.sources.spark_frames import SparkFrame

_SALT = 17  # rows are chosen by a hash of their own

Ints = npt.NDArray[np.int64]


def fit_rows(logger: int) -> str:
    """The name of the rows that a logger's number is fitted on."""
    return f"fit {logger}"


@dataclass(frozen=True)
class RowChoice:
    """Which rows are kept: at most so many, of some columns."""

    limit: int
    columns: tuple[str, ...]
    logger: int | None = None  # rows of this logger alone, of units that the control is fitted on
    rewarded: bool = False  # rows with a reward alone


@dataclass(frozen=True)
class _RawRows(Rows):
    """Rows with the batch that they were read from."""

    batch: pa.RecordBatch | None = None


@dataclass(frozen=True)
class _RawReader(Reader):
    """Reads rows and checks the control's scores, which the pass does not price."""

    def read(self, chunk: Chunk) -> _RawRows:
        chunk = self.counted(chunk)  # so that the batch has the rows that are read
        rows = super().read(chunk)
        for name in self.settings.control.score_columns:
            refuse_not_finite(name, rows.displays[name])
        names = [name for name in chunk.batch.schema.names if name != ROW_NUMBER]
        arrays = [_plain(chunk.batch[name]) for name in names]
        batch = pa.RecordBatch.from_arrays([*arrays, pa.array(chunk.positions(), pa.int64())], [*names, ROW_NUMBER])
        return _RawRows(**vars(rows), batch=batch)


def _plain(column: pa.Array) -> pa.Array:
    """A column whose rows can be taken, and joined with those of other batches."""
    return takeable(plain(column))


@dataclass
class KeptBatch:
    """Rows of the smallest hashes so far, in no order."""

    limit: int
    seen: int = 0
    highest: int = (1 << 64) - 1  # no row above this hash is among the first
    parts: list[tuple[Hashes, Hashes, pa.RecordBatch]] = field(default_factory=list)  # hash of the unit, key, rows

    def add(self, unit: Hashes, displays: Displays, batch: pa.RecordBatch, at: Ints) -> None:
        """Add the rows of a batch at some places; the keys of displays break ties between rows of one unit."""
        self.seen += len(at)
        some = at[unit[at] <= np.uint64(self.highest)]
        keys = displays.take(some).key()
        if len(some) > self.limit:
            first = np.lexsort((keys, unit[some]))[: self.limit]
            some, keys = some[first], keys[first]
        if len(some):
            self.parts.append((unit[some], keys, batch.take(to_arrow(some))))
        if sum(len(part[0]) for part in self.parts) > 2 * self.limit:
            self._cut()

    def _cut(self) -> None:
        """Make one part of all, in order and cut at the limit."""
        if not self.parts:
            return
        unit, keys = (np.concatenate([part[at] for part in self.parts]) for at in (0, 1))
        order = np.lexsort((keys, unit))[: self.limit]
        # files may have one column in several types
        tables = [pa.Table.from_batches([part[2]]) for part in self.parts]
        rows = pa.concat_tables(tables, promote_options="permissive").take(to_arrow(order))
        self.parts = [(unit[order], keys[order], rows.combine_chunks().to_batches()[0])]
        if len(order) == self.limit:
            self.highest = int(unit[order[-1]])

    def rows(self) -> pa.RecordBatch | None:
        """The rows that are kept, in order; None where there is none."""
        self._cut()
        return self.parts[0][2] if self.parts else None

    @property
    def scale(self) -> float:
        """How many rows a row that is kept stands for."""
        count = min(self.limit, self.seen)
        return self.seen / count if count else 1.0

    @classmethod
    def total(cls, kept: Sequence[KeptBatch]) -> KeptBatch:
        """The rows of all parts."""
        parts = [part for one in kept for part in one.parts]
        whole = cls(kept[0].limit, sum(one.seen for one in kept), parts=parts)
        whole._cut()
        return whole


@dataclass
class _RawFold:
    """Rows in, the chosen ones out."""

    choices: Mapping[str, RowChoice]
    kept: dict[str, KeptBatch] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, choice in self.choices.items():
            self.kept.setdefault(name, KeptBatch(choice.limit))

    def add(self, rows: _RawRows) -> None:
        if not len(rows):
            return
        assert rows.batch is not None
        order = derive(rows.unit, _SALT)
        for name, choice in self.choices.items():
            batch = rows.batch.select([*choice.columns, ROW_NUMBER])
            self.kept[name].add(order, rows.displays, batch, _chosen(choice, rows))

    def finish(self) -> _RawFold:
        return self

    def __add__(self, other: _RawFold) -> _RawFold:
        both = {name: KeptBatch.total([mine, other.kept[name]]) for name, mine in self.kept.items()}
        return _RawFold(self.choices, both)

    def to_batch(self) -> pa.RecordBatch:
        """The rows as one row of bytes, for a task to send."""
        rows = [tree_row({name: one.seen for name, one in self.kept.items()})]
        for name, one in self.kept.items():
            one.rows()
            for unit, keys, batch in one.parts:
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, batch.schema) as writer:
                    writer.write_batch(batch)
                data = np.frombuffer(sink.getvalue(), np.uint8)
                rows += [array_row(f"{name}:{what}", a) for what, a in (("unit", unit), ("key", keys), ("rows", data))]
        return batch_of(rows)

    @classmethod
    def merged(cls, choices: Mapping[str, RowChoice], batches: Sequence[pa.RecordBatch]) -> _RawFold:
        """The rows of several tasks."""
        total = cls(choices)
        for sent in batches:
            flat, part = from_batches([sent]), cls(choices)
            for name, one in part.kept.items():
                one.seen = flat.tree[name]
                if f"{name}:unit" in flat.arrays:
                    unit, keys, data = (flat.arrays[f"{name}:{what}"] for what in ("unit", "key", "rows"))
                    with pa.ipc.open_stream(pa.py_buffer(data.tobytes())) as reader:
                        [batch] = reader
                    one.parts.append((unit, keys, batch))
            total = total + part
        return total


def _chosen(choice: RowChoice, rows: Rows) -> Ints:
    """The places of rows that a choice may keep."""
    if choice.rewarded:
        return rows.rewarded
    if choice.logger is None:
        return np.arange(len(rows))
    logger = rows.displays.columns.get(LOGGER)
    mine = np.ones(len(rows), np.bool_) if logger is None else np.asarray(logger == choice.logger)
    return np.flatnonzero(mine & is_fitted_on(rows.unit))


def keep_rows(
    source: Source, reader: Reader, choices: Mapping[str, RowChoice], *, threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, KeptBatch]:  # fmt: skip
    """Some rows of a log, by the name of their choice."""
    raw = _RawReader(**{name: getattr(reader, name) for name in reader.__dataclass_fields__})

    def start() -> _RawFold:
        return _RawFold(choices)

    if isinstance(source, SparkFrame):
        folded = fold_in_tasks(
            source, raw, start, _RawFold.to_batch, lambda batches: _RawFold.merged(choices, batches)
        )  # fmt: skip
        return (start() if folded is None else folded).kept
    return in_background(lambda: fold_in_threads(source, raw, start, threads=threads, progress=progress)).kept


def read_again(reader: Reader, batch: pa.RecordBatch | None, at_once: int) -> list[Rows]:
    """Rows that were kept, as any reader sees them."""
    if batch is None:
        return []
    parts = (batch.slice(begin, at_once) for begin in range(0, batch.num_rows, at_once))
    return [reader.read(Chunk(part, "the log", 0, 0)) for part in parts]


def without_rewards(rows: Rows) -> Rows:
    """The rows as if they had earned nothing: weights of rows do not depend on it."""
    nothing = np.zeros_like(rows.rewards)
    logged = nothing if rows.logged_rewards is rows.rewards else nothing.copy()  # which tells `multiple`
    return replace(rows, rewards=nothing, logged_rewards=logged)
