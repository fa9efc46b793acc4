"""PointNCIS with the appendix's cap for each display: every normalised weight is bounded."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy.typing as npt

from foretest.errors import check_number
from foretest.estimators.base import CapSettings, Estimator, Sums, mean_or_ratio
from foretest.records import dataclass
from foretest.weights.weightings import Adaptive, Weighting


@dataclass(frozen=True, kw_only=True)
class AdaptivePointNCIS(Estimator):
    """The default headline: `point-ncis` with the largest cap on each display that keeps weights bounded.

    Σ w̃_i r_i / n, w̃ = min(w, c̃(x))/q_c̃(x) ≤ weight_bound  (paper, appendix, corrected).

    c̃(x) is the largest cap with c̃/q_c̃ ≤ weight_bound. It exists iff P_p(W > 0 | x) ≥ 1/weight_bound; where it does
    not, w̃ = 1 and the row counts as unsupported. Max capping only.

    Where rewards are dense and the log chooses the bound, Σ w̃_i r_i / Σ w̃_i: as E_p[w̃ | x] = 1 the two have one
    limit, and the ratio does not vary with the sum of the weights.

    >>> import foretest as ft
    >>> ft.AdaptivePointNCIS(weight_bound=50, name="bound 50")
    AdaptivePointNCIS(name='bound 50', weight_bound=50)
    """

    key: ClassVar[str] = "point-ncis-adaptive"
    weight_bound: float | None = None  # the most that a weight may be, at least 1; default: that of the analysis

    def __post_init__(self) -> None:
        if self.weight_bound is not None:
            check_number("weight_bound", self.weight_bound, at_least=1.0)

    def weighting(self, analysis: CapSettings) -> Weighting:
        return Adaptive(self.weight_bound or analysis.bound_number)

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        return mean_or_ratio(sums)
