"""Thurstone's probabilities of many rankings of one display, on one grid: densities and tails of its items once.

The line is divided into panels of Gauss-Legendre nodes. With φ_j, Φ_j and 1 − Φ_j of every item at every node, a
ranking costs some products, and an integral from each node upwards for each slot between the first and the last. The
integrals of slots that a ranking begins with, as the one before it did, are not computed again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from foretest.kernels.jit import fast, jit, step
from foretest.kernels.lists import longest
from foretest.special import erfcx

ORDER = 16  # nodes of a panel
_PANELS = 4  # there are a multiple of as many: vectors without a rest
_FEWEST = 3  # times as many
_MARGIN = 8.5  # beyond the lowest and the highest score: what is left out is 1e-17
_WIDEST = 100.0  # on a longer line most of the grid would be empty
_MOST_ENTRIES = 1 << 17  # of a table
_CENTRE, _DEGREE = 5.0, 20  # of the polynomial of Mills' ratio
_SMALL, _LEAST_PRODUCT = 1e-150, 1e-280  # where products are scaled up; what may be divided by
_ROOT_2PI = 2.5066282746310002


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

    area: float  # of a panel: the square of the line's length over the number of panels
    least: float  # of p
    items: int  # at the most


COARSE, FINE = Grid(40.0, 1e-12, 16), Grid(20.0, 1e-100, _MOST_ENTRIES)

NODES, WEIGHTS, TO_ONE = quadrature(ORDER)
TO_ONE = np.ascontiguousarray(TO_ONE.T)  # by node that is integrated, then by node from which
MILLS = _mills_ratio()


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
    for i in range(len(starts)):
        if _is_new(starts, lengths, i):
            points = _points(_width(values, starts[i], lengths[i], sigma, mu), area, items, lengths[i])
            most = max(most, lengths[i] * points)
            widest = max(widest, points)
    density, below, above = np.empty(most), np.empty(most), np.empty(most)
    together, shrunk, g, h = np.empty(widest), np.empty(widest), np.empty(widest), np.empty(widest)
    beyond, ordered = np.empty(widest // ORDER), np.empty((max(1, longest(r_lengths) - 1), widest))
    points = 0
    half = 0.0
    for i in range(len(starts)):
        n = lengths[i]
        if _is_new(starts, lengths, i):
            width = _width(values, starts[i], n, sigma, mu)
            points = _points(width, area, items, n)
            if points:
                half = 0.5 * width * ORDER / points
                _tabulate(mu, n, half, points, nodes, weights, mills, density, below, above, together, shrunk)
        if points:
            shown = ranking[r_starts[i] : r_starts[i] + r_lengths[i]]
            alike = 0
            if not _is_new(starts, lengths, i):
                alike = _alike(ranking, shown, r_starts[i - 1], r_lengths[i - 1])
            _upper_tails(shown, alike, points, half, weights, to_one, density, above, beyond, g, ordered)
            h[:points] = ordered[max(0, len(shown) - 2), :points]
            p = half * _sum(shown, n, points, weights, density, below, together, shrunk, g, h)
            if p > least:
                out[i] = min(0.0, math.log(p))
    return out


@step
def _is_new(starts, lengths, i):
    """Has the row another list than the one before? Draws of one display follow one another."""
    return i == 0 or starts[i] != starts[i - 1] or lengths[i] != lengths[i - 1]


@step
def _width(values, start, n, sigma, mu):
    """mu <- scores in units of sigma; how long the line is on which noisy scores can be. NaN: one is not finite."""
    low = np.inf
    high = -np.inf
    check = 0.0
    for j in range(n):
        mu[j] = values[start + j] / sigma
        check += mu[j] * 0.0
        low = min(low, mu[j])
        high = max(high, mu[j])
    return high - low + 2.0 * _MARGIN + check


@step
def _points(width, area, items, n):
    """How many points the grid has, narrow enough for the steepest Gaussian on it; 0 where there is none."""
    if not width <= _WIDEST or n > items:
        return 0
    points = ORDER * _PANELS * max(_FEWEST, math.ceil(width * width / (area * _PANELS)))
    return points if n * points <= _MOST_ENTRIES else 0


@step
def _tabulate(mu, n, half, points, nodes, weights, mills, density, below, above, together, shrunk):
    """density, below, above <- φ, Φ and 1 − Φ of u − μ_j, item after item, for each the nodes of all panels in turn;
    together·shrunk <- the weight of each point times ∏_j Φ, which may be below all doubles."""
    panels = points // ORDER
    middle, u, bell, factor = np.empty(panels), np.empty(points), np.empty(ORDER), np.empty(ORDER)
    first = mu[0]
    for j in range(n):
        first = min(first, mu[j])
    first += half - _MARGIN  # the middle of the first panel
    for a in range(ORDER):
        for panel in range(panels):
            u[a * panels + panel] = first + 2.0 * half * panel + half * nodes[a]
        together[a * panels : (a + 1) * panels] = weights[a]
        bell[a] = math.exp(-0.5 * half * half * nodes[a] * nodes[a]) / _ROOT_2PI
        factor[a] = math.exp(-2.0 * half * half * nodes[a])
    shrunk[:points] = 1.0
    for j in range(n):
        for panel in range(panels):
            x = first + 2.0 * half * panel - mu[j]
            middle[panel] = math.exp(-0.5 * x * x)
        of_item, below_item = density[j * points : (j + 1) * points], below[j * points : (j + 1) * points]
        for a in range(ORDER):
            rise = math.exp((mu[j] - first) * half * nodes[a]) * bell[a]
            _densities(rise, factor[a], middle, panels, a * panels, of_item)
        _tails(u, mu[j], mills, points, of_item, below_item, above[j * points : (j + 1) * points])
        _times_scaled(together, shrunk, below_item, points)


@fast
def _densities(rise, factor, middle, panels, at, density):
    """φ(x + hν) = φ(x)·e^{−xhν}·e^{−h²ν²/2}, x the middle of one panel after the other; e^{−xhν} falls by a factor."""
    for panel in range(panels):
        density[at + panel] = middle[panel] * rise
        rise *= factor


@fast
def _tails(u, mu, mills, points, density, below, above):
    """Φ and 1 − Φ at x, x + width, …: the tail is φ times Mills' ratio."""
    for panel in range(points):
        t = u[panel] - mu
        far = abs(t)
        inverse = 1.0 / (far + _CENTRE)
        y = (far - _CENTRE) * inverse
        ratio = mills[0]
        for power in range(1, _DEGREE + 1):
            ratio = ratio * y + mills[power]
        tail = density[panel] * (ratio * inverse)
        below[panel] = 1.0 - tail if t > 0.0 else tail
        above[panel] = tail if t > 0.0 else 1.0 - tail


@fast
def _times_scaled(together, shrunk, below, points):
    """together·shrunk <- that times Φ of one more item."""
    for a in range(points):
        product = together[a] * below[a]
        is_small = product < _SMALL
        together[a] = product * (1.0 / _SMALL) if is_small else product
        shrunk[a] = shrunk[a] * _SMALL if is_small else shrunk[a]


@step
def _alike(ranking, shown, start, length):
    """How many slots before the last of both this ranking and the one before it have the same items, from the first."""
    slot = 0
    while slot < min(length, len(shown)) - 1 and ranking[start + slot] == shown[slot]:
        slot += 1
    return slot


@step
def _upper_tails(shown, alike, points, half, weights, to_one, density, above, beyond, g, ordered):
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
            _integrate_upwards(g, weights, to_one, half, points // ORDER, beyond, ordered[slot])


@fast
def _times(h, factor, points):
    for a in range(points):
        h[a] *= factor[a]


@fast
def _product(one, other, points, out):
    for a in range(points):
        out[a] = one[a] * other[a]


@fast
def _integrate_upwards(g, weights, to_one, half, panels, beyond, h):
    """h <- the integral of g from each point to the upper end; `beyond` is that from the end of each panel."""
    for panel in range(panels):
        beyond[panel] = 0.0
    for b in range(ORDER):
        weight = half * weights[b]
        for panel in range(panels):
            beyond[panel] += weight * g[b * panels + panel]
    total = 0.0
    for back in range(1, panels + 1):
        of_panel = beyond[panels - back]
        beyond[panels - back] = total
        total += of_panel
    for a in range(ORDER):
        for panel in range(panels):
            h[a * panels + panel] = beyond[panel]
    for b in range(0, ORDER, 4):  # four at a time: fewer stores
        g0, g1, g2, g3 = b * panels, (b + 1) * panels, (b + 2) * panels, (b + 3) * panels
        for a in range(ORDER):
            q0, q1, q2, q3 = to_one[b, a], to_one[b + 1, a], to_one[b + 2, a], to_one[b + 3, a]
            for panel in range(panels):
                part = q0 * g[g0 + panel] + q1 * g[g1 + panel] + q2 * g[g2 + panel] + q3 * g[g3 + panel]
                h[a * panels + panel] += half * part


@step
def _sum(shown, n, points, weights, density, below, together, shrunk, g, h):
    """Σ of weights·H_K·φ_{a_K}·∏_{rest} Φ over all points; h is H_K, and is overwritten."""
    panels = points // ORDER
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
    for a in range(ORDER):
        for panel in range(panels):
            total += weights[a] * h[a * panels + panel]
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
