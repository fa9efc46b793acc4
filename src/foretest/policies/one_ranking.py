"""Policies that always show the same: one ranking per display has probability 1."""

from __future__ import annotations

import numpy as np

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged, places_within
from foretest.policies.base import Policy, marginal_places


class OneRanking(Policy):
    """π(a) = 1 for the first K items of one list per display, 0 for any other ranking."""

    deterministic = True

    def _list(self, displays: Displays) -> Ragged:
        """The list of each display, best slot first, at least as long as what the display shows."""
        raise NotImplementedError

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        own = self._list(displays)
        first = Ragged(own.values, own.starts, rankings.lengths)
        row = np.repeat(np.arange(len(rankings)), rankings.lengths)
        other = np.bincount(row, weights=first.flat() != rankings.flat(), minlength=len(rankings))
        return np.where(other > 0.0, -np.inf, 0.0)

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        own = self._list(displays)
        return Ragged.packed(Ragged(own.values, own.starts, displays.slots).flat(), displays.slots)

    def slot_marginals(self, displays: Displays) -> Ragged:
        """P(item in slot): 1 for the item that the list has there."""
        starts, out = marginal_places(displays)
        out[:] = 0.0
        slots, own = displays.slots, self._list(displays)
        row = np.repeat(np.arange(len(displays)), slots)
        slot = places_within(slots)
        out[starts[row] + slot * displays.eligible[row] + own.values[own.starts[row] + slot]] = 1.0
        return Ragged(out, starts, displays.eligible * slots)
