"""A batch of a log, checked and turned into plain arrays."""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.batch import Displays, Floats, Hashes
from foretest.displays.ragged import Ragged
from foretest.log.item_columns import ItemLists
from foretest.records import dataclass

DAY = "foretest: day"  # the segment column that is made from times: a name that no column of a log has


def _not_yet() -> Floats:
    """In place of a column that is made when rows are priced."""
    return np.zeros(0)


@dataclass(frozen=True)
class RewardAges:
    """How old displays and rewards were, and what a window left out of a batch."""

    reward: npt.NDArray[np.int64]  # rows × reward columns, in microseconds after the display; where there is a reward
    display: npt.NDArray[np.int64] | None  # when the log was read; None where there is a window
    left_out: int  # displays younger than the window
    late: Floats  # by reward column, rewards that came after the window
    rewarded: npt.NDArray[np.bool_]  # rows × reward columns: is there a reward?


class RowIds(NamedTuple):
    """The ids of the displays of a batch, and where its rows are in the log."""

    values: pa.Array
    positions: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """A checked batch: one entry per display in every field."""

    displays: Displays
    rewards: Floats  # rows × metrics, here and in `slots` times `displays_per_row`: what sums add up
    unit: Hashes
    stratum: pa.Array | None  # the strata column
    value: Floats | None  # the column of V(x)
    features: pa.RecordBatch | None
    names: tuple[str, ...]  # of the metrics
    displays_per_row: Floats  # 1, or where the log says so, how many displays each row stands for
    logged_rewards: Floats  # the rewards as they are in the log: `rewards` itself where every row stands for itself
    slots: dict[int, Ragged] = field(default_factory=dict)  # what each slot earned, by metric
    context: pa.RecordBatch | None = None  # features and candidates as read, for those rows that the audit samples
    segments: dict[str, pa.Array] = field(default_factory=dict)  # the segment columns
    items: dict[str, ItemLists] = field(default_factory=dict)  # what the reward model reads of every eligible item
    log_p: Floats | None = None  # log π_p of the shown rankings, once they are priced
    log_baseline: Floats = field(
        default_factory=_not_yet
    )  # log w_p of rewarded rows, the baseline's part in them, once they are priced
    ages: RewardAges | None = None  # where the log says when rewards came
    ids: RowIds | None = None  # where the log is to be replayed
    trained: int = 0  # rows of the batch that were left out, as a treatment was trained on them
    unit_names: pa.Array | None = None  # the units as the log has them
    cut: Floats | None = None  # where rewards are winsorised, Σ of each reward column before, and of what was cut

    def with_rewards(self, rewards: Floats, slots: dict[int, Ragged]) -> Rows:
        """The rows with other rewards, as they were logged or defined."""
        return replace(self, rewards=rewards, slots=slots, logged_rewards=rewards)

    def standing_for(self, counts: Floats) -> Rows:
        """The rows, each of which stands for so many times the displays: all that they earned adds up so."""
        slots = {
            m: Ragged.packed(lists.flat() * np.repeat(counts, lists.lengths), lists.lengths)
            for m, lists in self.slots.items()
        }
        rewards, displays = self.rewards * counts[:, None], self.displays_per_row * counts
        return replace(self, rewards=rewards, slots=slots, displays_per_row=displays)

    @property
    def control_rewards(self) -> Floats:
        """The control's rewards, w_p r."""
        return self.rewards * np.exp(self.log_baseline)[:, None]

    @cached_property
    def rewarded(self) -> npt.NDArray[np.int64]:
        """The rows that have a reward of some metric."""
        is_rewarded = self.rewards[:, 0] != 0.0
        for more in self.rewards.T[1:]:
            is_rewarded |= more != 0.0
        return np.flatnonzero(is_rewarded)

    @property
    def unrewarded(self) -> npt.NDArray[np.int64]:
        """The rows that have none."""
        return np.setdiff1d(np.arange(len(self)), self.rewarded, assume_unique=True)

    def __len__(self) -> int:
        return len(self.rewards)

    def take(self, at: npt.NDArray[np.int64]) -> Rows:
        """Some rows, without what is asked for a batch at a time: strata, values, features, items, segments."""
        rewards = self.rewards[at]
        logged = rewards if self.logged_rewards is self.rewards else self.logged_rewards[at]
        return Rows(
            self.displays.take(at), rewards, self.unit[at], None, None, None, self.names,
            self.displays_per_row[at], logged,
            slots={m: lists.take(at) for m, lists in self.slots.items()},
            log_baseline=self.log_baseline[at] if len(self.log_baseline) else self.log_baseline,
        )  # fmt: skip
