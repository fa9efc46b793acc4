"""The arms of an online A/B test: each log is folded, in one bounded pass, into sums by bucket of units."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from foretest.aggregation.age_sums import AgeSums, open_ages
from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.aggregation.groups import Groups
from foretest.aggregation.ledger import Key, Ledger
from foretest.aggregation.quantities import (
    CUT,
    DISPLAYS,
    POSITIVES,
    REWARD_SIZES,
    REWARDS,
    ROWS,
    SQUARED_REWARDS,
    SQUARES,
    Quantity,
)
from foretest.aggregation.thinning import are_displays, open_rows
from foretest.aggregation.unit_counts import UnitCounts
from foretest.diagnostics.health import effective_count
from foretest.displays.arrow_numbers import to_numpy
from foretest.displays.batch import Floats
from foretest.displays.column_types import is_number
from foretest.displays.days import days_of_rows, is_day
from foretest.displays.merging import by, first
from foretest.engines.local import fold_in_threads
from foretest.errors import BadInput, RowFault
from foretest.kernels.random import derive, derived_bucket
from foretest.log.column_roles import ColumnRole
from foretest.log.column_values import finite_numbers
from foretest.log.reader import Reader
from foretest.log.reward_ages import days_of_displays, rows_of_whole
from foretest.log.reward_parts import linear_rewards
from foretest.log.rows import Rows
from foretest.online.covariate import CovariateSums
from foretest.online.unit_days import SAMPLE_SALT, UnitDays
from foretest.records import dataclass
from foretest.settings.settings import Settings
from foretest.settings.winsorising import found_limits
from foretest.sources import BATCH_ROWS, Chunk, Source

MOST_DAYS = 1000
NO_LIMIT = 1 << 62


@dataclass(frozen=True)
class ArmRows(Rows):
    """A checked batch of one arm, with the day of each display and the covariate of its unit."""

    day: pa.DictionaryArray | None = None
    covariate: Floats | None = None


@dataclass(frozen=True)
class ArmReader(Reader):
    """Reads an arm's rewards, units, days and covariate; no rankings, and no columns of policies."""

    value_model_only: bool = True

    @property
    def roles(self) -> list[ColumnRole]:
        date, covariate, roles = self.settings.log.date, self.settings.online.covariate, list(super().roles)
        if date is not None:
            roles.append(ColumnRole(date, "a date, timestamp, string or integer column (the day)", is_day))
        if covariate is not None:
            what = "a number column (the covariate, from before the test)"
            roles.append(ColumnRole(covariate, what, is_number))
        return roles

    def read(self, chunk: Chunk) -> ArmRows:
        chunk, log, column = self.counted(chunk), self.settings.log, self.settings.online.covariate
        rows, day, covariate = super().read(chunk), None, None
        with rows_of_whole(chunk):
            if log.date is not None:
                day = days_of_rows(log.date, chunk.batch[log.date])
            elif log.time is not None:
                day = days_of_displays(log, chunk.batch)
            if column is not None:
                covariate = _covariate(column, chunk.batch[column])
        fields = {**vars(rows), "rewards": linear_rewards(rows, self.settings.definitions)}
        return ArmRows(**fields, day=day, covariate=covariate)


def _covariate(column: str, array: pa.Array) -> Floats:
    """The covariate of each row; a fault also says what to give units that are new."""
    try:
        return finite_numbers(column, array, "the covariate")
    except RowFault as fault:
        if fault.kind not in ("null", "not-finite"):
            raise
        remedy = "A unit that has no time before the test needs a number too: write 0, or the mean of the others."
        raise RowFault(fault.kind, column, fault.rows, fault.what, remedy) from None


def _refuse_many(days: Groups) -> None:
    if len(days.labels) > MOST_DAYS:
        raise BadInput(
            f"the date column has more than {MOST_DAYS:,} days, such as {min(days.labels)!r}: name a column of dates in"
            " [log] date, or leave the key out."
        )


def _all_days(ledgers: Sequence[Ledger]) -> Ledger:
    """The displays by day of all logs."""
    whole = Ledger.total(ledgers)
    assert whole.groups is not None
    _refuse_many(whole.groups)
    return whole


@dataclass(frozen=True)
class Arm:
    """All that the online test needs of one arm's log."""

    ledger: Ledger
    days: Ledger = field(metadata=by(_all_days))  # displays by day
    units: UnitCounts | None  # None: every row is a unit
    unit_days: UnitDays | None
    covariate: CovariateSums | None = None  # where the settings name one
    #: of rewards that are winsorised, where these were found in a log
    limits: Mapping[str, float] = field(default_factory=dict, metadata=by(first))

    @classmethod
    def empty(cls, settings: Settings) -> Arm:
        """An arm without rows, to which batches are added."""
        log, buckets = settings.log, settings.analysis.buckets
        ledger, metrics = Ledger(buckets), len(settings.definitions.linear)
        plain = ledger.plain
        plain.array(DISPLAYS, buckets)
        for m in range(metrics):
            plain.array(REWARDS, buckets, m)
            for quantity in (SQUARED_REWARDS, REWARD_SIZES, POSITIVES):
                plain.array(quantity, 1, m)
        open_ages(plain, settings)
        if settings.winsorises:
            plain.put(CUT, np.zeros((2, len(log.rewards))))
        open_rows(ledger, log)
        days = Ledger(1, groups=Groups(0, most=NO_LIMIT))
        open_rows(days, log)
        row_is_unit, has_covariate = log.unit is None, settings.online.covariate is not None
        return cls(
            ledger=ledger,
            days=days,
            units=None if row_is_unit else UnitCounts.empty(),
            unit_days=None if row_is_unit else UnitDays(),
            covariate=CovariateSums.empty(metrics, buckets, row_is_unit) if has_covariate else None,
            limits=found_limits(settings),
        )

    @property
    def n(self) -> Floats:
        """Displays by bucket: rows, or of a thinned log Σ 1/keep, as in every sum."""
        return self.ledger.plain.get(DISPLAYS, size=self.ledger.cells)

    @property
    def r(self) -> list[Floats]:
        """Σ r by bucket, of each metric."""
        return self._of_metrics(REWARDS)

    @property
    def r2(self) -> Floats:
        """Σ r² of each metric."""
        return np.concatenate(self._of_metrics(SQUARED_REWARDS))

    @property
    def positives(self) -> Floats:
        """Rows with a reward, of each metric."""
        return np.concatenate(self._of_metrics(POSITIVES))

    def _of_metrics(self, quantity: Quantity) -> list[Floats]:
        sums = self.ledger.plain.sums
        return [
            sums[key]
            for key in sorted((key for key in sums if key.quantity is quantity), key=lambda key: key.metric or 0)
        ]

    @property
    def ages(self) -> AgeSums | None:
        """How old rewards were, where the log says when they came."""
        return AgeSums.of(self.ledger.plain)

    @property
    def cut(self) -> Floats | None:
        """Where rewards are winsorised: Σ of each reward column before, and of what was cut."""
        return self.ledger.plain.get(CUT) if self.ledger.plain.has(CUT) else None

    @property
    def are_displays(self) -> bool:
        """Is every display of its log one row?"""
        return are_displays(self.ledger)

    @property
    def rows_by_day(self) -> dict[str, float]:
        """How many displays each day has."""
        return self._by_day(DISPLAYS)

    @property
    def squares_by_day(self) -> dict[str, float]:
        """Σ m² of each day, m the displays that a row stands for."""
        return self._by_day(SQUARES)

    def _by_day(self, quantity: Quantity) -> dict[str, float]:
        assert self.days.groups is not None
        amounts = self.days.by_group(Key(quantity), self.days.plain).tolist()
        return dict(zip(self.days.groups.labels, amounts[1:], strict=True))

    @property
    def rows(self) -> int:
        """How many rows the log has."""
        return int(self.rows_by_bucket.sum())

    @property
    def rows_by_bucket(self) -> Floats:
        """How many rows each bucket has."""
        return self.ledger.plain.get(ROWS, size=self.ledger.cells)

    @property
    def displays(self) -> float:
        """How many displays the rows stand for: as many as there are rows, unless the log was thinned."""
        return float(self.n.sum())

    @property
    def n_units(self) -> int:
        return self.rows if self.units is None else self.units.units

    @property
    def units_exact(self) -> bool:
        return self.units is None or self.units.exact

    @property
    def one_row_per_unit(self) -> bool:
        """Whether it is known that no unit has two rows (beyond 2^17 units it is not known)."""
        return self.units is None or (self.units.exact and self.units.largest <= 1)

    def mean(self, metric: int) -> float:
        """R = Σr/Σrows, the reward per display; NaN for an empty arm, and for a ratio whose denominator is 0."""
        return float(self.r[metric].sum()) / self.displays if self.displays else float("nan")

    def effective_positives(self, metric: int) -> float | None:
        """(Σ|r|)²/Σr²: how many rows with equal rewards the rewarded rows are worth."""
        plain = self.ledger.plain
        return effective_count(plain.total(REWARD_SIZES, metric), plain.total(SQUARED_REWARDS, metric))

    def add(self, rows: ArmRows) -> None:
        """Add one batch, in place."""
        plain, m = self.ledger.plain, rows.displays_per_row
        if self.ages is not None:
            self.ages.add(rows)
        if rows.cut is not None:
            plain.put(CUT, rows.cut)
        bucket = derived_bucket(rows.unit, BUCKET_SALT, self.ledger.cells)
        at = self.ledger.places(bucket)
        plain.add(DISPLAYS, m, at)
        plain.put(SQUARES, m @ m)
        plain.add(ROWS, 1.0, at)
        for metric, r in enumerate(rows.rewards.T):
            plain.add(REWARDS, r, at, metric)
            plain.add(SQUARED_REWARDS, r * r, at, metric)
            plain.add(REWARD_SIZES, np.abs(r), at, metric)
            plain.add(POSITIVES, r != 0.0, at, metric)
        if rows.day is not None:
            self._add_days(rows.day, m)
        if self.covariate is not None and rows.covariate is not None:
            self.covariate.add(rows.covariate, rows.rewards, rows.unit, bucket, rows.displays_per_row)
        if self.units is not None and self.unit_days is not None:
            self.units.add(rows.unit)
            days = None
            if rows.day is not None:
                days = self.unit_days.codes(rows.day.dictionary.to_pylist())[
                    to_numpy(rows.day.indices).astype(np.int64)
                ]
            self.unit_days.add(derive(rows.unit, SAMPLE_SALT), days, rows.displays_per_row)

    def _add_days(self, day: pa.DictionaryArray, m: Floats) -> None:
        groups = self.days.groups
        assert groups is not None
        code = groups.codes(day, self.days.move_to_rest)
        _refuse_many(groups)
        at = self.days.places(np.zeros(len(code), np.int64), code)
        self.days.plain.add(DISPLAYS, m, at)
        self.days.plain.add(SQUARES, m * m, at)

    def finish(self) -> Arm:
        return self


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
    return fold_in_threads(
        source,
        reader,
        lambda: Arm.empty(reader.settings),
        threads=threads,
        batch_rows=batch_rows,
        progress=progress,
    )
