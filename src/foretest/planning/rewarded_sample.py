"""Rewarded displays of the smallest unit hashes, with what their slots earned: what exploration would buy is predicted
on these.

Only rewarded displays have a part in an uplift's variance: where rewards are is where weights matter.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.aggregation.display_sample import with_keys
from foretest.aggregation.fold import for_treatment
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Columns, KeptRows
from foretest.background import in_background
from foretest.displays.batch import Displays, Floats, Hashes
from foretest.displays.merging import merged
from foretest.displays.ragged import Ragged
from foretest.engines.local import Progress, fold_in_threads
from foretest.engines.spark import fold_in_tasks
from foretest.log.reader import Reader
from foretest.log.rows import Rows
from foretest.records import dataclass
from foretest.sources import Source
from foretest.sources.spark_frames import SparkFrame

DISPLAYS = 2048
_MOST_CELLS = 1 << 20  # slots × items of all displays together: what many policies are priced on in seconds


@dataclass(frozen=True)
class RewardedSample:
    """Rewarded displays; `rewards` has a column per metric, `slots` what each slot earned, by metric."""

    displays: Displays
    unit: Hashes
    rewards: Floats
    slots: dict[int, Ragged]

    def __len__(self) -> int:
        return len(self.displays)

    def of_metric(self, metric: int) -> RewardedSample:
        """As many of the first displays with a reward of a metric as have tables of slots by items that are quick to
        fill."""
        [rows] = np.nonzero(self.rewards[:, metric])
        cells = np.cumsum((self.displays.eligible * self.displays.slots)[rows])
        rows = rows[: max(1, int(np.searchsorted(cells, _MOST_CELLS, side="right")))]
        return self.take(rows)

    def take(self, rows: npt.NDArray[np.int64]) -> RewardedSample:
        """Some of the displays."""
        slots = {m: lists.take(rows) for m, lists in self.slots.items()}
        return RewardedSample(self.displays.take(rows), self.unit[rows], self.rewards[rows], slots)


def rewarded_sample(
    source: Source, plan: FoldPlan, *, threads: int | None = None, progress: Progress | None = None
) -> RewardedSample | None:
    """Sample a log in a pass of its own; None where no display has a reward."""
    by_slot = plan.slot_bounds is not None or bool(plan.exposure_bounds)
    reader = Reader(plan.settings, slots=by_slot, examination=bool(plan.exposure_bounds))

    def start() -> _SampleFold:
        return _SampleFold(plan)

    def merged(batches: Sequence[pa.RecordBatch]) -> _SampleFold:
        return sum((_SampleFold.from_batch(batch, plan) for batch in batches), start())

    if isinstance(source, SparkFrame):
        folded = fold_in_tasks(source, reader, start, _SampleFold.to_batch, merged, plan=plan)
    else:
        folded = in_background(
            lambda: fold_in_threads(source, reader, start, plan=plan, threads=threads, progress=progress)
        )
    return None if folded is None else folded.sample()


@dataclass
class _SampleFold:
    """Batches in, rewarded displays out."""

    plan: FoldPlan
    kept: KeptRows = field(init=False)

    def __post_init__(self) -> None:
        order = ("unit", "key", *(f"r:{m}" for m in range(len(self.plan.metrics))))
        self.kept = KeptRows(DISPLAYS, order)

    def add(self, rows: Rows) -> None:
        if not len(rows.rewarded):
            return
        some = for_treatment(self.plan, rows.take(rows.rewarded))
        part = some.take(self.kept.below(some.unit))
        columns: Columns = {"unit": part.unit, **{f"r:{m}": part.rewards[:, m] for m in range(len(self.plan.metrics))}}
        slots = {_slot_column(m): lists for m, lists in part.slots.items()}
        self.kept.add(columns, len(some), replace(part.displays, columns={**part.displays.columns, **slots}))

    def finish(self) -> _SampleFold:
        with_keys(self.kept)
        return self

    def __add__(self, other: _SampleFold) -> _SampleFold:
        both = _SampleFold(self.plan)
        both.kept = merged([self.kept, other.kept])
        return both

    def to_batch(self) -> pa.RecordBatch:
        """The kept rows for a task to send."""
        return pa.RecordBatch.from_pydict({"kept": pa.array([pickle.dumps(self.kept)], pa.binary())})

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch, plan: FoldPlan) -> _SampleFold:
        """What another task of the same job sent."""
        fold = cls(plan)
        fold.kept = pickle.loads(batch["kept"][0].as_py())
        return fold

    def sample(self) -> RewardedSample | None:
        """The sample; None where there is no rewarded display."""
        columns, log = self.kept.columns(), self.plan.settings.log
        if not columns:
            return None
        [displays] = self.kept.displays
        metrics = range(len(self.plan.metrics))
        slots = {m: displays[name] for m in metrics if (name := _slot_column(m)) in displays.columns}
        if log.unit is None and log.id is None:  # equal rows must not share their draws
            displays = replace(displays, identity=columns["unit"], key_columns=None)
        rewards = np.column_stack([columns[f"r:{m}"] for m in metrics])
        return RewardedSample(displays.with_key(), columns["unit"], rewards, slots)


def _slot_column(metric: int) -> str:
    """The column of displays with what each slot earned."""
    return f"\0slots:{metric}"
