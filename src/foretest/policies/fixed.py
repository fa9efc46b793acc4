"""Fixed: the ranking that a column holds, always."""

from __future__ import annotations

import numpy as np

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged, places_within
from foretest.policies.base import Policy, marginal_places


class Fixed(Policy):
    """π(a) = 1 for the first K items of the row's own list, 0 for any other ranking.

    Parameters
    ----------
    ranking: the list column with the items that the policy shows, best slot first, at least as many as the display
        shows: positions, or item ids where the log names `candidates`.
    log_prob, prob: the column, if any, with the logged (log-)probability of the shown ranking.
    """

    deterministic = True

    def __init__(self, ranking: str, *, log_prob: str | None = None, prob: str | None = None) -> None:
        self.ranking = ranking
        self.remember_logged(log_prob, prob)

    @property
    def ranking_columns(self) -> tuple[str, ...]:
        return (self.ranking,)

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        own = displays[self.ranking]
        first = Ragged(own.values, own.starts, rankings.lengths)
        row = np.repeat(np.arange(len(rankings)), rankings.lengths)
        other = np.bincount(row, weights=first.flat() != rankings.flat(), minlength=len(rankings))
        return np.where(other > 0.0, -np.inf, 0.0)

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        own = displays[self.ranking]
        return Ragged.packed(Ragged(own.values, own.starts, displays.slots).flat(), displays.slots)

    def slot_marginals(self, displays: Displays) -> Ragged:
        """P(item in slot): 1 for the item that the list has there."""
        starts, out = marginal_places(displays)
        out[:] = 0.0
        slots = displays.slots
        row = np.repeat(np.arange(len(displays)), slots)
        slot = places_within(slots)
        own = displays[self.ranking]
        out[starts[row] + slot * displays.eligible[row] + own.values[own.starts[row] + slot]] = 1.0
        return Ragged(out, starts, displays.eligible * slots)
