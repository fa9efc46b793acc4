"""Weights of slots: what a row earned in slot k is weighted by how much likelier the treatment puts that item there.

A row's weight is then one for each metric, the mean of its slots' weights by what they earned:
h = Σ_k h_k r_k / Σ_k r_k, so that h·r = Σ_k h_k r_k, and all that is made of h and r holds as it does for rankings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.kernels import slot_marginals as kernel
from foretest.kernels import weight_bounds as bounds_kernel
from foretest.kernels.ranking_draws import SLICE
from foretest.weights.normaliser import Normaliser
from foretest.weights.slot_marginals import slot_marginals
from foretest.weights.weight_bounds import BoundMasses
from foretest.weights.weightings import PointWeighting, PointWeights

_CELLS = 1 << 20  # marginals in memory at a time
_LEAST = 1e-300  # for the marginal of a shown item, which cannot be 0 as the item was shown


class SlotPrices(NamedTuple):
    """The weights and caps of the shown slots of some displays, one slot after the other."""

    log_w: Floats  # log P_t(a_k in slot k)/P_p(a_k in slot k)
    caps: dict[float, Floats]  # by bound, in rows: c̃_k, 0 where there is none; q_k there; q_k at a third of it
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


def slot_prices(
    displays: Displays, log_w: Floats, normaliser: Normaliser, bounds: Sequence[float], *,
    together: Sequence[float] = (),
) -> SlotPrices:  # fmt: skip
    """Weights of the shown slots, and the adaptive caps for some bounds; `log_w` is that of the shown rankings.

    Of the ascending bounds in `together` it is also told how the weights vary together.
    """
    slots = displays.slots
    shown, first = int(slots.sum()), np.cumsum(slots) - slots
    slot_log_w = np.empty(shown)
    caps = {bound: np.empty((3, shown)) for bound in bounds if bound not in together}
    masses, grid = BoundMasses.empty(shown, len(together)), np.asarray(together)
    cells = np.cumsum(displays.eligible * slots)
    for rows in np.split(np.arange(len(displays)), np.flatnonzero(np.diff(cells // _CELLS)) + 1):
        if not len(rows):
            continue
        part = displays.take(rows)
        t, shown_t, p, shown_p = _of_both(part, log_w[rows], normaliser)
        here = slice(int(first[rows[0]]), int(first[rows[-1]] + slots[rows[-1]]))
        with np.errstate(divide="ignore"):
            slot_log_w[here] = np.log(shown_t) - np.log(np.maximum(shown_p, _LEAST))
        if p is None:
            continue
        lists = (t.values, t.starts, p.values, p.starts, part.eligible, part.slots)
        for bound, of_bound in caps.items():
            kernel.slot_caps(*lists, bound, of_bound[:, here])
        if len(together):
            bounds_kernel.bounds_of_slots(*lists, grid, *(array[here] for array in masses))
    if not len(together):
        return SlotPrices(slot_log_w, caps)
    for at, bound in enumerate(together):
        caps[bound] = np.stack([masses.cap[:, at], masses.q[:, at], masses.q_below[:, at]])
    return SlotPrices(slot_log_w, caps, masses)


class _BothMarginals(NamedTuple):
    """P(item in slot) of both policies, of all items and of those that were shown."""

    treatment: Ragged
    shown_treatment: Floats
    control: Ragged | None  # None where only the shown items are known
    shown_control: Floats


def _of_both(displays: Displays, log_w: Floats, normaliser: Normaliser) -> _BothMarginals:
    control, pair = normaliser.control, normaliser.pair
    if not control.prices_rankings:  # the shown ranking, of unknown weight, is not counted with the treatment's draws
        t = slot_marginals(normaliser.treatment, displays, pair, np.full(len(displays), -np.inf))
        table = control.slot_marginals(displays) if control.knows_all_slots else None
        return _BothMarginals(t, _shown(t, displays), table, control.shown_slots(displays))
    t = slot_marginals(normaliser.treatment, displays, pair, log_w)
    p = slot_marginals(control, displays, pair, np.zeros(len(displays)))
    return _BothMarginals(t, _shown(t, displays), p, _shown(p, displays))


def _shown(table: Ragged, displays: Displays) -> Floats:
    """P(a_k in slot k) of every shown slot."""
    out, ranking = np.empty(int(displays.slots.sum())), displays.ranking
    kernel.shown_marginals(
        table.values, table.starts, displays.eligible, ranking.values, ranking.starts, displays.slots, out
    )
    return out


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
        rows = len(displays)
        row = np.repeat(np.arange(rows), displays.slots)
        paid = np.zeros(len(row))
        log_h, log_capped, log_below = (np.full((rows, metrics), -np.inf) for _ in range(3))
        slices = np.zeros((rows, metrics))
        for m, lists in earned.items():
            r = lists.flat().astype(np.float64)
            paid += r > 0.0
            for column, of_slots in (
                (log_h, terms.log_h),
                (log_capped, terms.log_capped),
                (log_below, terms.log_below),
            ):
                column[:, m] = _mean_by_row(of_slots, r, row, rows)
            with np.errstate(divide="ignore"):
                between = _mean_by_row(terms.log_below + np.log(terms.slice), r, row, rows)
            some = np.isfinite(log_below[:, m])
            slices[some, m] = np.exp(between[some] - log_below[some, m])
        count = np.bincount(row, weights=paid, minlength=rows)
        mass = np.bincount(row, weights=paid * terms.q, minlength=rows)
        unsupported = np.bincount(row, weights=terms.infeasible & (paid > 0.0), minlength=rows) > 0
        q = np.divide(mass, count, out=np.zeros(rows), where=count > 0)
        nothing = np.full(rows, np.nan)  # a row has no cap of its own, nor E_p[h²|x]
        log_mean = _mean_by_row(terms.log_h, np.ones(len(row)), row, rows)
        return PointWeights(
            log_h, nothing, q, unsupported, np.zeros(rows, np.bool_), nothing, log_capped, log_below, slices, log_mean
        )

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
class SlotAdaptive(SlotWeighting):
    """h_k = w̃_k = min(w_k, c̃_k)/q_k ≤ bound, c̃_k(x) the largest cap for which that holds; 1 where there is none."""

    banded: ClassVar[bool] = True
    bound: float

    @property
    def bounds(self) -> tuple[float, ...]:
        return (self.bound,)

    def _terms(self, log_w: Floats, displays: Displays, normaliser: Normaliser, prices: SlotPrices | None) -> SlotTerms:
        assert prices is not None
        cap, q, below = prices.caps[self.bound]
        infeasible = q <= 0.0
        mass = np.where(infeasible, 1.0, q)
        with np.errstate(divide="ignore"):
            log_cap = np.log(cap)  # −∞ where there is none
        log_capped = np.minimum(prices.log_w, log_cap)
        log_h = np.where(infeasible, 0.0, log_capped - np.log(mass))
        share = np.divide(q - below, below, out=np.zeros(len(q)), where=below > 0.0)
        return SlotTerms(
            log_h, log_capped, np.minimum(prices.log_w, log_cap - np.log(SLICE)), np.maximum(share, 0.0), q, infeasible
        )


@dataclass(frozen=True)
class Prefixes(SlotWeighting):
    """h_k = π_t(a_1..a_k)/π_p(a_1..a_k): a user who reads from the top does not see what comes after slot k."""

    marginal: ClassVar[bool] = False

    def _terms(self, log_w: Floats, displays: Displays, normaliser: Normaliser, prices: SlotPrices | None) -> SlotTerms:
        slots, ranking = displays.slots, displays.ranking
        first = np.cumsum(slots) - slots
        prefix_log_w = np.empty(int(slots.sum()))
        prefix_log_w[first + slots - 1] = log_w
        for k in range(1, int(slots.max(initial=1))):
            rows = np.flatnonzero(slots > k)
            part = displays.take(rows)
            prefix = Ragged(ranking.values, ranking.starts[rows], np.full(len(rows), k))
            prefix_log_w[first[rows] + k - 1] = normaliser.treatment.log_prob(
                part, prefix
            ) - normaliser.control.log_prob(part, prefix)
        return SlotTerms.uncapped(prefix_log_w)


def _mean_by_row(log_h: Floats, r: Floats, row: npt.NDArray[np.int64], rows: int) -> Floats:
    """log of Σ_k h_k r_k / Σ_k r_k, for weights of any size; −inf where nothing was earned."""
    paid = np.flatnonzero(r > 0.0)
    owner = row[paid]
    most = np.full(rows, -np.inf)
    np.maximum.at(most, owner, log_h[paid])
    base = np.where(np.isfinite(most), most, 0.0)
    total = np.bincount(owner, weights=np.exp(log_h[paid] - base[owner]) * r[paid], minlength=rows)
    earned = np.bincount(owner, weights=r[paid], minlength=rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(earned > 0.0, base + np.log(total / earned), -np.inf)
