"""What estimators with a reward model add up: Σ h·r̂ at every bound, Σ of its expectations, and predicted variances.

All rows are weighed, with a reward or without: r̂ is 0 on none of them. With s = E_p[w̃²|x] − 1, the variance of a
display's weight over all that the control could have shown, the predicted variance of an uplift is Σ s·(r − r̂)², plus
that of E_t r̂ − E_p r̂ between displays; without a model it is Σ s·r².
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.item_rewards import ItemRewards
from foretest.aggregation.ledger import Account
from foretest.aggregation.quantities import EXPECTED, MODEL_MOMENTS, PREDICTED_BESIDE, UPLIFTS
from foretest.aggregation.rewarded_rows import RewardedRows
from foretest.displays.batch import Floats
from foretest.estimators import AdaptivePointDR, CascadeDR
from foretest.log.rows import Rows
from foretest.weights.normaliser import Masses
from foretest.weights.slot_weights import Prefixes, prefix_log_weights
from foretest.weights.weight_bounds import GRID
from foretest.weights.weightings import Adaptive, PointWeights

_FARTHEST_UNIT = 340.0  # its logarithm: beyond, its square is no float


class ModelMoments(NamedTuple):
    """Sums over all rows with s = E_p[w̃²|x] − 1."""

    s: float
    sr: float
    sr2: float
    sv: float  # with v = r̂
    sv2: float
    srv: float

    def about(self, beta: float) -> float:
        """Σ s·(r − β)²."""
        return self.sr2 - 2.0 * beta * self.sr + beta * beta * self.s

    def of_residuals(self, rho: float) -> float:
        """Σ s·(r − r̂ − ρ)²."""
        square = self.sr2 - 2.0 * self.srv + self.sv2
        return square - 2.0 * rho * (self.sr - self.sv) + rho * rho * self.s


def add_predictions(state: Aggregates, rows: Rows, log_w: Floats, cell: np.ndarray, predicted: ItemRewards) -> None:
    """Add what needs no normaliser: expectations of r̂, and prefix weights of what was predicted."""
    plan, plain, at, m = state.plan, state.ledger.plain, state.ledger.places(cell), rows.displays_per_row
    for estimator in (e for e in plan.estimators if e.uses_items):
        of_rows = predicted.uplift + predicted.shown
        for metric in range(len(plan.metrics)):
            plain.add(EXPECTED, of_rows[:, metric] * m, at, metric, estimator.label)
            plain.put(UPLIFTS, _uplift_sums(predicted.uplift[:, metric], m), metric, estimator.label)
    if any(type(e) is CascadeDR for e in plan.estimators):
        normaliser, slots = plan.normaliser.for_batch(rows.displays), rows.displays.slots
        log_h = prefix_log_weights(log_w, rows.displays, normaliser)
        of_slots, at_slots = predicted.slots * np.repeat(m, slots)[:, None], state.ledger.places(np.repeat(cell, slots))
        for metric in range(len(plan.metrics)):
            account = state.weighted(Prefixes(), metric)
            account.add(PREDICTED_BESIDE, account.scaled(log_h) * of_slots[:, metric], at_slots)


def _uplift_sums(uplift: Floats, m: Floats) -> list[float]:
    """Σ mδ, Σ m²δ², and for the mean of rows that stand for different numbers of displays Σ m²δ and Σ m²."""
    m2 = np.square(m)
    return [m @ uplift, m2 @ np.square(uplift), m2 @ uplift, m2.sum()]


def spread_of_uplifts(sums: Floats, displays: float) -> float:
    """Σ m²(δ − δ̄)², from the sums of δ = E_t r̂ − E_p r̂."""
    first, second, linear, count = sums.tolist()
    mean = first / displays
    return max(0.0, float(second - 2.0 * mean * linear + mean * mean * count))


def model_weightings(plan: FoldPlan) -> list[Adaptive]:
    """The weightings at which Σ w̃·r̂ is needed: all bounds that one is chosen from, or the one given."""
    models = [e for e in plan.estimators if isinstance(e, AdaptivePointDR)]
    return list(dict.fromkeys(
        w for e in models for w in (*plan.bound_weightings(e), plan.weighting(e)) if isinstance(w, Adaptive)
    ))  # fmt: skip


def adaptive_points(plan: FoldPlan, part: RewardedRows) -> dict[Adaptive, PointWeights]:
    """w̃ of rows that have no reward, at each of those bounds."""
    displays, log_w = part.rows.displays, part.log_w
    normaliser = plan.normaliser.for_batch(displays)
    bounds = normaliser.at_bounds(displays, GRID) if plan.chooses_bound(Adaptive) else None
    return {
        w: w.of_rewarded(log_w, displays, normaliser)
        if bounds is None or w.bound not in GRID
        else w.of_masses(log_w, Masses.at_bound(bounds, GRID.index(w.bound)))
        for w in model_weightings(plan)
    }


def add_weighted_predictions(state: Aggregates, part: RewardedRows, w: Adaptive, point: PointWeights) -> None:
    """Add Σ w̃·r̂ and the predicted variances of rows whose weights are known."""
    assert part.predicted is not None
    at, m = state.ledger.places(part.cell), part.rows.displays_per_row
    for metric in range(len(state.plan.metrics)):
        account, r = state.weighted(w, metric), part.rows.rewards[:, metric]
        v = part.predicted[:, metric] * m
        if account.exponent is None:
            account.raise_to(0)
        account.add(PREDICTED_BESIDE, account.scaled(point.log_h) * v, at)
        if abs(account.log_unit) <= _FARTHEST_UNIT:
            s = np.maximum(point.second - 1.0, 0.0) * np.exp(-2.0 * account.log_unit)
            s1, s2 = s * m, s * m * m  # squares of what rows add, of a thinned log
            account.put(MODEL_MOMENTS, [s2.sum(), s1 @ r, s @ (r * r), s1 @ v, s @ (v * v), s @ (r * v)])


def model_moments(account: Account) -> ModelMoments | None:
    """The sums that were added; None where there are none."""
    if not account.has(MODEL_MOMENTS) or abs(account.log_unit) > _FARTHEST_UNIT:
        return None
    return ModelMoments(*(account.get(MODEL_MOMENTS) * np.exp(2.0 * account.log_unit)).tolist())
