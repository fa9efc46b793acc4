"""CIS: capped importance sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy.typing as npt

from foretest.errors import choose
from foretest.estimators.base import Estimator, Sums, ratio
from foretest.settings import CAPPINGS, check_number
from foretest.weights import Capped, Weighting

if TYPE_CHECKING:
    from foretest.settings import Analysis


@dataclass(frozen=True, kw_only=True)
class CIS(Estimator):
    """Σ w̄ r / n  (Bottou et al. 2013; paper, section 4.2): what capping cuts off counts as worth nothing."""

    key: ClassVar[str] = "cis"
    cap: float | None = None
    capping: str | None = None

    def __post_init__(self) -> None:
        if self.cap is not None:
            check_number("cap", self.cap, above=0.0)
        if self.capping is not None:
            choose("capping", self.capping, CAPPINGS)

    def weighting(self, analysis: Analysis) -> Weighting:
        return Capped(self.cap or analysis.cap_number, self.capping or analysis.capping)

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        return sums.unit * ratio(sums.hr, sums.n)
