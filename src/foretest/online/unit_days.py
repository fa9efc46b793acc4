"""The units of an arm by day, within bounded memory: the units of smallest hash where there are too many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.aggregation.unit_counts import LIMIT
from foretest.displays.batch import Floats, Hashes
from foretest.records import dataclass

MOST_UNIT_DAYS = 1 << 21
NO_LIMIT = (1 << 64) - 1  # the largest hash there is

# units are sampled by a hash of their own, lest an assignment by hash, or the buckets, decide who is sampled
SAMPLE_SALT = 7

Ints = npt.NDArray[np.int64]


class UnitDayPairs(NamedTuple):
    """Pairs of a unit and a day, as columns; twice where rows of a pair stand for different numbers of displays, with
    the lowest and the highest."""

    hashes: Hashes  # of the unit
    days: Ints  # places in the list of days
    rows: Ints  # of the log
    displays_per_row: Floats

    def distinct(self) -> UnitDayPairs:
        """Every pair once, by hash and day; twice where its rows stand for different numbers of displays."""
        keys = [column for column in (self.displays_per_row, self.days) if _varies(column)]
        if not keys and not _varies(self.rows):  # a sort of hashes alone takes a fraction of one by several columns
            hashes = np.sort(self.hashes)
            first = _first_places(hashes)
            count = np.diff(np.append(first, len(hashes)))
            return self.take(np.arange(len(first)))._replace(hashes=hashes[first], rows=count * self.rows[:1])
        pairs = self.take(np.lexsort([*keys, self.hashes]))
        is_new = np.ones(len(pairs.hashes), bool)
        is_new[1:] = (pairs.hashes[1:] != pairs.hashes[:-1]) | (pairs.days[1:] != pairs.days[:-1])
        is_other = pairs.displays_per_row[1:] != pairs.displays_per_row[:-1]
        if is_other.any():
            is_new[1:] |= is_other & np.append(is_new[2:], True)
        first = np.flatnonzero(is_new)
        return pairs.take(first)._replace(rows=np.add.reduceat(pairs.rows, first) if len(first) else pairs.rows)

    def take(self, rows: Ints) -> UnitDayPairs:
        """The pairs at some places."""
        return UnitDayPairs(self.hashes[rows], self.days[rows], self.rows[rows], self.displays_per_row[rows])

    def up_to(self, highest: int) -> UnitDayPairs:
        """The pairs whose unit has at most this hash."""
        return self if highest == NO_LIMIT else self.take(np.flatnonzero(self.hashes <= np.uint64(highest)))

    @classmethod
    def concatenate(cls, parts: Sequence[UnitDayPairs]) -> UnitDayPairs:
        """The pairs of all parts."""
        hashes, displays = (np.concatenate([part[at] for part in parts]) for at in (0, 3))
        days, rows = (np.concatenate([part[at] for part in parts]) for at in (1, 2))
        return cls(hashes, days, rows, displays)


class DisplaysOfUnits(NamedTuple):
    """How many rows each of some units has, and how many units it stands for: as many as displays of each row."""

    displays: Floats
    units: Floats


class UnitSums(NamedTuple):
    """How many units some stand for, Σ m, and Σ m²."""

    total: float
    squares: float


class WeightedUnits(NamedTuple):
    """How many units those of a log stand for, in all and by day."""

    overall: UnitSums
    days: dict[str, UnitSums]


@dataclass
class UnitDays:
    """Which units were seen on which days: all, while there are at most 2^17 units and 2^21 pairs of unit and day,
    else the units of smallest hash that fit.

    The cut depends only on which pairs there are: `highest` is just below the first unit that no longer fits.
    """

    labels: list[str] = field(default_factory=list)  # the days; codes are places in it
    highest: int = NO_LIMIT
    parts: list[UnitDayPairs] = field(default_factory=list)
    ordered: int = -1  # how many pairs there were when they were last put in order

    @property
    def complete(self) -> bool:
        """Whether every unit is here."""
        return self.highest == NO_LIMIT

    def add(self, hashes: Hashes, days: Ints | None, displays_per_row: Floats) -> None:
        """Add the pairs of a batch; without days only its units."""
        days = np.zeros(len(hashes), np.int64) if days is None else days
        pairs = UnitDayPairs(hashes, days, np.ones(len(hashes), np.int64), displays_per_row)
        self.parts.append(pairs.up_to(self.highest).distinct())
        if sum(len(part.hashes) for part in self.parts) > 2 * max(self.ordered, LIMIT):
            self.pairs()

    def codes(self, labels: list[str]) -> Ints:
        """The codes of these days; new ones are added."""
        known = {label: code for code, label in enumerate(self.labels)}
        for label in labels:
            known.setdefault(label, len(known))
        self.labels = list(known)
        return np.array([known[label] for label in labels], np.int64)

    def pairs(self) -> UnitDayPairs:
        """The pairs that fit, each once, by hash."""
        if not self.parts:
            return UnitDayPairs(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
        if len(self.parts) == 1 and len(self.parts[0].hashes) == self.ordered:
            return self.parts[0]
        pairs = UnitDayPairs.concatenate(self.parts).distinct()
        limits = (_once(pairs.hashes), LIMIT), (pairs.hashes, MOST_UNIT_DAYS)
        beyond = [hashes[most] for hashes, most in limits if len(hashes) > most]
        if beyond:
            self.highest = int(min(beyond)) - 1
            pairs = pairs.up_to(self.highest)
        self.parts, self.ordered = [pairs], len(pairs.hashes)
        return pairs

    def units(self, highest: int) -> Hashes:
        """The units up to a hash."""
        hashes = _once(self.pairs().hashes)
        return hashes[hashes <= np.uint64(highest)]

    def weighted(self, highest: int) -> WeightedUnits | None:
        """How many units those up to a hash stand for, in all and by day; None where rows of one unit were kept with
        different probabilities."""
        pairs = self.pairs().up_to(highest)
        first, m = _first_places(pairs.hashes), pairs.displays_per_row
        if _differs_within(m, first):
            return None
        by_day = (np.bincount(pairs.days, amounts, len(self.labels)).tolist() for amounts in (m, np.square(m)))
        days = {label: UnitSums(*sums) for label, *sums in zip(self.labels, *by_day, strict=False)}
        return WeightedUnits(UnitSums(float(m[first].sum()), float(np.square(m[first]).sum())), days)

    def displays(self, highest: int) -> DisplaysOfUnits | None:
        """How many displays each unit up to a hash has; None where rows of one unit were kept with different
        probabilities."""
        pairs = self.pairs().up_to(highest)
        first = _first_places(pairs.hashes)
        rows = np.add.reduceat(pairs.rows, first) if len(first) else pairs.rows
        if _differs_within(pairs.displays_per_row, first):
            return None
        return DisplaysOfUnits(rows.astype(np.float64), pairs.displays_per_row[first])

    @classmethod
    def total(cls, parts: Sequence[UnitDays]) -> UnitDays:
        """Those of all parts."""
        return reduce(cls._with, parts)

    def _with(self, other: UnitDays) -> UnitDays:
        both = UnitDays(list(self.labels), min(self.highest, other.highest), list(self.parts))
        codes = both.codes(other.labels) if other.labels else np.zeros(1, np.int64)
        both.parts += [part._replace(days=codes[part.days]) for part in other.parts]
        both.parts = [part.up_to(both.highest) for part in both.parts]
        both.pairs()
        return both


def _once(ordered: Hashes) -> Hashes:
    """Hashes in order, each once."""
    return np.asarray(ordered[_first_places(ordered)])


def _first_places(ordered: Hashes) -> Ints:
    """Where each of some hashes in order comes first: `np.unique` of them takes three to ten times as long."""
    is_new = np.ones(len(ordered), np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(is_new)


def _varies(column: npt.NDArray[Any]) -> bool:
    return bool((column != column[:1]).any())


def _differs_within(displays: Floats, first: Ints) -> bool:
    """Do the rows of a unit, which begin at `first`, stand for different numbers of displays?"""
    return bool((np.repeat(displays[first], np.diff(np.append(first, len(displays)))) != displays).any())
