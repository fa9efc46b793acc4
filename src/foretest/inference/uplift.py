"""Statistics of the sums: the control's mean reward, and the treatment's uplift over it, both from the same rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from foretest.estimators import Estimator, Sums
from foretest.estimators.base import ratio

Statistic = Callable[[Sums], Any]  # a number for each entry of the sums


def too_large() -> np.errstate:
    """No warnings: weights beyond what a float can hold give an infinite value or NaN, which is shown as none."""
    return np.errstate(over="ignore", invalid="ignore")


def value_of(estimator: Estimator, sums: Sums) -> Any:
    """R(t) by one estimator."""
    with too_large():
        return estimator.value(sums)


def mean_reward(sums: Sums) -> Any:
    """r̄ = R(p)."""
    return ratio(sums.r, sums.rows)


def absolute_uplift_of(estimator: Estimator) -> Statistic:
    """Δ = R(t) − R(p) by one estimator, as a function of the sums: both from the same rows."""

    def uplift(sums: Sums) -> Any:
        with too_large():
            return estimator.value(sums) - mean_reward(sums)

    return uplift


def relative_uplift_of(estimator: Estimator) -> Statistic:
    """δ = (R(t) − R(p))/|R(p)| by one estimator, as a function of the sums: R(t)/R(p) − 1, unless the control's mean
    reward is a loss."""

    def uplift(sums: Sums) -> Any:
        with too_large():
            control = mean_reward(sums)
            return (ratio(estimator.value(sums), control) - 1.0) * np.where(np.real(control) < 0.0, -1.0, 1.0)

    return uplift
