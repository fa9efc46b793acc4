"""Rewarded displays of the smallest unit hashes, with what their slots earned: what exploration would buy is predicted
on these.

Only rewarded displays have a part in an uplift's variance: where rewards are is where weights matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from foretest.aggregation.display_sample import with_keys
from foretest.aggregation.fold import for_treatment
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import KeptRows
from foretest.displays.batch import Displays, Floats, Hashes
from foretest.displays.ragged import Ragged
from foretest.engines.dispatch import fold
from foretest.engines.local import Progress
from foretest.log.reader import Reader
from foretest.log.rows import Rows
from foretest.records import dataclass
from foretest.sources import Source

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

    start = partial(_SampleFold, plan)
    return start().sample(fold(source, reader, start, plan=plan, threads=threads, progress=progress))


@dataclass
class _SampleFold:
    """Batches in, rewarded displays out."""

    plan: FoldPlan
    kept: KeptRows = field(init=False)

    def __post_init__(self) -> None:
        self.kept = KeptRows(DISPLAYS, ("unit", "key", "rewards"))

    @property
    def by_slot(self) -> list[int]:
        """The metrics of which it is known which slot earned the reward."""
        return [m for m, name in enumerate(self.plan.metrics) if name in self.plan.by_slot]

    def add(self, rows: Rows) -> None:
        if not len(rows.rewarded):
            return
        some = for_treatment(self.plan, rows.take(rows.rewarded))
        part = some.take(self.kept.below(some.unit))
        earned = {_EARNED: _side_by_side([part.slots[m] for m in self.by_slot])} if part.slots else {}
        displays = replace(part.displays, columns={**part.displays.columns, **earned})
        self.kept.add({"unit": part.unit, "rewards": part.rewards}, len(some), displays)

    def finish(self) -> KeptRows:
        with_keys(self.kept)
        return self.kept

    def sample(self, kept: KeptRows) -> RewardedSample | None:
        """The sample; None where there is no rewarded display."""
        columns, log = kept.columns(), self.plan.settings.log
        if not columns:
            return None
        [displays] = kept.displays
        earned = displays.columns.get(_EARNED)
        slots = {}
        if isinstance(earned, Ragged):
            slots = dict(zip(self.by_slot, _apart(earned, len(self.by_slot)), strict=True))
        if log.unit is None and log.id is None:  # equal rows must not share their draws
            displays = replace(displays, identity=columns["unit"], key_columns=None)
        return RewardedSample(displays.with_key(), columns["unit"], columns["rewards"], slots)


_EARNED = "foretest: earned"  # the column of displays with what their slots earned: a name that no column of a log has


def _side_by_side(lists: Sequence[Ragged]) -> Ragged:
    """Several lists of the same lengths as one, whose items are next to each other."""
    return Ragged.packed(np.stack([one.flat() for one in lists], axis=1).ravel(), lists[0].lengths * len(lists))


def _apart(lists: Ragged, count: int) -> list[Ragged]:
    """The lists that were put side by side."""
    return [Ragged.packed(flat, lists.lengths // count) for flat in lists.flat().reshape(-1, count).T]
