"""Where a log is folded: by threads on this machine, or by Spark's tasks on many."""

from __future__ import annotations

from collections.abc import Iterator

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold import Fold
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.item_model import feature_rows
from foretest.aggregation.value_model import FeatureRows
from foretest.engines import local
from foretest.engines.local import Progress
from foretest.engines.spark import aggregate as aggregate_in_spark
from foretest.engines.spark import value_model_rows as rows_from_spark
from foretest.log.reader import Reader
from foretest.sources import BATCH_ROWS, Source
from foretest.sources.spark_frames import SparkFrame


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
    """Fold a log where its rows are: here in threads, or in Spark's tasks; `kind` is the class of the fold."""
    if isinstance(source, SparkFrame):
        return aggregate_in_spark(source, reader, plan, kind)
    return local.aggregate(source, reader, plan, threads=threads, batch_rows=batch_rows, progress=progress, kind=kind)


def value_model_rows(source: Source, reader: Reader, progress: Progress | None = None) -> Iterator[FeatureRows]:
    """The rows that V(x), or with a reader of shown items the reward model, is fitted on."""
    if isinstance(source, SparkFrame):
        yield from rows_from_spark(source, reader)
        return
    for rows in local.read_rows(source, reader):
        if progress is not None:
            progress(len(rows))
        yield feature_rows(reader, rows)
