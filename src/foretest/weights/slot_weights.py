"""Weights of slots: what a row earned in slot k is weighted by how much likelier the treatment puts that item there.

A row's weight is then one for each metric, the mean of its slots' weights by what they earned:
h = Σ_k h_k r_k / Σ_k r_k, so that h·r = Σ_k h_k r_k, and all that is made of h and r holds as it does for rankings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.kernels import slot_marginals as kernel
from foretest.kernels import weight_bounds as bounds_kernel
from foretest.kernels.ranking_draws import SLICE
from foretest.kernels.row_means import by_reward, log_means
from foretest.weights.control_marginals import control_marginals
from foretest.weights.normaliser import Normaliser
from foretest.weights.slot_marginals import in_pieces, marginals_at, slot_marginals
from foretest.weights.weight_bounds import BoundMasses
from foretest.weights.weightings import PointWeighting, PointWeights

_LEAST = 1e-300  # for the marginal of a shown item, which cannot be 0 as the item was shown


class SlotPrices(NamedTuple):
    """The weights and caps of the shown slots of some displays, one slot after the other."""

    log_w: Floats  # log P_t(a_k in slot k)/P_p(a_k in slot k)
    caps: dict[float, Floats]  # by bound, in rows: c̃_k, 0 where there is none; q_k there; q_k at a third of it
    control: Floats  # P_p(a_k in slot k)
    bounds: BoundMasses | None = None  # at all bounds that one is chosen from, with a row per slot


class SlotTerms(NamedTuple):
    """A weighting's terms for every shown slot."""

    log_h: Floats
    log_capped: Floats  # log w̄_k
    log_below: Floats  # log w̄_k at a third of the cap
    slice: Floats  # (q_k − q_k')/q_k', q_k' at a third of the cap
    q: Floats
    infeasible: npt.NDArray[np.bool_]

    @classmethod
    def uncapped(cls, log_w: Floats) -> SlotTerms:
        """The terms of weights that no cap cuts."""
        nothing = np.zeros(len(log_w))
        return cls(log_w, log_w, log_w, nothing, nothing + 1.0, np.zeros(len(log_w), np.bool_))

    @classmethod
    def capped(cls, log_w: Floats, cap: Floats, q: Floats, below: Floats) -> SlotTerms:
        """The terms of w̃ = min(w, c)/q, 1 where there is no cap; `below` is q at a third of it."""
        infeasible = q <= 0.0
        mass = np.where(infeasible, 1.0, q)
        with np.errstate(divide="ignore"):
            log_cap = np.log(cap)  # −∞ where there is none
        log_capped = np.minimum(log_w, log_cap)
        log_h = np.where(infeasible, 0.0, log_capped - np.log(mass))
        share = np.divide(q - below, below, out=np.zeros(len(q)), where=below > 0.0)
        return cls(log_h, log_capped, np.minimum(log_w, log_cap - np.log(SLICE)), np.maximum(share, 0.0), q, infeasible)


class MarginalPart(NamedTuple):
    """Some displays with P(item in slot) of both policies."""

    displays: Displays
    rows: slice
    slots: slice  # of the shown slots of all displays, one after the other
    t: Ragged
    p: Ragged | None  # None where only the shown items are known
    shown_p: Floats  # of the shown items


def marginal_parts(displays: Displays, log_w: Floats, normaliser: Normaliser) -> Iterator[MarginalPart]:
    """All displays, some at a time, with the marginals of both policies; `log_w` is that of the shown rankings."""
    slots = displays.slots
    ends, control, pair = np.cumsum(slots), normaliser.control, normaliser.pair
    if not control.prices_rankings:  # the shown ranking, of unknown weight, is not counted with the treatment's draws
        log_w = np.full(len(displays), -np.inf)
    for rows in in_pieces(displays):
        part, first, last = displays.take(rows), int(rows[0]), int(rows[-1])
        t = slot_marginals(normaliser.treatment, part, pair, log_w[rows])
        p: Ragged | None = None
        if control.prices_rankings or control.knows_all_slots:
            p = control_marginals(part, pair, normaliser.known)
        shown_p = control.shown_slots(part) if p is None else marginals_at(p, part)
        here = slice(int(ends[first] - slots[first]), int(ends[last]))
        yield MarginalPart(part, slice(first, last + 1), here, t, p, shown_p)


class Pricer(Protocol):
    """What takes the marginals of displays, some at a time."""

    def add(self, part: MarginalPart) -> None: ...


class SlotPricer:
    """Weights of the shown slots, and the adaptive caps for some bounds.

    Of the ascending bounds in `together` it is also told how the weights vary together.
    """

    def __init__(self, displays: Displays, bounds: Sequence[float], together: Sequence[float] = ()) -> None:
        shown = int(displays.slots.sum())
        self.log_w, self.control, self.together = np.empty(shown), np.empty(shown), together
        self.caps = {bound: np.empty((3, shown)) for bound in bounds if bound not in together}
        self.masses, self.grid = BoundMasses.empty(shown, len(together)), np.asarray(together)

    def add(self, part: MarginalPart) -> None:
        """Price the slots of some displays."""
        displays, t, p, here = part.displays, part.t, part.p, part.slots
        self.control[here] = part.shown_p
        self.log_w[here] = log_ratio(marginals_at(t, displays), part.shown_p)
        if p is None:
            return
        lists = (t.values, t.starts, p.values, p.starts, displays.eligible, displays.slots)
        for bound, of_bound in self.caps.items():
            kernel.slot_caps(*lists, float(bound), of_bound[:, here])
        if len(self.together):
            bounds_kernel.bounds_of_slots(*lists, self.grid, *(array[here] for array in self.masses))

    def prices(self) -> SlotPrices:
        """The prices of all slots."""
        if not len(self.together):
            return SlotPrices(self.log_w, self.caps, self.control)
        return SlotPrices(self.log_w, {**self.caps, **self.masses.caps(self.together)}, self.control, self.masses)


def log_ratio(of_treatment: Floats, of_control: Floats) -> Floats:
    """log w of shown items, whose control mass cannot be 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(of_treatment) - np.log(np.maximum(of_control, _LEAST)))


def slot_prices(
    displays: Displays, log_w: Floats, normaliser: Normaliser, bounds: Sequence[float], *,
    together: Sequence[float] = (),
) -> SlotPrices:  # fmt: skip
    """Weights and caps of the shown slots; `log_w` is that of the shown rankings."""
    pricer = SlotPricer(displays, bounds, together)
    for part in marginal_parts(displays, log_w, normaliser):
        pricer.add(part)
    return pricer.prices()


@dataclass(frozen=True)
class SlotWeighting(PointWeighting):
    """A weight h_k for every slot that earned something."""

    by_slot: ClassVar[bool] = True
    banded: ClassVar[bool] = False
    #: does it need P(item in slot), or only the probabilities of prefixes?
    marginal: ClassVar[bool] = True
    #: does it need P(item in slot) of items that were not shown?
    whole_slots: ClassVar[bool] = True

    @property
    def bounds(self) -> tuple[float, ...]:
        """The bounds whose caps it asks for."""
        return ()

    def of_slots(
        self, log_w: Floats, displays: Displays, normaliser: Normaliser, prices: SlotPrices | None,
        earned: Mapping[int, Ragged], metrics: int,
    ) -> PointWeights:  # fmt: skip
        """The weights of rewarded rows, one column per metric; `earned` are the slots' rewards by metric."""
        terms = self._terms(log_w, displays, normaliser, prices)
        return row_weights(dict.fromkeys(earned, terms), displays, earned, metrics)

    def _terms(self, log_w: Floats, displays: Displays, normaliser: Normaliser, prices: SlotPrices | None) -> SlotTerms:
        raise NotImplementedError(f"{type(self).__name__} has no _terms")


@dataclass(frozen=True)
class SlotUncapped(SlotWeighting):
    """h_k = w_k = P_t(a_k in slot k)/P_p(a_k in slot k)."""

    whole_slots: ClassVar[bool] = False

    def _terms(self, log_w: Floats, displays: Displays, normaliser: Normaliser, prices: SlotPrices | None) -> SlotTerms:
        assert prices is not None
        return SlotTerms.uncapped(prices.log_w)


@dataclass(frozen=True)
class SlotRatio(SlotUncapped):
    """h_k = w_k, of all rows: their sums by slot are divided by."""


@dataclass(frozen=True)
class SlotAdaptive(SlotWeighting):
    """h_k = w̃_k = min(w_k, c̃_k)/q_k ≤ bound, c̃_k(x) the largest cap for which that holds; 1 where there is none."""

    banded: ClassVar[bool] = True
    bound: float

    @property
    def bounds(self) -> tuple[float, ...]:
        return (self.bound,)

    def _terms(self, log_w: Floats, displays: Displays, normaliser: Normaliser, prices: SlotPrices | None) -> SlotTerms:
        assert prices is not None
        return SlotTerms.capped(prices.log_w, *prices.caps[self.bound])


@dataclass(frozen=True)
class Prefixes(SlotWeighting):
    """h_k = π_t(a_1..a_k)/π_p(a_1..a_k): a user who reads from the top does not see what comes after slot k."""

    marginal: ClassVar[bool] = False

    def _terms(self, log_w: Floats, displays: Displays, normaliser: Normaliser, prices: SlotPrices | None) -> SlotTerms:
        return SlotTerms.uncapped(prefix_log_weights(log_w, displays, normaliser))


def prefix_log_weights(log_w: Floats, displays: Displays, normaliser: Normaliser) -> Floats:
    """log π_t(a_1..a_k)/π_p(a_1..a_k) of every shown slot; `log_w` is that of whole rankings."""
    slots, ranking = displays.slots, displays.ranking
    first = np.cumsum(slots) - slots
    prefix_log_w = np.empty(int(slots.sum()))
    prefix_log_w[first + slots - 1] = log_w
    for k in range(1, int(slots.max(initial=1))):
        rows = np.flatnonzero(slots > k)
        part = displays.take(rows)
        prefix = Ragged(ranking.values, ranking.starts[rows], np.full(len(rows), k))
        log_t, log_p = (policy.log_prob(part, prefix) for policy in (normaliser.treatment, normaliser.control))
        prefix_log_w[first[rows] + k - 1] = log_t - log_p
    return prefix_log_w


def row_weights(
    terms_of: Mapping[int, SlotTerms], displays: Displays, earned: Mapping[int, Ragged], metrics: int,
    parts: Floats | None = None,
) -> PointWeights:  # fmt: skip
    """The weights of rows from those of their slots, by metric; `parts` are the slots' parts in a row's mean weight,
    all the same where they are not given."""
    rows, slots = len(displays), displays.slots
    log_h, log_capped, log_below = (np.full((rows, metrics), -np.inf) for _ in range(3))
    slices, count, mass = np.zeros((rows, metrics)), np.zeros(rows), np.zeros(rows)
    unsupported, of_metric = np.zeros(rows, np.bool_), np.empty((4, rows))
    for m, lists in earned.items():
        by_reward(slots, lists.flat().astype(np.float64), *terms_of[m], of_metric, count, mass, unsupported)
        log_h[:, m], log_capped[:, m], log_below[:, m], slices[:, m] = of_metric
    q = np.divide(mass, count, out=np.zeros(rows), where=count > 0)
    nothing = np.full(rows, np.nan)  # a row has no cap of its own, nor E_p[h²|x]
    shown = int(slots.sum())
    of_first = next(iter(terms_of.values())).log_h if terms_of else np.zeros(shown)
    log_mean = log_means(slots, np.ones(shown) if parts is None else parts, of_first)
    return PointWeights(
        log_h, nothing, q, unsupported, np.zeros(rows, np.bool_), nothing, log_capped, log_below, slices, log_mean
    )
