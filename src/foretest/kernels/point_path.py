"""The weight of a row by PointNCIS at many caps, and by its adaptive form at many bounds, from one set of rankings.

A set is given by α and β of each ranking, which represent π_t and π_p: enumerated, or 2W/(1+W)/S and 2/(1+W)/S of
two-sided draws. Both grids are ascending.
"""

from __future__ import annotations

import numpy as np

from foretest.kernels.enumeration import enumerate_row
from foretest.kernels.jit import jit, step
from foretest.kernels.lists import longest
from foretest.kernels.normaliser import (
    is_feasible,
    largest_root,
    masses_of_draws,
    max_capped_mass,
    total_and_reach,
)
from foretest.kernels.plackett_luce import load_row


@step
def _row(alpha, beta, n, log_w, log_most, caps, bounds, of_caps, of_bounds):
    """log h of one row along both grids. No ranking weighs more than exp(log_most): beyond it q = 1."""
    for k in range(len(caps)):
        log_cap = np.log(caps[k])
        q = 1.0
        if log_most > log_cap + 1e-12:
            q = max_capped_mass(alpha, beta, n, caps[k])
        of_caps[k] = min(log_w, log_cap) - np.log(q) if q > 0.0 else -np.inf
    total, reach = total_and_reach(alpha, beta, n)
    c = np.inf
    for back in range(len(bounds)):
        k = len(bounds) - 1 - back
        bound = bounds[k]
        if log_most <= np.log(bound) + 1e-12:
            of_bounds[k] = log_w
            continue
        if not is_feasible(reach, bound):
            of_bounds[k] = 0.0
            continue
        # the root for a larger bound lies to the right of this one
        c, q = largest_root(alpha, beta, n, bound, min(c, bound * total))
        of_bounds[k] = min(log_w, np.log(c)) - np.log(q) if q > 0.0 else 0.0


@jit
def path_of_draws(w, log_w, log_most, caps, bounds):
    """Row by row, log h at every cap and at every bound, on two-sided draws."""
    rows, count = w.shape
    of_caps = np.empty((rows, len(caps)))
    of_bounds = np.empty((rows, len(bounds)))
    alpha = np.empty(count)
    beta = np.empty(count)
    for i in range(rows):
        masses_of_draws(w[i], alpha, beta)
        _row(alpha, beta, count, log_w[i], log_most[i], caps, bounds, of_caps[i], of_bounds[i])
    return of_caps, of_bounds


@jit
def path_of_rankings(alpha, beta, starts, counts, log_w, caps, bounds):
    """Row by row, log h at every cap and at every bound, over all rankings, whose probabilities stand in a row."""
    of_caps = np.empty((len(starts), len(caps)))
    of_bounds = np.empty((len(starts), len(bounds)))
    for i in range(len(starts)):
        first, n = starts[i], counts[i]
        some_alpha, some_beta = alpha[first : first + n], beta[first : first + n]
        _row(some_alpha, some_beta, n, log_w[i], np.inf, caps, bounds, of_caps[i], of_bounds[i])
    return of_caps, of_bounds


@jit
def path_of_all(
    t_values, t_starts, p_values, p_starts, lengths, slots, t_inverse, p_inverse, most, log_w, log_most, caps, bounds
):  # fmt: skip
    """Row by row, log h at every cap and bound, over all rankings (at most `most`) of two Plackett-Luce policies."""
    rows = len(lengths)
    of_caps = np.empty((rows, len(caps)))
    of_bounds = np.empty((rows, len(bounds)))
    width = longest(lengths)
    depth = longest(slots) + 1
    t = np.empty(width)
    p = np.empty(width)
    et = np.empty(width)
    ep = np.empty(width)
    taken = np.zeros(width, np.bool_)
    chosen = np.zeros(depth, np.int64)
    at = np.zeros(depth, np.int64)
    pt = np.empty(depth)
    pp = np.empty(depth)
    alpha = np.empty(most)
    beta = np.empty(most)
    for i in range(rows):
        n = lengths[i]
        load_row(t_values, t_starts[i], n, t_inverse, t)
        load_row(p_values, p_starts[i], n, p_inverse, p)
        count = enumerate_row(t, p, n, slots[i], et, ep, chosen, taken, at, pt, pp, alpha, beta)
        _row(alpha, beta, count, log_w[i], log_most[i], caps, bounds, of_caps[i], of_bounds[i])
    return of_caps, of_bounds
