"""What every policy of a service shares: checked scores, the best of them in order, and where numbers come from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from foretest.errors import BadInput

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Numbers = Callable[[int], Floats]  # the first so many uniform numbers of a display; not to be written to


class Scores(NamedTuple):
    """The finite scores of a display's candidates, with the lowest and the highest."""

    values: Floats
    low: float
    high: float

    @classmethod
    def of(cls, scores: Any) -> Scores:
        """Checked, as float64, from a list or an array; a copy."""
        try:
            values = np.array(scores, np.float64)
        except (TypeError, ValueError):
            raise BadInput("scores: expected a list of numbers, one per candidate.") from None
        if values.ndim != 1:
            raise BadInput(f"scores have the shape {values.shape}: expected a list of numbers, one per candidate.")
        if not len(values):
            raise BadInput("scores are empty: a display needs at least one candidate.")
        low, high = float(values.min()), float(values.max())  # NaN wherever a score is NaN
        if not math.isfinite(high - low):
            _refuse(values)
        return cls(values, low, high)


def _refuse(values: Floats) -> None:
    """Say which score is not finite, or that two are further apart than a number can say."""
    wrong = np.flatnonzero(~np.isfinite(values))
    if not len(wrong):
        raise BadInput("scores are so far apart that their difference is infinite: scale them.")
    kind = "NaN" if np.isnan(values[wrong[0]]) else "infinite"
    raise BadInput(
        f"the score at position {wrong[0]} is {kind}: scores must be finite, so leave an item that may not be shown out"
        " of the lists."
    )


class Drawn(NamedTuple):
    """A ranking as positions among the candidates, best slot first, and its log-probability under the policy."""

    ranking: list[int]
    log_prob: float


class ServingPolicy(Protocol):
    """A distribution over rankings of one display's candidates."""

    def draw(self, scores: Scores, slots: int, numbers: Numbers) -> Drawn:
        """A ranking of `slots` items, at most as many as there are candidates."""
        ...

    def log_prob(self, scores: Scores, ranking: Sequence[int]) -> float:
        """log π of any ranking."""
        ...

    def slot_probabilities(self, scores: Scores, ranking: Sequence[int]) -> list[float]:
        """P(a_k in slot k) of the items of a ranking."""
        ...


def best(values: Floats, depth: int) -> Ints:
    """The positions of the `depth` highest scores, in order; ties: the lower position first."""
    if depth == 1:
        return np.array([values.argmax()])
    if 2 * depth < len(values):
        top = values.argpartition(len(values) - depth)[len(values) - depth :]
        if np.count_nonzero(values >= values[top].min()) == depth:  # no other ties with the last of them
            top.sort()  # ties among them: by position
            return np.asarray(top[(-values[top]).argsort(kind="stable")])
    return (-values).argsort(kind="stable")[:depth]


def places(values: Floats, ranking: Sequence[int]) -> list[int]:
    """The place of each item of a ranking in the sort by score, from 0; ties: the lower position first."""
    items = np.asarray(ranking)
    own = values[items, None]
    ahead = (values > own) | ((values == own) & (np.arange(len(values)) < items[:, None]))
    return [int(place) for place in ahead.sum(axis=1)]


def log(x: float) -> float:
    """The natural logarithm, −∞ of 0."""
    return math.log(x) if x > 0.0 else -math.inf


def log_add(a: float, b: float) -> float:
    """log(e^a + e^b)."""
    low, high = (a, b) if a < b else (b, a)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))
