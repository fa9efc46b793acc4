"""Rewarded rows on their way from batches to their prices: some thousand are priced at once, however small batches are.

What is done for each call (choosing rows, setting up draws) costs as much as some hundred displays, and a batch of a
log whose rewards are rare has no more of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.log.rows import Rows

AT_ONCE = 2048

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RewardedRows:
    """Rows of some batches that have a reward, and where their sums go."""

    rows: Rows  # whose displays know their keys
    log_w: Floats
    cell: Ints  # bucket of units, by logger
    codes: dict[str, Ints]  # of strata, by table

    @classmethod
    def of(cls, rows: Rows, log_w: Floats, cell: Ints, codes: dict[str, Ints]) -> RewardedRows:
        """Those of one batch."""
        some = cls(rows, log_w, cell, codes).take(rows.rewarded)
        return replace(some, rows=replace(some.rows, displays=some.rows.displays.with_key()))

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, at: Ints) -> RewardedRows:
        codes = {table: code[at] for table, code in self.codes.items()}
        return RewardedRows(self.rows.take(at), self.log_w[at], self.cell[at], codes)

    def parts(self) -> Iterator[RewardedRows]:
        """The same in parts of less than twice AT_ONCE."""
        count = max(1, len(self) // AT_ONCE)
        yield from [self] if count == 1 else map(self.take, np.array_split(np.arange(len(self)), count))

    def compact(self) -> RewardedRows:
        """A copy that holds on to no batch."""
        slots = {m: lists.compact() for m, lists in self.rows.slots.items()}
        return replace(self, rows=replace(self.rows, displays=self.rows.displays.compact(), slots=slots))

    @staticmethod
    def concatenate(parts: Sequence[RewardedRows]) -> RewardedRows:
        if len(parts) == 1:
            return parts[0]
        first, every = parts[0], [part.rows for part in parts]
        baselines = [rows.log_baseline for rows in every if rows.log_baseline is not None]
        rows = replace(
            first.rows,
            displays=Displays.concatenate([rows.displays for rows in every]),
            rewards=np.concatenate([rows.rewards for rows in every]),
            unit=np.concatenate([rows.unit for rows in every]),
            slots={m: Ragged.concatenate([rows.slots[m] for rows in every]) for m in first.rows.slots},
            log_baseline=np.concatenate(baselines) if baselines else None,
        )
        return RewardedRows(
            rows,
            np.concatenate([part.log_w for part in parts]),
            np.concatenate([part.cell for part in parts]),
            {table: np.concatenate([part.codes[table] for part in parts]) for table in first.codes},
        )
