"""Every ranking of two Plackett-Luce policies, and what the pointwise normaliser asks of all of them."""

from __future__ import annotations

import numpy as np

from foretest.kernels.jit import inner, jit, step
from foretest.kernels.lists import longest
from foretest.kernels.normaliser import adaptive_cap
from foretest.kernels.plackett_luce import load_row
from foretest.kernels.ranking_draws import SAFE_SPREAD, SLICE, spread

_BLOCK = 512  # terms that stay in the fastest cache


@step
def left_over(e, n, taken):
    """Σ e over the items that are left."""
    total = 0.0
    for j in range(n):
        if not taken[j]:
            total += e[j]
    return total


@inner
def _last_slots(e, n, taken, before, left, out, first):
    """out[first:] <- the probabilities of all rankings that begin as one of probability `before` does; their number.

    The items left go into a list of their own first, so that the loop of divisions vectorises.
    """
    count = 0
    total = 0.0
    for j in range(n):
        if not taken[j]:
            left[count] = e[j]
            total += e[j]
            count += 1
    for j in range(count):
        out[first + j] = before * left[j] / total
    return count


@step
def shares_by_best(x, n, k, shares, order):
    """shares[r, j] = exp(x_j − that of the item at place r of the sort), for the first k places, which `order` gets.

    Whatever is taken of a ranking's first slots, the best item left is one of these: in shares of it no sum underflows.
    """
    for r in range(k):
        best = -1
        for j in range(n):
            earlier = False
            for place in range(r):
                earlier |= order[place] == j
            if not earlier and (best < 0 or x[j] > x[best]):
                best = j
        order[r] = best
        for j in range(n):
            shares[r, j] = np.exp(min(0.0, x[j] - x[best]))


@inner
def best_left(order, taken):
    place = 0
    while taken[order[place]]:
        place += 1
    return place


@inner
def not_denormal(x):
    """0 for a number below all normal ones, with which arithmetic takes a hundred times as long."""
    return x if x >= 2.3e-308 else 0.0


@step
def _enumerate_wide(t, p, n, k, chosen, taken, at, pt, pp, alpha, beta):
    """`enumerate_row` for scores so far apart that products of their exponentials may leave the range of doubles.

    Each slot is in shares of the best item left; branches of rankings that neither policy shows are left out.
    """
    by_t = np.empty((k, n))
    by_p = np.empty((k, n))
    order_t = np.empty(k, np.int64)
    order_p = np.empty(k, np.int64)
    shares_by_best(t, n, k, by_t, order_t)
    shares_by_best(p, n, k, by_p, order_p)
    tail_t = np.empty(k)
    tail_p = np.empty(k)
    best_t = np.zeros(k, np.int64)
    best_p = np.zeros(k, np.int64)
    for j in range(n):
        taken[j] = False
    tail_t[0] = left_over(by_t[0], n, taken)
    tail_p[0] = left_over(by_p[0], n, taken)
    pt[0] = 1.0
    pp[0] = 1.0
    at[0] = 0
    filled = 0
    slot = 0
    while slot >= 0:
        if slot == k - 1:
            _last_slots(by_t[best_t[slot]], n, taken, pt[slot], t, alpha, filled)
            count = _last_slots(by_p[best_p[slot]], n, taken, pp[slot], p, beta, filled)
            for j in range(filled, filled + count):
                alpha[j] = not_denormal(alpha[j])
                beta[j] = not_denormal(beta[j])
            filled += count
            slot -= 1
            continue
        if at[slot] > 0:
            taken[chosen[slot]] = False
        j = at[slot]
        while j < n and taken[j]:
            j += 1
        if j == n:
            slot -= 1
            continue
        at[slot] = j + 1
        chosen[slot] = j
        a = not_denormal(pt[slot] * (by_t[best_t[slot], j] / tail_t[slot]))
        b = not_denormal(pp[slot] * (by_p[best_p[slot], j] / tail_p[slot]))
        if a == 0.0 and b == 0.0:
            continue
        taken[j] = True
        slot += 1
        pt[slot] = a
        pp[slot] = b
        at[slot] = 0
        best_t[slot] = best_left(order_t, taken)
        best_p[slot] = best_left(order_p, taken)
        if slot < k - 1:
            tail_t[slot] = left_over(by_t[best_t[slot]], n, taken)
            tail_p[slot] = left_over(by_p[best_p[slot]], n, taken)
    return filled


@step
def enumerate_row(t, p, n, k, et, ep, chosen, taken, at, pt, pp, alpha, beta):
    """α = π_t(a) and β = π_p(a) of every ranking, depth first without recursion; returns how many there are."""
    if k * (spread(t, n) + spread(p, n)) > SAFE_SPREAD:
        return _enumerate_wide(t, p, n, k, chosen, taken, at, pt, pp, alpha, beta)
    for j in range(n):
        et[j] = np.exp(t[j])
        ep[j] = np.exp(p[j])
        taken[j] = False
    filled = 0
    slot = 0
    pt[0] = 1.0
    pp[0] = 1.0
    at[0] = 0
    tail_t = np.empty(k)
    tail_p = np.empty(k)
    while slot >= 0:
        if slot == k - 1:
            _last_slots(et, n, taken, pt[slot], t, alpha, filled)
            filled += _last_slots(ep, n, taken, pp[slot], p, beta, filled)
            slot -= 1
            continue
        if at[slot] > 0:
            taken[chosen[slot]] = False
        else:
            tail_t[slot] = left_over(et, n, taken)
            tail_p[slot] = left_over(ep, n, taken)
        j = at[slot]
        while j < n and taken[j]:
            j += 1
        if j == n:
            slot -= 1
            continue
        pt[slot + 1] = pt[slot] * et[j] / tail_t[slot]
        pp[slot + 1] = pp[slot] * ep[j] / tail_p[slot]
        chosen[slot] = j
        taken[j] = True
        at[slot] = j + 1
        slot += 1
        at[slot] = 0
    return filled


@step
def _sums_at(alpha, beta, n, cap, zero, terms):
    """`capped_mass` at the cap, E_p[w̄²] = Σ β·w̄² there, `capped_mass` at a third of it.

    Terms are computed a block at a time, without branches; the three sums, each a chain of additions, side by side.
    """
    low_cap = cap / SLICE
    q = 0.0
    squares = 0.0
    low = 0.0
    for begin in range(0, n, _BLOCK):
        size = min(_BLOCK, n - begin)
        some_a = alpha[begin : begin + size]
        some_b = beta[begin : begin + size]
        for j in range(size):
            a = some_a[j]
            b = some_b[j]
            high = cap * b
            under = low_cap * b
            if zero:
                terms[0, j] = a if a < high else 0.0
                terms[2, j] = a if a < under else 0.0
            else:
                terms[0, j] = a if a < high else high
                terms[2, j] = a if a < under else under
            over = terms[0, j]
            terms[1, j] = over * over / (b if b > 0.0 else 1.0)
        for j in range(size):
            q += terms[0, j]
            squares += terms[1, j]
            low += terms[2, j]
    return q, squares, low


@step
def _masses_at(alpha, beta, n, cap, zero, bound, terms):
    """q at `cap` where bound is NaN (the first answer is then 0), else the adaptive cap for `bound` and q there; then
    E_p[w̄²] at that cap, and q at a third of it."""
    if np.isnan(bound):
        q, squares, low = _sums_at(alpha, beta, n, cap, zero, terms)
        return 0.0, q, squares, low
    adaptive, q = adaptive_cap(alpha, beta, n, bound)
    _, squares, low = _sums_at(alpha, beta, n, adaptive, zero, terms)
    return adaptive, q, squares, low


@jit
def masses_of_rankings(alpha, beta, starts, counts, cap, zero, bound):
    """`_masses_at` of displays whose rankings' probabilities stand one after the other."""
    rows = len(starts)
    caps, q, squares, low = np.empty(rows), np.empty(rows), np.empty(rows), np.empty(rows)
    terms = np.empty((3, _BLOCK))
    for i in range(rows):
        first, n = starts[i], counts[i]
        caps[i], q[i], squares[i], low[i] = _masses_at(
            alpha[first : first + n], beta[first : first + n], n, cap, zero, bound, terms
        )
    return caps, q, squares, low


@jit
def enumerate_all(t_values, t_starts, p_values, p_starts, lengths, slots, t_inverse, p_inverse, most, cap, zero, bound):
    """`_masses_at` over all rankings of each display (at most `most`) of two Plackett-Luce policies."""
    rows = len(lengths)
    caps = np.empty(rows)
    q = np.empty(rows)
    low = np.empty(rows)
    squares = np.empty(rows)
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
    terms = np.empty((3, _BLOCK))
    for i in range(rows):
        n = lengths[i]
        load_row(t_values, t_starts[i], n, t_inverse, t)
        load_row(p_values, p_starts[i], n, p_inverse, p)
        count = enumerate_row(t, p, n, slots[i], et, ep, chosen, taken, at, pt, pp, alpha, beta)
        caps[i], q[i], squares[i], low[i] = _masses_at(alpha, beta, count, cap, zero, bound, terms)
    return caps, q, squares, low
