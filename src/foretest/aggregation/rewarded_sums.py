"""What rewarded rows add: the sums of every estimator, the terms of the sensitivity band, and the rows themselves."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.bound_sums import add_bound_sums
from foretest.aggregation.company_terms import company_columns
from foretest.aggregation.examination import SLOPES
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Columns
from foretest.aggregation.ledger import Account, Ledger, Places
from foretest.aggregation.logger_columns import columns_of_rewarded
from foretest.aggregation.model_sums import add_weighted_predictions, model_weightings
from foretest.aggregation.noise_sums import add_noise
from foretest.aggregation.point_path import path_columns
from foretest.aggregation.quantities import (
    APPROXIMATE,
    POSITIVES,
    REWARDS,
    SLICE,
    SLICE_EXPECTED,
    SQUARED_REWARDS,
    SQUARED_WEIGHTED_REWARDS,
    SQUARED_WEIGHTS,
    STRATUM_WEIGHTED_REWARDS,
    UNSUPPORTED,
    UNSUPPORTED_REWARDS,
    WEIGHTED_REWARDS,
    WEIGHTED_SQUARES,
    WEIGHTS,
    Quantity,
)
from foretest.aggregation.rewarded_rows import RewardedRows
from foretest.displays.batch import Displays, Floats
from foretest.log.rows import Rows
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


def add_rewarded(state: Aggregates, rewarded: RewardedRows) -> PointsByWeighting:
    """Add some thousand rewarded rows; their weights by the pointwise estimators."""
    plan, ledger, rows = state.plan, state.ledger, rewarded.rows
    at, by_stratum = ledger.places(rewarded.cell), ledger.places_of_strata(rewarded.cell, rewarded.codes)
    add_rewards(ledger.plain, rows, at)
    state.bins.add_rewarded(rewarded.log_w, rewarded.cell, rows.rewards)
    for weighting in plan.weightings:
        log_h = weighting.log_h(rewarded.log_w)
        add_weighted_rewards(ledger, weighting, log_h, rows, at)
        if weighting in plan.stratified:
            _add_by_stratum(state, weighting, log_h, rows, by_stratum)
    normaliser = plan.normaliser.for_batch(rows.displays, _cap_of_points(plan))
    weighed = WeighedSlots.of(
        rows.displays, rows.slots, len(plan.metrics), dense=plan.dense, displays_per_row=rows.displays_per_row,
    )  # fmt: skip
    prices = _prices(state, rewarded, normaliser, weighed)
    points = _point_weights(state, rewarded, normaliser, prices, weighed)
    for weighting, point in points.items():
        ledger.plain.add(UNSUPPORTED, point.unsupported, at, owner=weighting)
        ledger.plain.add(APPROXIMATE, point.approximate, at, owner=weighting)
        add_weighted_rewards(ledger, weighting, point.log_h, rows, at, point.slopes)
        if weighting.banded:
            _add_band_terms(state, weighting, point, rows, at)
        add_point_noise(ledger, weighting, point, rows, at)
        if weighting in plan.normalised_weightings:
            account = ledger.account(weighting)
            account.add(WEIGHTS, account.scaled(point.log_mean) * rows.displays_per_row, at)
        if rewarded.predicted is not None and weighting in model_weightings(plan):
            assert isinstance(weighting, Adaptive)
            add_weighted_predictions(state, rewarded, weighting, point)
    _add_bound_sums(state, rewarded, prices)
    _keep_rows(state, rewarded, points, normaliser, prices.slots)
    return points


def add_rewards(plain: Account, rows: Rows, at: Places) -> None:
    """Σ r by cell, Σ r² and the number of rewarded rows."""
    for m, (r, of_control) in enumerate(zip(rows.rewards.T, rows.control_rewards.T, strict=True)):
        plain.add(REWARDS, of_control, at, m)
        plain.add(SQUARED_REWARDS, r * r, at, m)
        plain.add(POSITIVES, r != 0.0, at, m)


def add_weights(account: Account, log_h: Floats, displays_per_row: Floats, at: Places) -> Floats:
    """Σ h by cell and Σ h²; gives h of each row in the account's unit."""
    h = account.scaled(log_h) * displays_per_row
    account.add(WEIGHTS, h, at)
    account.add(SQUARED_WEIGHTS, h * h, at)
    return h


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


def _prices(state: Aggregates, rewarded: RewardedRows, normaliser: Normaliser, weighed: WeighedSlots) -> _Prices:
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
    state: Aggregates, rewarded: RewardedRows, normaliser: Normaliser, prices: _Prices, weighed: WeighedSlots
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


def add_weighted_rewards(
    ledger: Ledger, weighting: Weighting, log_h: Floats, rows: Rows, at: Places, slopes: Slopes | None = None
) -> None:
    """Σ h r by cell, Σ (h r)² and Σ h r²; of a fitted curve also the slopes of Σ h r."""
    for m, rewards in enumerate(rows.rewards.T):
        some = np.flatnonzero(rewards)
        r, there, account = rewards[some], at.take(some), ledger.account(weighting, m)
        hr = account.scaled(of_metric(log_h, m)[some]) * r
        account.add(WEIGHTED_REWARDS, hr, there)
        account.add(SQUARED_WEIGHTED_REWARDS, hr * hr, there)
        account.add(WEIGHTED_SQUARES, hr * r, there)
        if slopes is not None:
            add_slopes(account, WEIGHTED_REWARDS, hr[:, None] * slopes.log_h[some, m], there)


def _add_by_stratum(
    state: Aggregates, weighting: Weighting, log_h: Floats, rows: Rows, by_stratum: dict[str, Places]
) -> None:
    """Σ h r by cell and stratum."""
    for m, rewards in enumerate(rows.rewards.T):
        some, table = np.flatnonzero(rewards), state.plan.table_of(m)
        account = state.weighted(weighting, m)
        hr = account.scaled(of_metric(log_h, m)[some]) * rewards[some]
        account.add(STRATUM_WEIGHTED_REWARDS, hr, by_stratum[table].take(some), owner=table)


def _add_band_terms(state: Aggregates, weighting: Weighting, point: PointWeights, rows: Rows, at: Places) -> None:
    """What the sensitivity band needs: Σ t = Σ (h − w̄) r and both sides of the slice test, with w̄' and q' at a third
    of the cap: Σ (w̄ − w̄') r and Σ (q − q')/q'·w̄' r."""
    sliced = np.isfinite(point.slice)
    for m, rewards in enumerate(rows.rewards.T):
        some = np.flatnonzero(rewards)
        r, there, account = rewards[some], at.take(some), state.weighted(weighting, m)
        h, capped, below = (
            np.exp(of_metric(log, m)[some] - account.log_unit)
            for log in (point.log_h, point.log_capped, point.log_below)
        )
        known = of_metric(sliced, m)[some]
        account.add(UNSUPPORTED_REWARDS, (h - capped) * r, there)
        account.add(SLICE, np.where(known, (capped - below) * r, 0.0), there)
        account.add(SLICE_EXPECTED, np.where(known, of_metric(point.slice, m)[some] * below * r, 0.0), there)
        if point.slopes is not None:
            of_h, of_capped = (slopes[some, m] for slopes in point.slopes)
            by_row = (h * r)[:, None] * of_h - (capped * r)[:, None] * of_capped
            add_slopes(account, UNSUPPORTED_REWARDS, by_row, there)


def add_point_noise(ledger: Ledger, weighting: Weighting, point: PointWeights, rows: Rows, at: Places) -> None:
    """What the predicted noise needs; of weights at steeper and flatter curves nothing is asked."""
    terms = rows.displays_per_row * (rows.displays.slots if weighting.by_slot else 1.0)
    for m, noise in point.noise.items():
        add_noise(ledger.account(weighting, m), noise, rows.rewards[:, m], terms, at)


def add_slopes(account: Account, quantity: Quantity, by_row: Floats, at: Places) -> None:
    """Add the slopes of a sum, ∂S/∂log θ_k, from those of its rows."""
    for slot, amounts in enumerate(by_row.T):
        account.add(SLOPES[quantity], amounts, at, owner=slot)


def _add_bound_sums(state: Aggregates, rewarded: RewardedRows, prices: _Prices) -> None:
    """Add what the choice of a bound needs, by ranking, slot, prefix and exposure, to the sums of the least bound."""
    plan, rows = state.plan, rewarded.rows
    slots, of_rows = rows.displays.slots, rows.displays_per_row
    of_slots = np.repeat(of_rows, slots)
    add = partial(add_bound_sums, dense=plan.dense)
    for m in range(len(plan.metrics)):
        if prices.bounds is not None:
            add(state.weighted(Adaptive(GRID[0]), m), prices.bounds, rows.rewards[:, m], displays=of_rows)
        if m not in rows.slots:
            continue
        earned = rows.slots[m].flat().astype(np.float64)
        if prices.slots is not None and prices.slots.bounds is not None:
            add(state.weighted(SlotAdaptive(GRID[0]), m), prices.slots.bounds, earned, displays=of_slots)
        if prices.prefixes is not None and prices.prefixes.bounds is not None:
            add(state.weighted(PrefixAdaptive(GRID[0]), m), prices.prefixes.bounds, earned, displays=of_slots)
        exposure = prices.exposures.get(m)
        if exposure is not None and exposure.bounds is not None:
            owner, account = np.repeat(np.arange(len(rows)), slots), state.weighted(ExposureAdaptive(GRID[0]), m)
            add(account, exposure.bounds, earned, displays=of_slots, owner=owner)


def _keep_rows(
    state: Aggregates, rewarded: RewardedRows, points: PointsByWeighting, normaliser: Normaliser,
    prices: SlotPrices | None,
) -> None:  # fmt: skip
    """Keep the rows of the smallest unit hashes, for what is no function of sums, with the path of their weights."""
    plan, displays, unit = state.plan, rewarded.rows.displays, rewarded.rows.unit
    columns = _row_columns(state, rewarded)
    further = [w for e in plan.estimators for w in plan.bound_weightings(e)[1:]]  # of these no more than intervals need
    for weighting, point in points.items():
        if weighting in plan.varied_weightings:
            continue
        columns |= {
            ("log_h", weighting): point.log_h,
            ("log_cap", weighting): point.log_cap,
            ("second", weighting): point.second,
        }
        if weighting not in further:
            columns |= {("q", weighting): point.q, ("unsupported", weighting): point.unsupported}
        if weighting.by_slot:
            columns["log_capped", weighting] = point.log_capped
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


def _row_columns(state: Aggregates, rewarded: RewardedRows) -> Columns:
    """Unit, key, log w, rewards and strata of the rows; of several loggers, whose they are."""
    rows = rewarded.rows
    columns: Columns = {"unit": rows.unit, "key": rows.displays.key(), "log_w": rewarded.log_w}
    columns |= columns_of_rewarded(state.plan, rows)
    columns |= {("r", m): rows.rewards[:, m] for m in range(len(state.plan.metrics))}
    return columns | {("stratum", table): code for table, code in rewarded.codes.items()}
