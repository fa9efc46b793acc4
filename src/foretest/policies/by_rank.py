"""Policies of the sort by score: P(item in slot) depends on the item's place in it, and on M and K alone.

Mallows, epsilon-greedy and top-K share more: the probability of a slot depends on the shown item's residual rank.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged, places_within
from foretest.kernels import residual_ranks as kernel
from foretest.kernels.slot_marginals import centre_ranks
from foretest.policies.base import ScorePolicy, marginal_places


class SortPolicy(ScorePolicy):
    """A policy that reads its scores only to sort the items; ties: the lower position first."""

    def slot_marginals(self, displays: Displays) -> Ragged:
        """P(item in slot), exactly: it depends on the item's place in the sort, and on M and K alone."""
        s, slots = displays[self.scores], displays.slots
        starts, out = marginal_places(displays)
        sort = places_in_sort(s)
        for m, k in {(int(m), int(k)) for m, k in zip(s.lengths, slots, strict=True)}:
            rows = np.flatnonzero((s.lengths == m) & (slots == k))
            place = sort.values[sort.starts[rows, None] + np.arange(m)]
            table = self.marginals_by_rank(m, k)
            out[starts[rows, None] + np.arange(k * m)] = np.moveaxis(table[:, place], 0, 1).reshape(len(rows), k * m)
        return Ragged(out, starts, displays.eligible * slots)

    def marginals_by_rank(self, eligible: int, slots: int) -> Floats:
        """P(the item of rank j in the sort is in slot k), one row per slot."""
        raise NotImplementedError


def places_in_sort(scores: Ragged) -> Ragged:
    """Each item's place in the sort of its row's scores, from 0; ties: the lower position first."""
    places = np.empty(int(scores.lengths.sum()), np.int64)
    first = np.cumsum(scores.lengths) - scores.lengths
    centre_ranks(scores.values, scores.starts, scores.lengths, places, first)
    return Ragged(places, first, scores.lengths)


class ByResidualRank(SortPolicy):
    """log π(a) = Σ_k log P(residual rank of a_k | M−k+1 items are left)."""

    def _log_slot(self, rank: npt.NDArray[np.int64], left: npt.NDArray[np.int64]) -> Floats:
        """log P(residual rank `rank` | `left` items are left)."""
        raise NotImplementedError

    def _rank_at(self, u: Floats, left: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The residual rank at the quantile u of its distribution, where `left` items are left."""
        raise NotImplementedError

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        s = displays[self.scores]
        lengths = rankings.lengths
        ranks = np.empty(int(lengths.sum()), np.int64)
        kernel.residual_ranks(s.values, s.starts, s.lengths, rankings.values, rankings.starts, lengths, ranks)
        slot = places_within(lengths)
        logs = self._log_slot(np.maximum(ranks, 0), np.repeat(s.lengths, lengths) - slot)
        logs[ranks < 0] = np.nan
        # cumulative sums would carry −inf and rounding from row to row
        row = np.repeat(np.arange(len(lengths)), lengths)
        return np.bincount(row, weights=logs, minlength=len(lengths)).astype(np.float64)

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        s = displays[self.scores]
        slots = displays.slots
        slot = places_within(slots)
        u = uniforms[np.repeat(np.arange(len(slots)), slots), slot]
        left = np.repeat(s.lengths, slots) - slot
        drawn = np.clip(self._rank_at(u, left), 0, left - 1).astype(np.int32)
        kernel.items_at(s.values, s.starts, s.lengths, drawn, slots)
        return Ragged.packed(drawn, slots)

    def marginals_by_rank(self, eligible: int, slots: int) -> Floats:
        """P(the item of rank j in the sort is in slot k), one row per slot.

        Going back from slot k: an item of residual rank j is chosen there, and at each slot before it either keeps its
        rank (one below it was chosen) or moves up by one.
        """
        chosen = [
            np.exp(self._log_slot(np.arange(left), np.full(left, left)))
            for left in range(eligible, eligible - slots, -1)
        ]
        table = np.empty((slots, eligible))
        for slot in range(slots):
            reach = chosen[slot]
            for earlier in chosen[slot - 1 :: -1] if slot else ():
                above = np.cumsum(earlier)[:-1]  # P(one above residual rank j + 1 is chosen)
                below = np.cumsum(earlier[:0:-1])[::-1]  # P(one below residual rank j is chosen)
                reach = np.append(below * reach, 0.0) + np.insert(above * reach, 0, 0.0)
            table[slot] = reach
        return table
