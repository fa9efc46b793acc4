"""The adaptive point estimator with a reward model as a control variate."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy.typing as npt

from foretest.estimators.adaptive import AdaptivePointNCIS
from foretest.estimators.base import Sums, mean_of_residuals
from foretest.records import dataclass


@dataclass(frozen=True, kw_only=True)
class AdaptivePointDR(AdaptivePointNCIS):
    """`point-ncis-adaptive` with a reward model that takes noise out.

    Σ [w̃_i (r_i − r̂(x_i,a_i)) + E_t r̂(x_i,A) + r̂(x_i,a_i) − E_p r̂(x_i,A)] / n, w̃ of `point-ncis-adaptive`.

    r̂ predicts the reward of an item in its slot, of a ranking the sum over its slots; both expectations are exact. What
    the cap cuts off is worth what r̂ predicts, shifted by how far r̂ errs on what is left. The last two terms have mean
    0: with them the uplift is the mean of (w̃ − 1)(r − r̂) + E_t r̂ − E_p r̂, which varies less, and is 0 for equal
    policies. Dudík et al. 2011, with the paper's adaptive cap.

    Where rewards are dense and the log chooses the bound, Σ w̃ (r − r̂)/Σ w̃ takes the place of the first mean. The
    bound is that of `point-ncis-adaptive`.

    >>> import foretest as ft
    >>> ft.AdaptivePointDR(weight_bound=50)
    AdaptivePointDR(name=None, weight_bound=50)
    """

    key: ClassVar[str] = "point-dr-adaptive"
    uses_value: ClassVar[bool] = True
    uses_items: ClassVar[bool] = True

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        return mean_of_residuals(sums)
