"""How many days a log has."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from foretest.background import in_background
from foretest.displays.days import days_of_rows
from foretest.sources import Source
from foretest.sources.spark_frames import SparkFrame


def count_days(source: Source, name: str) -> int:
    """Count the days in a column of a log."""
    if isinstance(source, SparkFrame):
        quoted = name.replace("`", "``")
        column = source.frame.select(f"`{quoted}`").distinct().toArrow()[name].combine_chunks()
        return len(_days(name, column))
    days: set[str] = set()

    def read() -> None:
        for part in source.parts([name]):
            for chunk in part():
                days.update(_days(name, chunk.batch[name]))

    in_background(read)
    return len(days)


def _days(name: str, column: pa.Array) -> list[str]:
    return list(pc.unique(days_of_rows(name, column).dictionary_decode()).to_pylist())
