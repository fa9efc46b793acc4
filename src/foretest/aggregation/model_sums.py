"""What estimators with a reward model add up: Σ h·r̂ at every bound, Σ of its expectations, and predicted variances.

All rows are weighed, with a reward or without: r̂ is 0 on none of them. With s = E_p[w̃²|x] − 1, the variance of a
display's weight over all that the control could have shown, the predicted variance of an uplift is Σ s·(r − r̂)², plus
that of E_t r̂ − E_p r̂ between displays; without a model it is Σ s·r².
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.fold_state import FoldState, squares_of
from foretest.aggregation.item_rewards import ItemRewards
from foretest.aggregation.rewarded_rows import RewardedRows
from foretest.aggregation.scaled_sums import MODEL_MOMENTS, ScaledSums
from foretest.displays.batch import Floats
from foretest.estimators import AdaptivePointDR, CascadeDR
from foretest.log.rows import Rows, times
from foretest.weights.normaliser import Masses
from foretest.weights.slot_weights import Prefixes, prefix_log_weights
from foretest.weights.weight_bounds import GRID
from foretest.weights.weightings import Adaptive, PointWeights

PREDICTED = "hv"  # Σ h·r̂ by cell, beside Σ h·r
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


def add_predictions(state: FoldState, rows: Rows, log_w: Floats, cell: np.ndarray, predicted: ItemRewards) -> None:
    """Add what needs no normaliser: expectations of r̂, and prefix weights of what was predicted."""
    plan = state.plan
    for estimator in (e for e in plan.estimators if e.uses_items):
        of_rows = predicted.uplift + predicted.shown
        for m in range(len(plan.metrics)):
            weights = times(of_rows[:, m], rows.multiple)
            state.v[estimator.label, m] += np.bincount(cell, weights=weights, minlength=plan.cells)
            state.v[squares_of(estimator.label), m] += _uplift_sums(predicted.uplift[:, m], rows.multiple)
    if any(type(e) is CascadeDR for e in plan.estimators):
        normaliser = plan.normaliser.for_batch(rows.displays)
        log_h = prefix_log_weights(log_w, rows.displays, normaliser)
        of_slot, slots = np.repeat(cell, rows.displays.slots), predicted.slots
        if rows.multiple is not None:
            slots = slots * np.repeat(rows.multiple, rows.displays.slots)[:, None]
        for m in range(len(plan.metrics)):
            sums = state.hr[Prefixes(), m]
            weighted = sums.scaled(log_h) * slots[:, m]
            sums.add(PREDICTED, np.bincount(of_slot, weights=weighted, minlength=plan.cells))


def _uplift_sums(uplift: Floats, multiple: Floats | None) -> list[float]:
    """Σ δ and Σ δ²; of a thinned log Σ mδ, Σ m²δ², Σ m²δ and Σ m²."""
    if multiple is None:
        return [uplift.sum(), np.square(uplift).sum()]
    m2 = np.square(multiple)
    return [multiple @ uplift, m2 @ np.square(uplift), m2 @ uplift, m2.sum()]


def spread_of_uplifts(sums: Floats, displays: float) -> float:
    """Σ (δ − δ̄)², of a thinned log Σ m²(δ − δ̄)², from the sums of E_t r̂ − E_p r̂."""
    first, second = sums[:2].tolist()
    if len(sums) == 2:
        return max(0.0, float(second - first * first / displays))
    mean, (linear, count) = first / displays, sums[2:].tolist()
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


def add_weighted_predictions(state: FoldState, part: RewardedRows, w: Adaptive, point: PointWeights) -> None:
    """Add Σ w̃·r̂ and the predicted variances of rows whose weights are known."""
    assert part.predicted is not None
    for m in range(len(state.plan.metrics)):
        sums, r = state.hr[w, m], part.rows.rewards[:, m]
        v, one = times(part.predicted[:, m], part.rows.multiple), part.rows.multiple
        if sums.exponent is None:
            sums.raise_to(0)
        weighted = sums.scaled(point.log_h) * v
        sums.add(PREDICTED, np.bincount(part.cell, weights=weighted, minlength=state.plan.cells))
        if abs(sums.log_unit) <= _FARTHEST_UNIT:
            s = np.maximum(point.second - 1.0, 0.0) * np.exp(-2.0 * sums.log_unit)
            s1, s2 = times(s, one), times(times(s, one), one)  # squares of what rows add, of a thinned log
            sums.add(MODEL_MOMENTS, [s2.sum(), s1 @ r, s @ (r * r), s1 @ v, s @ (v * v), s @ (r * v)])


def model_moments(sums: ScaledSums) -> ModelMoments | None:
    """The sums that were added; None where there are none."""
    if MODEL_MOMENTS not in sums.arrays or abs(sums.log_unit) > _FARTHEST_UNIT:
        return None
    return ModelMoments(*(sums.arrays[MODEL_MOMENTS] * np.exp(2.0 * sums.log_unit)).tolist())
