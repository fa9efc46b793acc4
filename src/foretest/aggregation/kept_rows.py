"""A bounded set of rows that depends only on which rows the log has: those of the smallest unit hashes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays

Columns = dict[str, npt.NDArray[Any]]


@dataclass
class KeptRows:
    """At most `limit` rows as named columns: the first by the columns named in `order`, the unit's hash first.

    While rows come in, those beyond the limit-th smallest hash are dropped now and then; the exact cut, which needs
    the other columns to break ties, is made once, by `columns`. `displays`, where kept, follow the columns.
    """

    limit: int
    order: tuple[str, ...]
    seen: int = 0
    highest: int = (1 << 64) - 1  # no row above this hash is among the first
    parts: list[Columns] = field(default_factory=list)
    displays: list[Displays] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ordered: Columns | None = None  # the part that is known to be in order

    @property
    def complete(self) -> bool:
        """Are all rows that were added still here?"""
        return self.seen <= self.limit

    def __len__(self) -> int:
        return sum(len(part["unit"]) for part in self.parts)

    def below(self, unit: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """The rows that may be kept, seen from the unit's hash alone: no more than the first of them, and ties."""
        rows = np.flatnonzero(unit <= np.uint64(self.highest))
        if len(rows) <= self.limit:
            return rows
        held = unit[rows]
        return np.asarray(rows[held <= np.partition(held, self.limit - 1)[self.limit - 1]])

    def add(self, columns: Columns, seen: int, displays: Displays | None = None) -> None:
        """Add rows; `seen` counts those left out by `below` too."""
        self.seen += seen
        if len(columns["unit"]):
            self.parts.append(columns)
            if displays is not None:
                self.displays.append(displays.compact())
        if len(columns["unit"]) >= self.limit:
            self.highest = min(self.highest, int(columns["unit"].max()))
        if len(self) > 2 * self.limit:
            self._drop()

    def columns(self) -> Columns:
        """The kept rows in order, as one part."""
        if not self.parts:
            return {}
        if len(self.parts) == 1 and self.parts[0] is self._ordered:
            return self._ordered
        if len(self.parts) > 1 or len(self) > self.limit or not self._sorted():
            # a feature that is text in one log and a number in another is no column of both
            names = [name for name in self.parts[0] if all(name in part for part in self.parts)]
            order = [name for name in self.order if name in names]
            rank = self._in_order({name: np.concatenate([part[name] for part in self.parts]) for name in order})
            rank = rank[: self.limit]
            # column after column, each let go once it is joined: no second copy of all is held
            parts, self.parts = [dict(part) for part in self.parts], []
            self.parts = [{name: np.concatenate([part.pop(name) for part in parts])[rank] for name in names}]
            if self.displays:
                self.displays = [Displays.concatenate(self.displays).take(rank)]
        self._ordered = self.parts[0]
        return self._ordered

    def __add__(self, other: KeptRows) -> KeptRows:
        return KeptRows.total([self, other])

    @classmethod
    def total(cls, kept: Sequence[KeptRows]) -> KeptRows:
        """The first rows of all: cut by hash before anything is sorted."""
        both = cls(
            kept[0].limit,
            kept[0].order,
            sum(k.seen for k in kept),
            min(k.highest for k in kept),
            [part for k in kept for part in k.parts],
            [displays for k in kept for displays in k.displays],
        )
        if len(both) > both.limit:
            both._drop()
        both.columns()
        return both

    def _in_order(self, table: Columns) -> npt.NDArray[np.int64]:
        """The order of rows: by hash, and only those that share one by the other columns."""
        unit = table[self.order[0]]
        rank = np.argsort(unit, kind="stable")  # quick where parts are in order already
        ordered = unit[rank]
        same = np.zeros(len(rank) + 1, np.bool_)
        same[1:-1] = ordered[1:] == ordered[:-1]
        tied = np.flatnonzero(same[1:] | same[:-1])
        if len(tied):
            rows = rank[tied]
            rank[tied] = rows[np.lexsort([table[name][rows] for name in reversed(self.order)])]
        return rank

    def _sorted(self) -> bool:
        """Is the one part in order? Rows of one unit stand by the other columns."""
        before = np.arange(len(self.parts[0]["unit"]) - 1)  # rows not yet told from the next
        for name in self.order:
            column = self.parts[0][name]
            this, following = column[before], column[before + 1]
            if (this > following).any():
                return False
            before = before[this == following]
        return True

    def _drop(self) -> None:
        unit = np.concatenate([part["unit"] for part in self.parts])
        self.highest = int(np.partition(unit, self.limit - 1)[self.limit - 1])
        keep = [self.below(part["unit"]) for part in self.parts]
        self.parts = [{name: c[rows] for name, c in part.items()} for part, rows in zip(self.parts, keep, strict=True)]
        if self.displays:
            self.displays = [d.take(rows).compact() for d, rows in zip(self.displays, keep, strict=True)]
