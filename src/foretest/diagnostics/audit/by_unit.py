"""Sums over rows that are independent only between units; rows are sorted by unit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats, Hashes
from foretest.special import ndtr


def first_of_units(unit: Hashes) -> npt.NDArray[np.int64]:
    """The first row of each unit.

    >>> first_of_units(np.array([3, 3, 5, 9, 9], np.uint64)).tolist()
    [0, 2, 3]
    """
    return np.flatnonzero(np.concatenate([[True], unit[1:] != unit[:-1]])) if len(unit) else np.empty(0, np.int64)


FEWEST_UNITS = 100  # for sums by unit


def independent_rows(unit: Hashes) -> npt.NDArray[np.int64]:
    """Where the groups of rows begin that are independent of one another: units, or where there are fewer than 100
    every row, as rankings are drawn for each display anew.

    >>> independent_rows(np.array([3, 3, 5, 9, 9], np.uint64)).tolist()
    [0, 1, 2, 3, 4]
    """
    starts = first_of_units(unit)
    return starts if len(starts) >= FEWEST_UNITS else np.arange(len(unit))


def rows_of_units(unit: Hashes) -> npt.NDArray[np.int64]:
    """How many rows each unit has.

    >>> rows_of_units(np.array([3, 3, 5, 9, 9], np.uint64)).tolist()
    [2, 1, 2]
    """
    return np.diff(np.append(first_of_units(unit), len(unit)))


def z_by_unit(terms: Floats, starts: npt.NDArray[np.int64]) -> Floats:
    """Σ t / √Σ_u (Σ_{i∈u} t_i)² of each column: normal where the terms have mean 0, and units are many.

    The sum is measured by its own squares, about 0 and not about their mean: a few large terms then raise both parts,
    so that heavy weights do not make chance look like a fault. Columns without a term other than 0 give 0.

    >>> z_by_unit(np.array([[1.0], [1.0], [-2.0], [4.0]]), np.array([0, 2, 3])).round(4).tolist()
    [0.8165]
    """
    sums = np.add.reduceat(terms, starts, axis=0)
    size = np.sqrt(np.square(sums).sum(axis=0))
    return np.asarray(np.divide(sums.sum(axis=0), size, out=np.zeros(terms.shape[1]), where=size > 0.0))


def two_sided(z: float) -> float:
    """P(|Z| ≥ |z|) of a normal Z.

    >>> round(two_sided(1.96), 4)
    0.05
    """
    return float(2.0 * ndtr(-abs(z)))
