"""What rewarded rows add: the sums of every estimator, the terms of the sensitivity band, and the rows themselves."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.aggregation.bound_sums import add_bound_sums
from foretest.aggregation.company_terms import company_columns
from foretest.aggregation.examination import slope_name
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.fold_state import FoldState
from foretest.aggregation.kept_rows import Columns
from foretest.aggregation.logger_columns import columns_of_rewarded
from foretest.aggregation.model_sums import add_weighted_predictions, model_weightings
from foretest.aggregation.noise_sums import noise_amounts
from foretest.aggregation.point_path import path_columns
from foretest.aggregation.rewarded_rows import RewardedRows
from foretest.aggregation.scaled_sums import ScaledSums
from foretest.displays.batch import Displays, Floats
from foretest.log.rows import Rows, times
from foretest.weights.batch_draws import MeansAt
from foretest.weights.examination import VARIANTS, Curves
from foretest.weights.exposure_weights import ExposureAdaptive, ExposurePricer, ExposurePrices, ExposureWeighting
from foretest.weights.noise_terms import NoiseTerms
from foretest.weights.normaliser import Masses, Normaliser
from foretest.weights.prefix_weights import PrefixAdaptive, PrefixPrices, prefix_prices
from foretest.weights.row_weights import WeighedSlots
from foretest.weights.slot_weights import Pricer, SlotAdaptive, SlotPricer, SlotPrices, SlotWeighting, marginal_parts
from foretest.weights.weight_bounds import GRID, BoundMasses
from foretest.weights.weightings import Adaptive, PointWeights, Pointwise, Slopes, Weighting, of_metric

PointsByWeighting = dict[Weighting, PointWeights]


def add_rewarded(state: FoldState, rewarded: RewardedRows) -> PointsByWeighting:
    """Add some thousand rewarded rows; their weights by the pointwise estimators."""
    plan = state.plan
    _add_rewards(state, rewarded)
    for weighting in plan.weightings:
        _add_weighted_rewards(state, weighting, weighting.log_h(rewarded.log_w), rewarded)
    normaliser = plan.normaliser.for_batch(rewarded.rows.displays, _cap_of_points(plan))
    rows = rewarded.rows
    weighed = WeighedSlots.of(
        rows.displays, rows.slots, len(plan.metrics), dense=plan.dense, displays_per_row=rows.displays_per_row,
    )  # fmt: skip
    prices = _prices(state, rewarded, normaliser, weighed)
    points = _point_weights(state, rewarded, normaliser, prices, weighed)
    for weighting, point in points.items():
        state.unsupported[weighting] += int(point.unsupported.sum())
        state.approximate[weighting] += int(point.approximate.sum())
        _add_weighted_rewards(state, weighting, point.log_h, rewarded, point.slopes)
        if weighting.banded:
            _add_band_terms(state, weighting, point, rewarded)
        _add_noise(state, weighting, point, rewarded)
        if weighting in plan.normalised_weightings:
            sums = state.h[weighting]
            h = times(sums.scaled(point.log_mean), rewarded.rows.multiple)
            sums.add("h", np.bincount(rewarded.cell, weights=h, minlength=plan.cells))
        if rewarded.predicted is not None and weighting in model_weightings(plan):
            assert isinstance(weighting, Adaptive)
            add_weighted_predictions(state, rewarded, weighting, point)
    _add_bound_sums(state, rewarded, prices)
    _keep_rows(state, rewarded, points, normaliser, prices.slots)
    return points


def _add_rewards(state: FoldState, rewarded: RewardedRows) -> None:
    """Σ r by cell, Σ r², the number of rewarded rows, and the bins of log w."""
    rows, plan = rewarded.rows, state.plan
    control_rewards = rows.control_rewards
    for m in range(len(plan.metrics)):
        state.r[m] += np.bincount(rewarded.cell, weights=control_rewards[:, m], minlength=plan.cells)
    state.r2 += np.square(rows.rewards).sum(axis=0)
    state.positives += np.count_nonzero(rows.rewards, axis=0)
    state.bins.add_rewarded(rewarded.log_w, rewarded.cell, rows.rewards)


def _cap_of_points(plan: FoldPlan) -> MeansAt | None:
    """The cap at which a pointwise estimator will ask for masses, where the draws are made for another one first."""
    capped = [w for w in plan.point_weightings if isinstance(w, Pointwise)]
    if not capped or not plan.chooses_bound(Adaptive) or plan.normaliser.method == "two-sided":
        return None
    return MeansAt(capped[0].cap, capped[0].capping == "zero")


class _Prices(NamedTuple):
    """What several weightings share: the weights and caps of slots, of prefixes, and by exposure those of each metric's
    curves, and the masses of rankings at all bounds."""

    slots: SlotPrices | None
    prefixes: PrefixPrices | None
    exposures: dict[int, ExposurePrices]
    bounds: BoundMasses | None


def _prices(state: FoldState, rewarded: RewardedRows, normaliser: Normaliser, weighed: WeighedSlots) -> _Prices:
    plan, displays = state.plan, rewarded.rows.displays
    bounds = normaliser.at_bounds(displays, GRID) if plan.chooses_bound(Adaptive) else None
    by_slot = None
    if plan.slot_bounds is not None:
        together = GRID if plan.chooses_bound(SlotAdaptive) else ()
        by_slot = SlotPricer(displays, plan.slot_bounds, together, weighed.mask)
    by_curves = _exposure_pricers(plan, displays) if plan.exposure_bounds else {}
    pricers: list[Pricer] = [*([] if by_slot is None else [by_slot]), *by_curves.values()]
    for part in marginal_parts(displays, rewarded.log_w, normaliser) if pricers else ():
        for pricer in pricers:
            pricer.add(part)
    priced = {curves: pricer.prices() for curves, pricer in by_curves.items()}
    exposures = {m: priced[curves] for m, curves in plan.examination.curves.items()} if priced else {}
    prefixes = _prefix_prices(plan, rewarded, normaliser, bounds, weighed) if plan.prefix_bounds else None
    return _Prices(None if by_slot is None else by_slot.prices(), prefixes, exposures, bounds)


def _prefix_prices(
    plan: FoldPlan, rewarded: RewardedRows, normaliser: Normaliser, whole: BoundMasses | None, weighed: WeighedSlots
) -> PrefixPrices:
    """The prices of the prefixes of slots that earned something; of all where those that did not are weighed too."""
    together = GRID if plan.chooses_bound(PrefixAdaptive) else ()
    return prefix_prices(
        rewarded.rows.displays,
        rewarded.log_w,
        normaliser,
        weighed.mask,
        plan.prefix_bounds,
        together=together,
        whole=whole,
    )


def _exposure_pricers(plan: FoldPlan, displays: Displays) -> dict[Curves, ExposurePricer]:
    """One pricer for each different set of curves."""
    together, curves = GRID if plan.chooses_bound(ExposureAdaptive) else (), plan.examination
    fitted = [fit.curves for fit in curves.fitted.values()]
    varied = list(curves.given.values())
    return {
        one: ExposurePricer(
            displays, one, plan.exposure_bounds, together, variants=len(VARIANTS) if one in varied else 1,
            fitted=one in fitted,
        )
        for one in dict.fromkeys(curves.curves.values())
    }  # fmt: skip


def _point_weights(
    state: FoldState, rewarded: RewardedRows, normaliser: Normaliser, prices: _Prices, weighed: WeighedSlots
) -> PointsByWeighting:  # fmt: skip
    """h of the rows by each pointwise weighting, those by slot included."""
    plan, rows, log_w = state.plan, rewarded.rows, rewarded.log_w
    displays = rows.displays
    points: PointsByWeighting = {}
    for weighting in plan.point_weightings:
        if isinstance(weighting, ExposureWeighting):
            curves = plan.examination.given if weighting.variant else prices.exposures  # a fit has no variants
            points[weighting] = weighting.of_exposures(prices.exposures, weighed.only(curves))
        elif isinstance(weighting, PrefixAdaptive):
            assert prices.prefixes is not None
            points[weighting] = weighting.of_prefixes(prices.prefixes, weighed)
        elif isinstance(weighting, SlotWeighting):
            points[weighting] = weighting.of_slots(log_w, displays, normaliser, prices.slots, weighed)
        elif prices.bounds is not None and isinstance(weighting, Adaptive) and weighting.bound in GRID:
            points[weighting] = weighting.of_masses(
                log_w, Masses.at_bound(prices.bounds, GRID.index(weighting.bound))
            )  # fmt: skip
        else:
            points[weighting] = weighting.of_rewarded(log_w, displays, normaliser)
    return {w: point if w.by_slot else _with_noise(plan, point, rows) for w, point in points.items()}


def _with_noise(plan: FoldPlan, point: PointWeights, rows: Rows) -> PointWeights:
    """Weights of rankings with what each row adds to the noise of each metric."""
    of_row = partial(NoiseTerms.of, displays_per_row=rows.displays_per_row, dense=plan.dense)
    each = np.arange(len(rows))
    metrics = range(len(plan.metrics))
    noise = {m: of_row(point.log_h, point.second, rows.rewards[:, m], each, len(rows)) for m in metrics}
    return point._replace(noise=noise)


def _add_weighted_rewards(
    state: FoldState, weighting: Weighting, log_h: Floats, rewarded: RewardedRows, slopes: Slopes | None = None
) -> None:  # fmt: skip
    """Σ h r by cell and by stratum, Σ (h r)² and Σ h r²; of a fitted curve also the slopes of Σ h r."""
    plan, rewards = state.plan, rewarded.rows.rewards
    for m in range(len(plan.metrics)):
        some = np.flatnonzero(rewards[:, m])
        r, cell = rewards[some, m], rewarded.cell[some]
        sums = state.hr[weighting, m]
        hr = sums.scaled(of_metric(log_h, m)[some]) * r
        sums.add("hr", np.bincount(cell, weights=hr, minlength=plan.cells))
        sums.add("hr2", np.square(hr).sum())
        sums.add("hrr", (hr * r).sum())
        if slopes is not None:
            add_slopes(sums, "hr", hr[:, None] * slopes.log_h[some, m])
        table = plan.table_of(m)
        if weighting in plan.stratified:
            place = rewarded.codes[table][some] * plan.cells + cell
            sums.add(f"hr:{table}", np.bincount(place, weights=hr, minlength=state.places(table)))


def _add_band_terms(state: FoldState, weighting: Weighting, point: PointWeights, rewarded: RewardedRows) -> None:
    """What the sensitivity band needs: Σ t = Σ (h − w̄) r and both sides of the slice test, with w̄' and q' at a third
    of the cap: Σ (w̄ − w̄') r and Σ (q − q')/q'·w̄' r."""
    sliced, rewards = np.isfinite(point.slice), rewarded.rows.rewards
    for m in range(len(state.plan.metrics)):
        some = np.flatnonzero(rewards[:, m])
        r, sums = rewards[some, m], state.hr[weighting, m]
        h, capped, below = (
            np.exp(of_metric(log, m)[some] - sums.log_unit) for log in (point.log_h, point.log_capped, point.log_below)
        )
        known = of_metric(sliced, m)[some]
        terms = {
            "t": (h - capped) * r,
            "slice": np.where(known, (capped - below) * r, 0.0),
            "slice_expected": np.where(known, of_metric(point.slice, m)[some] * below * r, 0.0),
        }
        for name, term in terms.items():
            sums.add(name, np.bincount(rewarded.cell[some], weights=term, minlength=state.plan.cells))
        if point.slopes is not None:
            of_h, of_capped = (slopes[some, m] for slopes in point.slopes)
            add_slopes(sums, "t", (h * r)[:, None] * of_h - (capped * r)[:, None] * of_capped)


def _add_noise(state: FoldState, weighting: Weighting, point: PointWeights, rewarded: RewardedRows) -> None:
    """What the predicted noise needs; of weights at steeper and flatter curves nothing is asked."""
    rows = rewarded.rows
    slots = np.ones(len(rows)) if rows.multiple is None else rows.multiple
    slots = slots * rows.displays.slots if weighting.by_slot else slots
    for m, noise in point.noise.items():
        sums = state.hr[weighting, m]
        if sums.exponent is None:  # no reward so far
            sums.raise_to(0)
        for name, of_rows in noise_amounts(noise, rows.rewards[:, m], slots, sums.log_unit):
            sums.add(name, of_rows.sum())


def add_slopes(sums: ScaledSums, kind: str, by_row: Floats) -> None:
    """Add the slopes of a sum, ∂S/∂log θ_k, from those of its rows."""
    for slot, amount in enumerate(by_row.sum(axis=0)):
        sums.add(slope_name(kind, slot), amount)


def _add_bound_sums(state: FoldState, rewarded: RewardedRows, prices: _Prices) -> None:
    """Add what the choice of a bound needs, by ranking, slot, prefix and exposure, to the sums of the least bound."""
    plan, rows = state.plan, rewarded.rows
    of_rows = rows.multiple if plan.dense else None  # without a reward a row adds nothing but itself
    of_slots = None if of_rows is None else np.repeat(of_rows, rows.displays.slots)
    add = partial(add_bound_sums, dense=plan.dense)
    for m in range(len(plan.metrics)):
        if prices.bounds is not None:
            add(state.hr[Adaptive(GRID[0]), m], prices.bounds, rows.rewards[:, m], multiple=of_rows)
        if m not in rows.slots:
            continue
        earned = rows.slots[m].flat().astype(np.float64)
        if prices.slots is not None and prices.slots.bounds is not None:
            add(state.hr[SlotAdaptive(GRID[0]), m], prices.slots.bounds, earned, multiple=of_slots)
        if prices.prefixes is not None and prices.prefixes.bounds is not None:
            add(state.hr[PrefixAdaptive(GRID[0]), m], prices.prefixes.bounds, earned, multiple=of_slots)
        exposure = prices.exposures.get(m)
        if exposure is not None and exposure.bounds is not None:
            owner = np.repeat(np.arange(len(rows)), rows.displays.slots)
            add(state.hr[ExposureAdaptive(GRID[0]), m], exposure.bounds, earned, multiple=of_slots, owner=owner)


def _keep_rows(
    state: FoldState, rewarded: RewardedRows, points: PointsByWeighting, normaliser: Normaliser,
    prices: SlotPrices | None,
) -> None:  # fmt: skip
    """Keep the rows of the smallest unit hashes, for what is no function of sums, with the path of their weights."""
    plan, displays, unit = state.plan, rewarded.rows.displays, rewarded.rows.unit
    columns = _row_columns(state, rewarded)
    further = [w for e in plan.estimators for w in plan.bound_weightings(e)[1:]]  # of these no more than intervals need
    for i, (weighting, point) in enumerate(points.items()):
        if weighting in plan.varied_weightings:
            continue
        columns |= {f"log_h:{i}": point.log_h, f"log_cap:{i}": point.log_cap, f"second:{i}": point.second}
        if plan.point_weightings[i] not in further:
            columns |= {f"q:{i}": point.q, f"unsupported:{i}": point.unsupported}
        if plan.point_weightings[i].by_slot:
            columns[f"log_capped:{i}"] = point.log_capped
    rows = state.rewarded.below(unit)
    columns = {name: column[rows] for name, column in columns.items()}
    marginals = None if prices is None else prices.control
    if len(rows) < len(unit):
        if marginals is not None:
            marginals = marginals[np.isin(np.repeat(np.arange(len(unit)), displays.slots), rows)]
        rewarded = rewarded.take(rows)
        displays = rewarded.rows.displays
    columns |= path_columns(plan, normaliser, columns["log_w"], displays)
    columns |= company_columns(plan, rewarded.rows, marginals)
    state.rewarded.add(columns, len(unit))


def _row_columns(state: FoldState, rewarded: RewardedRows) -> Columns:
    """Unit, key, log w, rewards and strata of the rows; of several loggers, whose they are."""
    rows = rewarded.rows
    columns: dict[str, npt.NDArray[Any]] = {
        "unit": rows.unit, "key": rows.displays.key(), "log_w": rewarded.log_w,
    }  # fmt: skip
    columns |= columns_of_rewarded(state.plan, rows)
    columns |= {f"r:{m}": rows.rewards[:, m] for m in range(len(state.plan.metrics))}
    return columns | {f"stratum:{table}": code for table, code in rewarded.codes.items()}
