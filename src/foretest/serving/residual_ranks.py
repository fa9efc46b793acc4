"""Policies of residual ranks: at every slot, how far down the sort of the items left the shown one is.

log π(a) = Σ_k log P(residual rank of a_k | M − k + 1 items are left). Ties: the lower position is the better item.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from foretest.errors import BadInput, is_finite_number
from foretest.serving.base import Drawn, Floats, Numbers, Scores, best, log, places


class ByResidualRank:
    """A policy that chooses a residual rank at every slot."""

    def log_slot(self, rank: int, left: int) -> float:
        """log P(residual rank `rank` | `left` items are left)."""
        raise NotImplementedError

    def rank_at(self, u: float, left: int) -> int:
        """The residual rank at the quantile u of its distribution, where `left` items are left."""
        raise NotImplementedError

    def draw(self, scores: Scores, slots: int, numbers: Numbers) -> Drawn:
        """A residual rank for every slot, each by one number, and the items that have them."""
        items = len(scores.values)
        ranks = [
            min(max(self.rank_at(u, items - slot), 0), items - slot - 1)
            for slot, u in enumerate(numbers(slots).tolist())
        ]
        deepest = max(rank + slot for slot, rank in enumerate(ranks))
        left = best(scores.values, deepest + 1).tolist()
        return Drawn([left.pop(rank) for rank in ranks], self._log_prob_of(ranks, items))

    def log_prob(self, scores: Scores, ranking: Sequence[int]) -> float:
        """log π of any ranking."""
        ranks, before = [], list[int]()
        for place in places(scores.values, ranking):
            ranks.append(place - sum(earlier < place for earlier in before))
            before.append(place)
        return self._log_prob_of(ranks, len(scores.values))

    def _log_prob_of(self, ranks: list[int], items: int) -> float:
        return sum(self.log_slot(rank, items - slot) for slot, rank in enumerate(ranks))

    def slot_probabilities(self, scores: Scores, ranking: Sequence[int]) -> list[float]:
        """P(a_k in slot k): it depends on the item's place in the sort, and on M and K alone."""
        table = _marginals(self, len(scores.values), len(ranking))
        return [float(table[slot, place]) for slot, place in enumerate(places(scores.values, ranking))]


@lru_cache(maxsize=64)
def _marginals(policy: ByResidualRank, items: int, slots: int) -> Floats:
    """P(the item of place j in the sort is in slot k), one row per slot.

    Going back from slot k: an item of residual rank j is chosen there, and at each slot before it either keeps its rank
    (one below it was chosen) or moves up by one.
    """
    chosen = [np.exp([policy.log_slot(rank, left) for rank in range(left)]) for left in range(items, items - slots, -1)]
    table = np.empty((slots, items))
    for slot in range(slots):
        reach = chosen[slot]
        for earlier in reversed(chosen[:slot]):
            above, below = np.cumsum(earlier)[:-1], np.cumsum(earlier[:0:-1])[::-1]
            reach = np.append(below * reach, 0.0) + np.insert(above * reach, 0, 0.0)
        table[slot] = reach
    return table


@dataclass(frozen=True)
class EpsilonGreedy(ByResidualRank):
    """At every slot the best item left, or with probability ε any item left.

    >>> from foretest.serving import Sampler
    >>> Sampler(EpsilonGreedy(0.1), slots=2, seed=7).draw([0.3, 1.2, 0.7], key=1).ranking
    [1, 0]
    """

    epsilon: float  # the probability of choosing at random at a slot, from 0 to 1

    def __post_init__(self) -> None:
        if not is_finite_number(self.epsilon) or not 0.0 <= self.epsilon <= 1.0:
            raise BadInput(f"epsilon = {self.epsilon!r}: expected a number between 0 and 1.")
        object.__setattr__(self, "epsilon", float(self.epsilon))

    def log_slot(self, rank: int, left: int) -> float:
        return log((1.0 - self.epsilon) * (rank == 0) + self.epsilon / left)

    def rank_at(self, u: float, left: int) -> int:
        # the best item owns [0, 1−ε+ε/m), every other ε/m after it
        beyond = u - (1.0 - self.epsilon)
        return 0 if beyond < 0.0 or self.epsilon == 0.0 else math.floor(beyond * left / self.epsilon)


@dataclass(frozen=True)
class Mallows(ByResidualRank):
    """The sort by score with random displacements: at slot k the j-th best item left (from 0) has probability
    φ^j (1−φ)/(1−φ^{M−k+1}), φ the dispersion.

    >>> from foretest.serving import Sampler
    >>> Sampler(Mallows(0.3), slots=2, seed=7).draw([0.3, 1.2, 0.7], key=1).ranking
    [1, 0]
    """

    dispersion: float  # φ, above 0 and below 1: near 0 hardly anything but the sort, near 1 nearly any order
    _log_phi: float = field(init=False, repr=False, compare=False)
    _log_first: float = field(init=False, repr=False, compare=False)  # log(1 − φ)

    def __post_init__(self) -> None:
        if not is_finite_number(self.dispersion) or not 0.0 < self.dispersion < 1.0:
            raise BadInput(f"dispersion = {self.dispersion!r}: expected a number between 0 and 1.")
        object.__setattr__(self, "dispersion", float(self.dispersion))
        object.__setattr__(self, "_log_phi", math.log(self.dispersion))
        object.__setattr__(self, "_log_first", math.log(-math.expm1(self._log_phi)))

    def log_slot(self, rank: int, left: int) -> float:
        # log(1−φ^m) = log(−expm1(m log φ)) keeps its digits for φ near 1
        return rank * self._log_phi + self._log_first - math.log(-math.expm1(left * self._log_phi))

    def rank_at(self, u: float, left: int) -> int:
        log_phi = self._log_phi
        return math.floor(math.log1p(u * math.expm1(left * log_phi)) / log_phi)


@dataclass(frozen=True)
class TopK(ByResidualRank):
    """The best scores in order, always: the greedy component of a mixture.

    >>> from foretest.serving import Sampler
    >>> Sampler(TopK(), slots=2, seed=7).draw([0.3, 1.2, 0.7], key=1).ranking
    [1, 2]
    """

    def draw(self, scores: Scores, slots: int, numbers: Numbers) -> Drawn:
        """The best scores; no number is needed."""
        return Drawn(best(scores.values, slots).tolist(), 0.0)

    def log_prob(self, scores: Scores, ranking: Sequence[int]) -> float:
        """0 for the best scores in order, −∞ for any other ranking."""
        return 0.0 if best(scores.values, len(ranking)).tolist() == list(ranking) else -math.inf

    def log_slot(self, rank: int, left: int) -> float:
        return 0.0 if rank == 0 else -math.inf

    def rank_at(self, u: float, left: int) -> int:
        return 0
