"""A pass over the rewarded rows of a log, for the examination curve: how the rewards of an item move with its slot.

For slots k ≠ l, F_kl = Σ over rewards r of an item i in slot k of r·P_p(i, l)/(P_p(i, k) + P_p(i, l)). Whatever items
are worth, E F_lk/E F_kl = θ_l/θ_k, with terms between 0 and r. Sums by cell alone, so that parts of a log add up; only
columns of the control are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.treatment_scores import scores_of
from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.engines.dispatch import fold
from foretest.engines.local import Progress
from foretest.errors import BadInput, RowFault
from foretest.kernels.exposure import paired_terms
from foretest.log.reader import Reader
from foretest.log.rows import Rows
from foretest.policies.base import Policy
from foretest.policies.pricing import refuse_not_finite
from foretest.policies.replay import without_replay
from foretest.records import dataclass
from foretest.settings.replay import replays_of
from foretest.settings.settings import Settings, with_treatment_of
from foretest.sources import Source
from foretest.sources.spark_frames import SparkFrame
from foretest.weights.control_marginals import MarginalStore, control_marginals, may_use_key
from foretest.weights.slot_marginals import in_pieces

MOST_SLOTS = 64  # a curve of more is no fit, but a guess


class Pairs(NamedTuple):
    """F by half, cell, slot k and slot l, and Σ of its terms' squares by half, k and l; Σ r² of a slot where l = k.

    Items that the control scores above the median of their display are the second half: under the model both have one
    curve. Where the control has no scores all items are in the first.
    """

    sums: Floats
    squares: Floats

    def widened(self, slots: int) -> Pairs:
        """The same with room for so many slots."""
        room = ((0, 0), (0, 0), (0, max(0, slots - self.slots)), (0, max(0, slots - self.slots)))
        return self if slots <= self.slots else Pairs(np.pad(self.sums, room), np.pad(self.squares, room[1:]))

    @property
    def slots(self) -> int:
        """How many slots there is room for."""
        return int(self.squares.shape[-1])

    @property
    def together(self) -> HalfPairs:
        """The sums of both halves."""
        return HalfPairs(self.sums.sum(axis=0), self.squares.sum(axis=0))

    @property
    def halves(self) -> tuple[HalfPairs, HalfPairs]:
        """The sums of each half."""
        low, high = (HalfPairs(*both) for both in zip(self.sums, self.squares, strict=True))
        return low, high


class HalfPairs(NamedTuple):
    """F by cell, slot k and slot l, and Σ of its terms' squares by k and l."""

    sums: Floats
    squares: Floats


@dataclass
class _PairFold:
    """Rows in, the sums of every metric whose slots are known out."""

    plan: FoldPlan
    metrics: tuple[int, ...]
    store: MarginalStore | None = None
    pairs: dict[int, Pairs] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for m in self.metrics:
            self.pairs.setdefault(m, Pairs(np.zeros((2, self.plan.cells, 0, 0)), np.zeros((2, 0, 0))))

    def add(self, rows: Rows) -> None:
        if not len(rows):
            return
        widest = int(rows.displays.slots.max())  # also of displays without a reward: they may be weighed
        if widest > MOST_SLOTS:
            raise BadInput(
                f"a display shows {widest} items, and an examination curve is fitted for {MOST_SLOTS} slots at most:"
                " give [analysis] examination, or list estimators that need none."
            )
        self.pairs = {m: pairs.widened(widest) for m, pairs in self.pairs.items()}
        some = rows.take(rows.rewarded)
        if not len(some):
            return
        self._refuse_scores(some.displays, rows.rewarded)
        displays, cell = some.displays, self.plan.cells_of(some)
        pair = self.plan.normaliser.pair
        for at in in_pieces(displays):
            part = displays.take(at)
            table = control_marginals(part, pair)
            if self.store is not None:
                self.store.add(part, pair, table)
            half = _halves(pair.control, part)
            for m, pairs in self.pairs.items():
                earned = some.slots[m].take(at)
                paired_terms(
                    table.values, table.starts, part.eligible, part.ranking.values, part.ranking.starts, part.slots,
                    earned.values, earned.starts, half.values, half.starts, cell[at], *pairs,
                )  # fmt: skip

    def _refuse_scores(self, displays: Displays, places: npt.NDArray[np.int64]) -> None:
        """Refuse scores that are not finite, which marginals are not made for; `places` are the rows of the batch."""
        for name in self.plan.normaliser.control.score_columns:
            try:
                refuse_not_finite(name, displays[name])
            except RowFault as fault:
                fault.rows = places[fault.rows]
                raise

    def finish(self) -> dict[int, Pairs]:
        return self.pairs


def _halves(control: Policy, displays: Displays) -> Ragged:
    """1 for items that the control scores above the median of their display, else 0."""
    scores = scores_of(control, displays)
    if scores is None:
        return Ragged.packed(np.zeros(int(displays.eligible.sum()), np.uint8), displays.eligible)
    padded = scores.padded(np.inf).astype(np.float64)
    ordered, rows = np.sort(padded, axis=1), np.arange(len(padded))
    middle = ordered[rows, (scores.lengths - 1) // 2] / 2.0 + ordered[rows, scores.lengths // 2] / 2.0
    above = padded > middle[:, None]
    return Ragged.packed(above[np.isfinite(padded)].astype(np.uint8), displays.eligible)


def sum_pairs(
    source: Source, reader: Reader, plan: FoldPlan, metrics: Sequence[int], *, threads: int | None = None,
    progress: Progress | None = None, store: MarginalStore | None = None,
) -> dict[int, Pairs]:  # fmt: skip
    """The sums of some metrics over a log; the control's marginals go to the `store`, from Spark's tasks to none."""
    narrow = _of_control(plan, reader)
    faults_of = replace(plan, settings=narrow.settings)  # the policies whose faults are searched for

    mine = None if isinstance(source, SparkFrame) else store

    def start() -> _PairFold:
        return _PairFold(plan, tuple(metrics), mine)

    return fold(source, narrow, start, plan=faults_of, threads=threads, progress=progress)


def _of_control(plan: FoldPlan, reader: Reader) -> Reader:
    """A reader of what was shown and earned, and of the control's columns: not of the treatment's, which the pass needs
    no more than features and segments, nor of ids where no marginal and no replay depends on them."""
    settings: Settings = reader.settings
    replayed = bool(replays_of(settings.control))
    by_id = settings.log.unit is None or replayed or may_use_key(plan.normaliser.control)
    log = replace(settings.log, features=(), segments=(), id=settings.log.id if by_id else None)
    return Reader(with_treatment_of(replace(settings, log=log), without_replay(settings.control)), slots=True)
