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
from foretest.displays.ragged import numbers
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
    metrics = list(plan.metrics)
    packed = [] if isinstance(source, SparkFrame) else packed_logs(source)
    if packed:
        return Peeked(source, _share_of_packed(packed, metrics) >= LEAST_SHARE)
    source, first = _first_rows(source, metrics)
    return Peeked(source, _share(first) >= LEAST_SHARE)


def _share_of_packed(logs: Sequence[PackedLog], metrics: list[str]) -> float:
    """The share of packed logs, whose rewarded rows come first: by the first rows of each of their files."""
    rows = rewarded = 0.0
    for log in logs:
        for source, known in ((log.rewarded_rows, 1.0), (log.other_rows, 0.0)):
            share = known if log.rewards == metrics else _share(_first_rows(source, metrics)[1])
            rows += source.rows
            rewarded += share * source.rows
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


def _share(batches: Sequence[pa.RecordBatch]) -> float:
    """The share of the first rows with a reward in any column; files may differ in its type."""
    some = np.concatenate([_is_rewarded(batch) for batch in batches])[:FIRST_ROWS] if batches else np.zeros(0)
    return float(some.mean()) if len(some) else 0.0


def _is_rewarded(batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """The rows with a reward; a null or what is no number counts as none: both are refused later, with their row."""
    rewarded = np.zeros(batch.num_rows, np.bool_)
    for column in batch.columns:
        with suppress(pa.ArrowException, TypeError, ValueError):
            valid = np.flatnonzero(np.asarray(column.is_valid()))
            rewarded[valid] |= numbers(column.drop_null()).astype(np.float64) != 0.0
    return rewarded
