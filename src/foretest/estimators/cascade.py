"""Cascade-DR: prefix weights by slot, with a reward model as a control variate."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy.typing as npt

from foretest.estimators.base import Sums, mean_of_residuals
from foretest.estimators.slots import RIPS
from foretest.records import dataclass


@dataclass(frozen=True, kw_only=True)
class CascadeDR(RIPS):
    """`rips` with a reward model that takes noise out.

    Σ_i Σ_k [w_k (r_ik − r̂_k(x_i,a_ik)) + E_t r̂_k + r̂_k(x_i,a_ik) − E_p r̂_k] / n, w_k of `rips`.

    Kiyohara et al., WSDM 2022: Σ_k w_k (r_k − Q_k) + w_{k−1} E_t[Q_k | a_1..a_{k−1}], Q_k the predicted reward from
    slot k on. With Q_k = r̂_k + E_t[Q_{k+1} | a_1..a_k] the sum telescopes to Σ_k [w_k (r_k − r̂_k) + E_t r̂_k], and
    E_t r̂_k needs slot marginals alone. The last two terms have mean 0 and make the uplift vary less; it is 0 for equal
    policies.

    >>> import foretest as ft
    >>> ft.CascadeDR().label
    'cascade-dr'
    """

    key: ClassVar[str] = "cascade-dr"
    uses_value: ClassVar[bool] = True
    uses_items: ClassVar[bool] = True

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        return mean_of_residuals(sums)
