"""A pass that counts rows by day and logger: what share of each day's displays each policy showed.

Where shares vary from day to day, those of the day count: with one share for all days, a ranking of a day on which its
logger showed little would be priced as if it had shown much, and the estimate would be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
import pyarrow as pa

from foretest.background import in_background
from foretest.displays.arrow_numbers import to_numpy
from foretest.displays.batch import Displays
from foretest.displays.days import days_of_rows
from foretest.displays.ragged import Ragged
from foretest.engines.local import Progress, fold_in_threads
from foretest.engines.spark import fold_in_tasks
from foretest.errors import BadInput
from foretest.log.logger_columns import logger_codes, shares_of
from foretest.log.multiplicity_columns import displays_per_row
from foretest.log.reader import Reader
from foretest.log.reward_ages import rows_of_whole
from foretest.log.rows import Rows
from foretest.policies.logging_mixture import ALL, LOGGER, LoggingMixture, Shares
from foretest.records import dataclass
from foretest.settings.log_columns import multiplicities_of
from foretest.sources import Chunk, Source
from foretest.sources.spark_frames import SparkFrame

MOST_DAYS = 10_000
_CELLS = pa.schema([("day", pa.string()), ("logger", pa.int64()), ("rows", pa.float64())])


@dataclass(frozen=True)
class _ShareRows(Rows):
    """Rows with the logger and the day alone."""

    day: pa.DictionaryArray | None = None


@dataclass(frozen=True)
class _ShareReader(Reader):
    """Reads the logger of each row and its day, and nothing else."""

    @property
    def columns(self) -> tuple[str, ...]:
        log = self.settings.log
        by_time = self.settings.analysis.window is not None or self.settings.trained_until is not None
        time = log.time if by_time else None
        return tuple(
            name
            for name in dict.fromkeys((log.logger, log.date, *multiplicities_of(log).values(), time))
            if name is not None
        )

    def read(self, chunk: Chunk) -> _ShareRows:
        chunk = self.counted(chunk)
        with rows_of_whole(chunk):
            return self._share_rows(chunk.batch)

    def _share_rows(self, batch: pa.RecordBatch) -> _ShareRows:
        log, control = self.settings.log, self.settings.control
        assert isinstance(control, LoggingMixture)
        assert log.logger is not None
        codes = logger_codes(log.logger, batch[log.logger], control.names)
        no_items = Ragged.packed(np.empty(0, np.int32), np.zeros(batch.num_rows, np.int64))
        displays = Displays({LOGGER: codes}, no_items, no_items.lengths, np.zeros(batch.num_rows, np.uint64))
        day = None if log.date is None else days_of_rows(log.date, batch[log.date])
        rewards = np.zeros((batch.num_rows, 0))
        return _ShareRows(displays, rewards, displays.identity, None, None, None, (), displays_per_row(log, batch),
                          rewards, day=day)  # fmt: skip


@dataclass
class _Counts:
    """Displays by (day, logger): rows, or of a thinned log Σ 1/keep."""

    rows: dict[tuple[str, int], float] = field(default_factory=dict)

    def add(self, rows: _ShareRows) -> None:
        logger = rows.displays[LOGGER]
        if rows.day is None:
            labels, place = [ALL], np.zeros(len(logger), np.int64)
        else:
            labels, place = rows.day.dictionary.to_pylist(), to_numpy(rows.day.indices)
        width = int(logger.max(initial=0)) + 1
        cells = np.bincount(place * width + logger, weights=rows.displays_per_row, minlength=len(labels) * width)
        cells = cells.reshape(len(labels), width)
        for at, label in enumerate(labels):
            for code in np.flatnonzero(cells[at]).tolist():
                self._count(label, code, cells[at, code].item())
        if len(self.rows) > MOST_DAYS * width:
            raise BadInput(
                f"the log has more than {MOST_DAYS:,} days, by which the loggers' shares are counted: [log] date must"
                " be the day of a display."
            )

    def finish(self) -> _Counts:
        return self

    def __add__(self, other: _Counts) -> _Counts:
        both = _Counts(dict(self.rows))
        for (day, code), count in other.rows.items():
            both._count(day, code, count)
        return both

    def _count(self, day: str, code: int, count: float) -> None:
        self.rows[day, code] = self.rows.get((day, code), 0) + count

    def to_batch(self) -> pa.RecordBatch:
        """One row per day and logger, for a task to send."""
        cells = [{"day": day, "logger": code, "rows": n} for (day, code), n in self.rows.items()]
        return pa.RecordBatch.from_pylist(cells, _CELLS)

    @classmethod
    def total(cls, batches: Sequence[pa.RecordBatch]) -> _Counts:
        """The counts of several tasks added up."""
        total = cls()
        for batch in batches:
            for cell in batch.to_pylist():
                count = cell["rows"]
                total._count(cell["day"], cell["logger"], int(count) if count.is_integer() else count)
        return total


def count_shares(
    source: Source, reader: Reader, *, threads: int | None = None, progress: Progress | None = None
) -> Shares:
    """The rows of each logger by day, counted in the log. A day without a row of the baseline is refused: nothing shows
    what the baseline would have earned on it."""
    control, log = reader.settings.control, reader.settings.log
    assert isinstance(control, LoggingMixture)
    narrow = _ShareReader(reader.settings)
    if isinstance(source, SparkFrame):
        counts = fold_in_tasks(source, narrow, _Counts, _Counts.to_batch, _Counts.total) or _Counts()
    else:
        counts = in_background(lambda: fold_in_threads(source, narrow, _Counts, threads=threads, progress=progress))
    shares = shares_of(dict(counts.rows), len(control.names))
    lacking = np.flatnonzero(shares.rows[:, control.names.index(control.baseline)] == 0)
    if len(lacking) and shares.rows.sum():
        first, others = shares.names[int(lacking[0])], len(lacking) - 1
        where = "no row" if first == ALL else f"on the day {first} (column '{log.date}') no row"
        more = f", and on {others:,} more days" if others else ""
        raise BadInput(
            f"{source.schemas()[0][0]}: {where} is of the baseline '{control.baseline}'{more}: its"
            " value there cannot be estimated. Leave such days out, or name another baseline."
        )
    return shares
