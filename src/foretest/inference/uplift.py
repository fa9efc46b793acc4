"""What is asked of the sums: the control's mean reward, and the treatment's uplift over it, both from the same rows."""

from __future__ import annotations

from typing import Any

from foretest.estimators import Sums
from foretest.estimators.base import ratio


def mean_reward(sums: Sums) -> Any:
    """r̄ = R(p)."""
    return ratio(sums.r, sums.rows)


def uplift(value: Any, sums: Sums) -> Any:
    """Δ = R(t) − R(p), both from the same rows."""
    return value(sums) - mean_reward(sums)


def relative_uplift(value: Any, sums: Sums) -> Any:
    """δ = R(t)/R(p) − 1."""
    return ratio(value(sums), mean_reward(sums)) - 1.0
