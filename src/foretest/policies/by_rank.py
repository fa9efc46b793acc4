"""What Mallows and epsilon-greedy share: the probability of a slot depends on the shown item's residual rank."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.arrow_lists import Ragged
from foretest.displays import Displays, Floats
from foretest.kernels import residual_ranks as kernel
from foretest.policies.base import ScorePolicy


class ByResidualRank(ScorePolicy):
    """log π(a) = Σ_k log P(residual rank of a_k | M−k+1 items are left)."""

    def _log_slot(self, rank: npt.NDArray[np.int64], left: npt.NDArray[np.int64]) -> Floats:
        """log P(residual rank `rank` | `left` items are left)."""
        raise NotImplementedError

    def _rank_at(self, u: Floats, left: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The residual rank at the quantile u of the same distribution."""
        raise NotImplementedError

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        s = displays[self.scores]
        lengths = rankings.lengths
        ranks = np.empty(int(lengths.sum()), np.int64)
        kernel.residual_ranks(s.values, s.starts, s.lengths, rankings.values, rankings.starts, lengths, ranks)
        slot = np.arange(len(ranks)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        logs = self._log_slot(np.maximum(ranks, 0), np.repeat(s.lengths, lengths) - slot)
        logs[ranks < 0] = np.nan
        # cumulative sums would carry −inf and rounding from row to row
        row = np.repeat(np.arange(len(lengths)), lengths)
        return np.bincount(row, weights=logs, minlength=len(lengths)).astype(np.float64)

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        s = displays[self.scores]
        slots = displays.slots
        slot = np.arange(int(slots.sum())) - np.repeat(np.cumsum(slots) - slots, slots)
        u = uniforms[np.repeat(np.arange(len(slots)), slots), slot]
        left = np.repeat(s.lengths, slots) - slot
        drawn = np.clip(self._rank_at(u, left), 0, left - 1).astype(np.int32)
        kernel.items_at(s.values, s.starts, s.lengths, drawn, slots)
        return Ragged.packed(drawn, slots)
