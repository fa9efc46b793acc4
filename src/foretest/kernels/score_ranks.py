"""The ranks of items by score within their row."""

from __future__ import annotations

import numpy as np

from foretest.kernels.jit import jit


@jit
def ranks_by_score(values, starts, lengths, positions, most):
    """The rank of each position: how many items of its row score higher, or score the same at a lower position.

    `positions` is rows × rankings × slots; ranks above `most` become `most`, and a position of −1 (none) becomes 255.
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
