"""NIS: normalised importance sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy.typing as npt

from foretest.estimators.base import CapSettings, Estimator, Sums, ratio
from foretest.weights.weightings import Uncapped, Weighting


@dataclass(frozen=True, kw_only=True)
class NIS(Estimator):
    """Σ w r / Σ w  (Powell and Swann 1966; paper, section 4.1): E_p[W] = 1 as a ratio control variate."""

    key: ClassVar[str] = "nis"

    def weighting(self, analysis: CapSettings) -> Weighting:
        return Uncapped()

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        return ratio(sums.hr, sums.h)
