"""Where a log is folded: by threads on this machine, or by Spark's tasks on many."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold import Fold
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.item_model import feature_rows
from foretest.aggregation.value_model import FeatureRows, SmallestRows
from foretest.background import in_background
from foretest.engines import local
from foretest.engines.local import Progress, RowReader, State
from foretest.engines.spark import aggregate as aggregate_in_spark
from foretest.engines.spark import fold_in_tasks
from foretest.log.reader import Reader
from foretest.log.rows import Rows
from foretest.records import dataclass
from foretest.sources import BATCH_ROWS, Source
from foretest.sources.spark_frames import SparkFrame

Sums = TypeVar("Sums")


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


def fold(
    source: Source,
    reader: RowReader,
    start: Callable[[], State[Sums]],
    *,
    plan: FoldPlan | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Sums:
    """A pass over a log, wherever its rows are: what several threads or tasks have counted is merged."""
    if isinstance(source, SparkFrame):
        return fold_in_tasks(source, reader, start, plan=plan)
    return in_background(
        lambda: local.fold_in_threads(source, reader, start, plan=plan, threads=threads, progress=progress)
    )


@dataclass
class _ModelRows:
    """Rows in, those out that a model is fitted on."""

    reader: Reader
    smallest: SmallestRows

    def add(self, rows: Rows) -> None:
        self.smallest.add(feature_rows(self.reader, rows))

    def finish(self) -> SmallestRows:
        return self.smallest


def value_model_rows(source: Source, reader: Reader, progress: Progress | None = None) -> list[FeatureRows]:
    """Rows of which V(x), or with a reader of shown items the reward model, is fitted on those of the smallest hashes;
    by one thread, since each would have so many in memory."""
    return fold(source, reader, lambda: _ModelRows(reader, SmallestRows()), threads=1, progress=progress).parts
