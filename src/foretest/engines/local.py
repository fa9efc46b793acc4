"""One machine, all cores: parts of the log are read and folded in parallel."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from itertools import chain
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.display_sample import priced
from foretest.aggregation.fold import Fold
from foretest.aggregation.fold_plan import FoldPlan
from foretest.background import THREAD_NAMES, in_background
from foretest.displays.merging import merged
from foretest.displays.ragged import takeable
from foretest.errors import BadInput, RowFault
from foretest.log.reward_ages import rows_of_whole
from foretest.log.rows import Rows
from foretest.records import dataclass
from foretest.settings.log_columns import LogColumns
from foretest.settings.long_layout import LONG, long_column
from foretest.settings.settings import Settings
from foretest.sources import BATCH_ROWS, Chunk, Part, Source
from foretest.weights.weightings import all_log_weights

Progress = Callable[[int], None]
Sums = TypeVar("Sums", covariant=True)


class RowReader(Protocol):
    """What a pass reads of a log: some columns, and what it makes of their rows."""

    @property
    def settings(self) -> Settings: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    def counted(self, chunk: Chunk) -> Chunk: ...

    def read(self, chunk: Chunk) -> Any: ...


class State(Protocol[Sums]):
    """What a thread or a task folds rows into; what `finish` gives of several is merged (`displays/merging.py`)."""

    def add(self, rows: Any) -> None: ...

    def finish(self) -> Sums: ...


def aggregate(
    source: Source,
    reader: RowReader,
    plan: FoldPlan,
    *,
    threads: int | None = None,
    batch_rows: int = BATCH_ROWS,
    progress: Progress | None = None,
    kind: type[Fold] = Fold,
) -> Aggregates:
    """Fold a log into the sums of an offline test."""
    parts = fold_in_threads(
        source, reader, lambda: _Part(kind(plan)), plan=plan, threads=threads, batch_rows=batch_rows, progress=progress
    )
    return priced(parts)


@dataclass(frozen=True)
class _Part:
    """What one thread folds into: the sample of displays is priced after the parts of all threads are added up."""

    fold: Fold

    def add(self, rows: Rows) -> None:
        self.fold.add(rows)

    def finish(self) -> Aggregates:
        return self.fold.unpriced()


def fold_in_threads(
    source: Source,
    reader: RowReader,
    start: Callable[[], State[Sums]],
    *,
    plan: FoldPlan | None = None,
    threads: int | None = None,
    batch_rows: int = BATCH_ROWS,
    progress: Progress | None = None,
) -> Sums:
    """Fold a log. Each thread folds the parts it takes into one state; in the end the sums of the states are merged.

    `progress` is called from any thread with the number of rows of each finished batch. A fault of rows is searched for
    in the whole log, so that its message has its first row and its count; with a `plan`, faults of the policies too.
    """
    parts = source.parts(reader.columns, batch_rows)
    threads = max(1, min(len(parts), threads or os.cpu_count() or 1))
    if threads > 1:  # as many batches are in memory at a time, and one more while it is decoded
        parts = source.parts(reader.columns, max(1, batch_rows // (threads + 1)))
    workers = _Workers(source, reader, start, iter(parts), plan, progress)
    # a single worker is a thread too: this thread only waits, and hears Ctrl-C at once
    pool = ThreadPoolExecutor(threads, THREAD_NAMES, _one_openmp_thread)
    try:
        states = list(pool.map(workers.work, range(threads)))
        pool.shutdown()
        pa.default_memory_pool().release_unused()  # what the threads read batches into: the analysis may need as much
        return merged(states)
    except BaseException as error:
        workers.stop.set()  # threads end after the batch at hand; after Ctrl-C nobody waits for that
        pool.shutdown(wait=isinstance(error, Exception), cancel_futures=True)
        if isinstance(error, RowFault):
            raise _searched(source, reader, batch_rows, plan, error) from None
        raise
    finally:
        pool.shutdown(wait=False)


@dataclass
class _Workers(Generic[Sums]):
    """What the threads of a fold share: each takes the next part of the log until there is none."""

    source: Source
    reader: RowReader
    start: Callable[[], State[Sums]]
    queue: Iterator[Part]
    plan: FoldPlan | None
    progress: Progress | None
    lock: threading.Lock = field(default_factory=threading.Lock)
    stop: threading.Event = field(default_factory=threading.Event)

    def work(self, _: int) -> Sums:
        """The sums of all parts that one thread takes."""
        state = self.start()
        try:
            while not self.stop.is_set():
                with self.lock:
                    part = next(self.queue, None)
                if part is None:
                    break
                chunks = part()
                try:
                    self._fold(state, chunks)
                finally:
                    if isinstance(chunks, Generator):
                        chunks.close()  # a connection may be needed to read the log again
            return state.finish()
        except BaseException:
            self.stop.set()
            raise

    def _fold(self, state: State[Sums], chunks: Iterator[Chunk]) -> None:
        for chunk in chunks:
            if self.stop.is_set():
                return
            try:
                state.add(self.reader.read(chunk))
            except RowFault as fault:
                if self.source.repeatable:
                    raise
                raise explain(chain([chunk], chunks), self.reader, self.plan, fault) from None
            if self.progress is not None:
                self.progress(chunk.batch.num_rows)
            del chunk  # so that the next one takes its memory


def _one_openmp_thread() -> None:
    """Give scikit-learn one thread in each of ours, which are on all cores: more would only wait for each other."""
    if "sklearn" in sys.modules:
        from threadpoolctl import threadpool_limits

        threadpool_limits(1, user_api="openmp")  # of the thread that asks for it


def read_rows(source: Source, reader: RowReader, batch_rows: int = BATCH_ROWS) -> Iterator[Rows]:
    """The log's rows batch by batch; a fault is explained."""
    try:
        for chunk in _all_chunks(source, reader, batch_rows):
            yield reader.read(chunk)
    except RowFault as fault:
        raise _searched(source, reader, batch_rows, None, fault) from None


def _all_chunks(source: Source, reader: RowReader, batch_rows: int) -> Iterator[Chunk]:
    return chain.from_iterable(part() for part in source.parts(reader.columns, batch_rows))


def _searched(source: Source, reader: RowReader, batch_rows: int, plan: FoldPlan | None, fault: RowFault) -> BadInput:
    """A fault that was met, explained after a search of the whole log."""
    return in_background(lambda: explain(_all_chunks(source, reader, batch_rows), reader, plan, fault))


class LongPlace(NamedTuple):
    """Where a fault of a folded display is in the long log."""

    column: str
    key: Any

    @classmethod
    def of(cls, log: LogColumns, column: str, batch: pa.RecordBatch, row: int) -> LongPlace | None:
        """None where the log has one row per display."""
        if log.layout != LONG or log.display not in batch.schema.names:
            return None
        return cls(long_column(log, column), batch[log.display][row].as_py())


class FirstFault(NamedTuple):
    """The first fault in reading order."""

    fault: RowFault
    source: str
    row: int  # within the source
    rows: int  # how many share it
    display: LongPlace | None = None  # of a log with one row per display and item

    def sentence(self) -> str:
        if self.display is not None:
            return self.fault.sentence_of_display(self.source, *self.display, self.rows)
        return self.fault.sentence(self.source, self.row, self.rows)


def explain(chunks: Iterator[Chunk], reader: RowReader, plan: FoldPlan | None, met: RowFault) -> BadInput:
    """The first fault in reading order as a sentence: where it is, and how many rows share it.

    `met` is the fault that stopped the fold: it may be absent now if the log changed, or if a query draws at random.
    """
    first = find_fault(chunks, reader, plan)
    if first is None:
        return BadInput(f"{met} The log gave other rows when it was read again to find the place of this fault.")
    return BadInput(first.sentence())


def find_fault(chunks: Iterator[Chunk], reader: RowReader, plan: FoldPlan | None) -> FirstFault | None:
    """The first fault in reading order, and how many rows share it; None where there is none."""
    first: FirstFault | None = None
    for chunk in chunks:
        for rows, fault in _faults_of(chunk, reader, plan):
            if first is None:
                place = LongPlace.of(reader.settings.log, fault.column, chunk.batch, int(rows[0]))
                first = FirstFault(fault, chunk.source, chunk.row + int(rows[0]), 0, place)
            if (fault.kind, fault.column) == (first.fault.kind, first.fault.column):
                first = first._replace(rows=first.rows + len(rows))
    return first


def _faults_of(
    chunk: Chunk, reader: RowReader, plan: FoldPlan | None
) -> Iterator[tuple[npt.NDArray[np.int64], RowFault]]:
    """Every fault of a chunk, with its rows: rows with one fault are left out to find the next."""
    left = np.arange(chunk.batch.num_rows)
    batch = pa.RecordBatch.from_arrays([takeable(column) for column in chunk.batch.columns], chunk.batch.schema.names)
    known: set[tuple[str, str]] = set()
    while len(left):
        try:
            part = reader.counted(chunk._replace(batch=batch.take(left)))
            rows = reader.read(part)
            if plan is not None:
                with rows_of_whole(part):
                    all_log_weights(plan.settings.treatments, plan.settings.control, rows.displays)
            return
        except RowFault as fault:
            if (fault.kind, fault.column) in known:  # a policy that faults by position, not by row
                return
            known.add((fault.kind, fault.column))
            yield left[fault.rows], fault
            left = np.delete(left, fault.rows)
