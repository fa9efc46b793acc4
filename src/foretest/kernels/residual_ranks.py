"""Rankings as residual ranks: a_k's place (from 0) among the items not yet shown, sorted by score.

Ties are broken by position: the lower position is the better item.
"""

from __future__ import annotations

import numpy as np

from foretest.kernels.jit import jit


@jit
def residual_ranks(values, starts, lengths, ranking, r_starts, r_lengths, out):
    """out <- the residual rank of every shown item; −1 in rows with a score that is not finite."""
    filled = 0
    for i in range(len(starts)):
        at = starts[i]
        check = 0.0
        for j in range(lengths[i]):
            check += np.float64(values[at + j]) * 0.0
        for slot in range(r_lengths[i]):
            item = ranking[r_starts[i] + slot]
            s = values[at + item]
            rank = 0
            for j in range(lengths[i]):
                other = values[at + j]
                rank += other > s or (other == s and j < item)
            for earlier in range(slot):
                shown = ranking[r_starts[i] + earlier]
                other = values[at + shown]
                rank -= other > s or (other == s and shown < item)
            out[filled] = rank if check == 0.0 else -1
            filled += 1


@jit
def items_at(values, starts, lengths, ranks, slots):
    """In place: residual ranks are replaced by the items that have them."""
    at = 0
    for i in range(len(starts)):
        n = lengths[i]
        if i == 0 or starts[i] != starts[i - 1] or n != lengths[i - 1]:  # draws of one display follow one another
            order = np.argsort(-values[starts[i] : starts[i] + n].astype(np.float64), kind="mergesort")
        left = order.copy()
        for slot in range(slots[i]):
            rank = ranks[at]
            item = left[rank]
            for j in range(rank, n - slot - 1):
                left[j] = left[j + 1]
            ranks[at] = item
            at += 1
