"""The value that each unit has of a column, within bounded memory, and the units that have several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import reduce
from typing import NamedTuple

import numpy as np

from foretest.displays.batch import Floats, Hashes
from foretest.kernels.random import derive
from foretest.online.unit_days import NO_LIMIT, SAMPLE_SALT
from foretest.records import dataclass

MOST_UNITS = 1 << 21


class UnitRanges(NamedTuple):
    """Units and the lowest and highest value of each, as columns."""

    units: Hashes
    lowest: Floats
    highest: Floats

    def distinct(self) -> UnitRanges:
        """Every unit once, by hash."""
        if not len(self.units):
            return self
        order = np.argsort(self.units)
        units = self.units[order]
        starts = np.flatnonzero(np.append(True, units[1:] != units[:-1]))
        lowest = np.minimum.reduceat(self.lowest[order], starts)
        return UnitRanges(units[starts], lowest, np.maximum.reduceat(self.highest[order], starts))

    def up_to(self, limit: int) -> UnitRanges:
        """The units that are sampled: those whose sampling hash is at most the limit."""
        if limit == NO_LIMIT:
            return self
        there = derive(self.units, SAMPLE_SALT) <= np.uint64(limit)
        return UnitRanges(self.units[there], self.lowest[there], self.highest[there])

    @classmethod
    def concatenate(cls, parts: Sequence[UnitRanges]) -> UnitRanges:
        """All parts, one after another."""
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


class Varying(NamedTuple):
    """How many units have several values, and the unit of lowest hash among them."""

    number: int
    unit: int  # its hash
    lowest: float
    highest: float


@dataclass
class UnitValues:
    """The value of each unit: of all, while there are at most 2^21, else of a random sample, those of smallest hash.

    `a + b` are those of both logs together. What is here depends only on which pairs of unit and value there are, never
    on how the log was cut: of a unit with several values, the lowest and the highest.
    """

    limit: int = NO_LIMIT  # the sampling hash up to which units are here
    parts: list[UnitRanges] = field(default_factory=list)
    ordered: int = -1  # how many units there were when they were last put in order

    def add(self, units: Hashes, values: Floats) -> None:
        """Add the rows of a batch."""
        self.parts.append(UnitRanges(units, values, values).up_to(self.limit).distinct())
        room = max(MOST_UNITS >> 4, min(self.ordered, MOST_UNITS >> 2))  # more would need more memory to put in order
        if sum(len(part.units) for part in self.parts) > self.ordered + room:
            self.ranges()

    def ranges(self) -> UnitRanges:
        """The units that fit, each once, by hash."""
        if not self.parts:
            nothing = np.empty(0)
            return UnitRanges(np.empty(0, np.uint64), nothing, nothing)
        if len(self.parts) == 1 and len(self.parts[0].units) == self.ordered:
            return self.parts[0]
        ranges = UnitRanges.concatenate(self.parts).distinct()
        if len(ranges.units) > MOST_UNITS:
            first_beyond = np.partition(derive(ranges.units, SAMPLE_SALT), MOST_UNITS)[MOST_UNITS]
            self.limit = int(first_beyond) - 1
            ranges = ranges.up_to(self.limit)
        self.parts, self.ordered = [ranges], len(ranges.units)
        return ranges

    @property
    def share(self) -> float:
        """The share of units that are here."""
        self.ranges()
        return 1.0 if self.limit == NO_LIMIT else self.limit / 2.0**64

    def varying(self) -> Varying | None:
        """The units here that have several values; None where there are none."""
        units, lowest, highest = self.ranges()
        several = np.flatnonzero(lowest != highest)
        if not len(several):
            return None
        at = several[0]
        return Varying(len(several), int(units[at]), float(lowest[at]), float(highest[at]))

    @classmethod
    def total(cls, parts: Sequence[UnitValues]) -> UnitValues:
        """Those of all parts."""
        return reduce(cls._with, parts)

    def _with(self, other: UnitValues) -> UnitValues:
        limit = min(self.limit, other.limit)
        both = UnitValues(limit, [part.up_to(limit) for part in (*self.parts, *other.parts)])
        both.ranges()
        return both
