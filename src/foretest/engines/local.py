"""One machine, all cores: parts of the log are read and folded side by side."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import add
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold import Fold, priced
from foretest.aggregation.fold_plan import FoldPlan
from foretest.background import THREADS, in_background
from foretest.errors import BadInput, RowFault
from foretest.log.reader import Reader, Rows
from foretest.sources import BATCH_ROWS, Chunk, Part, Source
from foretest.weights.weightings import all_log_weights

Progress = Callable[[int], None]
Sums = TypeVar("Sums", covariant=True)


class State(Protocol[Sums]):
    """What a thread folds rows into."""

    def add(self, rows: Any) -> None: ...

    def finish(self) -> Sums: ...


def aggregate(
    source: Source,
    reader: Reader,
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
    """What one thread folds: the sample of displays is priced when all are added up, not by each of them."""

    fold: Fold

    def add(self, rows: Rows) -> None:
        self.fold.add(rows)

    def finish(self) -> Aggregates:
        return self.fold.unpriced()


def fold_in_threads(
    source: Source,
    reader: Reader,
    start: Callable[[], State[Sums]],
    *,
    plan: FoldPlan | None = None,
    threads: int | None = None,
    batch_rows: int = BATCH_ROWS,
    progress: Progress | None = None,
) -> Sums:
    """Fold a log. Each thread folds the parts it takes into one state; what the states give adds up in the end.

    `progress` is called with the number of rows of each batch done, from any thread. A fault of rows is told in full;
    with a `plan`, faults of the policies are looked for too.
    """
    parts = source.parts(reader.columns, batch_rows)
    workers = max(1, min(len(parts), threads or os.cpu_count() or 1))
    queue: Iterator[Part] = iter(parts)
    lock = threading.Lock()
    stop = threading.Event()

    def take(state: State[Sums], chunks: Iterator[Chunk]) -> None:
        for chunk in chunks:
            if stop.is_set():
                return
            try:
                state.add(reader.read(chunk))
            except RowFault as fault:
                if source.repeatable:
                    raise
                raise explain(chain([chunk], chunks), reader, plan, fault) from None
            if progress is not None:
                progress(chunk.batch.num_rows)

    def work(_: int) -> Sums:
        state = start()
        try:
            while not stop.is_set():
                with lock:
                    part = next(queue, None)
                if part is None:
                    break
                chunks = part()
                try:
                    take(state, chunks)
                finally:
                    if isinstance(chunks, Generator):
                        chunks.close()  # a connection may be needed to read the log again
            return state.finish()
        except BaseException:
            stop.set()
            raise

    # one worker too is a thread of its own: this one waits, and hears Ctrl-C at once
    pool = ThreadPoolExecutor(workers, THREADS, _one_openmp_thread)
    try:
        return reduce(add, pool.map(work, range(workers)))
    except BaseException as error:
        stop.set()  # threads end with the batch at hand; who was told to stop does not wait for that
        pool.shutdown(wait=isinstance(error, Exception), cancel_futures=True)
        if isinstance(error, RowFault):
            raise _searched(source, reader, batch_rows, plan, error) from None
        raise
    finally:
        pool.shutdown(wait=False)


def _one_openmp_thread() -> None:
    """Parts are read side by side: threads of scikit-learn's own in each would only wait for each other."""
    if "sklearn" in sys.modules:
        from threadpoolctl import threadpool_limits

        threadpool_limits(1, user_api="openmp")  # of the thread that asks for it


def read_rows(source: Source, reader: Reader, batch_rows: int = BATCH_ROWS) -> Iterator[Rows]:
    """The log's rows batch by batch, faults explained."""
    try:
        for chunk in _all_chunks(source, reader, batch_rows):
            yield reader.read(chunk)
    except RowFault as fault:
        raise _searched(source, reader, batch_rows, None, fault) from None


def _all_chunks(source: Source, reader: Reader, batch_rows: int) -> Iterator[Chunk]:
    return chain.from_iterable(part() for part in source.parts(reader.columns, batch_rows))


def _searched(source: Source, reader: Reader, batch_rows: int, plan: FoldPlan | None, met: RowFault) -> BadInput:
    """The fault that was met, looked for in the whole log."""
    return in_background(lambda: explain(_all_chunks(source, reader, batch_rows), reader, plan, met))


def explain(chunks: Iterator[Chunk], reader: Reader, plan: FoldPlan | None, met: RowFault) -> BadInput:
    """The first fault in reading order as a sentence: where it is, and how many rows share it.

    `met` is the one that was met: it may not be there again in a log that changed, or in a query that draws at random.
    """
    found = find_fault(chunks, reader, plan)
    if found is None:
        return BadInput(f"{met} The log gave other rows when it was read again for the place of this fault.")
    fault, place, count = found
    return BadInput(fault.sentence(*place, count))


def find_fault(
    chunks: Iterator[Chunk], reader: Reader, plan: FoldPlan | None
) -> tuple[RowFault, tuple[str, int], int] | None:
    """The first fault in reading order, its source and row, and how many rows share it; None where there is none."""
    first: RowFault | None = None
    place = ("", 0)
    count = 0
    for chunk in chunks:
        for rows, found in _faults_of(chunk, reader, plan):
            if first is None:
                first, place = found, (chunk.source, chunk.row + int(rows[0]))
            if (found.kind, found.column) == (first.kind, first.column):
                count += len(rows)
    return None if first is None else (first, place, count)


def _faults_of(chunk: Chunk, reader: Reader, plan: FoldPlan | None) -> Iterator[tuple[npt.NDArray[np.int64], RowFault]]:
    """Every fault of a chunk, with its rows: those with one fault are set aside to find the next."""
    left = np.arange(chunk.batch.num_rows)
    known: set[tuple[str, str]] = set()
    while len(left):
        try:
            rows = reader.read(chunk._replace(batch=chunk.batch.take(left)))
            if plan is not None:
                all_log_weights(plan.settings.treatments, plan.settings.control, rows.displays)
            return
        except RowFault as found:
            if (found.kind, found.column) in known:  # a policy that faults by position, not by row
                return
            known.add((found.kind, found.column))
            yield left[found.rows], found
            left = np.delete(left, found.rows)
