"""Plackett-Luce, drawn as the highest scores with Gumbel noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foretest.errors import BadInput, is_finite_number
from foretest.serving.base import Drawn, Floats, Ints, Numbers, Scores, log_add

#: Gumbel noise of 52 bits lies between −3.6 and 36.7: over a gap of so much no item overtakes another
WIDE_GAP = 64.0
#: spread of scores, in temperatures, above which noise would lose digits beside them
WIDE_SPREAD = 1e6
_TINY = 1e-280  # below it a tail may have lost digits to underflow
_FIRST = 1e-8  # where the integrals of slot probabilities begin, in units of the race's time


@dataclass(frozen=True)
class PlackettLuce:
    """log π(a) = Σ_k s[a_k]/T − LSE over items not in a_1..a_{k−1} of s/T.

    The K highest s/T − log(−log u), u a uniform number per candidate, are a ranking of that distribution (Yellott
    1977).

    >>> from foretest.serving import Sampler
    >>> draw = Sampler(PlackettLuce(temperature=0.5), slots=2, seed=7).draw([0.3, 1.2, 0.7], key=1042)
    >>> draw.ranking, round(draw.log_prob, 3)
    ([1, 2], -0.798)
    """

    temperature: float = 1.0  # T, above 0: the higher, the more even the draw

    def __post_init__(self) -> None:
        if not is_finite_number(self.temperature) or not self.temperature > 0.0:
            raise BadInput(f"temperature = {self.temperature!r}: expected a number above 0.")
        object.__setattr__(self, "temperature", float(self.temperature))

    def draw(self, scores: Scores, slots: int, numbers: Numbers) -> Drawn:
        """The K highest scores with noise."""
        x = self._scaled(scores)
        noise = np.log(numbers(len(x)))
        np.negative(noise, out=noise)
        np.log(noise, out=noise)
        near = compressed(x) if (scores.high - scores.low) * (1.0 / self.temperature) > WIDE_SPREAD else x
        ranking = highest(np.subtract(near, noise, out=noise), slots)
        return Drawn(ranking.tolist(), _log_prob(x, ranking))

    def log_prob(self, scores: Scores, ranking: Sequence[int]) -> float:
        """log π of any ranking."""
        return _log_prob(self._scaled(scores), np.asarray(ranking))

    def slot_probabilities(self, scores: Scores, ranking: Sequence[int]) -> list[float]:
        """P(a_k in slot k), by the race of exponentials: item i arrives at rate θ_i = exp(s_i/T), the first K in order.

        P(i at k) = ∫ θ_i e^(−θ_i u)·P(k − 1 of the others have arrived by u) du, by the trapezoid rule on log u, which
        converges exponentially. The first slot is the softmax itself.
        """
        x, slots = self._scaled(scores), len(ranking)
        theta = np.exp(np.maximum(x, -690.0))
        theta /= theta.sum()
        if slots == 1:
            return [float(theta[ranking[0]])]
        shown = theta[np.asarray(ranking)]
        last = float(np.partition(theta, len(x) - slots)[len(x) - slots])
        step = math.log(2.0) / math.ceil(math.log(2.0) * math.sqrt(slots + 1.0) / 0.5)
        time = np.exp(np.arange(math.log(_FIRST), math.log(80.0 / last), step))
        others = _arrivals(np.delete(theta, ranking), slots, time)
        found = [float(shown[0])]
        for slot in range(1, slots):
            arrived = others
            for other in range(slots):
                if other != slot:
                    arrived = _one_more(arrived, shown[other], time)
            density = shown[slot] * time * np.exp(-shown[slot] * time)
            found.append(min(1.0, step * float(density @ arrived[slot])))
        return found

    def _scaled(self, scores: Scores) -> Floats:
        """(s − max s)/T."""
        inverse = 1.0 / self.temperature
        if not math.isfinite((scores.low - scores.high) * inverse):
            raise BadInput(f"scores are too far apart for temperature = {self.temperature:g}: scale them.")
        x = scores.values - scores.high
        x *= inverse
        return x


def highest(z: Floats, slots: int) -> Ints:
    """The positions of the highest numbers, in order."""
    if slots == len(z):
        return (-z).argsort(kind="stable")
    top = z.argpartition(len(z) - slots)[len(z) - slots :]
    return np.asarray(top[(-z[top]).argsort()])


def compressed(x: Floats) -> Floats:
    """Scores with gaps above WIDE_GAP made that wide: no draw changes, and noise keeps its digits beside them."""
    order = np.argsort(-x, kind="stable")
    near = np.zeros(len(x))
    near[order[1:]] = -np.cumsum(np.minimum(-np.diff(x[order]), WIDE_GAP))
    return near


def _log_prob(x: Floats, ranking: Ints) -> float:
    """log π from scaled scores; tails are added from the end, never found by subtracting what was shown."""
    e = np.exp(x)
    shown, values = e[ranking].tolist(), x[ranking].tolist()
    e[ranking] = 0.0
    tail, answer = float(e.sum()), 0.0
    if tail + shown[-1] < _TINY:
        return _log_prob_by_tails(x, ranking, values)
    for value, weight in zip(reversed(values), reversed(shown), strict=True):
        tail += weight
        answer += value - math.log(tail)
    return answer


def _log_prob_by_tails(x: Floats, ranking: Ints, values: list[float]) -> float:
    """The same in logarithms, for tails below the smallest numbers."""
    rest, tail, answer = np.delete(x, ranking), -math.inf, 0.0
    if len(rest):
        most = float(rest.max())
        tail = most + math.log(float(np.exp(rest - most).sum()))
    for value in reversed(values):
        tail = log_add(value, tail)
        answer += value - tail
    return answer


def _arrivals(theta: Floats, slots: int, time: Floats) -> Floats:
    """P(k of these items have arrived), k below `slots`, at every time."""
    counts = np.zeros((slots, len(time)))
    counts[0] = 1.0
    for rate in theta:
        counts = _one_more(counts, rate, time)
    return counts


def _one_more(counts: Floats, rate: float, time: Floats) -> Floats:
    """The counts with one more item."""
    waiting, arrived = np.exp(-rate * time), -np.expm1(-rate * time)
    more = counts * waiting
    more[1:] += counts[:-1] * arrived
    return more
