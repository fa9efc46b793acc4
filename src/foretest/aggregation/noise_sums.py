"""Sums of what rewards add to the noise of an uplift (`weights.noise_terms`), of each weighting with E_p[w̃ | x] = 1.

Beside Σ r²·E_p[w̃² | x], for the predicted number of effective rewards, stand Σ r and the number of the same rewards:
sums of an earlier version, which lack all three, may have been added to these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from foretest.aggregation.scaled_sums import ScaledSums
from foretest.displays.batch import Floats
from foretest.weights.noise_terms import NoiseTerms

SECOND, REWARDS, POSITIVES, COUNT = "noise_second", "noise_rewards", "noise_positives", "noise_count"
OBSERVED = ("noise_observed", "noise_observed_r", "noise_observed_1")  # by power of r: 2, 1, 0
EXPECTED = ("noise_expected", "noise_expected_r", "noise_expected_1")
OF_SIZES = (SECOND, REWARDS, POSITIVES, OBSERVED[0], EXPECTED[0])  # rewards counted by their size
OF_ROWS = (COUNT, OBSERVED[2], EXPECTED[2])  # without a reward in them
_FARTHEST_UNIT = 340.0  # its logarithm; beyond, its square is no float
_ROUNDING = 1e-9  # of second moments: below it weights are 1 to rounding


class NoiseSums(NamedTuple):
    """What the log shows of Σ (r − β)²·(w̃ − 1)², and what it would be on average."""

    observed: float
    expected: float
    second: float  # Σ r²·E_p[w̃² | x]
    rewards: float  # Σ r of the same rewards
    positives: float  # and their number

    @property
    def inflation(self) -> float:
        """How many times the variance that a log shows is on average: infinite where it shows none, 1 where weights are
        1 to rounding."""
        if not self.expected > _ROUNDING * self.second:
            return 1.0
        return self.expected / self.observed if self.observed > 0.0 else math.inf

    def effective(self, positives: float) -> float | None:
        """(Σr)²/Σ r²·E_p[w̃² | x], the predicted number of effective rewards; None where there is none. Of the
        `positives` of the log those that have no such sums count as more of the same kind."""
        if not self.second > 0.0 or not self.positives:
            return None
        return self.rewards / self.second * self.rewards * (positives / self.positives)


class Amount(NamedTuple):
    """What one sum is to be increased by, of each row."""

    name: str
    of_rows: Any


def noise_amounts(noise: NoiseTerms, r: Floats, slots: Any, log_unit: float) -> Iterator[Amount]:
    """What each row adds to the sums in units of exp(log_unit); `slots` is how many terms each has, where all rows are
    weighed."""
    if abs(log_unit) > _FARTHEST_UNIT:
        return
    unit = np.exp(-log_unit)
    for names, terms in ((OBSERVED, noise.observed), (EXPECTED, noise.expected)):
        for name, column in zip(names, terms.T, strict=False):
            yield Amount(name, column * unit * unit)
    yield Amount(SECOND, noise.second * unit * unit)
    yield Amount(REWARDS, r * unit)
    yield Amount(POSITIVES, (r != 0.0) * unit)
    if noise.observed.shape[1] > 1:
        yield Amount(COUNT, slots * unit)


def noise_sums(sums: ScaledSums, value: float = 0.0) -> NoiseSums | None:
    """The sums that were added, about β; where all rows are weighed β = `value`/Σ 1, else 0. None where there are none,
    as in files from before they were."""
    if SECOND not in sums.arrays or abs(sums.log_unit) > _FARTHEST_UNIT:
        return None
    unit = float(np.exp(sums.log_unit))
    by_name = {name: float(sums.get(name).sum()) for name in (SECOND, REWARDS, POSITIVES, COUNT, *OBSERVED, *EXPECTED)}
    beta = value / (by_name[COUNT] * unit) if by_name[COUNT] else 0.0
    observed, expected = (
        (by_name[two] - 2.0 * beta * by_name[one] + beta * beta * by_name[zero]) * unit * unit
        for two, one, zero in (OBSERVED, EXPECTED)
    )
    return NoiseSums(
        observed, expected, by_name[SECOND] * unit * unit, by_name[REWARDS] * unit, by_name[POSITIVES] * unit
    )
