"""Statistics of the sums: the control's mean reward, and the treatment's uplift over it, both from the same rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from foretest.estimators import Estimator, Sums
from foretest.estimators.base import ratio

Statistic = Callable[[Sums], Any]  # a number for each entry of the sums


def mean_reward(sums: Sums) -> Any:
    """r̄ = R(p)."""
    return ratio(sums.r, sums.rows)


def absolute_uplift_of(estimator: Estimator) -> Statistic:
    """Δ = R(t) − R(p) by one estimator, as a function of the sums: both from the same rows."""
    return lambda sums: estimator.value(sums) - mean_reward(sums)


def relative_uplift_of(estimator: Estimator) -> Statistic:
    """δ = R(t)/R(p) − 1 by one estimator, as a function of the sums."""
    return lambda sums: ratio(estimator.value(sums), mean_reward(sums)) - 1.0
