"""The value that each unit has of a column, within bounded memory, and the units that have several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats, Hashes
from foretest.kernels.random import derive
from foretest.online.unit_days import NO_LIMIT, SAMPLE_SALT

MOST_UNITS = 1 << 21


class UnitPairs(NamedTuple):
    """Pairs of a unit and a value, as columns."""

    units: Hashes
    values: Floats

    def distinct(self) -> UnitPairs:
        """Every unit once, by hash; twice, with its lowest and its highest value, where it has several."""
        pairs = self.take(np.lexsort([self.values, self.units]))
        starts = np.flatnonzero(np.append(True, pairs.units[1:] != pairs.units[:-1])[: len(pairs.units)])
        ends = np.append(starts[1:], len(pairs.units))[: len(starts)] - 1
        others = ends[pairs.values[ends] != pairs.values[starts]]
        return pairs.take(np.sort(np.append(starts, others)))

    def take(self, rows: npt.NDArray[np.int64]) -> UnitPairs:
        """The pairs at some places."""
        return UnitPairs(self.units[rows], self.values[rows])

    def up_to(self, highest: int) -> UnitPairs:
        """The pairs of units that are sampled."""
        if highest == NO_LIMIT:
            return self
        return self.take(np.flatnonzero(derive(self.units, SAMPLE_SALT) <= np.uint64(highest)))

    @classmethod
    def concatenate(cls, parts: Sequence[UnitPairs]) -> UnitPairs:
        """The pairs of all parts."""
        return cls(np.concatenate([part.units for part in parts]), np.concatenate([part.values for part in parts]))


class Varying(NamedTuple):
    """How many units have several values, and the unit of lowest hash among them."""

    number: int
    unit: int  # its hash
    lowest: float
    highest: float


@dataclass
class UnitValues:
    """The value of each unit: of all, while there are at most 2^21, else of a random sample, those of smallest hash.

    `a + b` are those of both logs together. What is here depends only on which pairs there are, never on how the log
    was cut: of a unit with several values the lowest and the highest are.
    """

    highest: int = NO_LIMIT  # the sampling hash up to which units are here
    parts: list[UnitPairs] = field(default_factory=list)
    ordered: int = -1  # how many pairs there were when they were last put in order

    def add(self, units: Hashes, values: Floats) -> None:
        """Add the rows of a batch."""
        self.parts.append(UnitPairs(units, values).distinct().up_to(self.highest))
        if sum(len(part.units) for part in self.parts) > 2 * max(self.ordered, MOST_UNITS >> 4):
            self.pairs()

    def pairs(self) -> UnitPairs:
        """The pairs that fit, each once, by the hash of the unit."""
        if not self.parts:
            return UnitPairs(np.empty(0, np.uint64), np.empty(0))
        if len(self.parts) == 1 and len(self.parts[0].units) == self.ordered:
            return self.parts[0]
        pairs = UnitPairs.concatenate(self.parts).distinct()
        units = np.unique(pairs.units)
        if len(units) > MOST_UNITS:
            first_beyond = np.partition(derive(units, SAMPLE_SALT), MOST_UNITS)[MOST_UNITS]
            self.highest = int(first_beyond) - 1
            pairs = pairs.up_to(self.highest)
        self.parts, self.ordered = [pairs], len(pairs.units)
        return pairs

    @property
    def share(self) -> float:
        """The share of units that are here."""
        self.pairs()
        return 1.0 if self.highest == NO_LIMIT else self.highest / 2.0**64

    def varying(self) -> Varying | None:
        """The units here that have several values; None where there are none."""
        pairs = self.pairs()
        again = np.flatnonzero(pairs.units[1:] == pairs.units[:-1])
        if not len(again):
            return None
        at = int(again[0])
        return Varying(len(again), int(pairs.units[at]), float(pairs.values[at]), float(pairs.values[at + 1]))

    def __add__(self, other: UnitValues) -> UnitValues:
        highest = min(self.highest, other.highest)
        both = UnitValues(highest, [part.up_to(highest) for part in (*self.parts, *other.parts)])
        both.pairs()
        return both
