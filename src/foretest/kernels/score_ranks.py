"""Where items stand among the scores of their row."""

from __future__ import annotations

import numpy as np

from foretest.kernels.jit import jit


@jit
def ranks_by_score(values, starts, lengths, positions, most):
    """How many items of its row score higher than each position's, equal ones counting where they stand before it.

    `positions` is rows × rankings × slots; ranks from `most` on are given as `most`, what is not there (−1) as 255.
    """
    rows, rankings, slots = positions.shape
    out = np.full((rows, rankings, slots), 255, np.uint8)
    for i in range(rows):
        row = values[starts[i] : starts[i] + lengths[i]]
        n = lengths[i]
        for r in range(rankings):
            for slot in range(slots):
                at = positions[i, r, slot]
                if at < 0:
                    continue
                rank = 0
                for j in range(n):
                    rank += row[j] > row[at] or (row[j] == row[at] and j < at)
                out[i, r, slot] = min(rank, most)
    return out
