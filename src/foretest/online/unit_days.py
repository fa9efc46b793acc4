"""Which units an arm had on which days, within bounded memory: the units of smallest hash where there are too many."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.aggregation.unit_counts import LIMIT
from foretest.displays.batch import Hashes

MOST_UNIT_DAYS = 1 << 21
NO_LIMIT = (1 << 64) - 1  # the largest hash there is

Ints = npt.NDArray[np.int64]


class UnitDayPairs(NamedTuple):
    """Pairs of a unit and a day, as two columns."""

    hashes: Hashes  # of the unit
    days: Ints  # places in the list of days

    def distinct(self) -> UnitDayPairs:
        """Every pair once, by hash and day."""
        order = np.lexsort((self.days, self.hashes))
        hashes, days = self.hashes[order], self.days[order]
        is_new = np.ones(len(hashes), bool)
        is_new[1:] = (hashes[1:] != hashes[:-1]) | (days[1:] != days[:-1])
        return UnitDayPairs(hashes[is_new], days[is_new])

    def up_to(self, highest: int) -> UnitDayPairs:
        """The pairs whose unit has at most this hash."""
        fits = self.hashes <= np.uint64(highest)
        return UnitDayPairs(self.hashes[fits], self.days[fits])


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

    def add(self, hashes: Hashes, days: Ints | None) -> None:
        """Add the pairs of a batch; without days only its units."""
        if days is None:
            units = np.unique(hashes[hashes <= np.uint64(self.highest)])
            self.parts.append(UnitDayPairs(units, np.zeros(len(units), np.int64)))
        else:
            self.parts.append(UnitDayPairs(hashes, days).up_to(self.highest).distinct())
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
            return UnitDayPairs(np.empty(0, np.uint64), np.empty(0, np.int64))
        if len(self.parts) == 1 and len(self.parts[0].hashes) == self.ordered:
            return self.parts[0]
        pairs = UnitDayPairs(*(np.concatenate(columns) for columns in zip(*self.parts, strict=True))).distinct()
        limits = (np.unique(pairs.hashes), LIMIT), (pairs.hashes, MOST_UNIT_DAYS)
        beyond = [hashes[most] for hashes, most in limits if len(hashes) > most]
        if beyond:
            self.highest = int(min(beyond)) - 1
            pairs = pairs.up_to(self.highest)
        self.parts, self.ordered = [pairs], len(pairs.hashes)
        return pairs

    def units(self, highest: int) -> Hashes:
        """The units up to a hash."""
        hashes = np.unique(self.pairs().hashes)
        return hashes[hashes <= np.uint64(highest)]

    def units_by_day(self, highest: int) -> dict[str, int]:
        """The number of units of each day, counting units up to a hash."""
        pairs = self.pairs()
        if not self.labels:
            return {}
        counts = np.bincount(pairs.up_to(highest).days, minlength=len(self.labels))
        return {label: int(count) for label, count in zip(self.labels, counts, strict=True)}

    def __add__(self, other: UnitDays) -> UnitDays:
        both = UnitDays(list(self.labels), min(self.highest, other.highest), list(self.parts))
        codes = both.codes(other.labels) if other.labels else np.zeros(1, np.int64)
        both.parts += [UnitDayPairs(part.hashes, codes[part.days]) for part in other.parts]
        both.parts = [part.up_to(both.highest) for part in both.parts]
        both.pairs()
        return both
