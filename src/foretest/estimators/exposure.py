"""Estimators by exposure, for logs that say which slot earned the reward and whose production hardly explores."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

import numpy.typing as npt

from foretest.errors import check_number
from foretest.estimators.base import CapSettings, Sums, mean_or_ratio
from foretest.estimators.slots import IIPS
from foretest.records import dataclass
from foretest.weights.exposure_weights import ExposureAdaptive, ExposureUncapped
from foretest.weights.weightings import Weighting


@dataclass(frozen=True, kw_only=True)
class PBM(IIPS):
    """The position-based model: each reward times how much more the treatment exposes its item than the control.

    Σ_i Σ_k (e_t/e_p)(a_ik) r_ik / n, e(j) = Σ_k θ_k P(j in slot k)  (the position-based model).

    Unbiased where what a slot earns is examination times worth, E[r_k | a, x] = θ_k·γ(a_k, x), and the control exposes
    all that the treatment does; its weights have no bound.

    >>> import foretest as ft
    >>> ft.PBM().label
    'pbm'
    """

    key: ClassVar[str] = "pbm"

    def weighting(self, analysis: CapSettings) -> Weighting:
        return ExposureUncapped()


@dataclass(frozen=True, kw_only=True)
class AdaptiveExposureNCIS(IIPS):
    """`pbm` with an adaptive cap, which keeps weights bounded: for a production that hardly explores.

    Σ_i Σ_k r_ik·min(w_ik, c̃)/q / n, w = (e_t/e_p)(a_ik), q(x) = Σ_j min(e_t(j), c̃·e_p(j))/Θ, exactly.

    PBM with the adaptive cap of `point-ncis-adaptive`: c̃(x) is the largest cap with c̃/q ≤ weight_bound. Where there is
    none all slots of the display have weight 1, and it counts as unsupported.

    >>> import foretest as ft
    >>> ft.AdaptiveExposureNCIS(weight_bound=50)
    AdaptiveExposureNCIS(name=None, weight_bound=50)
    """

    key: ClassVar[str] = "exposure-ncis-adaptive"
    weight_bound: float | None = None  # the most that a weight may be, at least 1; default: that of the analysis
    curve: int = field(default=0, repr=False)  # of a given examination curve 0 as it is, others steeper or flatter

    def __post_init__(self) -> None:
        if self.weight_bound is not None:
            check_number("weight_bound", self.weight_bound, at_least=1.0)

    def weighting(self, analysis: CapSettings) -> Weighting:
        return ExposureAdaptive(self.weight_bound or analysis.bound_number, self.curve)

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        return mean_or_ratio(sums)
