"""Are rewards so dense that it pays to weigh all rows? Known before the fold from the first rows of the log.

A ratio Σw̃r/Σw̃ varies less than a mean Σw̃r/n: of a reward that is 0 or 1 by the share of rewarded rows. It needs the
weights of all rows, which take as long to find as those of the rewarded ones, row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.aggregation.dense import LEAST_SHARE
from foretest.aggregation.fold_plan import FoldPlan
from foretest.displays.arrow_numbers import to_numpy
from foretest.displays.batch import Floats
from foretest.displays.ragged import numbers
from foretest.log.keep_column import displays_of_kept
from foretest.sources import Source
from foretest.sources.spark_frames import SparkFrame
from foretest.sources.tables import ArrowStream
from foretest.storage.packed.reading import PackedLog, packed_logs

FIRST_ROWS = 10_000


class Peeked(NamedTuple):
    """A log, and whether a tenth of its rows or more have a reward."""

    source: Source
    dense: bool


def peek(source: Source, plan: FoldPlan) -> Peeked:
    """Look at the first rows of a log, where its density matters: the bound is to be chosen, by one control's log."""
    if plan.loggers > 1 or not any(plan.bound_weightings(e) for e in plan.estimators):
        return Peeked(source, False)
    metrics, keep = list(plan.settings.log.rewards), plan.settings.log.keep
    packed = [] if isinstance(source, SparkFrame) else packed_logs(source)
    if packed:
        return Peeked(source, _share_of_packed(packed, metrics, keep) >= LEAST_SHARE)
    source, first = _first_rows(source, [*metrics, *([keep] if keep else [])])
    displays, rewarded = _displays_and_rewarded(first, keep)
    return Peeked(source, displays > 0.0 and rewarded / displays >= LEAST_SHARE)


def _share_of_packed(logs: Sequence[PackedLog], metrics: list[str], keep: str | None) -> float:
    """The share of packed logs, whose rewarded rows come first: by the first rows of each of their files."""
    rows = rewarded = 0.0
    for log in logs:
        for source, known in ((log.rewarded_rows, 1.0), (log.other_rows, 0.0)):
            if log.rewards == metrics and keep is None:
                share, times = known, 1.0
            else:
                first = _first_rows(source, [*metrics, *([keep] if keep else [])])[1]
                displays, with_reward = _displays_and_rewarded(first, keep)
                seen = min(FIRST_ROWS, sum(batch.num_rows for batch in first))
                share, times = (with_reward / displays, displays / seen) if seen else (0.0, 1.0)
            rows += times * source.rows
            rewarded += share * times * source.rows
    return rewarded / rows if rows else 0.0


def _first_rows(source: Source, columns: list[str]) -> tuple[Source, list[pa.RecordBatch]]:
    """Some columns of the first rows; of a stream, which can be read once, with another that begins with them."""
    if isinstance(source, SparkFrame):
        return source, source.first_rows(columns, FIRST_ROWS).to_batches()
    if isinstance(source, ArrowStream):
        first = _until_enough(source.reader)
        again = pa.RecordBatchReader.from_batches(source.reader.schema, chain(first, source.reader))
        return ArrowStream(again), [batch.select(columns) for batch in first]
    chunks = (chunk.batch for part in source.parts(columns, FIRST_ROWS) for chunk in part())
    return source, _until_enough(chunks)


def _until_enough(batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The first batches, with as many rows as are looked at or more."""
    first: list[pa.RecordBatch] = []
    for batch in batches:
        first.append(batch)
        if sum(part.num_rows for part in first) >= FIRST_ROWS:
            break
    return first


def _displays_and_rewarded(batches: Sequence[pa.RecordBatch], keep: str | None) -> tuple[float, float]:
    """How many displays the first rows stand for, and how many of these have a reward in any column; files may differ
    in its type."""
    if not batches:
        return 0.0, 0.0
    some = np.concatenate([_is_rewarded(batch, keep) for batch in batches])[:FIRST_ROWS]
    if keep is None:
        return float(len(some)), float(some.sum())
    stands_for = np.concatenate([_multiples(batch, keep) for batch in batches])[:FIRST_ROWS]
    return float(stands_for.sum()), float(stands_for @ some)


def _multiples(batch: pa.RecordBatch, keep: str) -> Floats:
    """1/keep; 1 for all rows where a row has none, which is refused later."""
    with suppress(pa.ArrowException, TypeError, ValueError):
        return displays_of_kept(keep, batch[keep])
    return np.ones(batch.num_rows)


def _is_rewarded(batch: pa.RecordBatch, keep: str | None) -> npt.NDArray[np.bool_]:
    """The rows with a reward; a null or what is no number counts as none: both are refused later, with their row."""
    rewarded = np.zeros(batch.num_rows, np.bool_)
    for column in (batch[name] for name in batch.schema.names if name != keep):
        with suppress(pa.ArrowException, TypeError, ValueError):
            if column.null_count == 0:
                rewarded |= numbers(column).astype(np.float64) != 0.0
                continue
            valid = np.flatnonzero(to_numpy(column.is_valid()))
            rewarded[valid] |= numbers(column.drop_null()).astype(np.float64) != 0.0
    return rewarded
