"""How many days a log has."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from foretest.background import in_background
from foretest.displays.days import coded_days, days_of_rows
from foretest.displays.times import instants
from foretest.settings.log_columns import LogColumns
from foretest.sources import Source
from foretest.sources.spark_frames import SparkFrame


def day_column(log: LogColumns) -> str | None:
    """The column that says the day of a display: [log] date, or else time; None where neither is named."""
    return log.time if log.date is None else log.date


def count_days(source: Source, log: LogColumns) -> int:
    """Count the days of a log whose settings name a column of them."""
    name = day_column(log)
    assert name is not None
    timed = log.date is None
    if isinstance(source, SparkFrame):
        quoted = name.replace("`", "``")
        column = source.frame.select(f"`{quoted}`").distinct().toArrow()[name].combine_chunks()
        return len(_days(name, column, timed))
    days: set[str] = set()

    def read() -> None:
        for part in source.parts([name]):
            for chunk in part():
                days.update(_days(name, chunk.batch[name], timed))

    in_background(read)
    return len(days)


def _days(name: str, column: pa.Array, timed: bool) -> list[str]:
    """The days in a column of days, or of times."""
    if timed:
        column = pa.array(instants(name, column).values).cast(pa.timestamp("us"))
        return list(pc.unique(coded_days(column).dictionary_decode()).to_pylist())
    return list(pc.unique(days_of_rows(name, column).dictionary_decode()).to_pylist())
