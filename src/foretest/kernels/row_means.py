"""Weights of rows from those of their slots: means by what the slots earned, for weights of any size."""

from __future__ import annotations

import math

import numpy as np

from foretest.kernels.jit import jit, step


@step
def _log_mean(log_h, r, first, end):
    """log of Σ_k h_k r_k / Σ_k r_k over the slots from `first` to before `end`; −inf where nothing was earned."""
    most = -np.inf
    earned = 0.0
    for k in range(first, end):
        if r[k] > 0.0:
            most = max(most, log_h[k])
            earned += r[k]
    if most == -np.inf:
        return -np.inf
    total = 0.0
    for k in range(first, end):
        if r[k] > 0.0:
            total += math.exp(log_h[k] - most) * r[k]
    return most + math.log(total / earned)


@step
def _mean_slice(log_below, slices, r, first, end):
    """Σ_k h_k s_k r_k / Σ_k h_k r_k, h_k the weights at a third of the cap; 0 where that is 0."""
    most = -np.inf
    for k in range(first, end):
        if r[k] > 0.0:
            most = max(most, log_below[k])
    if most == -np.inf:
        return 0.0
    total = 0.0
    of_slices = 0.0
    for k in range(first, end):
        if r[k] > 0.0:
            part = math.exp(log_below[k] - most) * r[k]
            total += part
            of_slices += part * slices[k]
    return of_slices / total


@jit
def by_reward(slots, r, log_h, log_capped, log_below, slices, q, infeasible, out, count, mass, unsupported):
    """out <- by row log h, log w̄, log w̄ at a third of the cap, and the mean of `slices`; count, mass and unsupported
    <- with the rewarded slots added, their q, and whether one of them is infeasible."""
    first = 0
    for row in range(len(slots)):
        end = first + slots[row]
        out[0, row] = _log_mean(log_h, r, first, end)
        out[1, row] = _log_mean(log_capped, r, first, end)
        out[2, row] = _log_mean(log_below, r, first, end)
        out[3, row] = _mean_slice(log_below, slices, r, first, end)
        for k in range(first, end):
            if r[k] > 0.0:
                count[row] += 1.0
                mass[row] += q[k]
                unsupported[row] |= infeasible[k]
        first = end


@jit
def log_means(slots, parts, log_h):
    """log of Σ_k h_k p_k / Σ_k p_k of each row."""
    out = np.empty(len(slots))
    first = 0
    for row in range(len(slots)):
        out[row] = _log_mean(log_h, parts, first, first + slots[row])
        first += slots[row]
    return out
