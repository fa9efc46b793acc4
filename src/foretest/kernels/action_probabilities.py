"""Probabilities of single actions from lists of them."""

from __future__ import annotations

import numpy as np

from foretest.kernels.jit import jit, step

# what is wrong with a list
RIGHT, NO_PROBABILITY, OTHER_SUM = 0, 1, 2


@step
def _total(values, start, n, error):
    """Σ p of one list, and what is wrong with it."""
    total = 0.0
    for j in range(n):
        p = values[start + j]
        if not (p >= 0.0 and p <= 1.0 + error):  # NaN too
            return total, NO_PROBABILITY
        total += p
    return total, RIGHT if abs(total - 1.0) <= error else OTHER_SUM


@jit
def log_probabilities(values, starts, lengths, action, a_starts, error, out):
    """out <- log p(action)/Σ p of every row; what is wrong with the first list that is no distribution.

    Rows of one display follow one another and share their list: its sum is made once.
    """
    total = 1.0
    for i in range(len(starts)):
        if i == 0 or starts[i] != starts[i - 1] or lengths[i] != lengths[i - 1]:
            total, fault = _total(values, starts[i], lengths[i], error)
            if fault != RIGHT:
                return fault
        out[i] = np.log(values[starts[i] + action[a_starts[i]]] / total)
    return RIGHT


@jit
def draw_actions(values, starts, lengths, u, out):
    """out <- the action at u of the cumulated probabilities, never one of probability 0."""
    for i in range(len(starts)):
        total = 0.0
        for j in range(lengths[i]):
            total += values[starts[i] + j]
        target, running, chosen = u[i] * total, 0.0, 0
        for j in range(lengths[i]):
            p = values[starts[i] + j]
            if p > 0.0:
                running += p
                chosen = j
                if running > target:
                    break
        out[i] = chosen
