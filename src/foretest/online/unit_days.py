"""The units of an arm by day, within bounded memory: the units of smallest hash where there are too many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import reduce
from typing import NamedTuple

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
    """Pairs of a unit and a day, as columns; of a thinned log with 1/keep, the lowest and the highest of each pair."""

    hashes: Hashes  # of the unit
    days: Ints  # places in the list of days
    rows: Ints  # of the log
    multiples: Floats | None = None

    def distinct(self) -> UnitDayPairs:
        """Every pair once, by hash and day; twice where its rows were kept with different probabilities."""
        order = np.lexsort([*([] if self.multiples is None else [self.multiples]), self.days, self.hashes])
        pairs = self.take(order)
        is_new = np.ones(len(order), bool)
        is_new[1:] = (pairs.hashes[1:] != pairs.hashes[:-1]) | (pairs.days[1:] != pairs.days[:-1])
        if pairs.multiples is not None:
            is_last = np.append(is_new[1:], True)
            is_other = np.ones(len(order), bool)
            is_other[1:] = pairs.multiples[1:] != pairs.multiples[:-1]
            is_new |= is_last & is_other
        first = np.flatnonzero(is_new)
        return pairs.take(first)._replace(rows=np.add.reduceat(pairs.rows, first) if len(first) else pairs.rows)

    def take(self, rows: Ints) -> UnitDayPairs:
        """The pairs at some places."""
        multiples = None if self.multiples is None else self.multiples[rows]
        return UnitDayPairs(self.hashes[rows], self.days[rows], self.rows[rows], multiples)

    def up_to(self, highest: int) -> UnitDayPairs:
        """The pairs whose unit has at most this hash."""
        return self.take(np.flatnonzero(self.hashes <= np.uint64(highest)))

    @classmethod
    def concatenate(cls, parts: Sequence[UnitDayPairs]) -> UnitDayPairs:
        """The pairs of all parts."""
        multiples = [part.multiples for part in parts if part.multiples is not None]
        hashes = np.concatenate([part.hashes for part in parts])
        days, rows = (np.concatenate([part[at] for part in parts]) for at in (1, 2))
        return cls(hashes, days, rows, np.concatenate(multiples) if multiples else None)


class DisplaysOfUnits(NamedTuple):
    """How many displays each of some units has, and how many units it stands for: 1, or of a thinned log 1/keep."""

    displays: Floats
    multiples: Floats


class UnitSums(NamedTuple):
    """How many units some of a thinned log stand for, Σ 1/keep, and Σ 1/keep²."""

    total: float
    squares: float


class WeightedUnits(NamedTuple):
    """The units of a thinned log, in all and by day."""

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

    def add(self, hashes: Hashes, days: Ints | None, multiples: Floats | None = None) -> None:
        """Add the pairs of a batch; without days only its units."""
        if multiples is None and days is None:  # a sort of hashes alone takes a fraction of one by several columns
            ordered = np.sort(hashes[hashes <= np.uint64(self.highest)])
            first = _first_places(ordered)
            rows = np.diff(np.append(first, len(ordered)))
            self.parts.append(UnitDayPairs(ordered[first], np.zeros(len(first), np.int64), rows))
        else:
            days = np.zeros(len(hashes), np.int64) if days is None else days
            rows = np.ones(len(hashes), np.int64)
            self.parts.append(UnitDayPairs(hashes, days, rows, multiples).up_to(self.highest).distinct())
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
            return UnitDayPairs(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64))
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

    def units_by_day(self, highest: int) -> dict[str, int]:
        """The number of units of each day, counting units up to a hash."""
        pairs = self.pairs()
        if not self.labels:
            return {}
        counts = np.bincount(pairs.up_to(highest).days, minlength=len(self.labels))
        return {label: int(count) for label, count in zip(self.labels, counts, strict=True)}

    def weighted(self, highest: int) -> WeightedUnits | None:
        """How many units those of a thinned log stand for, up to a hash, in all and by day; None where rows of one unit
        were kept with different probabilities, or the log was not thinned."""
        pairs = self.pairs().up_to(highest)
        if not len(pairs.hashes):
            return WeightedUnits(UnitSums(0.0, 0.0), {})
        first = _first_places(pairs.hashes)
        if pairs.multiples is None or _differs_within(pairs.multiples, first):
            return None
        squares = np.square(pairs.multiples)
        days = {
            label: UnitSums(float(pairs.multiples[here].sum()), float(squares[here].sum()))
            for code, label in enumerate(self.labels)
            if len(here := np.flatnonzero(pairs.days == code))
        }
        return WeightedUnits(UnitSums(float(pairs.multiples[first].sum()), float(squares[first].sum())), days)

    def displays(self, highest: int) -> DisplaysOfUnits | None:
        """How many displays each unit up to a hash has; None where rows of one unit were kept with different
        probabilities."""
        pairs = self.pairs().up_to(highest)
        first = _first_places(pairs.hashes)
        rows = np.add.reduceat(pairs.rows, first) if len(first) else pairs.rows
        if pairs.multiples is None:
            return DisplaysOfUnits(rows.astype(np.float64), np.ones(len(rows)))
        if _differs_within(pairs.multiples, first):
            return None
        return DisplaysOfUnits(rows.astype(np.float64), pairs.multiples[first])

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


def _differs_within(multiples: Floats, first: Ints) -> bool:
    """Do the rows of a unit, which begin at `first`, stand for different numbers of displays?"""
    return bool((np.repeat(multiples[first], np.diff(np.append(first, len(multiples)))) != multiples).any())
