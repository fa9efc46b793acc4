"""Rows counted by unit (in a hash table, or beyond its limit in hash cells), and added up by bin of log w."""

from __future__ import annotations

import numpy as np

from foretest.kernels.jit import jit


@jit
def tally(keys, counts, used, limit, units, amounts):
    """Add amounts[i] to the count of units[i] in an open-addressing table (count 0: a free place).

    Returns the number of units in the table and of entries added, which is less than given if the limit was reached.
    """
    mask = np.uint64(len(keys) - 1)
    for i in range(len(units)):
        at = units[i] & mask
        while counts[at] != 0 and keys[at] != units[i]:
            at = (at + np.uint64(1)) & mask
        if counts[at] == 0:
            if used == limit:
                return used, i
            used += 1
            keys[at] = units[i]
        counts[at] += amounts[i]
    return used, len(units)


@jit
def tally_cells(counts, lowest, units, amounts):
    """Add to the cell of each unit's low bits; `lowest` has the least of the cell's other bits as numbers in [0, 1)."""
    mask = np.uint64(len(counts) - 1)
    for i in range(len(units)):
        cell = units[i] & mask
        counts[cell] += amounts[i]
        rest = np.float64(units[i] >> np.uint64(17)) * 2.0**-47
        lowest[cell] = min(lowest[cell], rest)


@jit
def tally_bins(log_w, bucket, first, second, scale, lowest, bins, firsts, seconds):
    """Add two amounts of each row to its bucket and bin, ⌊scale·log w⌋ − lowest + 1 within 0 .. bins − 1."""
    for i in range(len(log_w)):
        place = min(max(np.floor(scale * log_w[i]) - lowest + 1.0, 0.0), bins - 1.0)
        cell = bucket[i] * bins + np.int64(place)
        firsts[cell] += first[i]
        seconds[cell] += second[i]
