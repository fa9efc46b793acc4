"""Are rewards so dense that it pays to weigh all rows? Known before the fold from the first rows of the log.

A ratio Σw̃r/Σw̃ varies less than a mean Σw̃r/n: of a reward that is 0 or 1 by the share of rewarded rows. It needs the
weights of all rows, which take as long to find as those of the rewarded ones, row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    source, table = _first_rows(source, metrics)
    return Peeked(source, _share(table) >= LEAST_SHARE)


def _share_of_packed(logs: Sequence[PackedLog], metrics: list[str]) -> float:
    """The share of packed logs, whose rewarded rows come first: by the first rows of each of their files."""
    rows = rewarded = 0.0
    for log in logs:
        for source, known in ((log.rewarded_rows, 1.0), (log.other_rows, 0.0)):
            share = known if log.rewards == metrics else _share(_first_rows(source, metrics)[1])
            rows += source.rows
            rewarded += share * source.rows
    return rewarded / rows if rows else 0.0


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
        return ArrowStream(again), _table(batches, columns)
    for part in source.parts(columns, FIRST_ROWS):
        for chunk in part():
            batches.append(chunk.batch)
            rows += chunk.batch.num_rows
            if rows >= FIRST_ROWS:
                return source, _table(batches, columns)
    return source, _table(batches, columns)


def _table(batches: list[pa.RecordBatch], columns: list[str]) -> pa.Table:
    """Some columns of batches; none where there are no batches."""
    if not batches:
        return pa.table({})
    return pa.Table.from_batches(batches).select(columns).slice(0, FIRST_ROWS)


def _share(table: pa.Table) -> float:
    """The share of rows with a reward in any column; what is no number is refused later, with its row."""
    if not table.num_rows:
        return 0.0
    some = np.zeros(table.num_rows, np.bool_)
    for column in table.columns:
        try:
            values = np.concatenate([_values(part) for part in column.chunks])
        except (pa.ArrowException, TypeError, ValueError):
            return 0.0
        some |= values != 0.0
    return float(some.mean())


def _values(array: pa.Array) -> Floats:
    """Numbers, 0 for nulls."""
    values = np.zeros(len(array))
    values[np.asarray(array.is_valid())] = numbers(array.drop_null())
    return values
