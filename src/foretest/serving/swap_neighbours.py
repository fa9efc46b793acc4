"""Neighbours swapped: the sort by score with some neighbouring places exchanged.

With probability 1/2 each the pairs of places are (1,2), (3,4), … or (2,3), (4,5), …; they reach to place min(K+1, M).
Each pair is swapped with probability p, independently.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from foretest.errors import BadInput, is_finite_number
from foretest.serving.base import Drawn, Numbers, Scores, best, log, log_add

_KINDS = (0, 1)  # the place, from 0, at which the first pair begins


@dataclass(frozen=True)
class SwapNeighbours:
    """The sort by score with some pairs of neighbouring places swapped: the gentlest way to explore.

    >>> from foretest.serving import Sampler
    >>> Sampler(SwapNeighbours(0.1), slots=2, seed=7).draw([0.3, 1.2, 0.7], key=1).ranking
    [1, 2]
    """

    swap: float  # the probability that a pair is swapped, from 0 to 1/2

    def __post_init__(self) -> None:
        if not is_finite_number(self.swap) or not 0.0 <= self.swap <= 0.5:
            raise BadInput(
                f"swap = {self.swap!r}: expected a number from 0 to 0.5, the probability that a pair is swapped."
            )
        object.__setattr__(self, "swap", float(self.swap))

    def draw(self, scores: Scores, slots: int, numbers: Numbers) -> Drawn:
        """The first number chooses the kind of pairs, the next ones say pair by pair whether it is swapped."""
        reach = _reach(scores, slots)
        order = best(scores.values, reach).tolist()
        u = numbers(1 + (reach + 1) // 2).tolist()
        kind = int(u[0] >= 0.5)
        shown = order.copy()
        for pair, place in enumerate(_pairs(kind, reach), start=1):
            if u[pair] < self.swap:
                shown[place], shown[place + 1] = shown[place + 1], shown[place]
        return Drawn(shown[:slots], self._log_prob_in(order, shown[:slots]))

    def log_prob(self, scores: Scores, ranking: Sequence[int]) -> float:
        """log π of any ranking."""
        return self._log_prob_in(best(scores.values, _reach(scores, len(ranking))).tolist(), ranking)

    def _log_prob_in(self, order: list[int], ranking: Sequence[int]) -> float:
        """log π of a ranking, of the first places of the sort."""
        place_of = {item: place for place, item in enumerate(order)}
        shown = [place_of.get(item, -2) for item in ranking]
        kinds = [self._log_of_kind(kind, shown, len(order)) for kind in _KINDS]
        return min(log_add(*kinds) - math.log(2.0), 0.0)

    def _log_of_kind(self, kind: int, shown: list[int], reach: int) -> float:
        """log of the product over the pairs of one kind, −∞ where they do not lead to the ranking."""
        total, slots = 0.0, len(shown)
        expected = list(range(slots))
        for place in _pairs(kind, reach):
            if place >= slots:
                break
            if shown[place] == place + 1:
                expected[place : place + 2] = [place + 1, place][: slots - place]
                total += log(self.swap)
            else:
                total += math.log1p(-self.swap)
        return total if shown == expected else -math.inf

    def slot_probabilities(self, scores: Scores, ranking: Sequence[int]) -> list[float]:
        """P(a_k in slot k): an item of place j in the sort is at j − 1, j or j + 1."""
        slots, reach = len(ranking), _reach(scores, len(ranking))
        order = best(scores.values, reach).tolist()
        table = [dict[int, float]() for _ in range(reach)]
        for kind in _KINDS:
            paired = set[int]()
            for place in _pairs(kind, reach):
                paired |= {place, place + 1}
                for slot, other in ((place, place + 1), (place + 1, place)):
                    _add(table[slot], order[other], 0.5 * self.swap)
                    _add(table[slot], order[slot], 0.5 * (1.0 - self.swap))
            for slot in range(slots):
                if slot not in paired:
                    _add(table[slot], order[slot], 0.5)
        return [table[slot].get(item, 0.0) for slot, item in enumerate(ranking)]


def _reach(scores: Scores, slots: int) -> int:
    """How many places the pairs lie within: the item just below the last slot may enter."""
    return min(slots + 1, len(scores.values))


def _pairs(kind: int, reach: int) -> Iterator[int]:
    """The first place of every pair."""
    return iter(range(kind, reach - 1, 2))


def _add(shares: dict[int, float], item: int, share: float) -> None:
    shares[item] = shares.get(item, 0.0) + share
