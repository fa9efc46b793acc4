"""A bounded set of rows, those of the smallest unit hashes: it depends on the rows of the log, not on their order."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays
from foretest.records import dataclass

Column = (
    str | tuple[Hashable, ...]
)  # its name; of several of a kind with what each is of: a metric, a weighting, a table
Columns = dict[Column, npt.NDArray[Any]]

_MOST_PARTS = 64  # to look through; a log of a billion rows has thousands of batches


@dataclass
class KeptRows:
    """At most `limit` rows as named columns: the first by the columns named in `order`, the unit's hash first.

    While rows come in, those beyond the limit-th smallest hash are dropped now and then; the exact cut, which needs
    the other columns to break ties, is made once, by `columns`. `displays`, where there are any, have the same rows.
    """

    limit: int
    order: tuple[Column, ...]
    seen: int = 0
    highest: int = (1 << 64) - 1  # no row above this hash is among the first
    parts: list[Columns] = field(default_factory=list)
    displays: list[Displays] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ordered: Columns | None = None  # the part that is known to be in order
        self._new = 0  # rows that came since `highest` was found

    @property
    def complete(self) -> bool:
        """Are all rows that were added still among the kept ones?"""
        return self.seen <= self.limit

    def __len__(self) -> int:
        return sum(len(part["unit"]) for part in self.parts)

    def below(self, unit: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """The places of rows that may be kept, by the unit's hash alone: at most `limit` of them, and ties."""
        rows = np.flatnonzero(unit <= np.uint64(self.highest))
        if len(rows) <= self.limit:
            return rows
        candidates = unit[rows]
        return np.asarray(rows[candidates <= np.partition(candidates, self.limit - 1)[self.limit - 1]])

    def add(self, columns: Columns, seen: int, displays: Displays | None = None) -> None:
        """Add rows; `seen` also counts the rows that `below` left out."""
        self.seen += seen
        if not len(columns["unit"]):
            return
        self.parts.append(columns)
        if displays is not None:
            self.displays.append(displays.compact())
        self._new += len(columns["unit"])
        if len(self.parts) > _MOST_PARTS:
            self._merge()
        if len(self) > 2 * self.limit:
            self._drop()
        elif len(self) >= self.limit and self._new > self.limit // 4:
            self.highest = self._last_hash()  # so that of the next batch few are copied

    def columns(self) -> Columns:
        """The kept rows in order, as one part."""
        if not self.parts:
            return {}
        if len(self.parts) > 1 or self.parts[0] is not self._ordered:
            if len(self.parts) > 1 or len(self) > self.limit or not self._sorted():
                self._join()
            self._ordered = self.parts[0]
        return self.parts[0]

    def _join(self) -> None:
        """Make one part of all, in order and cut at the limit."""
        # a feature that is text in one log and a number in another is no column of both
        names = [name for name in self.parts[0] if all(name in part for part in self.parts)]
        order = [name for name in self.order if name in names]
        rank = self._in_order({name: np.concatenate([part[name] for part in self.parts]) for name in order})
        rank = rank[: self.limit]
        # column after column, each let go once it is joined: memory never has a second copy of all
        parts, self.parts = [dict(part) for part in self.parts], []
        self.parts = [{name: np.concatenate([part.pop(name) for part in parts])[rank] for name in names}]
        if self.displays:
            self.displays = [Displays.concatenate(self.displays).take(rank)]

    @classmethod
    def total(cls, sets: Sequence[KeptRows]) -> KeptRows:
        """The first rows of all sets: cut by hash before anything is sorted."""
        union = cls(
            sets[0].limit,
            sets[0].order,
            sum(rows.seen for rows in sets),
            min(rows.highest for rows in sets),
            [part for rows in sets for part in rows.parts],
            [displays for rows in sets for displays in rows.displays],
        )
        if len(union) > union.limit:
            union._drop()
        union.columns()
        return union

    def _in_order(self, table: Columns) -> npt.NDArray[np.int64]:
        """The order of rows: by hash, and by the other columns among rows that share a hash."""
        unit = table[self.order[0]]
        rank = np.argsort(unit, kind="stable")  # quick where parts are in order already
        ordered = unit[rank]
        same = np.zeros(len(rank) + 1, np.bool_)
        same[1:-1] = ordered[1:] == ordered[:-1]
        tied = np.flatnonzero(same[1:] | same[:-1])
        if len(tied):
            rows = rank[tied]
            rank[tied] = rows[np.lexsort([column[rows] for column in reversed(self._ordering(table))])]
        return rank

    def _ordering(self, table: Columns) -> list[npt.NDArray[Any]]:
        """The columns that rows are ordered by; one with several numbers per row is as many."""
        columns = (table[name] for name in self.order)
        return [one for column in columns for one in (column.T if column.ndim > 1 else [column])]

    def _sorted(self) -> bool:
        """Is the one part in order, by hash and then by the other columns?"""
        before = np.arange(len(self.parts[0]["unit"]) - 1)  # rows that equal the next one in the columns so far
        for column in self._ordering(self.parts[0]):
            this, following = column[before], column[before + 1]
            if (this > following).any():
                return False
            before = before[this == following]
        return True

    def _merge(self) -> None:
        """Make one part of all, as they came: those of one log have the same columns."""
        self.parts = [{name: np.concatenate([part[name] for part in self.parts]) for name in self.parts[0]}]
        if self.displays:
            self.displays = [Displays.concatenate(self.displays)]

    def _last_hash(self) -> int:
        """The limit-th smallest hash of all parts."""
        self._new = 0
        unit = np.concatenate([part["unit"] for part in self.parts])
        return int(np.partition(unit, self.limit - 1)[self.limit - 1])

    def _drop(self) -> None:
        """Drop the rows beyond the limit-th smallest hash."""
        self.highest = self._last_hash()
        keep = [self.below(part["unit"]) for part in self.parts]
        pairs = zip(self.parts, keep, strict=True)
        self.parts = [{name: column[rows] for name, column in part.items()} for part, rows in pairs]
        if self.displays:
            self.displays = [d.take(rows).compact() for d, rows in zip(self.displays, keep, strict=True)]
