"""One machine, all cores: parts of the log are read and folded side by side."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import add

from foretest.aggregates import Aggregates, Fold, Plan
from foretest.errors import BadInput, RowFault
from foretest.log import Reader, Rows
from foretest.sources import BATCH_ROWS, Chunk, Part, Source
from foretest.weights import log_weights

Progress = Callable[[int], None]


def aggregate(
    source: Source,
    reader: Reader,
    plan: Plan,
    *,
    threads: int | None = None,
    batch_rows: int = BATCH_ROWS,
    progress: Progress | None = None,
) -> Aggregates:
    """Fold a log. Each thread folds the parts it takes into one state; the states add up in the end.

    `progress` is called with the number of rows of each batch done, from any thread.
    """
    parts = source.parts(reader.columns, batch_rows)
    workers = max(1, min(len(parts), threads or os.cpu_count() or 1))
    queue: Iterator[Part] = iter(parts)
    lock = threading.Lock()
    stop = threading.Event()

    def work() -> Aggregates:
        state = Fold(plan)
        while not stop.is_set():
            with lock:
                part = next(queue, None)
            if part is None:
                break
            for chunk in part():
                if stop.is_set():
                    break
                state.add(reader.read(chunk))
                if progress is not None:
                    progress(chunk.batch.num_rows)
        return state.finish()

    def guarded() -> Aggregates:
        try:
            return work()
        except BaseException:
            stop.set()
            raise

    try:
        if workers == 1:
            return guarded()
        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(guarded) for _ in range(workers)]
            try:
                return reduce(add, [future.result() for future in futures])
            except BaseException:
                stop.set()
                raise
    except RowFault as fault:
        raise explain(fault, source, reader, plan, batch_rows) from None


def read_rows(source: Source, reader: Reader, batch_rows: int = BATCH_ROWS) -> Iterator[Rows]:
    """The log's rows batch by batch, faults explained."""
    try:
        for part in source.parts(reader.columns, batch_rows):
            for chunk in part():
                yield reader.read(chunk)
    except RowFault as fault:
        raise explain(fault, source, reader, None, batch_rows) from None


def explain(fault: RowFault, source: Source, reader: Reader, plan: Plan | None, batch_rows: int) -> BadInput:
    """The fault as a sentence: the first row that has it, and how many do, in the whole log."""
    if not source.repeatable:
        [(name, _)] = source.schemas()
        return BadInput(f"{name}: {fault}")
    first: tuple[Chunk, int] | None = None
    count = 0
    for part in source.parts(reader.columns, batch_rows):
        for chunk in part():
            found = _fault_of(chunk, reader, plan)
            if found is not None and (found.kind, found.column) == (fault.kind, fault.column):
                if first is None:
                    first, fault = (chunk, int(found.rows[0])), found
                count += len(found.rows)
    if first is None:  # the fault is not in the rows alone
        return BadInput(str(fault))
    chunk, at = first
    return BadInput(fault.sentence(chunk.source, chunk.row + at, count))


def _fault_of(chunk: Chunk, reader: Reader, plan: Plan | None) -> RowFault | None:
    try:
        rows = reader.read(chunk)
        if plan is not None:
            log_weights(plan.settings.treatment, plan.settings.control, rows.displays)
    except RowFault as found:
        return found
    return None
