"""Sums of what rewards add to the noise of an uplift (`weights.noise_terms`), of each weighting with E_p[w̃ | x] = 1.

Beside Σ r²·E_p[w̃² | x], for the predicted number of effective rewards, stand Σ r and the number of the same rewards:
sums of an earlier version, which lack all three, may have been added to these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from foretest.aggregation.ledger import Account, Places
from foretest.aggregation.quantities import (
    NOISE_COUNT,
    NOISE_EXPECTED,
    NOISE_OBSERVED,
    NOISE_POSITIVES,
    NOISE_REWARDS,
    NOISE_SECOND,
    Quantity,
)
from foretest.displays.batch import Floats
from foretest.weights.noise_terms import NoiseTerms

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


def add_noise(account: Account, noise: NoiseTerms, r: Floats, terms: Floats, at: Places) -> None:
    """Add what the rewards r of some rows add; `terms` is how many terms each has, where all rows are weighed."""
    if account.exponent is None:  # no reward so far
        account.raise_to(0)
    if abs(account.log_unit) > _FARTHEST_UNIT:
        return
    unit = np.exp(-account.log_unit)
    for quantities, by_power in ((NOISE_OBSERVED, noise.observed), (NOISE_EXPECTED, noise.expected)):
        for quantity, column in zip(quantities, by_power.T, strict=False):
            account.add(quantity, column * unit * unit, at)
    account.add(NOISE_SECOND, noise.second * unit * unit, at)
    account.add(NOISE_REWARDS, r * unit, at)
    account.add(NOISE_POSITIVES, (r != 0.0) * unit, at)
    if noise.observed.shape[1] > 1:
        account.add(NOISE_COUNT, terms * unit, at)


def noise_sums(account: Account, value: float = 0.0) -> NoiseSums | None:
    """The sums that were added, about β; where all rows are weighed β = `value`/Σ 1, else 0. None where there are none,
    as in files from before they were."""
    if not account.has(NOISE_SECOND) or abs(account.log_unit) > _FARTHEST_UNIT:
        return None
    unit, count = float(np.exp(account.log_unit)), account.total(NOISE_COUNT)
    beta = value / (count * unit) if count else 0.0

    def about_beta(quantities: Sequence[Quantity]) -> float:
        two, one, zero = map(account.total, quantities)
        return (two - 2.0 * beta * one + beta * beta * zero) * unit * unit

    return NoiseSums(
        about_beta(NOISE_OBSERVED),
        about_beta(NOISE_EXPECTED),
        account.total(NOISE_SECOND) * unit * unit,
        account.total(NOISE_REWARDS) * unit,
        account.total(NOISE_POSITIVES) * unit,
    )
