"""Importance weights and their caps, in log space: log w = log π_t(a) − log π_p(a)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.errors import RowFault
from foretest.kernels.ranking_draws import SLICE
from foretest.policies.base import Policy
from foretest.policies.pricing import shown_log_prob
from foretest.records import dataclass
from foretest.weights.capping import capped, capped_at
from foretest.weights.noise_terms import NoiseTerms
from foretest.weights.normaliser import Masses, Normaliser


def log_weights(treatment: Policy, control: Policy, displays: Displays) -> Floats:
    """log w of the shown rankings; π_t(a) = 0 is legal (w = 0), π_p(a) = 0 is impossible data.

    0 for a control of which only the slots are known: no weight of a ranking is then used or told of.
    """
    log_t = shown_log_prob(treatment, displays, is_control=False)
    return log_t - shown_log_prob(control, displays, is_control=True) if control.prices_rankings else _ones(displays)


class ShownWeights(NamedTuple):
    """The shown rankings, priced: of each treatment its log w, and log π_p, None where only slots are known."""

    log_w: list[Floats]
    log_p: Floats | None


def all_log_weights(treatments: Mapping[str, Policy], control: Policy, displays: Displays) -> ShownWeights:
    """log w of the shown rankings for several treatments; the control's probability is found once.

    Rows that a control of logged slots cannot have shown are refused here.
    """
    if not control.prices_rankings:
        control.shown_slots(displays)
    priced = []
    for name, policy in treatments.items():
        try:
            priced.append(shown_log_prob(policy, displays, is_control=False))
        except RowFault as fault:
            if len(treatments) == 1:
                raise
            what = f"{fault.what} (the treatment '{name}')"
            raise RowFault(fault.kind, fault.column, fault.rows, what, fault.remedy) from None
    if not control.prices_rankings:
        return ShownWeights([_ones(displays) for _ in priced], None)
    log_p = shown_log_prob(control, displays, is_control=True)
    return ShownWeights([log_t - log_p for log_t in priced], log_p)


def _ones(displays: Displays) -> Floats:
    """log w of rankings whose weight is not known: 0."""
    return np.zeros(len(displays))


class Slopes(NamedTuple):
    """How a row moves with a fitted examination curve, by metric and slot: ∂ log h/∂ log θ_k, and the same of w̄."""

    log_h: Floats
    log_capped: Floats


class PointWeights(NamedTuple):
    """A pointwise weighting of rewarded rows; by slot, logarithms and `slice` have one column per metric."""

    log_h: Floats
    log_cap: Floats  # the row's own cap
    q: Floats
    unsupported: npt.NDArray[np.bool_]
    approximate: npt.NDArray[np.bool_]  # past the bound on trials
    second: Floats  # E_p[h² | x], whatever ranking was shown
    log_capped: Floats  # log w̄; −∞ where the treatment has no support
    log_below: Floats  # log w̄ at a third of the cap
    slice: Floats  # (q − q')/q', q' at a third of the cap; NaN where q' = 0
    log_mean: Floats  # log h of the row; by slot, of the mean over all slots
    slopes: Slopes | None = None  # of weights by a fitted examination curve
    noise: Mapping[int, NoiseTerms] = MappingProxyType({})  # by metric, where E_p[w̃ | x] = 1

    @classmethod
    def concatenate(cls, parts: Sequence[PointWeights]) -> PointWeights:
        if len(parts) == 1:
            return parts[0]
        slopes = [part.slopes for part in parts if part.slopes is not None]
        joined = Slopes(*map(np.concatenate, zip(*slopes, strict=True))) if slopes else None
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in cls._fields
            if name not in ("slopes", "noise")
        }
        noise = {m: NoiseTerms(*map(np.concatenate, zip(*(p.noise[m] for p in parts), strict=True)))
                 for m in parts[0].noise}  # fmt: skip
        return cls(**columns, slopes=joined, noise=noise)


def of_metric(column: npt.NDArray[Any], metric: int) -> npt.NDArray[Any]:
    """The column of one metric: all metrics share one, unless weights are by slot."""
    return column if column.ndim == 1 else column[:, metric]


@dataclass(frozen=True)
class Weighting:
    """A row's weight h in an estimator, as a function of its importance weight w.

    Subclass it for an estimator of your own: `log_h(log_w)` gives log h for every row. It must be a frozen
    dataclass, so that two estimators with equal weightings share their sums.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import foretest as ft
    >>> @dataclass(frozen=True)
    ... class Root(ft.Weighting):
    ...     def log_h(self, log_w):
    ...         return log_w / 2.0
    >>> np.exp(Root().log_h(np.log([4.0, 9.0]))).round(6).tolist()
    [2.0, 3.0]
    """

    #: is h found for rewarded rows only, from draws of the policies?
    pointwise: ClassVar[bool] = False
    #: does it cut off a known part of the treatment, so that there is a sensitivity band?
    banded: ClassVar[bool] = False
    #: does each slot have a weight of its own, so that a row has one for each metric?
    by_slot: ClassVar[bool] = False

    def log_h(self, log_w: Floats) -> Floats:
        raise NotImplementedError(f"{type(self).__name__} has no log_h")


@dataclass(frozen=True)
class Uncapped(Weighting):
    """h = w: the importance weight as it is.

    >>> import numpy as np
    >>> import foretest as ft
    >>> np.exp(ft.Uncapped().log_h(np.log([0.5, 40.0]))).round(6).tolist()
    [0.5, 40.0]
    """

    def log_h(self, log_w: Floats) -> Floats:
        return log_w


@dataclass(frozen=True)
class Capped(Weighting):
    """h = w̄: the importance weight, capped.

    >>> import numpy as np
    >>> import foretest as ft
    >>> np.exp(ft.Capped(cap=10.0).log_h(np.log([0.5, 40.0]))).round(6).tolist()
    [0.5, 10.0]
    """

    cap: float  # c, above 0
    capping: str = "max"  # max: min(w, c), or zero: w if w < c else 0

    def log_h(self, log_w: Floats) -> Floats:
        return capped(log_w, self.cap, self.capping)


@dataclass(frozen=True)
class PointWeighting(Weighting):
    """h needs q(x): found for rewarded rows alone."""

    pointwise: ClassVar[bool] = True
    banded: ClassVar[bool] = True

    def of_rewarded(self, log_w: Floats, displays: Displays, normaliser: Normaliser) -> PointWeights:
        raise NotImplementedError(f"{type(self).__name__} has no of_rewarded")


@dataclass(frozen=True)
class Pointwise(PointWeighting):
    """h = IP_c(x)·w̄, IP_c an estimate of 1/q(x) at one cap."""

    cap: float
    capping: str = "max"

    def of_rewarded(self, log_w: Floats, displays: Displays, normaliser: Normaliser) -> PointWeights:
        masses = normaliser.at_cap(displays, self.cap, zero=self.capping == "zero")
        inverse, unsupported = masses.inverse, masses.inverse == 0.0
        with np.errstate(divide="ignore"):
            log_h = capped(log_w, self.cap, self.capping) + np.log(inverse)
        q = np.divide(1.0, inverse, out=np.zeros_like(inverse), where=~unsupported)
        with np.errstate(over="ignore"):
            second = inverse * (inverse * masses.squares)  # 1/q² of 1e200 would overflow sooner
        log_cap = np.full(len(log_w), np.log(self.cap))
        slices = _slices(log_w, log_cap, masses, unsupported, self.capping)
        return PointWeights(log_h, log_cap, q, unsupported, masses.stuck, second, *slices, log_mean=log_h)


@dataclass(frozen=True)
class Adaptive(PointWeighting):
    """h = w̃ = min(w, c̃(x))/q_c̃(x) ≤ bound, c̃ the largest cap for which that holds (the paper's appendix).

    Where there is none, h = 1: the row counts as unsupported.
    """

    bound: float

    def of_rewarded(self, log_w: Floats, displays: Displays, normaliser: Normaliser) -> PointWeights:
        return self.of_masses(log_w, normaliser.at_adaptive_cap(displays, self.bound))

    def of_masses(self, log_w: Floats, masses: Masses) -> PointWeights:
        """The weights of rows whose masses at the adaptive cap are known."""
        unsupported = masses.q <= 0.0
        mass = np.where(unsupported, 1.0, masses.q)
        with np.errstate(divide="ignore"):
            log_cap = np.log(masses.cap)
            log_h = np.where(unsupported, 0.0, np.minimum(log_w, log_cap) - np.log(mass))
        second = np.where(unsupported, 1.0, masses.squares / mass / mass)  # q² of 1e-200 would vanish
        second = np.where(second > 0.0, second, self.bound)  # as w̄² may: no more than w̃ itself, whose mean is 1
        slices = _slices(log_w, log_cap, masses, unsupported, "max")
        return PointWeights(log_h, log_cap, masses.q, unsupported, masses.stuck, second, *slices, log_mean=log_h)


def _slices(
    log_w: Floats, log_cap: Floats, masses: Masses, unsupported: npt.NDArray[np.bool_], capping: str
) -> tuple[Floats, Floats, Floats]:
    """log w̄ at the cap and at a third of it, and what the slice between them weighs, (q − q')/q'."""
    log_capped = np.where(unsupported, -np.inf, capped_at(log_w, log_cap, capping))
    some = (masses.q_below > 0.0) & ~unsupported
    between = np.where(masses.q - masses.q_below > 1e-12 * masses.q, masses.q - masses.q_below, 0.0)  # else rounding
    with np.errstate(over="ignore"):
        share = np.divide(between, masses.q_below, out=np.full(len(log_w), np.nan), where=some)
    return log_capped, capped_at(log_w, log_cap - np.log(SLICE), capping), share
