"""A pass over one column: the latest time of a log, which it was read at where the settings do not say when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from foretest.background import in_background
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.displays.times import Ints
from foretest.engines.local import Progress, fold_in_threads
from foretest.engines.spark import fold_in_tasks
from foretest.log.reader import Reader
from foretest.log.reward_ages import display_times
from foretest.log.rows import Rows
from foretest.records import dataclass
from foretest.settings.settings import Settings
from foretest.sources import Chunk, Source
from foretest.sources.spark_frames import SparkFrame


@dataclass(frozen=True)
class _Times(Rows):
    """Rows with the time of the display alone."""

    shown: Ints | None = None


@dataclass(frozen=True)
class _TimeReader(Reader):
    """Reads the time of each display, and nothing else."""

    @property
    def columns(self) -> tuple[str, ...]:
        time = self.settings.log.time
        assert time is not None
        return (time,)

    def counted(self, chunk: Chunk) -> Chunk:
        return chunk

    def read(self, chunk: Chunk) -> _Times:
        rows = chunk.batch.num_rows
        no_items = Ragged.packed(np.empty(0, np.int32), np.zeros(rows, np.int64))
        displays = Displays({}, no_items, no_items.lengths, np.zeros(rows, np.uint64))
        shown = display_times(self.settings.log, chunk.batch)
        none = np.zeros((rows, 0))
        return _Times(displays, none, displays.identity, None, None, None, (), np.ones(rows), none, shown=shown)


@dataclass
class _Latest:
    """The latest time so far; None before the first row."""

    time: int | None = None

    def add(self, rows: _Times) -> None:
        assert rows.shown is not None
        if len(rows.shown):
            self.time = max(int(rows.shown.max()), rows.shown[0] if self.time is None else self.time)

    def finish(self) -> _Latest:
        return self

    def __add__(self, other: _Latest) -> _Latest:
        known = [part.time for part in (self, other) if part.time is not None]
        return _Latest(max(known) if known else None)

    def to_batch(self) -> pa.RecordBatch:
        """The time as a row, for a task to send."""
        return pa.RecordBatch.from_pydict({"time": pa.array([self.time], pa.int64())})

    @classmethod
    def total(cls, batches: Sequence[pa.RecordBatch]) -> _Latest:
        """The latest of what several tasks found."""
        known = [time for batch in batches for time in batch["time"].to_pylist() if time is not None]
        return cls(max(known) if known else None)


def latest_time(
    source: Source, settings: Settings, *, threads: int | None = None, progress: Progress | None = None
) -> int | None:
    """The latest time of a display, in microseconds; None where there is no row."""
    reader = _TimeReader(settings)
    if isinstance(source, SparkFrame):
        return (fold_in_tasks(source, reader, _Latest, _Latest.to_batch, _Latest.total) or _Latest()).time
    return in_background(lambda: fold_in_threads(source, reader, _Latest, threads=threads, progress=progress)).time
