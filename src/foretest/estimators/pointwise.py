"""PointNCIS: the capping bias modelled display by display."""

from __future__ import annotations

from typing import ClassVar

from foretest.estimators.base import CapSettings
from foretest.estimators.capped import CIS
from foretest.records import dataclass
from foretest.weights.weightings import Pointwise, Weighting


@dataclass(frozen=True, kw_only=True)
class PointNCIS(CIS):
    """NCIS display by display: each capped weight over what the cap leaves of the treatment on that display.

    Σ IP_c(x_i) w̄_i r_i / n, E[IP_c(x)] = 1/q(x), q(x) = E_t[w̄/w | x]  (paper, section 5.4, as printed).

    Only rows with a reward are weighted, and those need policies that can be drawn from.

    >>> import foretest as ft
    >>> ft.PointNCIS(cap=30)
    PointNCIS(name=None, cap=30, capping=None)
    """

    key: ClassVar[str] = "point-ncis"

    def weighting(self, analysis: CapSettings) -> Weighting:
        return Pointwise(self.cap or analysis.cap_number, self.capping or analysis.capping)
