"""Weights of prefixes, with a cap: what a row earned in slot k is weighted by how much likelier the treatment shows the
items a_1..a_k, in this order.

A prefix of length k is the ranking of a display with k slots, and every policy prices those. So w_k, the adaptive cap
c̃_k and q_k = Σ min(π_t, c̃_k·π_p) over all prefixes of length k are what the normaliser finds for the display with its
ranking cut at slot k: exactly where there are few, from draws elsewhere. The last slot's are those of the ranking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.kernels.random import derive
from foretest.records import dataclass
from foretest.weights.enumeration_cost import Purpose
from foretest.weights.normaliser import Normaliser
from foretest.weights.row_weights import SlotTerms, WeighedSlots, row_weights
from foretest.weights.slot_weights import SlotWeighting, prefix_log_weights
from foretest.weights.weight_bounds import BoundMasses
from foretest.weights.weightings import PointWeights

_SALT = 11  # of the keys of prefixes: none shares its draws with the ranking, or with one of another length
_AT_ONCE = 4096  # prefixes whose draws are in memory at a time

Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]


class PrefixPrices(NamedTuple):
    """The weights and caps of the prefixes of some displays, one shown slot after the other; 0 where none was asked
    for."""

    log_w: Floats  # log π_t(a_1..a_k)/π_p(a_1..a_k)
    caps: dict[float, Floats]  # by bound, in rows: c̃_k, 0 where there is none; q_k there and at a third; E_p[w̃_k²]
    bounds: BoundMasses | None = None  # at all bounds that one is chosen from, with a row per slot


def prefix_displays(displays: Displays, rows: Indices, lengths: Indices) -> Displays:
    """Some rows (repeats allowed), each with its ranking cut to a length; keys differ by length."""
    keys, ranking = displays.key()[rows], displays.ranking
    cut = lengths < displays.slots[rows]
    for k in sorted(set(lengths[cut].tolist())):
        some = cut & (lengths == k)
        keys[some] = derive(keys[some], _SALT + k)
    shorter = Ragged(ranking.values, ranking.starts[rows], lengths)
    return replace(displays.take(rows), ranking=shorter, identity=keys, key_columns=None)


def prefix_prices(
    displays: Displays, log_w: Floats, normaliser: Normaliser, earns: Flags, bounds: Sequence[float], *,
    together: Sequence[float] = (), whole: BoundMasses | None = None,
) -> PrefixPrices:  # fmt: skip
    """Weights of all prefixes, and caps of those whose slot earns; `log_w` is that of the shown rankings.

    Of the ascending bounds in `together` it is also told how the weights vary together; `whole` has this for the
    rankings, where it is known.
    """
    slots = displays.slots
    row, last = np.repeat(np.arange(len(displays)), slots), np.cumsum(slots) - 1
    length = np.arange(len(row)) - np.repeat(last + 1 - slots, slots) + 1
    caps = {bound: np.zeros((4, len(row))) for bound in bounds if bound not in together}
    masses = BoundMasses(*(np.zeros_like(part) for part in BoundMasses.empty(len(row), len(together))))
    is_whole = length == slots[row]
    priced = [(Purpose.PREFIX, earns & ~is_whole)]
    if whole is None or caps:
        priced.append((Purpose.REWARDED, earns & is_whole))
    for purpose, at in ((purpose, at) for purpose, wanted in priced for at in _pieces(np.flatnonzero(wanted))):
        part = prefix_displays(displays, row[at], length[at])
        alone = normaliser.for_batch(part)
        for bound, of_bound in caps.items():
            of_prefixes = alone.at_adaptive_cap(part, bound, purpose)
            mass = np.where(of_prefixes.q > 0.0, of_prefixes.q, 1.0)
            second = of_prefixes.squares / mass / mass
            of_bound[:, at] = of_prefixes.cap, of_prefixes.q, of_prefixes.q_below, second
        if len(together):
            masses.put(at, alone.at_bounds(part, together, purpose))
    if whole is not None and len(together):
        at = np.flatnonzero(earns & is_whole)
        masses.put(at, whole.take(row[at]))
    prefix_log_w = prefix_log_weights(log_w, displays, normaliser)
    if not len(together):
        return PrefixPrices(prefix_log_w, caps)
    return PrefixPrices(prefix_log_w, {**caps, **masses.caps(together)}, masses)


def _pieces(places: Indices) -> list[Indices]:
    return [places[begin : begin + _AT_ONCE] for begin in range(0, len(places), _AT_ONCE)]


@dataclass(frozen=True)
class PrefixAdaptive(SlotWeighting):
    """h_k = w̃_k = min(w_k, c̃_k)/q_k ≤ bound of the prefix a_1..a_k, c̃_k(x) the largest cap for which that holds; 1
    where there is none."""

    banded: ClassVar[bool] = True
    marginal: ClassVar[bool] = False
    bound: float

    @property
    def bounds(self) -> tuple[float, ...]:
        return (self.bound,)

    def of_prefixes(self, prices: PrefixPrices, weighed: WeighedSlots) -> PointWeights:
        """The weights of rewarded rows, one column per metric."""
        places = weighed.places
        terms = SlotTerms.capped(prices.log_w[places], *prices.caps[self.bound][:, places])
        return row_weights(dict.fromkeys(weighed.rewards, terms), weighed)
