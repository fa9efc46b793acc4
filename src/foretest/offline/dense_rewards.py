"""Are rewards so dense that it pays to weigh all rows? Known before the fold from the first rows of the log.

A ratio Σw̃r/Σw̃ varies less than a mean Σw̃r/n: of a reward that is 0 or 1 by the share of rewarded rows. It needs the
weights of all rows, which take as long to find as those of the rewarded ones, row by row.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from foretest.aggregation.dense import LEAST_SHARE
from foretest.aggregation.fold_plan import FoldPlan
from foretest.displays.batch import Floats
from foretest.displays.ragged import numbers
from foretest.sources import Source
from foretest.sources.spark_frames import SparkFrame
from foretest.sources.tables import ArrowStream
from foretest.storage.packed.reading import packed_logs

FIRST_ROWS = 10_000


class Peeked(NamedTuple):
    """A log, and whether some metric has a reward in a tenth of its first rows or more."""

    source: Source
    dense: bool


def peek(source: Source, plan: FoldPlan) -> Peeked:
    """Look at the first rows of a log, where its density matters: the bound is to be chosen, by one control's log."""
    if plan.loggers > 1 or not any(plan.bound_weightings(e) for e in plan.estimators):
        return Peeked(source, False)
    packed = packed_logs(source) if not isinstance(source, SparkFrame) else []
    if packed:  # whose rewarded rows come first
        shares = [log.share_rewarded for log in packed]
        return Peeked(source, any(share is not None and share >= LEAST_SHARE for share in shares))
    source, table = _first_rows(source, list(plan.metrics))
    return Peeked(source, _is_dense(table))


def _first_rows(source: Source, columns: list[str]) -> tuple[Source, pa.Table]:
    """Some columns of the first rows; of a stream, which can be read once, with another that begins with them."""
    if isinstance(source, SparkFrame):
        return source, source.first_rows(columns, FIRST_ROWS)
    batches, rows = [], 0
    if isinstance(source, ArrowStream):
        for batch in source.reader:
            batches.append(batch)
            rows += batch.num_rows
            if rows >= FIRST_ROWS:
                break
        again = pa.RecordBatchReader.from_batches(source.reader.schema, chain(batches, source.reader))
        return ArrowStream(again), _table(source.reader.schema, batches, columns)
    for part in source.parts(columns, FIRST_ROWS):
        for chunk in part():
            batches.append(chunk.batch)
            rows += chunk.batch.num_rows
            if rows >= FIRST_ROWS:
                return source, _table(batches[0].schema, batches, columns)
    return source, _table(batches[0].schema if batches else pa.schema([]), batches, columns)


def _table(schema: pa.Schema, batches: list[pa.RecordBatch], columns: list[str]) -> pa.Table:
    table = pa.Table.from_batches(batches, schema)
    return table.select([name for name in columns if name in table.schema.names]).slice(0, FIRST_ROWS)


def _is_dense(table: pa.Table) -> bool:
    return any(_share(column) >= LEAST_SHARE for column in table.columns)


def _share(column: pa.ChunkedArray) -> float:
    """The share of rows with a reward; what is no number is refused later, with its row."""
    if not len(column):
        return 0.0
    try:
        values: Floats = np.concatenate([numbers(part.drop_null()).astype(np.float64) for part in column.chunks])
    except (pa.ArrowException, TypeError, ValueError):
        return 0.0
    return float(np.count_nonzero(values)) / len(column)
