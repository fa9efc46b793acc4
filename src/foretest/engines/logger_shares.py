"""What share of each day's displays each policy showed, counted by day and logger.

Where shares vary from day to day, those of the day count: with one share for all days, a ranking of a day on which its
logger showed little would be priced as if it had shown much, and the estimate would be wrong.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.arrow_numbers import to_numpy
from foretest.displays.batch import Floats
from foretest.displays.days import days_of_rows
from foretest.engines.scan import Search
from foretest.errors import BadInput
from foretest.log.counted_rows import counted_rows
from foretest.log.logger_columns import logger_codes, shares_of
from foretest.log.multiplicity_columns import displays_per_row
from foretest.log.reward_ages import rows_of_whole
from foretest.policies.logging_mixture import ALL, LoggingMixture, Shares, loggers_of
from foretest.records import dataclass
from foretest.settings.log_columns import multiplicities_of
from foretest.settings.settings import Settings
from foretest.sources import Chunk, Source

MOST_DAYS = 10_000


class _LoggerRows(NamedTuple):
    """The logger of each row, its day, and how many displays it stands for."""

    code: npt.NDArray[np.int64]
    day: npt.NDArray[np.int64]  # its place among `days`
    days: list[str]
    displays: Floats


@dataclass
class _Displays:
    """Displays by day and logger."""

    counts: dict[tuple[str, int], float] = field(default_factory=dict)

    def add(self, rows: _LoggerRows) -> None:
        width = int(rows.code.max(initial=0)) + 1
        cells = np.bincount(rows.day * width + rows.code, weights=rows.displays, minlength=len(rows.days) * width)
        cells = cells.reshape(len(rows.days), width)
        for at, label in enumerate(rows.days):
            for code in np.flatnonzero(cells[at]).tolist():
                self.counts[label, code] = self.counts.get((label, code), 0.0) + cells[at, code].item()
        if len(self.counts) > MOST_DAYS * width:
            raise BadInput(
                f"the log has more than {MOST_DAYS:,} days, by which the loggers' shares are counted: [log] date must"
                " be the day of a display."
            )


@dataclass(frozen=True)
class LoggerShares(Search[Shares]):
    """The displays of each logger by day. A day without one of the baseline is refused: nothing shows what the baseline
    would have earned on it."""

    stage = "loggers"

    @property
    def is_open(self) -> bool:
        return bool(loggers_of(self.settings.control).named)

    @property
    def loggers(self) -> LoggingMixture:
        """The policies that showed the log."""
        return cast(LoggingMixture, self.settings.control)

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

    def read(self, chunk: Chunk) -> _LoggerRows:
        chunk = counted_rows(chunk, self.settings)
        with rows_of_whole(chunk):
            return self._rows(chunk.batch)

    def _rows(self, batch: pa.RecordBatch) -> _LoggerRows:
        log, column = self.settings.log, cast(str, self.settings.log.logger)
        code = logger_codes(column, batch[column], self.loggers.names)
        day, days = np.zeros(batch.num_rows, np.int64), [ALL]
        if log.date is not None:
            by_day = days_of_rows(log.date, batch[log.date])
            day, days = to_numpy(by_day.indices), by_day.dictionary.to_pylist()
        return _LoggerRows(code, day, days, displays_per_row(log, batch))

    def start(self) -> _Displays:
        return _Displays()

    def answer(self, counts: _Displays, source: Source) -> Shares:
        names, baseline = self.loggers.names, self.loggers.baseline
        shares = shares_of(counts.counts, len(names))
        lacking = np.flatnonzero(shares.rows[:, names.index(baseline)] == 0)
        if len(lacking) and shares.rows.sum():
            first, others = shares.names[int(lacking[0])], len(lacking) - 1
            where = "no row" if first == ALL else f"on the day {first} (column '{self.settings.log.date}') no row"
            more = f", and on {others:,} more days" if others else ""
            raise BadInput(
                f"{source.schemas()[0][0]}: {where} is of the baseline '{baseline}'{more}: its"
                " value there cannot be estimated. Leave such days out, or name another baseline."
            )
        return shares

    def found(self, settings: Settings, answer: Shares) -> Settings:
        return replace(settings, control=self.loggers.with_shares(answer))
