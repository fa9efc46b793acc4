"""Exposure of items, e(i) = Σ_k θ_k P(i in slot k), from tables of slot marginals and examination curves.

θ is divided by its sum over the slots that a display shows, Θ: only ratios matter, and Σ_i e(i) = 1.
"""

from __future__ import annotations

import numpy as np

from foretest.kernels.jit import jit, step
from foretest.kernels.lists import longest


@step
def _shares(curve, slots, share):
    """share[k] <- θ_k/Θ."""
    total = 0.0
    for k in range(slots):
        total += curve[k]
    for k in range(slots):
        share[k] = curve[k] / total


@jit
def exposures(table, starts, lengths, slots, curves, codes, out, out_starts):
    """out <- e(i)/Θ of every item of every display, one list of M numbers after the other."""
    share = np.empty(longest(slots))
    for row in range(len(starts)):
        n = lengths[row]
        _shares(curves[codes[row]], slots[row], share)
        for i in range(n):
            total = 0.0
            for k in range(slots[row]):
                total += share[k] * table[starts[row] + k * n + i]
            out[out_starts[row] + i] = total


@jit
def shown_values(table, starts, ranking, r_starts, slots, out):
    """out <- the value of every shown item, in a table with one number per item."""
    at = 0
    for row in range(len(starts)):
        for k in range(slots[row]):
            out[at] = table[starts[row] + ranking[r_starts[row] + k]]
            at += 1


@step
def _mass_slopes(t, first_t, p, first_p, n, e_t, e_p, first_e, count, share, cap, factor, out):
    """out[j] <- ∂ log q/∂ log θ_j at a cap, `factor` being b·q; is any item above the cap?"""
    below, is_cut = 0.0, False
    for j in range(count):
        out[j] = 0.0
    for i in range(n):
        x, y = e_t[first_e + i], e_p[first_e + i]
        if x <= cap * y:
            below += x
            for j in range(count):
                out[j] += share[j] * (t[first_t + j * n + i] - x)
        else:
            is_cut = True
            for j in range(count):
                out[j] += factor * share[j] * (p[first_p + j * n + i] - y)
    for j in range(count):
        out[j] = out[j] / below if below > 0.0 else 0.0
    return is_cut


@jit
def slopes(t, t_starts, p, p_starts, lengths, e_t, e_p, e_starts, ranking, r_starts, slots, curves, codes,
           bounds, caps, masses, of_weight, of_mass):  # fmt: skip
    """By bound, of_weight[slot, j] <- ∂ log w̃/∂ log θ_l of every shown slot, of_mass[row, j] <- ∂ log q/∂ log θ_l.

    With s = θ/Θ, ∂e(i)/∂ log θ_l = s_l (P(i in j) − e(i)). At the adaptive cap c̃ = b·q, so that an item above the cap
    has w̃ = b whatever θ is, and with A = Σ_{below} e_t and B = Σ_{above} e_p, q = A/(1 − b·B), hence
    ∂ log q = (∂A + b·q·∂B)/A. Where no cap keeps the bound (mass 0) w̃ = 1. An infinite bound stands for no cap.
    """
    widest = longest(slots)
    share, falls, uncut, ratio = np.empty(widest), np.empty(widest), np.empty(widest), np.empty((widest, widest))
    at = 0
    for row in range(len(t_starts)):
        n, count = lengths[row], slots[row]
        _shares(curves[codes[row]], count, share)
        first_t, first_p, first_e = t_starts[row], p_starts[row], e_starts[row]
        for k in range(count):
            i = ranking[r_starts[row] + k]
            x, y = e_t[first_e + i], e_p[first_e + i]
            for j in range(count if x > 0.0 and y > 0.0 else 0):
                ratio[k, j] = share[j] * (t[first_t + j * n + i] / x - p[first_p + j * n + i] / y)
        reached = np.inf  # a cap that no item is above: at any larger one the mass has the same slopes
        for b in range(len(bounds)):
            cap, mass = caps[b, row], masses[b, row]
            if not mass > 0.0 or bounds[b] == np.inf:
                falls[:count] = 0.0
            elif cap >= reached:
                falls[:count] = uncut[:count]
            elif not _mass_slopes(
                t, first_t, p, first_p, n, e_t, e_p, first_e, count, share, cap, bounds[b] * mass, falls
            ):
                reached = cap
                uncut[:count] = falls[:count]
            of_mass[b, row, :count] = falls[:count]
            for k in range(count if mass > 0.0 else 0):
                i = ranking[r_starts[row] + k]
                x, y = e_t[first_e + i], e_p[first_e + i]
                if x > 0.0 and y > 0.0 and x <= cap * y:
                    for j in range(count):
                        of_weight[b, at + k, j] = ratio[k, j] - falls[j]
        at += count


@jit
def paired_terms(table, starts, lengths, ranking, r_starts, slots, rewards, w_starts, half, h_starts, cell,
                 sums, squares):  # fmt: skip
    """Add, for every reward r of an item i in slot k and every other slot j, r·P(i, j)/(P(i, k) + P(i, j)) to
    sums[half of i, cell, k, j] and its square to squares[half of i, k, j]; r² to squares[half of i, k, k], which tells
    a log whose items never change places from one without a reward."""
    for row in range(len(starts)):
        n = lengths[row]
        for k in range(slots[row]):
            r = np.float64(rewards[w_starts[row] + k])
            if r == 0.0:
                continue
            i = ranking[r_starts[row] + k]
            own = table[starts[row] + k * n + i]
            of = half[h_starts[row] + i]
            squares[of, k, k] += r * r
            for j in range(slots[row]):
                other = table[starts[row] + j * n + i]
                if j == k or other <= 0.0:
                    continue
                term = r * other / (own + other)
                sums[of, cell[row], k, j] += term
                squares[of, k, j] += term * term
