"""What the choice of a bound needs of a metric: how the weights at all bounds vary together, over its rewards.

Σ r² E_p[w̃_b w̃_b' | x] by pair of bounds and Σ r E_p[(w̃_b − w̃_b0)⁺ | x] by bound; where all rows are weighed also the
first with r and with 1 in place of r², which give it for r − β at any β. Sums alone, so that the choice is made in the
analysis and daily files add up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foretest.aggregation.ledger import Account, Ints
from foretest.aggregation.quantities import BOUND_COUNT, BOUND_GAINS, BOUND_PRODUCTS
from foretest.displays.batch import Floats
from foretest.weights.weight_bounds import BoundMasses

_FARTHEST_UNIT = 340.0  # its logarithm; beyond, where all weights are below 1e-148, its square is no float


class BoundSums(NamedTuple):
    """The sums over the rewards of a metric: matrices by bound and bound, by power of r, and a vector by bound."""

    products: dict[int, Floats]
    gains: Floats
    weighed: float  # rows, or by slot shown slots, where all are weighed; else 0

    def about(self, beta: float) -> Floats:
        """Σ (r − β)² E_p[w̃_b w̃_b' | x]; β is 0 where only rewarded rows are weighed."""
        if not self.weighed:
            return self.products[2]
        return self.products[2] - 2.0 * beta * self.products[1] + beta * beta * self.products[0]


def add_bound_sums(
    account: Account, masses: BoundMasses, r: Floats, *, dense: bool, displays: Floats, owner: Ints | None = None
) -> None:
    """Add rewards r with the masses of their displays, or of their slots; `dense` where those without are weighed,
    `displays` being how many displays each stands for, which their r have in them. Where several rewards share their
    masses, `owner` is the row of each."""
    some = np.arange(len(r)) if dense else np.flatnonzero(r)
    if not len(some):
        return
    if account.exponent is None:  # no reward so far
        account.raise_to(0)
    if abs(account.log_unit) > _FARTHEST_UNIT:
        return
    unit = np.exp(-account.log_unit)
    place = some if owner is None else owner[some]
    scaled, products = r[some] * unit, masses.products[place].reshape(len(some), -1)
    account.put(BOUND_PRODUCTS[2], np.square(scaled) @ products)
    account.put(BOUND_GAINS, scaled @ masses.gains[place])
    if dense:
        account.put(BOUND_PRODUCTS[1], unit * ((scaled * displays) @ products))
        account.put(BOUND_PRODUCTS[0], unit * unit * (np.square(displays) @ products))
        account.put(BOUND_COUNT, unit * displays.sum())


def bound_sums(account: Account) -> BoundSums | None:
    """The sums that were added; None where there are none, as in files from before they were."""
    if not account.has(BOUND_PRODUCTS[2]) or abs(account.log_unit) > _FARTHEST_UNIT:
        return None
    gains, unit = account.get(BOUND_GAINS), np.exp(account.log_unit)
    square = (len(gains), len(gains))
    products = {
        power: account.get(quantity).reshape(square) * unit * unit
        for power, quantity in BOUND_PRODUCTS.items()
        if account.has(quantity)
    }
    return BoundSums(products, gains * unit, account.total(BOUND_COUNT) * float(unit))
