"""What the choice of a bound needs of a metric: how the weights at all bounds vary together, over its rewards.

Σ r² E_p[w̃_b w̃_b' | x] by pair of bounds and Σ r E_p[(w̃_b − w̃_b0)⁺ | x] by bound: sums alone, so that the choice is made
in the analysis and daily files add up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foretest.aggregation.scaled_sums import ScaledSums
from foretest.displays.batch import Floats
from foretest.weights.weight_bounds import BoundMasses

PRODUCTS, GAINS = "bound_products", "bound_gains"  # names of sums; the first is of squares


class BoundSums(NamedTuple):
    """The two sums: a matrix by bound and bound, and a vector by bound."""

    products: Floats
    gains: Floats


def add_bound_sums(sums: ScaledSums, masses: BoundMasses, r: Floats) -> None:
    """Add rewards r with the masses of their displays, or of their slots."""
    some = np.flatnonzero(r)
    if not len(some) or sums.exponent is None:
        return
    unit = np.exp(-sums.log_unit)
    scaled = r[some] * unit
    bounds = masses.gains.shape[1]
    products = masses.products[some].reshape(len(some), -1)
    sums.add(PRODUCTS, np.square(scaled) @ products)
    sums.add(GAINS, scaled @ masses.gains[some])
    assert sums.arrays[PRODUCTS].shape == (bounds * bounds,)


def bound_sums(sums: ScaledSums) -> BoundSums | None:
    """The sums that were added; None where there are none, as in files from before they were."""
    if PRODUCTS not in sums.arrays:
        return None
    gains = sums.arrays[GAINS]
    unit = np.exp(sums.log_unit)
    return BoundSums(sums.arrays[PRODUCTS].reshape(len(gains), -1) * unit * unit, gains * unit)
