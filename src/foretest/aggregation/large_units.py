"""The names of units that have many rows, as the log has them: a hash names nobody."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import field

import numpy as np
import pyarrow as pa

from foretest.aggregation.unit_counts import UnitCounts
from foretest.displays.batch import Hashes
from foretest.displays.merging import by
from foretest.displays.ragged import plain
from foretest.formatting import shortened
from foretest.records import dataclass
from foretest.settings.settings import Settings

LEAST_SHARE = 0.01  # of the rows: at most a hundred units have more
_CELLS = 1024
_MOST_NAMES = 1000  # before those of units with fewer rows are dropped
_MOST_LETTERS = 60


def _all_names(parts: Sequence[dict[int, str]]) -> dict[int, str]:
    return {key: name for names in parts for key, name in names.items()}


@dataclass
class LargeUnits:
    """The names of units with more than a hundredth of the rows, by their hashes.

    Who has so many rows of a log has so many of the batch that made it so, and of all rows up to its end.
    """

    #: as JSON: 12 and "12" are different units
    names: dict[int, str] = field(default_factory=dict, metadata=by(_all_names))

    @property
    def hashes(self) -> Hashes:
        """The hashes of the named units."""
        return np.array(list(self.names), np.uint64)

    def add(self, unit: Hashes, values: pa.Array, counts: UnitCounts) -> None:
        """Name the large units of a batch, whose rows are counted already."""
        least = LEAST_SHARE * len(unit)
        low_bits = (unit & np.uint64(_CELLS - 1)).astype(np.int64)
        rows = np.flatnonzero((np.bincount(low_bits, minlength=_CELLS) > least)[low_bits])
        hashes, first, count = np.unique(unit[rows], return_index=True, return_counts=True)
        most = np.flatnonzero(count > least)
        for at in most[counts.rows_of(hashes[most]) > LEAST_SHARE * counts.rows].tolist():
            key = int(hashes[at])
            if key not in self.names:
                value = plain(values.slice(int(rows[first[at]]), 1))[0].as_py()
                self.names[key] = shortened(json.dumps(value, ensure_ascii=False), _MOST_LETTERS)
        if len(self.names) > _MOST_NAMES:
            self.names = self.largest(counts).names

    def largest(self, counts: UnitCounts) -> LargeUnits:
        """The names of those that have more than a hundredth of all rows, the largest first."""
        hashes = self.hashes
        rows = counts.rows_of(hashes)
        order = [i for i in np.lexsort([hashes, -rows]).tolist() if rows[i] > LEAST_SHARE * counts.rows]
        return LargeUnits({int(hashes[i]): self.names[int(hashes[i])] for i in order})


def no_large_units(settings: Settings) -> LargeUnits | None:
    """No names yet; None where rows have no unit that has a name."""
    return None if settings.log.unit is None else LargeUnits()
