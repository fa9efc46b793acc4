"""The lower bound of logarithmic smoothing (Sakhi et al. 2024) on a value, with no bound on the weights.

For x ≥ 0 and any λ > 0 fixed beforehand, (1 + λx)/(1 + λ E[x]) has mean 1. The product over n independent x exceeds
1/δ with probability at most δ (Markov), so that with probability 1 − δ

    E[x] ≥ (exp(mean log(1 + λx) − ln(1/δ)/n) − 1)/λ

x = w r by row, uncapped: its mean is the treatment's value itself, with no capping bias. The product is the bettor's
capital of `betting.py` with one bet λ/(1 + λm) throughout.
"""

from __future__ import annotations

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.weight_bins import BINS
from foretest.files import finite_or_none

LEVEL = 0.95


def smoothing_bound(log_sum: float, count: int, scale: float = 1.0, level: float = LEVEL) -> float:
    """The bound from Σ log(1 + λx), x in units of `scale`, with the paper's λ = 1/√n; never below 0, as x is not.

    >>> round(smoothing_bound(10_000 * np.log1p(0.01 * 0.5), 10_000), 4)  # x = ½ throughout
    0.4699
    """
    growth = (log_sum - np.log(1.0 / (1.0 - level))) / count
    with np.errstate(over="ignore"):
        return max(0.0, float(scale * np.expm1(growth) * np.sqrt(count)))


def value_lower_bound(aggregates: Aggregates, metric: int, r_max: float | None, level: float = LEVEL) -> float | None:
    """A lower bound on what the treatment earns per display; None for an empty log, for rewards that may be
    negative, where a number of the control was fitted, and where rankings have no known weight. It needs every unit, so
    that of a thinned log there is none.

    Units are independent, not rows: x is a unit's Σ w r, n the number of units, and the bound on a unit's mean becomes
    one on a row's by the number of units per row, which is taken as given. Rewards are in units of r_max where that is
    known: λ = 1/√n is a choice for x of about 1.
    """
    units, rows = aggregates.n_units, aggregates.rows
    plan = aggregates.plan
    if rows == 0 or plan.control_fits or not plan.prices_rankings:
        return None
    if not plan.combination(metric).has_range:
        return None
    scale = r_max or 1.0
    log_sum_of = _log_sum if aggregates.rewarded.complete else _least_log_sum
    bound = smoothing_bound(log_sum_of(aggregates, metric, scale), units, scale, level)
    return finite_or_none(bound * units / rows)


def _log_sum(aggregates: Aggregates, metric: int, scale: float) -> float:
    """Σ log(1 + λx) over units; those without reward add nothing."""
    columns = aggregates.rewarded.columns()
    if not columns:
        return 0.0
    with np.errstate(divide="ignore"):
        log_x = columns["log_w"] + np.log(columns["r", metric] / scale) - 0.5 * np.log(aggregates.n_units)
    if aggregates.units is not None:
        first = np.flatnonzero(np.concatenate([[True], columns["unit"][1:] != columns["unit"][:-1]]))
        log_x = np.logaddexp.reduceat(log_x, first)
    with np.errstate(over="ignore"):  # scores of 1e307: the sum is infinite, and there is no bound
        return float(np.logaddexp(0.0, log_x).sum())


def _least_log_sum(aggregates: Aggregates, metric: int, scale: float) -> float:
    """A lower bound on Σ log(1 + λx) from the sums by bin of w, where there are too many rewarded rows to keep.

    With y = λx, log(1 + y) ≥ 2y/(2 + y), and by Cauchy-Schwarz Σ 2y/(2 + y) ≥ 2(Σy)²/(2Σy + Σy²). Where every row is a
    unit this is true in each bin, and bins add up. Else only the rows of the lowest bins count, of as many bins as give
    the most: a unit's y is no less than theirs, and its square no more than n_max times the sum of their squares.
    """
    shape, of_rewards = (aggregates.bins.buckets, BINS), aggregates.bins.rewards(metric)
    sums, squares = (array.reshape(shape).sum(axis=0) for array in (of_rewards.wr, of_rewards.wr2))
    bet = 1.0 / (scale * np.sqrt(aggregates.n_units))
    total, spread = bet * sums, bet * bet * squares
    if aggregates.units is not None:
        total, spread = np.cumsum(total), aggregates.largest_unit * np.cumsum(spread)
    some = total > 0.0
    least = 2.0 * total[some] / (2.0 + spread[some] / total[some])
    return float(least.sum() if aggregates.units is None else least.max(initial=0.0))
