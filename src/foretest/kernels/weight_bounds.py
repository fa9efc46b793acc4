"""The adaptive cap at many bounds from one set of rankings, and how the weights at these bounds vary together.

A set is given by α and β of each ranking, which represent π_t and π_p: enumerated, or 2W/(1+W)/S and 2/(1+W)/S of
two-sided draws. Bounds are ascending.
"""

from __future__ import annotations

import numpy as np

from foretest.kernels.enumeration import enumerate_row
from foretest.kernels.jit import jit, reordered, step
from foretest.kernels.lists import fill, longest
from foretest.kernels.normaliser import is_feasible, largest_root, masses_of_draws, max_capped_mass, total_and_reach
from foretest.kernels.plackett_luce import load_row
from foretest.kernels.ranking_draws import SLICE

_BLOCK = 512  # rankings whose weights at all bounds stay in the cache


@reordered
def _product(a, b, n):
    total = 0.0
    for j in range(n):
        total += a[j] * b[j]
    return total


@reordered
def _ratios(alpha, beta, n, ratio, root):
    """ratio <- w = α/β, 0 where β = 0, which E_p does not see; root <- √β; the largest w."""
    heaviest = 0.0
    for j in range(n):
        b = beta[j]
        ratio[j] = alpha[j] / b if b > 0.0 else 0.0
        root[j] = np.sqrt(b)
        heaviest = max(heaviest, ratio[j])
    return heaviest


@reordered
def _weights(ratio, root, n, cap, q, out):
    """out <- √β·w̃, w̃ = min(w, cap)/q."""
    for j in range(n):
        out[j] = min(ratio[j], cap) / q * root[j]


@reordered
def _gain(first, other, root, n):
    """E_p[(w̃' − w̃)⁺] of two weights, each times √β."""
    total = 0.0
    for j in range(n):
        total += max(other[j] - first[j], 0.0) * root[j]
    return total


@reordered
def _over(alpha, beta, n, cap):
    """Σ (α − c·β)⁺."""
    total = 0.0
    for j in range(n):
        total += max(alpha[j] - cap * beta[j], 0.0)
    return total


@step
def _row(alpha, beta, n, log_most, bounds, ratio, root, block, caps, q, below, products, gains):
    """One display: c̃, q there and at a third of it; E_p[w̃_b w̃_b'] and E_p[(w̃_b − w̃_b0)⁺]. No ranking weighs more
    than exp(log_most): from such a bound on nothing is cut off."""
    count = len(bounds)
    heaviest = _ratios(alpha, beta, n, ratio, root)
    total, reach = total_and_reach(alpha, beta, n)
    cuts = np.empty(count)  # what weights are cut at; −1 where w̃ = 1
    like = np.empty(count, np.int64)  # the largest bound whose weights are the same: from some bound on nothing is cut
    c = np.inf
    for back in range(count):
        k = count - 1 - back
        bound = bounds[k]
        q[k] = 0.0
        if log_most <= np.log(bound) + 1e-12:
            caps[k] = bound
            q[k] = 1.0
            below[k] = 1.0 - _over(alpha, beta, n, bound / SLICE)
            cuts[k] = np.exp(log_most + 1.0)
        else:
            if is_feasible(reach, bound):
                # the root for a larger bound lies to the right of this one
                c, q[k] = largest_root(alpha, beta, n, bound, min(c, bound * total))
            if q[k] > 0.0:
                caps[k] = c
                below[k] = max_capped_mass(alpha, beta, n, c / SLICE)
                cuts[k] = c
            else:
                caps[k] = 0.0
                below[k] = 0.0
                cuts[k] = -1.0
        like[k] = k
        if back and q[k] == q[k + 1] and (cuts[k] == cuts[k + 1] or min(cuts[k], cuts[k + 1]) >= heaviest):
            like[k] = like[k + 1]
    _moments(ratio, root, n, like, cuts, q, block, products, gains)


@step
def _moments(ratio, root, n, like, cuts, q, block, products, gains):
    """E_p[w̃_b w̃_b'] and E_p[(w̃_b − w̃_b0)⁺], block after block of rankings, of bounds that differ; then of all."""
    count = len(like)
    fill(gains, 0.0)
    for k in range(count):
        fill(products[k], 0.0)
    for begin in range(0, n, _BLOCK):
        size = min(_BLOCK, n - begin)
        some_root = root[begin : begin + size]
        for k in range(count):
            if like[k] == k:
                if cuts[k] < 0.0:
                    for j in range(size):
                        block[k, j] = some_root[j]
                else:
                    _weights(ratio[begin : begin + size], some_root, size, cuts[k], q[k], block[k])
        for k in range(count):
            if like[k] == k:
                gains[k] += _gain(block[like[0]], block[k], some_root, size)
                for other in range(k + 1):
                    if like[other] == other:
                        products[k, other] += _product(block[k], block[other], size)
    for k in range(count):
        gains[k] = gains[like[k]]
        for other in range(k + 1):
            products[k, other] = products[like[k], like[other]]
    for k in range(count):
        for other in range(k):
            products[other, k] = products[k, other]


@jit
def bounds_of_draws(w, log_most, bounds, caps, q, below, products, gains):
    """Fill in, row by row, what two-sided draws say at every bound."""
    rows, count = w.shape
    alpha = np.empty(count)
    beta = np.empty(count)
    ratio, root, block = np.empty(count), np.empty(count), np.empty((len(bounds), _BLOCK))
    for i in range(rows):
        masses_of_draws(w[i], alpha, beta)
        _row(
            alpha, beta, count, log_most[i], bounds, ratio, root, block,
            caps[i], q[i], below[i], products[i], gains[i],
        )  # fmt: skip


@jit
def bounds_of_rankings(alpha, beta, starts, counts, log_most, bounds, caps, q, below, products, gains):
    """Fill in, row by row, what all rankings say at every bound; their probabilities stand in a row."""
    most = longest(counts)
    ratio, root, block = np.empty(most), np.empty(most), np.empty((len(bounds), _BLOCK))
    for i in range(len(starts)):
        first, n = starts[i], counts[i]
        _row(
            alpha[first : first + n], beta[first : first + n], n, log_most[i], bounds, ratio, root, block,
            caps[i], q[i], below[i], products[i], gains[i],
        )  # fmt: skip


@jit
def bounds_of_all(
    t_values, t_starts, p_values, p_starts, lengths, slots, t_inverse, p_inverse, most, log_most, bounds,
    caps, q, below, products, gains,
):  # fmt: skip
    """Fill in, row by row, what all rankings (at most `most`) of two Plackett-Luce policies say at every bound."""
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
    ratio, root, block = np.empty(most), np.empty(most), np.empty((len(bounds), _BLOCK))
    for i in range(len(lengths)):
        n = lengths[i]
        load_row(t_values, t_starts[i], n, t_inverse, t)
        load_row(p_values, p_starts[i], n, p_inverse, p)
        count = enumerate_row(t, p, n, slots[i], et, ep, chosen, taken, at, pt, pp, alpha, beta)
        _row(
            alpha, beta, count, log_most[i], bounds, ratio, root, block,
            caps[i], q[i], below[i], products[i], gains[i],
        )  # fmt: skip


@jit
def bounds_of_slots(t, t_starts, p, p_starts, lengths, slots, counts, bounds, caps, q, below, products, gains):
    """Fill in, for every shown slot that counts, what P(item in slot) of all items says at every bound."""
    width = longest(lengths)
    alpha, beta = np.empty(width), np.empty(width)
    ratio, root, block = np.empty(width), np.empty(width), np.empty((len(bounds), _BLOCK))
    at = 0
    for row in range(len(lengths)):
        n = lengths[row]
        for k in range(slots[row]):
            if not counts[at]:
                at += 1
                continue
            for i in range(n):  # copies: for read-only slices all that follows would be compiled again
                alpha[i] = t[t_starts[row] + k * n + i]
                beta[i] = p[p_starts[row] + k * n + i]
            _row(
                alpha, beta, n, np.inf, bounds, ratio, root, block,
                caps[at], q[at], below[at], products[at], gains[at],
            )  # fmt: skip
            at += 1
