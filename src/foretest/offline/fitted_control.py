"""A control whose temperature, sigma or epsilon is fitted from the log: before the fold, and its error after it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.control_fit import FittedNumber
from foretest.aggregation.control_slopes import Moved, MovedSums, with_error
from foretest.aggregation.fold import Fold
from foretest.aggregation.fold_plan import FoldPlan
from foretest.displays.batch import Displays, Floats
from foretest.engines.control_rows import (
    FitChoice,
    KeptBatch,
    RewardedChoice,
    RowChoice,
    keep_rows,
    read_again,
    without_rewards,
)
from foretest.engines.local import Progress
from foretest.errors import BadInput
from foretest.log.reader import Reader
from foretest.log.rows import Rows
from foretest.policies.base import Policy
from foretest.policies.fitted_parameter import parameter_of, with_number
from foretest.policies.likelihood_fit import CannotFit, LikelihoodFit, fit_number
from foretest.policies.logging_mixture import loggers_of
from foretest.policies.own_candidates import without_list
from foretest.policies.thurstone import Thurstone
from foretest.settings.fitted_control import controls_to_fit, setting_text
from foretest.settings.settings import Settings, with_treatment_of
from foretest.sources import Source

MOST_DISPLAYS = 1 << 17  # that a number is fitted on
MOST_OF_THURSTONE = 1 << 14  # whose probabilities take a thousand times as long
FEWEST_UNITS = 30
MOST_SLOPE_ROWS = 1 << 15  # on which Σ h is moved
MOST_PRICED_ROWS = 1 << 13  # the same of rows that are priced by draws
STEP = 0.01  # on the scale of the number
STEP_ZERO_CAPPING = 0.05  # rows that cross the cap jump to 0: of a small step they would be few
_AT_ONCE = 4096


class SlopeRows(NamedTuple):
    """Rows on which it is found how sums move with a fitted number."""

    all_rows: KeptBatch
    rewarded: KeptBatch


class FittedControl(NamedTuple):
    """The plan with the control's number, and rows for its error; these are None where nothing was to be fitted."""

    plan: FoldPlan
    rows: SlopeRows | None


def fit_control(
    source: Source, reader: Reader, plan: FoldPlan, threads: int | None, progress: Progress | None
) -> FittedControl:
    """Fit what is to be fitted of the control, on half of the units of a log."""
    to_fit = controls_to_fit(plan.settings)
    reader = dataclasses.replace(reader, settings=_readable(plan.settings))
    narrow = Reader(_of_control(reader.settings))
    columns = reader.columns
    priced = plan.dense or plan.reads_items
    all_rows = RowChoice(MOST_PRICED_ROWS if priced else MOST_SLOPE_ROWS, columns)
    rewarded = RewardedChoice(MOST_PRICED_ROWS, columns)
    to_fit_on = {k: FitChoice(_most_displays(p), narrow.columns, k) for k, (_, p) in to_fit.items()}
    kept = keep_rows(source, reader, [all_rows, rewarded, *to_fit_on.values()], threads=threads, progress=progress)
    fits = tuple(
        _fitted(plan, narrow, kept[to_fit_on[k]].rows(), k, name, policy) for k, (name, policy) in to_fit.items()
    )
    settings = with_numbers(plan.settings, {fit.logger: fit.value for fit in fits})
    done = dataclasses.replace(plan, settings=settings, control_fits=fits)
    return FittedControl(done, SlopeRows(kept[all_rows], kept[rewarded]))


def with_numbers(settings: Settings, numbers: Mapping[int, float]) -> Settings:
    """The settings with numbers in place of what is fitted, by the number of the logger."""
    loggers = loggers_of(settings.control)
    policies = [with_number(p, numbers[k]) if k in numbers else p for k, p in enumerate(loggers.policies)]
    return dataclasses.replace(settings, control=loggers.with_policies(policies))


def with_control_error(aggregates: Aggregates, reader: Reader, plan: FoldPlan, rows: SlopeRows | None) -> Aggregates:
    """The sums with the error of what was fitted in them; as they are where nothing was."""
    if rows is None or not plan.estimators:
        return aggregates
    all_rows = read_again(reader, rows.all_rows.rows(), _AT_ONCE)
    if not plan.dense:
        all_rows = [without_rewards(part) for part in all_rows]
    rewarded = read_again(reader, rows.rewarded.rows(), _AT_ONCE)
    step = STEP_ZERO_CAPPING if plan.settings.analysis.capping == "zero" else STEP
    for fit in plan.control_fits:
        above, below = (_moved(plan, fit, sign * step) for sign in (1.0, -1.0))
        sums = MovedSums(*(
            Moved(_sums(above, part), _sums(below, part), kept.scale / (2.0 * step))
            for part, kept in ((all_rows, rows.all_rows), (rewarded, rows.rewarded))
        ))  # fmt: skip
        aggregates = with_error(aggregates, sums, fit.influence)
    return aggregates


class _SlopeFold(Fold):
    """A fold of sums alone."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.state.rewarded.limit = 1

    def _add_sample(self, rows: Rows, log_w: Floats) -> None:
        return


def _sums(plan: FoldPlan, parts: Sequence[Rows]) -> Aggregates:
    fold = _SlopeFold(plan)
    for rows in parts:
        fold.add(rows)
    return fold.unpriced()


def _moved(plan: FoldPlan, fit: FittedNumber, step: float) -> FoldPlan:
    """The plan with a fitted number a step away."""
    parameter = parameter_of(loggers_of(plan.settings.control).policies[fit.logger])
    assert parameter is not None
    number = float(parameter.from_scale(parameter.to_scale(fit.value) + step))
    return dataclasses.replace(plan, settings=with_numbers(plan.settings, {fit.logger: number}))


def _fitted(
    plan: FoldPlan, narrow: Reader, batch: pa.RecordBatch | None, logger: int, name: str, policy: Policy
) -> FittedNumber:
    """The number of one control, from rows that it showed."""
    parameter = parameter_of(policy)
    assert parameter is not None
    asked = setting_text(name, policy)
    parts = read_again(narrow, batch, _AT_ONCE)
    units = len(np.unique(np.concatenate([rows.unit for rows in parts]))) if parts else 0
    if units < FEWEST_UNITS:
        raise BadInput(
            f"{asked}: {units} units are too few to fit it on (half of the log's, by hash), {FEWEST_UNITS} are needed."
            " Give the number."
        )
    displays = Displays.concatenate([rows.displays for rows in parts])
    m = np.concatenate([rows.displays_per_row for rows in parts])
    try:
        fit = fit_number(with_number(policy, 0.5), displays, m)
    except CannotFit as reason:
        raise BadInput(f"{asked}: {reason}, or give the number.") from None
    cell = np.concatenate([plan.cells_of(rows) for rows in parts])
    influence = np.bincount(cell, m * fit.slope / fit.information, plan.cells).astype(np.float64)
    influence -= influence.sum() * np.bincount(cell, m / m.sum(), plan.cells)  # what rounding left
    return FittedNumber(
        name, logger, parameter.name, fit.value, parameter.step(fit.value) * _std_error(influence, plan.loggers),
        len(displays), _information(fit, m), influence,
    )  # fmt: skip


def _std_error(influence: Floats, loggers: int) -> float:
    """√(C/(C−1)·Σ influence²) over the buckets of units, C those that have any."""
    by_bucket = influence.reshape(loggers, -1).sum(axis=0)
    count = int(np.count_nonzero(by_bucket))
    return float(np.sqrt(count / (count - 1.0) * (by_bucket @ by_bucket))) if count > 1 else float("nan")


def _information(fit: LikelihoodFit, m: Floats) -> float:
    """What the rows tell of the number, (Σ m u²)²/Σ m² u²: as many independent rows' as they weigh."""
    u2 = np.square(fit.slope)
    return float((m @ u2) ** 2 / (np.square(m) @ u2))


def _most_displays(policy: Policy) -> int:
    return MOST_OF_THURSTONE if isinstance(without_list(policy), Thurstone) else MOST_DISPLAYS


def _readable(settings: Settings) -> Settings:
    """Settings with some number in place of what is fitted: which columns are read does not depend on it."""
    return with_numbers(settings, dict.fromkeys(controls_to_fit(settings), 0.5))


def _of_control(settings: Settings) -> Settings:
    """Settings that read the control's columns alone, of which a number is fitted; all where several showed the log."""
    log = dataclasses.replace(settings.log, features=(), segments=())
    return with_treatment_of(dataclasses.replace(settings, log=log), settings.control)
