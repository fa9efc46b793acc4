"""Rewarded rows of several batches together: some thousand are priced at once, however small batches are.

What is done once per call (choosing rows, setting up draws) costs as much as some hundred displays, and a batch of a
log whose rewards are rare has no more rewarded rows than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.log.rows import Rows
from foretest.records import dataclass

AT_ONCE = 2048  # rows that are priced together

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RewardedRows:
    """Rows of some batches that have a reward, with their weights, cells and strata."""

    rows: Rows  # whose displays know their keys
    log_w: Floats
    cell: Ints  # logger·buckets + bucket of units
    codes: dict[str, Ints]  # of strata, by name of their table
    predicted: Floats | None = None  # r̂ of what was shown, by metric

    @classmethod
    def of(
        cls, rows: Rows, log_w: Floats, cell: Ints, codes: dict[str, Ints], at: Ints, predicted: Floats | None = None
    ) -> RewardedRows:
        """The rows of one batch at some places: those with a reward, or all."""
        rewarded = cls(rows, log_w, cell, codes, predicted).take(at)
        return replace(rewarded, rows=replace(rewarded.rows, displays=rewarded.rows.displays.with_key()))

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, at: Ints) -> RewardedRows:
        """The rows at some places."""
        codes = {table: code[at] for table, code in self.codes.items()}
        predicted = None if self.predicted is None else self.predicted[at]
        return RewardedRows(self.rows.take(at), self.log_w[at], self.cell[at], codes, predicted)

    def parts(self) -> Iterator[RewardedRows]:
        """The rows in parts of fewer than twice AT_ONCE."""
        count = max(1, len(self) // AT_ONCE)
        yield from [self] if count == 1 else map(self.take, np.array_split(np.arange(len(self)), count))

    def compact(self) -> RewardedRows:
        """A copy that keeps no batch in memory."""
        slots = {m: lists.compact() for m, lists in self.rows.slots.items()}
        return replace(self, rows=replace(self.rows, displays=self.rows.displays.compact(), slots=slots))

    @staticmethod
    def concatenate(parts: Sequence[RewardedRows]) -> RewardedRows:
        """The rows of all parts, in their order."""
        if len(parts) == 1:
            return parts[0]
        first, all_rows = parts[0], [part.rows for part in parts]
        rewards = np.concatenate([rows.rewards for rows in all_rows])
        is_logged = all(rows.logged_rewards is rows.rewards for rows in all_rows)
        rows = replace(
            first.rows,
            displays=Displays.concatenate([rows.displays for rows in all_rows]),
            rewards=rewards,
            unit=np.concatenate([rows.unit for rows in all_rows]),
            slots={m: Ragged.concatenate([rows.slots[m] for rows in all_rows]) for m in first.rows.slots},
            log_baseline=np.concatenate([rows.log_baseline for rows in all_rows]),
            displays_per_row=np.concatenate([rows.displays_per_row for rows in all_rows]),
            logged_rewards=rewards if is_logged else np.concatenate([rows.logged_rewards for rows in all_rows]),
        )
        return RewardedRows(
            rows,
            np.concatenate([part.log_w for part in parts]),
            np.concatenate([part.cell for part in parts]),
            {table: np.concatenate([part.codes[table] for part in parts]) for table in first.codes},
            np.concatenate(predictions) if (predictions := [p.predicted for p in parts if p.predicted is not None])
            else None,
        )  # fmt: skip
