"""Weights of slots: what a row earned in slot k is weighted by how much likelier the treatment puts that item there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.kernels import weight_bounds as bounds_kernel
from foretest.records import dataclass
from foretest.weights.control_marginals import control_marginals
from foretest.weights.normaliser import Normaliser
from foretest.weights.row_weights import Ints, SlotTerms, WeighedSlots, row_weights
from foretest.weights.slot_marginals import in_pieces, marginals_at, slot_marginals
from foretest.weights.weight_bounds import BoundMasses
from foretest.weights.weightings import PointWeighting, PointWeights

_LEAST = 1e-300  # for the marginal of a shown item, which cannot be 0 as the item was shown


class SlotPrices(NamedTuple):
    """The weights and caps of the shown slots of some displays, one slot after the other."""

    log_w: Floats  # log P_t(a_k in slot k)/P_p(a_k in slot k)
    caps: dict[float, Floats]  # by bound, in rows: c̃_k, 0 where there is none; q_k there and at a third; E_p[w̃_k²]
    control: Floats  # P_p(a_k in slot k)
    bounds: BoundMasses | None = None  # at all bounds that one is chosen from, with a row per slot


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

    Of the ascending bounds in `together` it is also told how the weights vary together, for the slots that `counts`
    names: of all others the numbers at these bounds are 0, and are not asked for.
    """

    def __init__(
        self, displays: Displays, bounds: Sequence[float], together: Sequence[float] = (),
        counts: npt.NDArray[np.bool_] | None = None,
    ) -> None:  # fmt: skip
        shown = int(displays.slots.sum())
        self.counts = np.ones(shown, np.bool_) if counts is None else counts
        self.log_w, self.control, self.together = np.empty(shown), np.empty(shown), together
        self.alone = {bound: BoundMasses.zeros(shown, 1) for bound in bounds if bound not in together}
        self.masses, self.grid = BoundMasses.zeros(shown, len(together)), np.asarray(together)

    def add(self, part: MarginalPart) -> None:
        """Price the slots of some displays."""
        displays, t, p, here = part.displays, part.t, part.p, part.slots
        self.control[here] = part.shown_p
        self.log_w[here] = log_ratio(marginals_at(t, displays), part.shown_p)
        if p is None:
            return
        lists = (t.values, t.starts, p.values, p.starts, displays.eligible, displays.slots)
        priced = [(np.array([bound]), masses) for bound, masses in self.alone.items()]
        priced += [(self.grid, self.masses)] if len(self.together) else []
        for grid, masses in priced:
            bounds_kernel.bounds_of_slots(*lists, self.counts[here], grid, *(array[here] for array in masses))

    def prices(self) -> SlotPrices:
        """The prices of all slots."""
        caps = {bound: masses.caps([bound])[bound] for bound, masses in self.alone.items()}
        caps |= self.masses.caps(self.together)
        return SlotPrices(self.log_w, caps, self.control, self.masses if len(self.together) else None)


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
        weighed: WeighedSlots,
    ) -> PointWeights:  # fmt: skip
        """The weights of rewarded rows, one column per metric."""
        terms = self._terms(log_w, displays, normaliser, prices, weighed.places)
        return row_weights(dict.fromkeys(weighed.rewards, terms), weighed)

    def _terms(
        self, log_w: Floats, displays: Displays, normaliser: Normaliser, prices: SlotPrices | None, places: Ints
    ) -> SlotTerms:
        """The terms of the slots at some places."""
        raise NotImplementedError(f"{type(self).__name__} has no _terms")


@dataclass(frozen=True)
class SlotUncapped(SlotWeighting):
    """h_k = w_k = P_t(a_k in slot k)/P_p(a_k in slot k)."""

    whole_slots: ClassVar[bool] = False

    def _terms(
        self, log_w: Floats, displays: Displays, normaliser: Normaliser, prices: SlotPrices | None, places: Ints
    ) -> SlotTerms:
        assert prices is not None
        return SlotTerms.uncapped(prices.log_w[places])


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

    def _terms(
        self, log_w: Floats, displays: Displays, normaliser: Normaliser, prices: SlotPrices | None, places: Ints
    ) -> SlotTerms:
        assert prices is not None
        return SlotTerms.capped(prices.log_w[places], *prices.caps[self.bound][:, places])


@dataclass(frozen=True)
class Prefixes(SlotWeighting):
    """h_k = π_t(a_1..a_k)/π_p(a_1..a_k): a user who reads from the top does not see what comes after slot k."""

    marginal: ClassVar[bool] = False

    def _terms(
        self, log_w: Floats, displays: Displays, normaliser: Normaliser, prices: SlotPrices | None, places: Ints
    ) -> SlotTerms:
        return SlotTerms.uncapped(prefix_log_weights(log_w, displays, normaliser)[places])


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
