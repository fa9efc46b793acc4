"""Examination curves: how likely a user looks at each slot, θ_1 = 1, θ_2, … (the position-based model).

Only ratios matter: a curve may be given in any unit. Of a curve that was given and not fitted, steeper and flatter ones
are looked at too, since nothing in the log says that it is right.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.records import dataclass

Curve = tuple[float, ...]

#: θ itself, θ^0.8, θ^1.25 and, as these leave a flat curve alone, θ_k·k^±0.15
VARIANTS = ((1.0, 0.0), (0.8, 0.0), (1.25, 0.0), (1.0, 0.15), (1.0, -0.15))
VARIANT_NAMES = ("as given", "θ^0.8", "θ^1.25", "θ·k^0.15", "θ·k^−0.15")


def varied(curve: Curve, variant: int) -> Curve:
    """A curve made steeper or flatter.

    >>> [round(x, 4) for x in varied((1.0, 0.5), 2)]
    [1.0, 0.4204]
    """
    power, tilt = VARIANTS[variant]
    return tuple(float(x**power * k**tilt) for k, x in enumerate(curve, start=1))


@dataclass(frozen=True)
class Curves:
    """The curves that a metric's displays have: one for all, or one for each value of a column."""

    thetas: tuple[Curve, ...]
    labels: tuple[str, ...] = ()  # the values, where there is a column
    column: str | None = None

    def table(self, variant: int = 0) -> Floats:
        """One curve per row, short ones filled up with zeros."""
        table = np.zeros((len(self.thetas), max(map(len, self.thetas))))
        for row, theta in zip(table, self.thetas, strict=True):
            row[: len(theta)] = varied(theta, variant)
        return table

    def codes(self, displays: Displays) -> npt.NDArray[np.int64]:
        """Which curve each display has."""
        if self.column is None:
            return np.zeros(len(displays), np.int64)
        return np.asarray(displays[code_column(self.column)], np.int64)


def code_column(column: str) -> str:
    """The column of displays with the number of each one's curve."""
    return f"\0curve:{column}"
