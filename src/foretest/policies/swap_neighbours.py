"""Neighbours swapped: the sort by score with some neighbouring places exchanged, the gentlest exploration.

With probability 1/2 each the pairs of places are (1,2), (3,4), … or (2,3), (4,5), …; they reach to place min(K+1, M),
so that the item just below the last slot may enter. Each pair is swapped with probability p, independently:

    π(a) = ½·Π over pairs of the first kind + ½·Π over pairs of the second kind,

each factor p where a has the pair swapped and 1 − p where not, 0 for any ranking that no swaps lead to.
"""

from __future__ import annotations

from datetime import date

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged, places_within
from foretest.errors import BadInput, is_finite_number
from foretest.policies.by_rank import SortPolicy, places_in_sort

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_KINDS = (0, 1)  # the place, from 0, at which the first pair begins


class SwapNeighbours(SortPolicy):
    """The sort by score with pairs of neighbouring places swapped; an item of place j is shown at j − 1, j or j + 1.

    Parameters
    ----------
    scores: the list column whose sort is followed (ties: the lower position first).
    swap: p, the probability that a pair is swapped, from 0 to 1/2.
    log_prob, prob: the column, if any, with the logged (log-)probability of the shown ranking.
    replay_seed: the seed of the service that drew the log, if it is to be replayed (`foretest.serving`).
    trained_until: of a treatment, the last day that its model has seen: rows of the log up to it are left out.

    The probability that it shows items 1 and 2 of three:

    >>> import numpy as np
    >>> import foretest as ft
    >>> shown = ft.Ragged.of([[1, 2]])
    >>> scores = {"scores": ft.Ragged.of([[0.3, 1.2, 0.7]])}
    >>> display = ft.Displays(scores, shown, eligible=np.array([3]), identity=np.zeros(1, np.uint64))
    >>> policy = ft.SwapNeighbours("scores", swap=0.25)
    >>> float(np.exp(policy.log_prob(display, shown))[0].round(3))
    0.75
    """

    def __init__(
        self, scores: str, swap: float, *, log_prob: str | None = None, prob: str | None = None,
        replay_seed: int | None = None, trained_until: date | str | None = None,
    ) -> None:  # fmt: skip
        if not is_finite_number(swap) or not 0.0 <= swap <= 0.5:
            raise BadInput(f"swap = {swap!r}: expected a number from 0 to 0.5, the probability that a pair is swapped.")
        super().__init__(scores, log_prob=log_prob, prob=prob, trained_until=trained_until)
        self.remember_replay(replay_seed)
        self.swap = float(swap)

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        s, lengths = displays[self.scores], rankings.lengths
        sort = places_in_sort(s)
        row = np.repeat(np.arange(len(lengths)), lengths)
        slot = places_within(lengths)
        moved = sort.values[sort.starts[row] + rankings.flat()] - slot
        kinds = [self._log_of_kind(kind, moved, slot, row, np.minimum(lengths + 1, s.lengths)) for kind in _KINDS]
        log_p = np.minimum(np.logaddexp(*kinds) - np.log(2.0), 0.0)
        not_finite = np.bincount(np.repeat(np.arange(len(s)), s.lengths)[~np.isfinite(s.flat())], minlength=len(s)) > 0
        return np.where(not_finite, np.nan, log_p)

    def _log_of_kind(self, kind: int, moved: Ints, slot: Ints, row: Ints, places: Ints) -> Floats:
        """log of the product over the pairs of one kind; `moved` is how far from its slot an item's place is."""
        first, second = _pairs(kind, slot, places[row])
        possible = (moved == 0) | (first & (moved == 1)) | (second & (moved == -1))
        with np.errstate(divide="ignore"):
            log_swap, log_stay = np.log(self.swap), np.log1p(-self.swap)
        # items are distinct: what the first of a pair shows decides what the second does
        logs = np.where(first, np.where(moved == 1, log_swap, log_stay), 0.0)
        return np.bincount(row, weights=np.where(possible, logs, -np.inf), minlength=len(places)).astype(np.float64)

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        s, slots = displays[self.scores], displays.slots
        row, slot = np.repeat(np.arange(len(slots)), slots), places_within(slots)
        kind = (uniforms[:, 0] >= 0.5).astype(np.int64)[row]
        first, second = _pairs(kind, slot, np.minimum(slots + 1, s.lengths)[row])
        pair = 1 + (slot - kind) // 2  # the pairs' own uniforms follow the first; a slot without a pair uses none
        swapped = uniforms[row, np.maximum(pair, 0)] < self.swap
        place = slot + np.where(swapped, first.astype(np.int64) - second, 0)
        sort = places_in_sort(s)
        items = np.empty(len(sort.values), np.int32)
        items[np.repeat(sort.starts, s.lengths) + sort.values] = places_within(s.lengths)
        return Ragged.packed(items[sort.starts[row] + place], slots)

    def marginals_by_rank(self, eligible: int, slots: int) -> Floats:
        table = np.zeros((slots, eligible))
        slot, last = np.arange(slots), np.full(slots, min(slots + 1, eligible))
        for kind in _KINDS:
            first, second = _pairs(kind, slot, last)
            paired = first | second
            table[slot, slot] += 0.5 * np.where(paired, 1.0 - self.swap, 1.0)
            table[slot[first], slot[first] + 1] += 0.5 * self.swap
            table[slot[second], slot[second] - 1] += 0.5 * self.swap
        return table


def _pairs(kind: int | Ints, slot: Ints, places: Ints) -> tuple[Mask, Mask]:
    """Is a slot (from 0) the first of a pair of this kind, or the second? Pairs lie within the first `places`."""
    begins = (slot >= kind) & ((slot - kind) % 2 == 0)
    return begins & (slot + 1 < places), (slot > kind) & ~begins
