"""IS: importance sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy.typing as npt

from foretest.estimators.base import CapSettings, Estimator, Sums, ratio
from foretest.weights.weightings import Uncapped, Weighting


@dataclass(frozen=True, kw_only=True)
class IS(Estimator):
    """Σ w r / n  (Horvitz and Thompson 1952; paper, section 3): unbiased, and of unbounded variance."""

    key: ClassVar[str] = "is"

    def weighting(self, analysis: CapSettings) -> Weighting:
        return Uncapped()

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        return sums.unit * ratio(sums.hr, sums.n)
