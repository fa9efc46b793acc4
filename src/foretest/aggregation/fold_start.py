"""The sums of no rows, which a fold adds to."""

from __future__ import annotations

import numpy as np

from foretest.aggregation.age_sums import open_ages
from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.groups import MOST_DAYS, MOST_VALUES, Groups
from foretest.aggregation.kept_rows import Column, KeptRows
from foretest.aggregation.large_units import no_large_units
from foretest.aggregation.ledger import Ledger
from foretest.aggregation.quantities import (
    APPROXIMATE,
    CAPPED_ROWS,
    CUT,
    DISPLAYS,
    EXPECTED,
    LARGEST_LOG_WEIGHT,
    LEFT_OUT_AS_TRAINED,
    POSITIVES,
    REWARDS,
    SQUARED_REWARDS,
    STRATUM_DISPLAYS,
    UNSUPPORTED,
    UPLIFTS,
)
from foretest.aggregation.replay_sums import no_replay
from foretest.aggregation.strata import Strata
from foretest.aggregation.thinning import open_rows
from foretest.aggregation.unit_counts import UnitCounts
from foretest.aggregation.weight_bins import WeightBins
from foretest.estimators import DR
from foretest.log.rows import DAY

MOST_REWARDED = 1 << 17
SAMPLED_DISPLAYS = 20_000


def empty_aggregates(plan: FoldPlan) -> Aggregates:
    """The aggregates of no rows."""
    metrics = range(len(plan.metrics))
    order: tuple[Column, ...] = ("unit", "key", "log_w", *(("r", m) for m in metrics))  # later columns break ties
    return Aggregates(
        plan=plan,
        ledger=_empty_ledger(plan),
        rewarded=KeptRows(MOST_REWARDED, order),
        sample=KeptRows(SAMPLED_DISPLAYS, order),
        units=None if plan.row_is_unit else UnitCounts.empty(),
        segments={column: _empty_parts(plan, MOST_DAYS if column == DAY else MOST_VALUES) for column in plan.segments},
        replay=no_replay(plan.settings),
        large_units=no_large_units(plan.settings),
    )


def _empty_parts(plan: FoldPlan, most: int) -> Ledger:
    """The sums of no rows of every value of a column, of which so many at most have sums of their own."""
    ledger = Ledger(plan.cells, groups=Groups(plan.cells, most=most))
    open_rows(ledger, plan.settings.log)
    return ledger


def _empty_ledger(plan: FoldPlan) -> Ledger:
    ledger, metrics = Ledger(plan.cells, strata={table: Strata() for table in plan.tables}), range(len(plan.metrics))
    plain = ledger.plain
    plain.array(DISPLAYS, plan.cells)
    plain.array(CAPPED_ROWS, 1)
    plain.open(LARGEST_LOG_WEIGHT, -np.inf)
    for m in metrics:
        plain.array(REWARDS, plan.cells, m)
        plain.array(SQUARED_REWARDS, 1, m)
        plain.array(POSITIVES, 1, m)
    for estimator in plan.estimators:
        for m in metrics:
            if isinstance(estimator, DR) or estimator.uses_items:
                plain.array(EXPECTED, plan.cells, m, estimator.label)
            if estimator.uses_items:
                plain.array(UPLIFTS, 4, m, estimator.label)
    for table in plan.tables:
        plain.array(STRATUM_DISPLAYS, 0, owner=table)
    for point_weighting in plan.point_weightings:
        plain.array(UNSUPPORTED, 1, owner=point_weighting)
        plain.array(APPROXIMATE, 1, owner=point_weighting)
    for weighting in (*plan.weightings, *plan.normalised_weightings, *plan.slot_ratios):
        ledger.account(weighting)
    for weighting in (*plan.weightings, *plan.point_weightings):
        for m in metrics:
            ledger.account(weighting, m)
    WeightBins(plain, plan.cells).open(len(metrics))
    open_ages(plain, plan.settings)
    open_rows(ledger, plan.settings.log, len(metrics))
    if plan.settings.winsorises:
        plain.open(CUT, np.zeros((2, len(plan.settings.log.rewards))))
    if plan.settings.trained_until is not None:
        plain.open(LEFT_OUT_AS_TRAINED, 0.0)
    return ledger
