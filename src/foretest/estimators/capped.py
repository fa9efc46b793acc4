"""CIS: capped importance sampling."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy.typing as npt

from foretest.errors import check_number, choose
from foretest.estimators.base import CapSettings, Estimator, Sums, ratio
from foretest.records import dataclass
from foretest.weights.capping import CAPPINGS
from foretest.weights.weightings import Capped, Weighting


@dataclass(frozen=True, kw_only=True)
class CIS(Estimator):
    """Capped importance sampling: weights above the cap are cut, and what is cut counts as worth nothing.

    Σ w̄ r / n  (Bottou et al. 2013; paper, section 4.2): what capping cuts off counts as worth nothing.

    >>> import foretest as ft
    >>> import pyarrow as pa
    >>> log = pa.table({"click": [1, 0, 0, 0] * 25, "old": [0.25, 0.75, 0.75, 0.75] * 25, "new": [0.5] * 100})
    >>> test = ft.OfflineTest(
    ...     log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="old"), treatment=ft.Logged(prob="new"),
    ...     estimators=[ft.CIS(cap=1.5)],
    ... )
    >>> round(test.run(log).metrics["click"].estimates["cis"].treatment, 6)
    0.375
    """

    key: ClassVar[str] = "cis"
    cap: float | None = None  # c, above 0; default: that of the analysis
    capping: str | None = None  # max: min(w, c), or zero: w if w < c else 0; default: that of the analysis

    def __post_init__(self) -> None:
        if self.cap is not None:
            check_number("cap", self.cap, above=0.0)
        if self.capping is not None:
            choose("capping", self.capping, CAPPINGS)

    def weighting(self, analysis: CapSettings) -> Weighting:
        return Capped(self.cap or analysis.cap_number, self.capping or analysis.capping)

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        return sums.unit * ratio(sums.hr, sums.n)
