"""How many units a log has, and how many rows its largest unit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats, Hashes
from foretest.kernels.tallies import tally, tally_cells
from foretest.records import dataclass

LIMIT = 1 << 17  # units that are counted one by one

Ints = npt.NDArray[np.int64]


@dataclass
class UnitCounts:
    """Rows per unit, exact while there are at most 2^17 units, beyond that in as many hash cells.

    In cells the number of units is the censored-exponential estimate (occupied cells)/(mean of the cells' lowest
    hash, 1 where empty), accurate to 0.3 %, and the largest cell's rows are an upper bound on the largest unit's.
    """

    keys: Hashes
    counts: Ints
    used: int = 0
    lowest: Floats | None = None  # set once counted in cells

    @classmethod
    def empty(cls) -> UnitCounts:
        """The counts of no rows."""
        return cls(np.zeros(2 * LIMIT, np.uint64), np.zeros(2 * LIMIT, np.int64))

    @property
    def exact(self) -> bool:
        """Is every unit counted by itself?"""
        return self.lowest is None

    @property
    def units(self) -> int:
        """The number of units, or its estimate, which is never above the number of rows."""
        if self.lowest is None:
            return self.used
        occupied = int((self.counts > 0).sum())
        return min(round(LIMIT * occupied / float(self.lowest.sum())), int(self.counts.sum()))

    @property
    def largest(self) -> int:
        """The rows of the largest unit, or an upper bound on them."""
        return int(self.counts.max(initial=0))

    @property
    def rows(self) -> int:
        """The rows of all units."""
        return int(self.counts.sum())

    def rows_of(self, units: Hashes) -> Ints:
        """The rows of some units, or an upper bound on them."""
        mask = np.uint64(len(self.counts) - 1)
        cell = units & mask
        if self.lowest is None:  # step on from cells that others have, as the kernel does
            while (others := (self.counts[cell] > 0) & (self.keys[cell] != units)).any():
                cell[others] = (cell[others] + np.uint64(1)) & mask
        return np.asarray(self.counts[cell])

    def share_of_largest(self, share: float) -> tuple[int, float]:
        """How many units are the `share` with most rows, and which part of all rows they have; where units are counted
        in cells, those of whole cells."""
        counts = self.counts[self.counts > 0]
        if not len(counts):
            return 0, 0.0
        largest = max(1, int(share * len(counts)))
        rows = np.partition(counts, len(counts) - largest)[len(counts) - largest :].sum()
        return round(largest * self.units / len(counts)), float(rows / counts.sum())

    def add(self, units: Hashes, amounts: Ints | None = None) -> None:
        """Count rows by the hashes of their units: one each, or as many as `amounts` has."""
        amounts = np.ones(len(units), np.int64) if amounts is None else amounts
        if self.lowest is None:
            self.used, taken = tally(self.keys, self.counts, self.used, LIMIT, units, amounts)
            if taken == len(units):
                return
            units, amounts = units[taken:], amounts[taken:]
            self._to_cells()
        tally_cells(self.counts, self.lowest, units, amounts)

    @classmethod
    def total(cls, parts: Sequence[UnitCounts]) -> UnitCounts:
        """The counts of all parts."""
        first, *rest = parts
        lowest = None if first.lowest is None else first.lowest.copy()
        total = cls(first.keys.copy(), first.counts.copy(), first.used, lowest)
        for part in rest:
            total._take_in(part)
        return total

    def _take_in(self, other: UnitCounts) -> None:
        """Add the counts of another part."""
        if other.lowest is None:
            full = other.counts > 0
            self.add(other.keys[full], other.counts[full])
            return
        if self.lowest is None:
            self._to_cells()
        assert self.lowest is not None
        self.counts += other.counts
        np.minimum(self.lowest, other.lowest, out=self.lowest)

    def _to_cells(self) -> None:
        """Count in hash cells from now on, the units so far included."""
        full = self.counts > 0
        keys, counts = self.keys[full], self.counts[full]
        self.keys, self.counts = np.zeros(0, np.uint64), np.zeros(LIMIT, np.int64)
        self.lowest = np.ones(LIMIT)
        tally_cells(self.counts, self.lowest, keys, counts)
