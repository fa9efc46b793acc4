"""Empirical Bernstein limits (Maurer and Pontil 2009): valid at any sample size, given the range of a row."""

from __future__ import annotations

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.quantities import SQUARED_WEIGHTED_REWARDS, WEIGHTED_SQUARES
from foretest.estimators import Estimator
from foretest.inference.buckets import NO_INTERVAL, Interval, bucket_sums
from foretest.inference.row_terms import uplift_range, uplift_terms, worst_bias


def bernstein_interval(
    aggregates: Aggregates, estimator: Estimator, metric: int, uplift: float, level: float, r_max: float
) -> Interval:
    """Δ̂ ± [sqrt(2V ln(4/α)/C) + 7·range·ln(4/α)/(3(C−1))] on unit terms X_u = S_u·C/n, S_u = Σ_{i∈u} (h_i − 1) r_i.

    The range of a row is (bound of h)·r_max, never taken from the sample; that of a unit is C·max n_u/n times it.
    For CIS the worst-case bias 0 ≤ B ≤ r_max·(1 − q̄) is added to the upper end.
    """
    weighting = aggregates.plan.weighting(estimator)
    units, rows = aggregates.n_units, aggregates.rows
    if units < 2:
        return NO_INTERVAL
    # a row with h = 0 contributes −r, so a row's range is at least r_max even where the bound is below 1
    lowest, highest = uplift_range(aggregates, weighting, r_max)
    row_range = highest - lowest
    unit_range = row_range * units * aggregates.largest_unit / rows
    log_term = np.log(4.0 / (1.0 - level))
    variance = _unit_variance(aggregates, estimator, metric, uplift)
    half = np.sqrt(2.0 * variance * log_term / units) + 7.0 * unit_range * log_term / (3.0 * (units - 1.0))
    return Interval(float(uplift - half), float(uplift + half + worst_bias(aggregates, weighting, r_max)))


def _unit_variance(aggregates: Aggregates, estimator: Estimator, metric: int, uplift: float) -> float:
    """The sample variance of X_u over units: from the rewarded rows (all others contribute 0) while all are kept,
    else from the sums by bucket."""
    units, rows = aggregates.n_units, aggregates.rows
    weighting = aggregates.plan.weighting(estimator)
    reward = aggregates.weighted(weighting, metric)
    scale = float(np.exp(reward.log_unit))
    if aggregates.units is None and aggregates.plan.loggers == 1:
        squares = (
            scale**2 * reward.total(SQUARED_WEIGHTED_REWARDS)
            - 2.0 * scale * reward.total(WEIGHTED_SQUARES)
            + aggregates.r2[metric]
        )
    elif aggregates.rewarded.complete:
        squares = _squares_by_unit(aggregates, estimator, metric)
    else:
        arrays = bucket_sums(aggregates, estimator, metric)
        terms = arrays.arrays["hr"] * arrays.unit - arrays.arrays["r"]
        terms = terms.reshape(aggregates.plan.loggers, -1).sum(axis=0)
        # a bucket has many units: its sum varies as theirs do, around its share of the mean
        centred = terms - terms.mean()
        return float(centred @ centred * len(terms) / (len(terms) - 1.0) * units / rows**2)
    return float(max(0.0, squares * (units / rows) ** 2 - units * uplift**2) / (units - 1.0))


def _squares_by_unit(aggregates: Aggregates, estimator: Estimator, metric: int) -> float:
    """Σ_u S_u² from the rewarded rows."""
    columns = aggregates.rewarded.columns()
    if not columns:
        return 0.0
    terms = uplift_terms(aggregates, aggregates.plan.weighting(estimator), metric)
    _, unit = np.unique(columns["unit"], return_inverse=True)
    sums = np.bincount(unit, weights=terms)
    return float(sums @ sums)
