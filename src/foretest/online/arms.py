"""The arms of an online A/B test: each log is folded, in one bounded pass, into sums by bucket of units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.aggregation.age_sums import AgeSums, no_ages
from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.aggregation.unit_counts import UnitCounts
from foretest.diagnostics.health import effective_count
from foretest.displays.arrow_numbers import to_numpy
from foretest.displays.batch import Floats
from foretest.displays.column_types import is_number
from foretest.displays.days import days_of_rows, is_day
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
from foretest.settings.log_columns import multiplicities_of
from foretest.settings.winsorising import found_limits
from foretest.sources import BATCH_ROWS, Chunk, Source

MOST_DAYS = 1000


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


@dataclass(frozen=True)
class ThinnedArm:
    """What an arm whose log was thinned knows beside its sums: rows, and Σ 1/keep² of them, in all and by day."""

    rows: Floats  # by bucket
    squares: dict[str, float] = field(default_factory=dict)  # by day; of all rows under ""

    def add(self, bucket: npt.NDArray[np.int64], multiple: Floats, day: pa.DictionaryArray | None) -> None:
        """Add the rows of a batch, in place."""
        self.rows[:] += np.bincount(bucket, minlength=len(self.rows))
        squares = np.square(multiple)
        self._count("", float(squares.sum()))
        if day is not None:
            labels = day.dictionary.to_pylist()
            by_day = np.bincount(to_numpy(day.indices).astype(np.int64), weights=squares, minlength=len(labels))
            for label, amount in zip(labels, by_day.tolist(), strict=True):
                self._count(label, amount)

    def _count(self, day: str, amount: float) -> None:
        self.squares[day] = self.squares.get(day, 0.0) + amount

    def __add__(self, other: ThinnedArm) -> ThinnedArm:
        both = ThinnedArm(self.rows + other.rows, dict(self.squares))
        for day, amount in other.squares.items():
            both._count(day, amount)
        return both


@dataclass(frozen=True)
class Arm:
    """All that the online test needs of one arm's log. `a + b` is the arm of both logs together."""

    n: Floats  # displays by bucket: rows, or of a thinned log Σ 1/keep, as in every sum
    r: Floats  # Σ r by metric and bucket
    r2: Floats  # Σ r² by metric
    sizes: Floats  # Σ |r| by metric
    positives: Floats  # rows with a reward, by metric
    rows_by_day: dict[str, float]
    units: UnitCounts | None  # None: every row is a unit
    unit_days: UnitDays | None
    thinned: ThinnedArm | None = None  # of a thinned log
    ages: AgeSums | None = None  # where the log says when rewards came
    covariate: CovariateSums | None = None  # where the settings name one
    cut: Floats | None = None  # where rewards are winsorised: Σ of each reward column before, and of what was cut
    limits: Mapping[str, float] = field(default_factory=dict)  # where these were found in a log

    @classmethod
    def empty(
        cls,
        metrics: int,
        buckets: int,
        row_is_unit: bool,
        is_thinned: bool = False,
        ages: AgeSums | None = None,
        has_covariate: bool = False,
        cut: Floats | None = None,
        limits: Mapping[str, float] | None = None,
    ) -> Arm:
        """An arm without rows, to which batches are added."""
        return cls(
            n=np.zeros(buckets),
            r=np.zeros((metrics, buckets)),
            r2=np.zeros(metrics),
            sizes=np.zeros(metrics),
            positives=np.zeros(metrics),
            rows_by_day={},
            units=None if row_is_unit else UnitCounts.empty(),
            unit_days=None if row_is_unit else UnitDays(),
            thinned=ThinnedArm(np.zeros(buckets)) if is_thinned else None,
            ages=ages,
            covariate=CovariateSums.empty(metrics, buckets, row_is_unit) if has_covariate else None,
            cut=cut,
            limits=limits or {},
        )

    @property
    def rows(self) -> int:
        """How many rows the log has."""
        return int(self.rows_by_bucket.sum())

    @property
    def rows_by_bucket(self) -> Floats:
        """How many rows each bucket has."""
        return self.n if self.thinned is None else self.thinned.rows

    @property
    def displays(self) -> float:
        """How many displays the rows stand for: as many as there are rows, unless the log was thinned."""
        return self.rows if self.thinned is None else float(self.n.sum())

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
        return effective_count(float(self.sizes[metric]), float(self.r2[metric]))

    def add(self, rows: ArmRows) -> None:
        """Add one batch, in place."""
        if self.ages is not None:
            self.ages.add(rows)
        buckets = len(self.n)
        bucket = derived_bucket(rows.unit, BUCKET_SALT, buckets)
        if self.cut is not None and rows.cut is not None:
            self.cut[:] += rows.cut
        self.n[:] += np.bincount(bucket, weights=rows.multiple, minlength=buckets)
        for m, r in enumerate(rows.rewards.T):
            self.r[m] += np.bincount(bucket, weights=r, minlength=buckets)
            self.r2[m] += np.square(r).sum()
            self.sizes[m] += np.abs(r).sum()
            self.positives[m] += np.count_nonzero(r)
        if rows.day is not None:
            labels, codes = rows.day.dictionary.to_pylist(), to_numpy(rows.day.indices).astype(np.int64)
            by_day = np.bincount(codes, weights=rows.multiple, minlength=len(labels))
            for label, count in zip(labels, by_day.tolist(), strict=True):
                self.rows_by_day[label] = self.rows_by_day.get(label, 0) + count
            _refuse_many(self.rows_by_day)
        if self.thinned is not None and rows.multiple is not None:
            self.thinned.add(bucket, rows.multiple, rows.day)
        if self.covariate is not None and rows.covariate is not None:
            self.covariate.add(rows.covariate, rows.rewards, rows.unit, bucket, rows.displays_per_row)
        if self.units is not None and self.unit_days is not None:
            self.units.add(rows.unit)
            days = None if rows.day is None else self.unit_days.codes(labels)[codes]
            self.unit_days.add(derive(rows.unit, SAMPLE_SALT), days, rows.displays_per_row)

    def finish(self) -> Arm:
        return self

    def __add__(self, other: Arm) -> Arm:
        days = dict.fromkeys([*self.rows_by_day, *other.rows_by_day])
        _refuse_many(days)
        return Arm(
            n=self.n + other.n,
            r=self.r + other.r,
            r2=self.r2 + other.r2,
            sizes=self.sizes + other.sizes,
            positives=self.positives + other.positives,
            rows_by_day={day: self.rows_by_day.get(day, 0) + other.rows_by_day.get(day, 0) for day in days},
            units=None if self.units is None or other.units is None else self.units + other.units,
            unit_days=None if self.unit_days is None or other.unit_days is None else self.unit_days + other.unit_days,
            thinned=None if self.thinned is None or other.thinned is None else self.thinned + other.thinned,
            ages=None if self.ages is None or other.ages is None else AgeSums.total([self.ages, other.ages]),
            covariate=None if self.covariate is None or other.covariate is None else self.covariate + other.covariate,
            cut=None if self.cut is None or other.cut is None else self.cut + other.cut,
            limits=self.limits,
        )


def _refuse_many(days: Mapping[str, Any]) -> None:
    if len(days) > MOST_DAYS:
        raise BadInput(
            f"the date column has more than {MOST_DAYS:,} days, such as {min(days)!r}: name a column of dates in"
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
    settings, log = reader.settings, reader.settings.log

    def start() -> Arm:
        return Arm.empty(
            len(settings.definitions.linear),
            settings.analysis.buckets,
            row_is_unit=log.unit is None,
            is_thinned=bool(multiplicities_of(log)),
            ages=no_ages(settings),
            has_covariate=settings.online.covariate is not None,
            cut=np.zeros((2, len(log.rewards))) if settings.winsorises else None,
            limits=found_limits(settings),
        )

    return fold_in_threads(
        source,
        reader,
        start,
        threads=threads,
        batch_rows=batch_rows,
        progress=progress,
    )
