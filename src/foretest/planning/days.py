"""How many days a log has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from foretest.displays.days import coded_days, days_of_rows
from foretest.displays.merging import by
from foretest.displays.times import instants
from foretest.engines.scan import Search
from foretest.records import dataclass
from foretest.settings.log_columns import LogColumns
from foretest.sources import Chunk, Source


def day_column(log: LogColumns) -> str | None:
    """The column that says the day of a display: [log] date, or else time; None where neither is named."""
    return log.time if log.date is None else log.date


@dataclass
class _Days:
    """The days so far."""

    labels: set[str] = field(default_factory=set, metadata=by(lambda sets: set().union(*sets)))

    def add(self, labels: Sequence[str]) -> None:
        self.labels.update(labels)


@dataclass(frozen=True)
class DayCount(Search[int]):
    """How many days a log has whose settings name a column of them."""

    stage = "days"

    @property
    def columns(self) -> tuple[str, ...]:
        return (cast(str, day_column(self.settings.log)),)

    def read(self, chunk: Chunk) -> list[str]:
        [name] = self.columns
        return _days(name, chunk.batch[name], self.settings.log.date is None)

    def start(self) -> _Days:
        return _Days()

    def answer(self, counts: _Days, source: Source) -> int:
        return len(counts.labels)


def _days(name: str, column: pa.Array, timed: bool) -> list[str]:
    """The days in a column of days, or of times."""
    if timed:
        column = pa.array(instants(name, column).values).cast(pa.timestamp("us"))
        return list(pc.unique(coded_days(column).dictionary_decode()).to_pylist())
    return list(pc.unique(days_of_rows(name, column).dictionary_decode()).to_pylist())
