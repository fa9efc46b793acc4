"""Counts of cells over rows with several cells each: totals, and the covariance within a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def cell_counts(codes: npt.NDArray[np.integer[Any]], count: int) -> tuple[Floats, Floats]:
    """For rows × members with one cell each, ē being the shares of cells in a row: Σ ē, and Σ (diag(ē) − ē ēᵀ).

    By counting pairs: the threads of a matrix product would wait for each other longer than they work.
    """
    members = codes.shape[1]
    total = np.bincount(codes.ravel(), minlength=count) / members
    pairs = (codes[:, :, None] * count + codes[:, None, :]).ravel()
    together = np.bincount(pairs, minlength=count * count).reshape(count, count) / members**2
    return total, np.diag(total) - together
