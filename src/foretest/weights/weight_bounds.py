"""The bounds that `weight_bound = "auto"` chooses among, and what rankings say of the weights at all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from foretest.displays.batch import Floats

#: the least is for rare rewards, the most cuts off next to nothing
GRID = (20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 1e4, 1e6)


class BoundMasses(NamedTuple):
    """What is known of the displays' weights w̃ at every bound b, each with a row per display and a column per bound."""

    cap: Floats  # c̃; 0 where there is none
    q: Floats  # q at c̃, and at a third of it
    q_below: Floats
    products: Floats  # E_p[w̃_b w̃_b'], by b and b'
    gains: Floats  # E_p[(w̃_b − w̃_b0)⁺], b0 the least bound

    @classmethod
    def empty(cls, rows: int, bounds: int) -> BoundMasses:
        cap, q, q_below, gains = (np.empty((rows, bounds)) for _ in range(4))
        return cls(cap, q, q_below, np.empty((rows, bounds, bounds)), gains)

    @classmethod
    def zeros(cls, rows: int, bounds: int) -> BoundMasses:
        cap, q, q_below, gains = (np.zeros((rows, bounds)) for _ in range(4))
        return cls(cap, q, q_below, np.zeros((rows, bounds, bounds)), gains)

    def caps(self, bounds: Sequence[float]) -> dict[float, Floats]:
        """By bound, in rows: c̃, q there, q at a third of it, and E_p[w̃²]."""
        columns = (self.cap, self.q, self.q_below, np.diagonal(self.products, axis1=1, axis2=2))
        return {bound: np.stack([column[:, at] for column in columns]) for at, bound in enumerate(bounds)}

    def take(self, rows: np.ndarray) -> BoundMasses:
        """Some rows, repeats allowed."""
        return BoundMasses(*(column[rows] for column in self))

    def put(self, rows: np.ndarray, part: BoundMasses) -> None:
        """Fill in some rows."""
        for whole, some in zip(self, part, strict=True):
            whole[rows] = some
