"""NCIS: normalised capped importance sampling, a global model of the capping bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy.typing as npt

from foretest.estimators.base import Sums, ratio
from foretest.estimators.capped import CIS


@dataclass(frozen=True, kw_only=True)
class NCIS(CIS):
    """Σ w̄ r / Σ w̄  (paper, section 5.1): what capping cuts off is worth the average of what it leaves."""

    key: ClassVar[str] = "ncis"

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        return ratio(sums.hr, sums.h)
