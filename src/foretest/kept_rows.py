"""A bounded set of rows that depends only on which rows the log has: those of the smallest unit hashes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.displays import Displays


@dataclass
class KeptRows:
    """At most `limit` rows as named columns, the first by (unit, tie-breakers) of all that were added.

    Columns named in `order` decide, the unit first. `displays`, where kept, follow the columns.
    """

    limit: int
    order: tuple[str, ...]
    seen: int = 0
    parts: list[dict[str, npt.NDArray[Any]]] = field(default_factory=list)
    displays: list[Displays] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Are all rows that were added still here?"""
        return self.seen <= self.limit

    def __len__(self) -> int:
        return sum(len(part[self.order[0]]) for part in self.parts)

    def below(self, unit: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """The rows that may be kept, seen from the unit hash alone."""
        if self.seen <= 2 * self.limit or not self.parts:
            return np.arange(len(unit))
        return np.flatnonzero(unit <= self.parts[0][self.order[0]][-1])

    def add(self, columns: dict[str, npt.NDArray[Any]], seen: int, displays: Displays | None = None) -> None:
        """Add rows; `seen` counts those left out by `below` too."""
        self.seen += seen
        if len(columns[self.order[0]]):
            self.parts.append(columns)
            if displays is not None:
                self.displays.append(displays.compact())
        if len(self) > 2 * self.limit:
            self.prune()

    def prune(self) -> None:
        """One sorted part, at most `limit` rows long."""
        if not self.parts:
            return
        table = {name: np.concatenate([part[name] for part in self.parts]) for name in self.parts[0]}
        unit = table[self.order[0]]
        rank = np.arange(len(unit))
        if len(unit) > self.limit:  # a cut by unit alone leaves little to sort
            rank = np.flatnonzero(unit <= np.partition(unit, self.limit - 1)[self.limit - 1])
        rank = rank[np.lexsort([table[name][rank] for name in reversed(self.order)])][: self.limit]
        self.parts = [{name: column[rank] for name, column in table.items()}]
        if self.displays:
            self.displays = [Displays.concatenate(self.displays).take(rank).compact()]

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The kept rows in order."""
        self.prune()
        return self.parts[0] if self.parts else {}

    def __add__(self, other: KeptRows) -> KeptRows:
        both = KeptRows(
            self.limit, self.order, self.seen + other.seen, self.parts + other.parts, self.displays + other.displays
        )
        both.prune()
        return both
