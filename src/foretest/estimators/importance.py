"""IS: importance sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy.typing as npt

from foretest.estimators.base import Estimator, Sums, ratio
from foretest.weights import Uncapped, Weighting

if TYPE_CHECKING:
    from foretest.settings import Analysis


@dataclass(frozen=True, kw_only=True)
class IS(Estimator):
    """Σ w r / n  (Horvitz and Thompson 1952; paper, section 3): unbiased, and of unbounded variance."""

    key: ClassVar[str] = "is"

    def weighting(self, analysis: Analysis) -> Weighting:
        return Uncapped()

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        return sums.unit * ratio(sums.hr, sums.n)
