"""Estimators by slot, for logs that say which slot earned the reward."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy.typing as npt

from foretest.errors import check_number
from foretest.estimators.base import CapSettings, Estimator, Sums, mean_or_ratio, ratio
from foretest.records import dataclass
from foretest.weights.prefix_weights import PrefixAdaptive
from foretest.weights.slot_weights import Prefixes, SlotAdaptive, SlotRatio, SlotUncapped
from foretest.weights.weightings import Weighting


@dataclass(frozen=True, kw_only=True)
class IIPS(Estimator):
    """Importance sampling slot by slot: each reward times the weight of its own item in its own slot.

    Σ_i Σ_k w_ik r_ik / n, w_ik = P_t(a_ik in slot k)/P_p(a_ik in slot k)  (Li et al. 2018: item-position model).

    Unbiased where what a slot earns depends on its own item and place only; the weights are those of one item, not of
    a whole ranking, but have no bound.

    >>> import foretest as ft
    >>> ft.IIPS().label
    'iips'
    """

    key: ClassVar[str] = "iips"

    def weighting(self, analysis: CapSettings) -> Weighting:
        return SlotUncapped()

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        return sums.unit * ratio(sums.hr, sums.n)


@dataclass(frozen=True, kw_only=True)
class NIIPS(Estimator):
    """`iips`, normalised slot by slot.

    Σ_k [Σ_i w_ik r_ik / Σ_i w_ik], the weights of IIPS, normalised slot by slot.

    What NIS is to IS. A display that shows fewer than k items has none to weigh in slot k, under either policy: there
    w_ik = 1 and r_ik = 0. It weights every row, not only rewarded ones.

    >>> import foretest as ft
    >>> ft.NIIPS().label
    'niips'
    """

    key: ClassVar[str] = "niips"

    def weighting(self, analysis: CapSettings) -> Weighting:
        return SlotRatio()

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        by_slot = ratio(sums.hr, sums.h)
        return by_slot.sum(axis=-1) if by_slot.ndim > 1 else by_slot


@dataclass(frozen=True, kw_only=True)
class RIPS(IIPS):
    """Importance sampling by prefix: each reward times the weight of the items down to its slot.

    Σ_i Σ_k w_ik r_ik / n, w_ik = π_t(a_1..a_k)/π_p(a_1..a_k)  (McInerney et al. 2020: cascade model).

    Unbiased where what a slot earns depends on the items up to it, and not on those after it.

    >>> import foretest as ft
    >>> ft.RIPS().label
    'rips'
    """

    key: ClassVar[str] = "rips"

    def weighting(self, analysis: CapSettings) -> Weighting:
        return Prefixes()


@dataclass(frozen=True, kw_only=True)
class AdaptiveSlotNCIS(IIPS):
    """`iips` with an adaptive cap in every slot, which keeps weights bounded.

    Σ_i Σ_k r_ik·min(w_ik, c̃_k)/q_k / n, q_k(x) = Σ_j min(P_t(j in k), c̃_k·P_p(j in k)), exactly.

    IIPS with the adaptive cap of `point-ncis-adaptive` in every slot: c̃_k(x) is the largest cap with
    c̃_k/q_k ≤ weight_bound. Where there is none the slot has weight 1 and its row counts as unsupported.

    >>> import foretest as ft
    >>> ft.AdaptiveSlotNCIS(weight_bound=50)
    AdaptiveSlotNCIS(name=None, weight_bound=50)
    """

    key: ClassVar[str] = "slot-ncis-adaptive"
    weight_bound: float | None = None  # the most that a weight may be, at least 1; default: that of the analysis

    def __post_init__(self) -> None:
        if self.weight_bound is not None:
            check_number("weight_bound", self.weight_bound, at_least=1.0)

    def weighting(self, analysis: CapSettings) -> Weighting:
        return SlotAdaptive(self.weight_bound or analysis.bound_number)

    def value(self, sums: Sums) -> npt.NDArray[Any]:
        return mean_or_ratio(sums)


@dataclass(frozen=True, kw_only=True)
class AdaptiveCascadeNCIS(AdaptiveSlotNCIS):
    """`rips` with an adaptive cap for every prefix, which keeps weights bounded.

    Σ_i Σ_k r_ik·min(w_ik, c̃_k)/q_k / n, w_ik of `rips`, q_k(x) = Σ min(π_t, c̃_k·π_p) over all prefixes of length k.

    RIPS with the adaptive cap of `point-ncis-adaptive` for every prefix a_1..a_k: right, up to the cap, where what a
    slot earns depends on the items up to it, and not on those after it.

    >>> import foretest as ft
    >>> ft.AdaptiveCascadeNCIS(weight_bound=50)
    AdaptiveCascadeNCIS(name=None, weight_bound=50)
    """

    key: ClassVar[str] = "cascade-ncis-adaptive"

    def weighting(self, analysis: CapSettings) -> Weighting:
        return PrefixAdaptive(self.weight_bound or analysis.bound_number)
