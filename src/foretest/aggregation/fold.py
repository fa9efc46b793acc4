"""The fold: batches of a log in, `Aggregates` out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.display_sample import add_to_sample, priced, with_keys
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.fold_start import empty_aggregates
from foretest.aggregation.item_rewards import ItemRewards, item_rewards
from foretest.aggregation.ledger import Places
from foretest.aggregation.model_sums import (
    adaptive_points,
    add_predictions,
    add_weighted_predictions,
    model_weightings,
)
from foretest.aggregation.own_reward_model import own_predictions
from foretest.aggregation.quantities import (
    CAPPED_ROWS,
    CUT,
    DISPLAYS,
    EXPECTED,
    LARGEST_LOG_WEIGHT,
    LEFT_OUT_AS_TRAINED,
    PREDICTED,
    REWARDED_ROWS,
    ROWS,
    SQUARES,
    STRATUM_DISPLAYS,
    STRATUM_WEIGHTS,
    UNSUPPORTED,
)
from foretest.aggregation.rewarded_rows import AT_ONCE, RewardedRows
from foretest.aggregation.rewarded_sums import (
    PointsByWeighting,
    add_point_noise,
    add_rewarded,
    add_rewards,
    add_weighted_rewards,
    add_weights,
)
from foretest.aggregation.slot_ratios import add_slot_ratios
from foretest.aggregation.thinning import add_rows
from foretest.displays.batch import Floats
from foretest.estimators import DR
from foretest.log.rows import Rows
from foretest.policies.logging_mixture import loggers_of
from foretest.policies.own_candidates import with_union
from foretest.records import dataclass
from foretest.settings.replay import replays_of
from foretest.weights.weightings import PointWeights, Uncapped, all_log_weights

Ints = npt.NDArray[np.int64]


@dataclass
class Fold:
    """Batches in, `Aggregates` out."""

    plan: FoldPlan
    further: dict[str, Fold] = field(default_factory=dict)  # a fold for each treatment after the first
    waiting: list[RewardedRows] = field(default_factory=list)  # rewarded rows to be priced

    def __post_init__(self) -> None:
        self.further = {name: type(self)(plan) for name, plan in self.plan.further.items()}
        self.state = empty_aggregates(self.plan)
        for one in self.further.values():  # of the same rows and the same control
            one.state = replace(one.state, replay=self.state.replay, large_units=self.state.large_units)

    def add(self, rows: Rows) -> None:
        """Take in one batch."""
        state, plain = self.state, self.state.ledger.plain
        if state.ages is not None:
            state.ages.add(rows)
        if rows.cut is not None:
            plain.put(CUT, rows.cut)
        if plain.has(LEFT_OUT_AS_TRAINED):
            plain.put(LEFT_OUT_AS_TRAINED, rows.trained)
        if not len(rows):
            return
        settings, rows = self.plan.settings, with_baseline(self.plan, rows)
        if state.replay is not None:
            loggers = loggers_of(settings.control).of_rows(rows.displays)
            state.replay.add(rows, replays_of(settings.control), loggers)
        weights, log_p = all_log_weights(settings.treatments, settings.control, rows.displays)
        rows = replace(rows, log_p=log_p)
        folds = (self, *self.further.values())
        predicted: Sequence[ItemRewards | None] = [None] * len(folds)
        if self.plan.reads_items:
            predicted = item_rewards([fold_of_one.plan for fold_of_one in folds], rows, weights)
        for fold_of_one, log_w, rewards in zip(folds, weights, predicted, strict=True):
            fold_of_one.add_weighted(rows, log_w, rewards)
        if state.large_units is not None and state.units is not None and rows.unit_names is not None:
            state.large_units.add(rows.unit, rows.unit_names, state.units)

    def add_weighted(self, rows: Rows, log_w: Floats, predicted: ItemRewards | None = None) -> None:
        """Take in one batch whose rankings are weighed, with predicted rewards where an estimator asks for them."""
        plan, state = self.plan, self.state
        ledger, rows = state.ledger, for_treatment(plan, rows)
        cell, m, plain = plan.cells_of(rows), rows.displays_per_row, ledger.plain
        at = ledger.places(cell)
        plain.add(DISPLAYS, m, at)
        plain.put(LARGEST_LOG_WEIGHT, log_w.max())
        plain.put(CAPPED_ROWS, m[log_w > np.log(plan.settings.analysis.cap_number)].sum())
        state.bins.add(log_w, cell, m)
        if state.units is not None:
            state.units.add(rows.unit)
        values = plan.values(rows)
        codes = self._strata(rows, values)
        by_stratum = ledger.places_of_strata(cell, codes)
        add_rows(ledger, rows, at, by_stratum, log_w)
        for table, places in by_stratum.items():
            plain.add(STRATUM_DISPLAYS, m, places, owner=table)
        self._add_weights(log_w, m, at, by_stratum)
        self._add_models(rows, log_w, cell, values, predicted)
        for weighting in plan.slot_ratios:
            add_slot_ratios(state, weighting, rows, log_w, cell)
        weighed = np.arange(len(rows)) if plan.dense else rows.rewarded
        shown = None if predicted is None else predicted.shown
        rewarded = RewardedRows.of(rows, log_w, cell, codes, weighed, shown)
        if shown is not None and not plan.dense and model_weightings(plan):
            self._add_unrewarded(RewardedRows.of(rows, log_w, cell, codes, rows.unrewarded, shown))
        if state.segments:  # the codes of their values are known while a batch is at hand
            points = self._add_rewarded(rewarded) if len(rewarded) else {}
            for column in [name for name in state.segments if name in rows.segments]:  # not all dates have days
                self._add_groups(column, rows, log_w, cell, rewarded, weighed, points)
        elif len(rewarded):
            self._queue(rewarded)
        self._add_sample(rows, log_w)

    def finish(self) -> Aggregates:
        """The aggregates of all batches, with the sampled displays priced."""
        return priced(self.unpriced())

    def unpriced(self) -> Aggregates:
        """The aggregates of all batches with the sampled displays themselves: parts of a log add up first, and are
        priced once."""
        self._add_waiting()
        state = self.state
        with_keys(state.sample)
        large = None if state.large_units is None or state.units is None else state.large_units.largest(state.units)
        treatments = {name: further.unpriced() for name, further in self.further.items()}
        return replace(state, plan=self.plan.lasting, large_units=large, treatments=treatments)

    # -- all rows -------------------------------------------------------------------------------------------------

    def _strata(self, rows: Rows, values: Floats | None) -> dict[str, Ints]:
        """The stratum of each row, by table of strata."""
        plan, strata = self.plan, self.state.ledger.strata
        if not plan.tables:
            return {}
        if rows.stratum is not None:
            return {"": strata[""].of_column(rows.stratum)}
        assert values is not None
        base = plan.settings.analysis.strata_base
        return {
            table: strata[table].of_values(values[:, plan.metrics.index(table) if table else 0], base)
            for table in plan.tables
        }

    def _add_weights(self, log_w: Floats, m: Floats, at: Places, by_stratum: dict[str, Places]) -> None:
        """Σ h and Σ h² of every weighting of all rows, by stratum where it is asked for."""
        for weighting in self.plan.weightings:
            account = self.state.weights(weighting)
            h = add_weights(account, weighting.log_h(log_w), m, at)
            if weighting in self.plan.stratified:
                for table, places in by_stratum.items():
                    account.add(STRATUM_WEIGHTS, h, places, owner=table)

    def _add_models(
        self, rows: Rows, log_w: Floats, cell: Ints, values: Floats | None, predicted: ItemRewards | None
    ) -> None:
        """DR's control variate, Σ w·r̂(a, x) and Σ E_t r̂; and what other estimators with a reward model add."""
        if predicted is not None:
            add_predictions(self.state, rows, log_w, cell, predicted)
        ledger, m = self.state.ledger, rows.displays_per_row
        at = ledger.places(cell)
        for estimator in self.plan.estimators:
            if not isinstance(estimator, DR):
                continue
            if predicted is not None and self.plan.predicts_items(estimator):
                shown, expected = predicted.shown, predicted.treatment
            else:
                shown, expected = self._predictions(estimator, rows, values)
            account = self.state.weights(Uncapped())
            w = account.scaled(log_w) * m
            for metric in range(len(self.plan.metrics)):
                account.add(PREDICTED, w * shown[:, metric], at, metric, estimator.label)
                ledger.plain.add(EXPECTED, expected[:, metric] * m, at, metric, estimator.label)

    def _predictions(self, estimator: DR, rows: Rows, values: Floats | None) -> tuple[Floats, Floats]:
        """r̂ of the shown ranking and its expectation under the treatment, one column per metric."""
        if estimator.model is None:
            assert values is not None
            return values, values
        return own_predictions(self.plan, estimator.model, estimator.draws, rows.displays)

    def _add_sample(self, rows: Rows, log_w: Floats) -> None:
        """Add the displays of the batch that may be among the fixed sample."""
        add_to_sample(self.state, rows, log_w)

    # -- rewarded rows --------------------------------------------------------------------------------------------

    def _queue(self, rewarded: RewardedRows) -> None:
        """Let rewarded rows wait until there are enough to be priced together."""
        if sum(map(len, self.waiting)) + len(rewarded) < AT_ONCE:
            self.waiting.append(rewarded.compact())
        else:
            self.waiting.append(rewarded)
            self._add_waiting()

    def _add_waiting(self) -> None:
        waiting, self.waiting = self.waiting, []
        if waiting:
            self._add_rewarded(RewardedRows.concatenate(waiting))

    def _add_unrewarded(self, others: RewardedRows) -> None:
        """Add what was predicted for rows without a reward, weighed as those with one are."""
        for part in others.parts() if len(others) else ():
            for weighting, point in adaptive_points(self.plan, part).items():
                add_weighted_predictions(self.state, part, weighting, point)

    def _add_rewarded(self, rewarded: RewardedRows) -> PointsByWeighting:
        """Add rewarded rows, some thousand at a time; their weights by the pointwise estimators."""
        parts = [add_rewarded(self.state, part) for part in rewarded.parts()]
        return {w: PointWeights.concatenate([points[w] for points in parts]) for w in self.plan.point_weightings}

    def _add_groups(
        self, column: str, rows: Rows, log_w: Floats, cell: Ints, rewarded: RewardedRows, weighed: Ints,
        points: PointsByWeighting,
    ) -> None:  # fmt: skip
        """Add one batch to the sums of every value of a column; `points` are the weights of its rewarded rows, at the
        places `weighed`."""
        ledger, plan, m = self.state.segments[column], self.plan, rows.displays_per_row
        groups = ledger.groups
        assert groups is not None
        code = groups.codes(rows.segments[column], ledger.move_to_rest)
        groups.add_units(code, rows.unit)
        at = ledger.places(cell, code)
        ledger.plain.add(DISPLAYS, m, at)
        ledger.plain.add(ROWS, 1.0, at)
        ledger.plain.add(SQUARES, m * m, at)
        for weighting in plan.weightings:
            add_weights(ledger.account(weighting), weighting.log_h(log_w), m, at)
        if not len(rewarded):
            return
        at = at.take(weighed)
        ledger.plain.add(REWARDED_ROWS, 1.0, at)
        add_rewards(ledger.plain, rewarded.rows, at)
        for weighting in plan.weightings:
            add_weighted_rewards(ledger, weighting, weighting.log_h(rewarded.log_w), rewarded.rows, at)
        for weighting, point in points.items():
            ledger.plain.add(UNSUPPORTED, point.unsupported, at, owner=weighting)
            add_weighted_rewards(ledger, weighting, point.log_h, rewarded.rows, at, point.slopes)
            add_point_noise(ledger, weighting, point, rewarded.rows, at)
        for weighting in plan.normalised_weightings:
            add_weights(ledger.account(weighting), points[weighting].log_mean, rewarded.rows.displays_per_row, at)


def with_baseline(plan: FoldPlan, rows: Rows) -> Rows:
    """Rows with log w_p where there is a reward: it is not needed elsewhere."""
    log_baseline, rewarded = np.zeros(len(rows)), rows.rewarded
    log_baseline[rewarded] = loggers_of(plan.settings.control).log_baseline(rows.displays, rewarded)
    return replace(rows, log_baseline=log_baseline)


def for_treatment(plan: FoldPlan, rows: Rows) -> Rows:
    """Rows whose displays have the items that the control or the plan's treatment may show."""
    displays = with_union(rows.displays, plan.settings.treatment)
    return rows if displays is rows.displays else replace(rows, displays=displays)


def fold(batches: Iterable[Rows], plan: FoldPlan) -> Aggregates:
    """The aggregates of some batches."""
    state = Fold(plan)
    for rows in batches:
        state.add(rows)
    return state.finish()
