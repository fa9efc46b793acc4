"""A mixture: each display is ranked by one of several policies, with known shares of the traffic."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate

from foretest.errors import BadInput, is_finite_number
from foretest.serving.base import Drawn, Floats, Numbers, Scores, ServingPolicy, log_add

_LEAST = 2.0**-53


@dataclass(frozen=True)
class Mixture:
    """log π(a) = LSE over j of log α_j + log π_j(a), from pairs (share, policy); shares are scaled to sum to 1.

    The first number of a display picks the policy; its place within that policy's share is a uniform number again, and
    replaces the first in the policy's own draw.

    >>> from foretest.serving import PlackettLuce, Sampler, TopK
    >>> mostly_greedy = Mixture([(0.9, TopK()), (0.1, PlackettLuce(temperature=2.0))])
    >>> Sampler(mostly_greedy, slots=2, seed=7).draw([0.3, 1.2, 0.7], key=1).ranking
    [1, 2]
    """

    components: Sequence[tuple[float, ServingPolicy]]  # pairs (share, policy), shares above 0
    _edges: tuple[float, ...] = field(init=False, repr=False, compare=False)  # where each share ends
    _logs: tuple[float, ...] = field(init=False, repr=False, compare=False)  # of the shares

    def __post_init__(self) -> None:
        if not self.components:
            raise BadInput("a mixture needs at least one component.")
        if not all(isinstance(part, tuple | list) and len(part) == 2 for part in self.components):
            raise BadInput("the components of a mixture are pairs (share, policy).")
        for share, _ in self.components:
            if not is_finite_number(share) or share <= 0.0:
                raise BadInput(f"share = {share!r}: expected a number above 0.")
        total = sum(share for share, _ in self.components)
        object.__setattr__(self, "components", tuple((share / total, policy) for share, policy in self.components))
        edges = list(accumulate(share for share, _ in self.components))
        object.__setattr__(self, "_edges", tuple(edge / edges[-1] for edge in edges))
        object.__setattr__(self, "_logs", tuple(math.log(share) for share, _ in self.components))

    def draw(self, scores: Scores, slots: int, numbers: Numbers) -> Drawn:
        """The ranking of the policy that the first number picks, with its probability under all of them."""
        picked, place = self._picked(float(numbers(1)[0]))

        def own_numbers(count: int) -> Floats:
            own = numbers(count).copy()
            own[0] = place
            return own

        ranking, own = self.components[picked][1].draw(scores, slots, own_numbers)
        logs = [
            log_share + (own if j == picked else policy.log_prob(scores, ranking))
            for j, (log_share, (_, policy)) in enumerate(zip(self._logs, self.components, strict=True))
        ]
        return Drawn(ranking, reduce(log_add, logs))

    def log_prob(self, scores: Scores, ranking: Sequence[int]) -> float:
        """log π of any ranking."""
        parts = zip(self._logs, self.components, strict=True)
        return reduce(log_add, [log_share + policy.log_prob(scores, ranking) for log_share, (_, policy) in parts])

    def slot_probabilities(self, scores: Scores, ranking: Sequence[int]) -> list[float]:
        """P(a_k in slot k): the shares times the components' own."""
        parts = [(share, policy.slot_probabilities(scores, ranking)) for share, policy in self.components]
        return [sum(share * part[slot] for share, part in parts) for slot in range(len(ranking))]

    def _picked(self, u: float) -> tuple[int, float]:
        """The number of the policy that u picks, and the place of u within its share."""
        picked = min(bisect_right(self._edges, u), len(self._edges) - 1)
        share = self.components[picked][0]
        return picked, min(max((u - (self._edges[picked] - share)) / share, _LEAST), 1.0 - _LEAST)
