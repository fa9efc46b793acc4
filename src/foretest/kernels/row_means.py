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
    count = 0
    for k in range(first, end):
        if r[k] > 0.0:
            most = max(most, log_h[k])
            earned += r[k]
            count += 1
    if most == -np.inf or count == 1:  # one slot is its own mean
        return most
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


@jit
def mean_slopes(slots, r, log_h, log_capped, row_h, row_capped, of_weight, of_mass, metric, of_h, of_capped):
    """of_h[row, metric] <- the slopes of the row's log h: the mean of those of its slots by what h_k r_k they have, and
    of_capped[row, metric] <- that of log w̄, as ∂ log w̄ = ∂ log w̃ + ∂ log q."""
    first = 0
    for row in range(len(slots)):
        end = first + slots[row]
        earned = 0.0
        for k in range(first, end):
            earned += r[k]
        for k in range(first, end):
            if not r[k] > 0.0:
                continue
            part = r[k] / earned
            if np.isfinite(log_h[k]):
                share = part * math.exp(log_h[k] - row_h[row])
                for j in range(of_weight.shape[1]):
                    of_h[row, metric, j] += share * of_weight[k, j]
            if np.isfinite(log_capped[k]):
                share = part * math.exp(log_capped[k] - row_capped[row])
                for j in range(of_weight.shape[1]):
                    of_capped[row, metric, j] += share * (of_weight[k, j] + of_mass[row, j])
        first = end
