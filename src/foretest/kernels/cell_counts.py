"""Counts of cells over rows that each hold several: totals, and how they go together within a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def cell_counts(codes: npt.NDArray[np.integer[Any]], count: int) -> tuple[Floats, Floats]:
    """Of rows × members with a cell each, ē being a row's shares of cells: Σ ē, and Σ (diag(ē) − ē ēᵀ).

    By counting pairs: a matrix product has threads that wait for each other longer than they work.
    """
    members = codes.shape[1]
    total = np.bincount(codes.ravel(), minlength=count) / members
    pairs = (codes[:, :, None] * count + codes[:, None, :]).ravel()
    together = np.bincount(pairs, minlength=count * count).reshape(count, count) / members**2
    return total, np.diag(total) - together
