"""Thurstone's probabilities of many rankings of one display, on one grid: densities and tails of its items once.

The line is divided into panels of Gauss-Legendre nodes. With φ_j, Φ_j and 1 − Φ_j of every item at every node, a
ranking costs some products, and an integral from each node upwards for each slot between the first and the last. The
integrals of slots that a ranking begins with, as the one before it did, are not computed again.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from foretest.kernels.exponential import exp_within
from foretest.kernels.jit import fast, jit, step
from foretest.kernels.lists import descending, longest
from foretest.special import erfcx

ORDER = 16  # nodes of a panel
_WIDEST_PANEL = 1.6  # in sigma: on a wider one a bell takes more nodes
_MARGIN = 8.5  # beyond the lowest and the highest score: what is left out is 1e-17
_LEFT_OUT = 34.5  # −log of the share of the least p that may be left out at an end of the line: 1e-15
_HALVINGS = 8  # of the line, to find its ends
_WIDEST = 100.0  # on a longer line most of the grid would be empty
_MOST_ENTRIES = 1 << 17  # of a table
_CENTRE, _DEGREE = 5.0, 20  # of the polynomial of Mills' ratio
_SMALL, _LEAST_PRODUCT = 1e-150, 1e-280  # where products are scaled up; what may be divided by
_LOG_ROOT_2PI = 0.9189385332046727


def quadrature(order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on [−1, 1], and Q[i, j] = ∫ from node i to 1 of the j-th Lagrange polynomial."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    basis = np.polynomial.legendre.legvander(nodes, order - 1)
    integrals = np.empty((order, order))
    for degree in range(order):
        series = np.polynomial.legendre.Legendre.basis(degree).integ()
        integrals[:, degree] = series(1.0) - series(nodes)
    return nodes, weights, integrals @ np.linalg.inv(basis)


def _mills_ratio() -> np.ndarray:
    """The polynomial in y = (t − c)/(t + c), its highest power first, that is (1 − Φ(t))/φ(t)·(t + c) for t ≥ 0, with
    relative errors of 3e-15."""
    y = np.cos(np.pi * (np.arange(200) + 0.5) / 200)
    t = _CENTRE * (1.0 + y) / (1.0 - y)
    ratio = math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2)) * (t + _CENTRE)
    chebyshev = np.polynomial.chebyshev
    return np.ascontiguousarray(chebyshev.cheb2poly(chebyshev.chebfit(y, ratio, _DEGREE))[::-1])


class Grid(NamedTuple):
    """How fine a grid is, and for which rankings its answers have all their digits: an unlikely one has its integrand
    far from the scores, where it is steep, and the highest of many noisy scores has a narrow density."""

    area: float  # the most of a panel's width times the length of the whole line
    least: float  # of p
    items: int  # at the most


COARSE, FINE = Grid(36.0, 1e-12, 16), Grid(18.0, 1e-100, _MOST_ENTRIES)


@lru_cache(maxsize=1)
def tables() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The last arguments of `log_prob`: nodes, weights, integrals by node that is integrated and then by node from
    which, and the polynomial of Mills' ratio. Made when they are first needed: most tests have no such policy."""
    nodes, weights, to_one = quadrature(ORDER)
    return nodes, weights, np.ascontiguousarray(to_one.T), _mills_ratio()


@jit
def log_prob(
    values, starts, lengths, ranking, r_starts, r_lengths, sigma, area, least, items, nodes, weights, to_one, mills
):
    """log p of one ranking per row; infinite where it is not known: the items' scores are too far apart or not finite,
    the items more than `items` or too many for tables, or the ranking less likely than `least`. Rankings of one display
    that begin alike are best beside each other."""
    out = np.full(len(starts), np.inf)
    mu = np.empty(longest(lengths))
    most = 0
    widest = 0
    rare = _LEFT_OUT - math.log(least)
    for i in range(len(starts)):
        if _is_new(starts, lengths, r_lengths, i):
            low, high = _ends(values, starts[i], lengths[i], sigma, mu)
            points = _most_points(high - low, area, items, lengths[i])
            most = max(most, lengths[i] * points)
            widest = max(widest, points)
    density, below, above = np.empty(most), np.empty(most), np.empty(most)
    together, shrunk, g, h = np.empty(widest), np.empty(widest), np.empty(widest), np.empty(widest)
    ordered = np.empty((max(1, longest(r_lengths) - 1), widest))
    points = 0
    half = 0.0
    for i in range(len(starts)):
        n = lengths[i]
        if _is_new(starts, lengths, r_lengths, i):
            low, high = _ends(values, starts[i], n, sigma, mu)
            points = _most_points(high - low, area, items, n)
            if points:
                begin, end = _line(mu, n, r_lengths[i], rare, low, high)
                points = _points(end - begin, high - low, area)
                half = 0.5 * (end - begin) * ORDER / points
                _tabulate(mu, n, begin, half, points, nodes, weights, mills, density, below, above, together, shrunk)
        if points:
            shown = ranking[r_starts[i] : r_starts[i] + r_lengths[i]]
            alike = 0
            if not _is_new(starts, lengths, r_lengths, i):
                alike = _alike(ranking, shown, r_starts[i - 1], r_lengths[i - 1])
            _upper_tails(shown, alike, points, half, weights, to_one, density, above, g, ordered)
            h[:points] = ordered[max(0, len(shown) - 2), :points]
            p = half * _sum(shown, n, points, weights, density, below, together, shrunk, g, h)
            if p > least:
                out[i] = min(0.0, math.log(p))
    return out


@step
def _is_new(starts, lengths, r_lengths, i):
    """Has the row another list, or number of slots, than the one before? Draws of one display follow one another."""
    return i == 0 or starts[i] != starts[i - 1] or lengths[i] != lengths[i - 1] or r_lengths[i] != r_lengths[i - 1]


@step
def _ends(values, start, n, sigma, mu):
    """mu <- scores in units of sigma; where noisy scores can be, from and to. NaN: a score is not finite."""
    low = np.inf
    high = -np.inf
    check = 0.0
    for j in range(n):
        mu[j] = values[start + j] / sigma
        check += mu[j] * 0.0
        low = min(low, mu[j])
        high = max(high, mu[j])
    return low - _MARGIN, high + _MARGIN + check


@step
def _line(mu, n, k, rare, low, high):
    """The part of the line from low to high that is needed for rankings of k items.

    A ranking that is as likely as asked for has no more than a rounding of its integral elsewhere: the last slot and
    all items that are not shown are below u with a probability of at most the product of Φ(u − μ_j) over the n − k + 1
    lowest scores; the first two slots are above u with at most that of 1 − Φ over the two highest.
    """
    order = np.empty(n, np.int64)
    descending(mu, n, order)
    begin = _rare_from(mu, order[k - 1 :], -1.0, rare, low, high)
    end = _rare_from(mu, order[:2], 1.0, rare, high, low) if k > 1 else high
    return begin, end


@step
def _rare_from(mu, items, side, rare, near, far):
    """From where to the end `near` of the line (side −1 the lower, 1 the upper) the noisy scores of all these items are
    hardly ever: one is x beyond its mean with a probability of at most e^{−x²/2}/2."""
    for _ in range(_HALVINGS):
        u = 0.5 * (near + far)
        total = 0.0
        for j in items:
            beyond = side * (u - mu[j])
            if beyond > 0.0:
                total += 0.5 * beyond * beyond + 0.6931471805599453
        if total > rare:
            near = u
        else:
            far = u
    return near


@step
def _most_points(full, area, items, n):
    """How many points a grid may have on the whole line; 0 where there is none."""
    if not full <= _WIDEST or n > items:
        return 0
    points = _points(full, full, area)
    return points if n * points <= _MOST_ENTRIES else 0


@step
def _points(line, full, area):
    """How many points the grid has on a part of the line: panels are narrow enough for a bell, and for the slope of a
    Gaussian whose mean is at the other end of the whole line."""
    return ORDER * math.ceil(max(line / _WIDEST_PANEL, line * full / area))


@step
def _tabulate(mu, n, low, half, points, nodes, weights, mills, density, below, above, together, shrunk):
    """density, below, above <- φ, Φ and 1 − Φ of u − μ_j, item after item, for each the nodes of one panel after the
    other; together·shrunk <- the weight of each point times ∏_j Φ, which may be below all doubles."""
    u, exponent = np.empty(points), np.empty(points)
    for panel in range(points // ORDER):
        middle = low + half * (2 * panel + 1)
        for a in range(ORDER):
            u[panel * ORDER + a] = middle + half * nodes[a]
            together[panel * ORDER + a] = weights[a]
    shrunk[:points] = 1.0
    for j in range(n):
        of_item, below_item = density[j * points : (j + 1) * points], below[j * points : (j + 1) * points]
        _exponents(u, mu[j], points, exponent)
        exp_within(exponent, of_item, points)
        _tails(u, mu[j], mills, points, of_item, below_item, above[j * points : (j + 1) * points])
        _times_scaled(together, shrunk, below_item, points)


@fast
def _exponents(u, mu, points, exponent):
    """log φ(u − μ)."""
    for a in range(points):
        exponent[a] = -0.5 * (u[a] - mu) * (u[a] - mu) - _LOG_ROOT_2PI


@fast
def _tails(u, mu, mills, points, density, below, above):
    """Φ and 1 − Φ at x, x + width, …: the tail is φ times Mills' ratio."""
    for panel in range(points):
        t = u[panel] - mu
        far = abs(t)
        inverse = 1.0 / (far + _CENTRE)
        y = (far - _CENTRE) * inverse
        # even and odd powers apart: two chains of half the length
        y2 = y * y
        even, odd = mills[0], mills[1]
        for power in range(2, _DEGREE, 2):
            even = even * y2 + mills[power]
            odd = odd * y2 + mills[power + 1]
        ratio = even * y2 + mills[_DEGREE] + odd * y
        tail = density[panel] * (ratio * inverse)
        below[panel] = 1.0 - tail if t > 0.0 else tail
        above[panel] = tail if t > 0.0 else 1.0 - tail


@fast
def _times_scaled(together, shrunk, below, points):
    """together·shrunk <- that times Φ of one more item."""
    for a in range(points):
        product = together[a] * below[a]
        # factors rather than a choice of what is stored: only these become vectors
        together[a] = product * (1.0 / _SMALL if product < _SMALL else 1.0)
        shrunk[a] *= _SMALL if product < _SMALL else 1.0


@step
def _alike(ranking, shown, start, length):
    """How many slots before the last of both this ranking and the one before it have the same items, from the first."""
    slot = 0
    while slot < min(length, len(shown)) - 1 and ranking[start + slot] == shown[slot]:
        slot += 1
    return slot


@step
def _upper_tails(shown, alike, points, half, weights, to_one, density, above, g, ordered):
    """ordered[s] <- the probability that the noisy scores of the slots up to s are in order and above u, for each slot
    before the last; the first `alike` of them are there already."""
    if len(shown) == 1:
        ordered[0, :points] = 1.0
    for slot in range(alike, len(shown) - 1):
        at = shown[slot] * points
        if slot == 0:
            ordered[0, :points] = above[at : at + points]
        else:
            _product(ordered[slot - 1], density[at : at + points], points, g)
            _integrate_upwards(g, weights, to_one, half, points // ORDER, ordered[slot])


@fast
def _times(h, factor, points):
    for a in range(points):
        h[a] *= factor[a]


@fast
def _product(one, other, points, out):
    for a in range(points):
        out[a] = one[a] * other[a]


@fast
def _integrate_upwards(g, weights, to_one, half, panels, h):
    """h <- the integral of g from each point to the upper end, from the last panel down."""
    beyond = 0.0  # the integral from the end of the panel
    for panel in range(panels - 1, -1, -1):
        # slices begin at 0: only with indices that cannot be negative do loops become vectors
        of_panel, out = g[panel * ORDER : (panel + 1) * ORDER], h[panel * ORDER : (panel + 1) * ORDER]
        _weighted_sums(to_one, of_panel, half, beyond, out)
        whole = 0.0
        for b in range(ORDER):
            whole += weights[b] * of_panel[b]
        beyond += half * whole


@fast
def _weighted_sums(q, g, half, more, out):
    """out[a] <- more + half·Σ_b q[b, a]·g[b]: all terms of one number at once, which is then stored once."""
    g0, g1, g2, g3 = half * g[0], half * g[1], half * g[2], half * g[3]
    g4, g5, g6, g7 = half * g[4], half * g[5], half * g[6], half * g[7]
    g8, g9, g10, g11 = half * g[8], half * g[9], half * g[10], half * g[11]
    g12, g13, g14, g15 = half * g[12], half * g[13], half * g[14], half * g[15]
    for a in range(ORDER):
        first = q[0, a] * g0 + q[1, a] * g1 + q[2, a] * g2 + q[3, a] * g3
        second = q[4, a] * g4 + q[5, a] * g5 + q[6, a] * g6 + q[7, a] * g7
        third = q[8, a] * g8 + q[9, a] * g9 + q[10, a] * g10 + q[11, a] * g11
        fourth = q[12, a] * g12 + q[13, a] * g13 + q[14, a] * g14 + q[15, a] * g15
        out[a] = more + (first + second + third + fourth)


@step
def _sum(shown, n, points, weights, density, below, together, shrunk, g, h):
    """Σ of weights·H_K·φ_{a_K}·∏_{rest} Φ over all points; h is H_K, and is overwritten."""
    at = shown[len(shown) - 1] * points
    _times(h, density[at : at + points], points)
    at = shown[0] * points
    g[:points] = below[at : at + points]
    for slot in range(1, len(shown)):
        at = shown[slot] * points
        _times(g, below[at : at + points], points)
    total, lost = _quotients(h, together, shrunk, g, points)
    if lost <= 1e-17 * total:
        return total
    # Φ of shown items are below all doubles where the last slot is: the others are multiplied one by one
    for j in range(n):
        is_shown = False
        for slot in range(len(shown)):
            is_shown |= shown[slot] == j
        if not is_shown:
            _times(h, below[j * points : (j + 1) * points], points)
    total = 0.0
    for panel in range(points // ORDER):
        for a in range(ORDER):
            total += weights[a] * h[panel * ORDER + a]
    return total


@fast
def _quotients(h, together, shrunk, of_shown, points):
    """Σ h·∏_{rest} Φ, the product being that of all over that of the shown; and Σ h where the latter is too small."""
    total = 0.0
    lost = 0.0
    for at in range(points):
        is_there = of_shown[at] > _LEAST_PRODUCT
        total += h[at] * shrunk[at] * (together[at] / (of_shown[at] if is_there else 1.0))
        lost += 0.0 if is_there else h[at]
    return total, lost
