"""A pass that keeps some rows of a log as they are: those that a control is fitted on, and those on which it is found
how sums move with what is fitted.

Rows are those of the smallest hashes of their units, so that no order of rows changes the choice; they travel as Arrow
batches, with their numbers, which are their units where the log names none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.aggregation.control_fit import is_fitted_on
from foretest.displays.arrow_numbers import to_arrow
from foretest.displays.batch import Displays, Hashes
from foretest.displays.merging import by, first, joined
from foretest.displays.ragged import plain, takeable
from foretest.engines.dispatch import fold
from foretest.engines.local import Progress
from foretest.kernels.random import derive
from foretest.log.reader import Reader
from foretest.log.rows import Rows
from foretest.policies.logging_mixture import LOGGER
from foretest.policies.pricing import refuse_not_finite
from foretest.records import dataclass
from foretest.sources import ROW_NUMBER, Chunk, Source

_SALT = 17  # rows are chosen by a hash of their own

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowChoice:
    """Which rows are kept: at most so many, of some columns."""

    limit: int
    columns: tuple[str, ...]

    def places(self, rows: Rows) -> Ints:
        """The places of rows that may be kept."""
        return np.arange(len(rows))


class RewardedChoice(RowChoice):
    """Rows with a reward alone."""

    def places(self, rows: Rows) -> Ints:
        return rows.rewarded


@dataclass(frozen=True)
class FitChoice(RowChoice):
    """Rows of one logger, by its number, and of units that the control is fitted on."""

    logger: int

    def places(self, rows: Rows) -> Ints:
        of = rows.displays.columns.get(LOGGER, np.zeros(len(rows), np.int64))
        return np.flatnonzero(np.asarray(of == self.logger) & is_fitted_on(rows.unit))


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


class _Rows(NamedTuple):
    """Some rows: the hashes of their units, the keys of their displays, and the rows as they were read."""

    unit: Hashes
    keys: Hashes
    batch: pa.RecordBatch


@dataclass
class KeptBatch:
    """Rows of the smallest hashes so far, in no order."""

    limit: int = field(metadata=by(first))
    seen: int = 0
    highest: int = field(default=(1 << 64) - 1, metadata=by(min))  # no row above this hash is among the first
    parts: list[_Rows] = field(default_factory=list, metadata=by(joined))

    def __post_init__(self) -> None:
        self._cut_if_many()

    def add(self, unit: Hashes, displays: Displays, batch: pa.RecordBatch, at: Ints) -> None:
        """Add the rows of a batch at some places; the keys of displays break ties between rows of one unit."""
        self.seen += len(at)
        some = at[unit[at] <= np.uint64(self.highest)]
        keys = displays.take(some).key()
        if len(some) > self.limit:
            first = np.lexsort((keys, unit[some]))[: self.limit]
            some, keys = some[first], keys[first]
        if len(some):
            self.parts.append(_Rows(unit[some], keys, batch.take(to_arrow(some))))
        self._cut_if_many()

    def _cut_if_many(self) -> None:
        if sum(len(part.unit) for part in self.parts) > 2 * self.limit:
            self._cut()

    def _cut(self) -> None:
        """Make one part of all, in order and cut at the limit."""
        if not self.parts:
            return
        unit, keys = (np.concatenate([part[at] for part in self.parts]) for at in (0, 1))
        order = np.lexsort((keys, unit))[: self.limit]
        # files may have one column in several types
        tables = [pa.Table.from_batches([part.batch]) for part in self.parts]
        rows = pa.concat_tables(tables, promote_options="permissive").take(to_arrow(order))
        self.parts = [_Rows(unit[order], keys[order], rows.combine_chunks().to_batches()[0])]
        if len(order) == self.limit:
            self.highest = int(unit[order[-1]])

    def rows(self) -> pa.RecordBatch | None:
        """The rows that are kept, in order; None where there is none."""
        self._cut()
        return self.parts[0].batch if self.parts else None

    @property
    def scale(self) -> float:
        """How many rows a row that is kept stands for."""
        count = min(self.limit, self.seen)
        return self.seen / count if count else 1.0


@dataclass
class _RawFold:
    """Rows in, the chosen ones out."""

    kept: dict[RowChoice, KeptBatch]

    def add(self, rows: _RawRows) -> None:
        if not len(rows):
            return
        assert rows.batch is not None
        order = derive(rows.unit, _SALT)
        for choice, kept in self.kept.items():
            kept.add(order, rows.displays, rows.batch.select([*choice.columns, ROW_NUMBER]), choice.places(rows))

    def finish(self) -> dict[RowChoice, KeptBatch]:
        return self.kept


def keep_rows(
    source: Source, reader: Reader, choices: Iterable[RowChoice], *, threads: int | None = None,
    progress: Progress | None = None,
) -> dict[RowChoice, KeptBatch]:  # fmt: skip
    """Some rows of a log, by their choice."""
    raw = _RawReader(**{name: getattr(reader, name) for name in reader.__dataclass_fields__})

    def start() -> _RawFold:
        return _RawFold({choice: KeptBatch(choice.limit) for choice in choices})

    return fold(source, raw, start, threads=threads, progress=progress)


def read_again(reader: Reader, batch: pa.RecordBatch | None, at_once: int) -> list[Rows]:
    """Rows that were kept, as any reader sees them."""
    if batch is None:
        return []
    parts = (batch.slice(begin, at_once) for begin in range(0, batch.num_rows, at_once))
    return [reader.read(Chunk(part, "the log", 0, 0)) for part in parts]


def without_rewards(rows: Rows) -> Rows:
    """The rows as if they had earned nothing: weights of rows do not depend on it."""
    nothing = np.zeros_like(rows.rewards)
    return replace(rows, rewards=nothing, logged_rewards=nothing)
