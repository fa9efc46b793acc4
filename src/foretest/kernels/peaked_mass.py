"""q(x) of two Plackett-Luce policies of which at least one is so peaked that a few rankings have nearly all of it.

Σ_a min(π_t, c·π_p) over all rankings that begin alike is at most min(π_t, c·π_p) of their beginning, so that whatever
begins with too little can be left out, with a bound on what that was.
"""

from __future__ import annotations

import numpy as np

from foretest.kernels.enumeration import best_left, left_over, not_denormal, shares_by_best
from foretest.kernels.jit import jit, step
from foretest.kernels.lists import descending, longest
from foretest.kernels.plackett_luce import load_row

_NEGLIGIBLE = 1e-11  # of what was added up so far: such a beginning is left out
_CLOSE = 1e-6  # relative: as near as the answer must be


@step
def _row(t, p, n, k, cap, budget, taken, at, chosen, pt, pp):
    """q as far as it was added up, and a bound on the rest: infinite where more than `budget` beginnings are needed."""
    by_t = np.empty((k, n))
    by_p = np.empty((k, n))
    order_t = np.empty(k, np.int64)
    order_p = np.empty(k, np.int64)
    shares_by_best(t, n, k, by_t, order_t)
    shares_by_best(p, n, k, by_p, order_p)
    # by both scores, best first: the more is added up early, the more is negligible later
    both = np.empty(n)
    items = np.empty(n, np.int64)
    for j in range(n):
        both[j] = t[j] + p[j]
        taken[j] = False
    descending(both, n, items)
    tail_t = np.empty(k)
    tail_p = np.empty(k)
    share_t = np.zeros(k, np.int64)
    share_p = np.zeros(k, np.int64)
    tail_t[0] = left_over(by_t[0], n, taken)
    tail_p[0] = left_over(by_p[0], n, taken)
    pt[0] = 1.0
    pp[0] = 1.0
    at[0] = 0
    total = 0.0
    rest = 0.0
    slot = 0
    while slot >= 0:
        if at[slot] > 0 and slot < k - 1:
            taken[chosen[slot]] = False
        place = at[slot]
        while place < n and taken[items[place]]:
            place += 1
        if place == n:
            slot -= 1
            continue
        j = items[place]
        at[slot] = place + 1
        chosen[slot] = j
        a = not_denormal(pt[slot] * (by_t[share_t[slot], j] / tail_t[slot]))
        b = not_denormal(pp[slot] * (by_p[share_p[slot], j] / tail_p[slot]))
        most = min(a, cap * b)
        if slot == k - 1:
            total += most
        elif most <= _NEGLIGIBLE * total:
            rest += most
        else:
            budget -= 1
            if budget < 0:
                return total, np.inf
            taken[j] = True
            slot += 1
            pt[slot] = a
            pp[slot] = b
            at[slot] = 0
            share_t[slot] = best_left(order_t, taken)
            share_p[slot] = best_left(order_p, taken)
            tail_t[slot] = left_over(by_t[share_t[slot]], n, taken)
            tail_p[slot] = left_over(by_p[share_p[slot]], n, taken)
    return total, rest


@jit
def peaked_masses(t_values, t_starts, p_values, p_starts, lengths, slots, t_inverse, p_inverse, cap, budget):
    """q at the cap (max capping) of each display, within a millionth of it; NaN where `budget` beginnings of rankings
    do not suffice, 0 where it is below all doubles."""
    rows = len(lengths)
    q = np.empty(rows)
    width = longest(lengths)
    depth = longest(slots) + 1
    t = np.empty(width)
    p = np.empty(width)
    taken = np.zeros(width, np.bool_)
    at = np.zeros(depth, np.int64)
    chosen = np.zeros(depth, np.int64)
    pt = np.empty(depth)
    pp = np.empty(depth)
    for i in range(rows):
        n = lengths[i]
        load_row(t_values, t_starts[i], n, t_inverse, t)
        load_row(p_values, p_starts[i], n, p_inverse, p)
        total, rest = _row(t, p, n, slots[i], cap, budget, taken, at, chosen, pt, pp)
        q[i] = total + 0.5 * rest if rest <= _CLOSE * total else np.nan
    return q
