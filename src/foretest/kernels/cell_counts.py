"""Counts of cells over rows that each hold several: totals, and how they go together within a row."""

from __future__ import annotations

import numpy as np

from foretest.kernels.jit import jit


@jit
def cell_counts(codes, count):
    """Of rows × members with a cell each, ē being a row's shares of cells: Σ ē, and Σ (diag(ē) − ē ēᵀ).

    A matrix product would do the same, with threads that wait for each other longer than they work.
    """
    rows, members = codes.shape
    total = np.zeros(count)
    together = np.zeros((count, count))
    for i in range(rows):
        for a in range(members):
            total[codes[i, a]] += 1.0
            for b in range(members):
                together[codes[i, a], codes[i, b]] += 1.0
    covariance = together / -(members * members)
    for c in range(count):
        covariance[c, c] += total[c] / members
    return total / members, covariance
