"""The arms of an online A/B test: each log is folded, in one bounded pass, into sums by bucket of units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.aggregation.unit_counts import LIMIT, UnitCounts
from foretest.diagnostics.health import effective_count
from foretest.displays.batch import Floats, Hashes
from foretest.displays.days import days_of_rows, is_day
from foretest.engines.local import fold_in_threads
from foretest.errors import BadInput
from foretest.kernels.random import derive, derived_bucket
from foretest.log.reader import Reader, Rows
from foretest.sources import BATCH_ROWS, Chunk, Source

MOST_DAYS = 1000
MOST_UNIT_DAYS = 1 << 21

# units are sampled by a hash of their own, lest an assignment by hash, or the buckets, decide who is sampled
SAMPLE_SALT = 7

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ArmRows(Rows):
    """A checked batch of one arm, with the day of each display."""

    day: pa.DictionaryArray | None = None


@dataclass(frozen=True)
class ArmReader(Reader):
    """Reads an arm's rewards, units and days; nothing of rankings or policies."""

    value_model_only: bool = True

    @property
    def _roles(self) -> list[tuple[str, str, Callable[[pa.DataType], bool]]]:
        date = self.settings.log.date
        roles = list(super()._roles)
        if date is not None:
            roles.append((date, "a date, timestamp, string or integer column (the day)", is_day))
        return roles

    def read(self, chunk: Chunk) -> ArmRows:
        rows, date = super().read(chunk), self.settings.log.date
        day = None if date is None else days_of_rows(date, chunk.batch[date])
        return ArmRows(**vars(rows), day=day)


@dataclass
class UnitDays:
    """Which units were seen on which days: all, while there are at most 2^17 units and 2^21 pairs of unit and day,
    else the units of smallest hash that fit.

    The cut depends only on which pairs there are: `highest` is just below the first unit that no longer fits.
    """

    labels: list[str] = field(default_factory=list)  # the days; codes are places in it
    highest: int = (1 << 64) - 1
    parts: list[tuple[Hashes, Ints]] = field(default_factory=list)  # (hash, code of the day)
    kept: int = -1  # pairs held when they were last put in order

    @property
    def complete(self) -> bool:
        return self.highest == (1 << 64) - 1

    def add(self, hashes: Hashes, days: Ints | None) -> None:
        near = hashes <= np.uint64(self.highest)
        if days is None:
            hashes = np.unique(hashes[near])
            days = np.zeros(len(hashes), np.int64)
        else:
            hashes, days = _distinct(hashes[near], days[near])
        self.parts.append((hashes, days))
        if sum(len(part) for part, _ in self.parts) > 2 * max(self.kept, LIMIT):
            self.pairs()

    def codes(self, labels: list[str]) -> Ints:
        """The codes of these days; new ones are added."""
        known = {label: code for code, label in enumerate(self.labels)}
        for label in labels:
            known.setdefault(label, len(known))
        self.labels = list(known)
        return np.array([known[label] for label in labels], np.int64)

    def pairs(self) -> tuple[Hashes, Ints]:
        """The kept pairs, each once, by hash."""
        if not self.parts:
            return np.empty(0, np.uint64), np.empty(0, np.int64)
        if len(self.parts) == 1 and len(self.parts[0][0]) == self.kept:
            return self.parts[0]
        hashes, days = _distinct(*(np.concatenate(columns) for columns in zip(*self.parts, strict=True)))
        units = np.unique(hashes)
        beyond = [found[most] for found, most in ((units, LIMIT), (hashes, MOST_UNIT_DAYS)) if len(found) > most]
        if beyond:
            self.highest = int(min(beyond)) - 1
            fits = hashes <= np.uint64(self.highest)
            hashes, days = hashes[fits], days[fits]
        self.parts, self.kept = [(hashes, days)], len(hashes)
        return hashes, days

    def units(self, highest: int) -> Hashes:
        """The units up to a hash."""
        hashes = np.unique(self.pairs()[0])
        return hashes[hashes <= np.uint64(highest)]

    def units_by_day(self, highest: int) -> dict[str, int]:
        """How many units each day has, of those up to a hash."""
        hashes, days = self.pairs()
        if not self.labels:
            return {}
        counts = np.bincount(days[hashes <= np.uint64(highest)], minlength=len(self.labels))
        return {label: int(count) for label, count in zip(self.labels, counts, strict=True)}

    def __add__(self, other: UnitDays) -> UnitDays:
        both = UnitDays(list(self.labels), min(self.highest, other.highest), list(self.parts))
        codes = both.codes(other.labels) if other.labels else np.zeros(1, np.int64)
        both.parts += [(hashes, codes[days]) for hashes, days in other.parts]
        both.parts = [(h[h <= np.uint64(both.highest)], d[h <= np.uint64(both.highest)]) for h, d in both.parts]
        both.pairs()
        return both


def _distinct(hashes: Hashes, days: Ints) -> tuple[Hashes, Ints]:
    order = np.lexsort((days, hashes))
    hashes, days = hashes[order], days[order]
    new = np.ones(len(hashes), bool)
    new[1:] = (hashes[1:] != hashes[:-1]) | (days[1:] != days[:-1])
    return hashes[new], days[new]


@dataclass(frozen=True)
class Arm:
    """All that the online test needs of one arm's log. `a + b` is the arm of both logs together."""

    n: Floats  # rows by bucket
    r: Floats  # Σ r by metric and bucket
    r2: Floats  # Σ r² by metric
    positives: Floats  # rows with a reward, by metric
    rows_by_day: dict[str, int]
    units: UnitCounts | None  # None: every row is a unit
    unit_days: UnitDays | None

    @classmethod
    def empty(cls, metrics: int, buckets: int, row_is_unit: bool) -> Arm:
        return cls(
            n=np.zeros(buckets),
            r=np.zeros((metrics, buckets)),
            r2=np.zeros(metrics),
            positives=np.zeros(metrics),
            rows_by_day={},
            units=None if row_is_unit else UnitCounts.empty(),
            unit_days=None if row_is_unit else UnitDays(),
        )

    @property
    def rows(self) -> int:
        return int(self.n.sum())

    @property
    def n_units(self) -> int:
        return self.rows if self.units is None else self.units.units

    @property
    def units_exact(self) -> bool:
        return self.units is None or self.units.exact

    @property
    def one_row_a_unit(self) -> bool:
        """Is it known that no unit has two rows? (Beyond 2^17 units it is not.)"""
        return self.units is None or (self.units.exact and self.units.largest <= 1)

    def mean(self, metric: int) -> float:
        """R = Σr/Σrows, the reward per display; NaN for an empty arm."""
        return float(self.r[metric].sum()) / self.rows if self.rows else float("nan")

    def effective_positives(self, metric: int) -> float | None:
        """(Σr)²/Σr²: the rows with a reward, as many as equal ones would be worth."""
        return effective_count(float(self.r[metric].sum()), float(self.r2[metric]))

    def add(self, rows: ArmRows) -> None:
        """Take one batch in, in place."""
        buckets = len(self.n)
        bucket = derived_bucket(rows.unit, BUCKET_SALT, buckets)
        self.n[:] += np.bincount(bucket, minlength=buckets)
        for m, r in enumerate(rows.rewards.T):
            self.r[m] += np.bincount(bucket, weights=r, minlength=buckets)
            self.r2[m] += np.square(r).sum()
            self.positives[m] += np.count_nonzero(r)
        if rows.day is not None:
            labels, codes = rows.day.dictionary.to_pylist(), rows.day.indices.to_numpy().astype(np.int64)
            for label, count in zip(labels, np.bincount(codes, minlength=len(labels)).tolist(), strict=True):
                self.rows_by_day[label] = self.rows_by_day.get(label, 0) + count
            _refuse_many(self.rows_by_day)
        if self.units is not None and self.unit_days is not None:
            self.units.add(rows.unit)
            days = None if rows.day is None else self.unit_days.codes(labels)[codes]
            self.unit_days.add(derive(rows.unit, SAMPLE_SALT), days)

    def finish(self) -> Arm:
        return self

    def __add__(self, other: Arm) -> Arm:
        days = dict.fromkeys([*self.rows_by_day, *other.rows_by_day])
        _refuse_many(days)
        return Arm(
            n=self.n + other.n,
            r=self.r + other.r,
            r2=self.r2 + other.r2,
            positives=self.positives + other.positives,
            rows_by_day={day: self.rows_by_day.get(day, 0) + other.rows_by_day.get(day, 0) for day in days},
            units=None if self.units is None or other.units is None else self.units + other.units,
            unit_days=None if self.unit_days is None or other.unit_days is None else self.unit_days + other.unit_days,
        )


def _refuse_many(days: Mapping[str, Any]) -> None:
    if len(days) > MOST_DAYS:
        raise BadInput(
            f"the date column holds more than {MOST_DAYS:,} days, such as {min(days)!r}: name a column of dates in"
            " [log] date, or leave the key out."
        )


class Arms(NamedTuple):
    """Both arms of a test."""

    control: Arm
    treatment: Arm


def fold_arm(
    source: Source,
    reader: ArmReader,
    *,
    threads: int | None = None,
    batch_rows: int = BATCH_ROWS,
    progress: Callable[[int], None] | None = None,
) -> Arm:
    """Fold an arm's log."""
    log, buckets = reader.settings.log, reader.settings.analysis.buckets
    return fold_in_threads(
        source,
        reader,
        lambda: Arm.empty(len(log.rewards), buckets, log.unit is None),
        threads=threads,
        batch_rows=batch_rows,
        progress=progress,
    )
