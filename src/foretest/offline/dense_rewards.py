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
from foretest.log.multiplicity_columns import displays_per_row
from foretest.settings.log_columns import LogColumns
from foretest.sources import Source
from foretest.sources.spark_frames import SparkFrame
from foretest.sources.tables import ArrowStream
from foretest.storage.packed.reading import PackedLog, packed_logs

FIRST_ROWS = 10_000


class Density(NamedTuple):
    """A log, and whether a tenth of its rows or more have a reward."""

    source: Source
    is_dense: bool


def is_dense_log(source: Source, plan: FoldPlan) -> Density:
    """Look at the first rows of a log, where its density matters: the bound is to be chosen, by one control's log."""
    if plan.loggers > 1 or not any(plan.bound_weightings(e) for e in plan.estimators):
        return Density(source, False)
    log = plan.settings.log
    packed = [] if isinstance(source, SparkFrame) else packed_logs(source)
    if packed:
        return Density(source, _share_of_packed(packed, log) >= LEAST_SHARE)
    source, first = _first_rows(source, log)
    return Density(source, first.share >= LEAST_SHARE)


class _FirstRows(NamedTuple):
    """The first rows of a log."""

    rows: int
    displays: float  # that they stand for
    rewarded: float  # of these, with a reward in any column

    @property
    def share(self) -> float:
        """The share of displays with a reward."""
        return self.rewarded / self.displays if self.displays else 0.0

    @classmethod
    def of(cls, batches: Iterable[pa.RecordBatch], log: LogColumns) -> _FirstRows:
        """Of enough batches; files may differ in the type of a column."""
        pairs = [(_displays_per_row(batch, log), _is_rewarded(batch, log)) for batch in batches]
        if not pairs:
            return cls(0, 0.0, 0.0)
        displays, is_rewarded = (np.concatenate(arrays)[:FIRST_ROWS] for arrays in zip(*pairs, strict=True))
        return cls(len(displays), float(displays.sum()), float(displays @ is_rewarded))


def _share_of_packed(packed: Sequence[PackedLog], log: LogColumns) -> float:
    """The share of packed logs, whose rewarded rows come first: by the first rows of each of their files."""
    displays = rewarded = 0.0
    for source in (source for one in packed for source in (one.rewarded_rows, one.other_rows)):
        _, first = _first_rows(source, log)
        of_file = source.rows * first.displays / first.rows if first.rows else float(source.rows)
        displays += of_file
        rewarded += first.share * of_file
    return rewarded / displays if displays else 0.0


def _first_rows(source: Source, log: LogColumns) -> tuple[Source, _FirstRows]:
    """The first rows; of a stream, which can be read once, with another that begins with them."""
    columns = [name for name in (*log.rewards, log.keep) if name is not None]
    if isinstance(source, SparkFrame):
        return source, _FirstRows.of(source.first_rows(columns, FIRST_ROWS).to_batches(), log)
    if isinstance(source, ArrowStream):
        first = _until_enough(source.reader)
        again = pa.RecordBatchReader.from_batches(source.reader.schema, chain(first, source.reader))
        return ArrowStream(again), _FirstRows.of(first, log)
    chunks = (chunk.batch for part in source.parts(columns, FIRST_ROWS) for chunk in part())
    return source, _FirstRows.of(_until_enough(chunks), log)


def _until_enough(batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The first batches, with as many rows as are looked at or more."""
    first: list[pa.RecordBatch] = []
    for batch in batches:
        first.append(batch)
        if sum(part.num_rows for part in first) >= FIRST_ROWS:
            break
    return first


def _displays_per_row(batch: pa.RecordBatch, log: LogColumns) -> Floats:
    """How many displays each row stands for; 1 for all rows where that of one is not known, which is refused later."""
    with suppress(pa.ArrowException, TypeError, ValueError):
        return displays_per_row(log, batch)
    return np.ones(batch.num_rows)


def _is_rewarded(batch: pa.RecordBatch, log: LogColumns) -> npt.NDArray[np.bool_]:
    """The rows with a reward; a null or what is no number counts as none: both are refused later, with their row."""
    rewarded = np.zeros(batch.num_rows, np.bool_)
    for column in (batch[name] for name in log.rewards):
        with suppress(pa.ArrowException, TypeError, ValueError):
            if column.null_count == 0:
                rewarded |= numbers(column).astype(np.float64) != 0.0
                continue
            valid = np.flatnonzero(to_numpy(column.is_valid()))
            rewarded[valid] |= numbers(column.drop_null()).astype(np.float64) != 0.0
    return rewarded
