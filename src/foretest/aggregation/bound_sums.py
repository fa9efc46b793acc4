"""What the choice of a bound needs of a metric: how the weights at all bounds vary together, over its rewards.

Σ r² E_p[w̃_b w̃_b' | x] by pair of bounds and Σ r E_p[(w̃_b − w̃_b0)⁺ | x] by bound; where all rows are weighed also the
first with r and with 1 in place of r², which give it for r − β at any β. Sums alone, so that the choice is made in the
analysis and daily files add up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.aggregation.scaled_sums import ScaledSums
from foretest.displays.batch import Floats
from foretest.weights.weight_bounds import BoundMasses

# names of sums; of products, the power of r
PRODUCTS = {2: "bound_products", 1: "bound_products_r", 0: "bound_products_1"}
GAINS, COUNT = "bound_gains", "bound_count"
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
    sums: ScaledSums, masses: BoundMasses, r: Floats, *, dense: bool, multiple: Floats | None = None,
    owner: npt.NDArray[np.int64] | None = None,
) -> None:  # fmt: skip
    """Add rewards r with the masses of their displays, or of their slots; `dense` where those without are weighed,
    `multiple` then how many displays each stands for in a thinned log, whose r have it in them. Where several rewards
    share their masses, `owner` is the row of each."""
    some = np.arange(len(r)) if dense else np.flatnonzero(r)
    if not len(some):
        return
    if sums.exponent is None:  # no reward so far
        sums.raise_to(0)
    if abs(sums.log_unit) > _FARTHEST_UNIT:
        return
    unit = np.exp(-sums.log_unit)
    place = some if owner is None else owner[some]
    scaled, products = r[some] * unit, masses.products[place].reshape(len(some), -1)
    sums.add(PRODUCTS[2], np.square(scaled) @ products)
    sums.add(GAINS, scaled @ masses.gains[place])
    if dense:
        if multiple is None:
            once, squares, count = scaled @ products, products.sum(axis=0), float(len(some))
        else:
            once, squares = (scaled * multiple) @ products, np.square(multiple) @ products
            count = float(multiple.sum())
        sums.add(PRODUCTS[1], unit * once)
        sums.add(PRODUCTS[0], unit * unit * squares)
        sums.add(COUNT, unit * count)


def bound_sums(sums: ScaledSums) -> BoundSums | None:
    """The sums that were added; None where there are none, as in files from before they were."""
    if PRODUCTS[2] not in sums.arrays or abs(sums.log_unit) > _FARTHEST_UNIT:
        return None
    gains, unit = sums.arrays[GAINS], np.exp(sums.log_unit)
    square = (len(gains), len(gains))
    products = {
        power: sums.arrays[name].reshape(square) * unit * unit
        for power, name in PRODUCTS.items()
        if name in sums.arrays
    }
    return BoundSums(products, gains * unit, float(sums.get(COUNT)[0]) * float(unit))
