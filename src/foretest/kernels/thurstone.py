"""Thurstone's model with independent Gaussian noise: log-probability of a top-K ranking by nested quadrature."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from foretest.kernels import thurstone_grid as grid
from foretest.kernels.jit import jit, step
from foretest.kernels.lists import longest

_ORDER = 10
_ONE_GRID = 60.0  # a line of so many sigma has one grid; on a longer one most of it would be empty


@lru_cache(maxsize=1)
def tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The last arguments of `log_prob`: nodes, weights and integrals of the quadrature."""
    return grid.quadrature(_ORDER)


@step
def _log_ndtr(x):
    if x > -30.0:
        return math.log(0.5 * math.erfc(-x * 0.7071067811865476))
    # asymptotic series of Mills' ratio, good to 1e-14 here
    y = 1.0 / (x * x)
    return -0.5 * x * x - math.log(-x) - 0.9189385332046727 + math.log1p(-y * (1.0 - 3.0 * y * (1.0 - 5.0 * y)))


@jit
def log_prob(values, starts, lengths, ranking, r_starts, r_lengths, sigma, nodes, weights, to_one):
    """log p, p = ∫ φ_{a_K}(u) H_K(u) ∏_{rest} Φ(u − μ_j) du, H_1 = 1, H_{k+1}(u) = ∫_u^∞ φ_{a_k}(s) H_k(s) ds.

    Scores are in units of sigma. Where they are far apart, slots whose noisy scores cannot meet are integrated apart,
    each only where its score can be. NaN: a score is not finite, or scores are over 1 000 sigma apart.
    """
    out = np.empty(len(starts))
    mu, mode = np.empty(longest(lengths)), np.empty(longest(r_lengths))
    shown = np.empty(longest(r_lengths), np.int64)
    for i in range(len(starts)):
        n = lengths[i]
        k = r_lengths[i]
        low = np.inf
        high = -np.inf
        check = 0.0
        for j in range(n):
            mu[j] = values[starts[i] + j] / sigma
            check += mu[j] * 0.0
            high = max(high, mu[j])
        for slot in range(k):
            shown[slot] = ranking[r_starts[i] + slot]
            low = min(low, mu[shown[slot]])
        if check != 0.0 or high - low > 1000.0:
            out[i] = np.nan
            continue
        low -= 9.0
        high += 9.0
        if high - low <= _ONE_GRID:
            panels = math.ceil((high - low) * (high - low) / 8.0)
            log_p = _integral(mu, n, shown, k, 0, k, low, high, panels, nodes, weights, to_one)
        else:
            _modes(mu, n, shown, k, low, high, mode)
            # noise of variance 1 times a log-concave factor: a slot's variance is at most 1, its mean at most √K from
            # its mode, so that 9 more leave out 1e-17
            reach = 10.0 + math.sqrt(k)
            log_p = 0.0
            first = 0
            for slot in range(1, k + 1):
                if slot == k or mode[slot - 1] - mode[slot] > 2.0 * reach:
                    bottom, top = max(low, mode[slot - 1] - reach), min(high, mode[first] + reach)
                    panels = math.ceil((top - bottom) * (reach + _steepest(mu, shown, first, slot, mode)) / 4.0)
                    log_p += _integral(mu, n, shown, k, first, slot, bottom, top, panels, nodes, weights, to_one)
                    first = slot
        # independent Gaussians tie with probability 0, but a certain ranking may round to just above 1
        out[i] = min(0.0, log_p)
    return out


@step
def _modes(mu, n, shown, k, low, high, mode):
    """mode <- the likeliest noisy scores of the slots, to within 0.1: decreasing, and above those of the rest.

    Adjacent slots in the wrong order are pooled at the mean of their scores; the rest pull the last pool upwards.
    """
    sizes = np.empty(k, np.int64)
    pools = 0
    for slot in range(k):
        total, size = mu[shown[slot]], 1
        mode[pools] = total if slot < k - 1 else _pulled_up(mu, n, shown, k, total, size, low, high)
        sizes[pools] = size
        while pools and mode[pools - 1] <= mode[pools]:
            size = sizes[pools] + sizes[pools - 1]
            total = 0.0
            for member in range(slot + 1 - size, slot + 1):
                total += mu[shown[member]]
            pools -= 1
            sizes[pools] = size
            mode[pools] = total / size if slot < k - 1 else _pulled_up(mu, n, shown, k, total, size, low, high)
        pools += 1
    slot = k
    for pool in range(pools - 1, -1, -1):
        for _ in range(sizes[pool]):
            slot -= 1
            mode[slot] = mode[pool]


@step
def _pulled_up(mu, n, shown, k, total, size, low, high):
    """Where size·u = total + Σ_{rest} φ/Φ(u − μ_j), by bisection: the likeliest score of the last pool."""
    while high - low > 0.1:
        u = 0.5 * (low + high)
        pull = total - size * u
        for j in range(n):
            if not _is_shown(shown, k, j):
                x = u - mu[j]
                pull += math.exp(-0.5 * x * x - 0.9189385332046727 - _log_ndtr(x))
        if pull > 0.0:
            low = u
        else:
            high = u
    return 0.5 * (low + high)


@step
def _steepest(mu, shown, first, end, mode):
    """The greatest slope of an integrand's logarithm at its slot's likeliest score: Gaussians of one pool add up."""
    most = slope = 0.0
    for slot in range(first, end):
        if slot > first and mode[slot] < mode[slot - 1]:
            slope = 0.0
        slope += mode[slot] - mu[shown[slot]]
        most = max(most, abs(slope))
    return most


@step
def _is_shown(shown, k, j):
    is_shown = False
    for slot in range(k):
        is_shown |= shown[slot] == j
    return is_shown


@step
def _integral(mu, n, shown, k, first, end, low, high, panels, nodes, weights, to_one):
    """log of the integral over the noisy scores of slots first .. end−1, in order, on a part of the line.

    The last slot of the ranking brings Φ of the rest. The line is divided into panels, narrow enough for the steepest
    Gaussian; each is scaled by its own maximum, so that probabilities of 1e-300 keep their digits.
    """
    order = len(nodes)
    half = 0.5 * (high - low) / panels
    points = panels * order
    g = np.zeros(points)
    f = np.empty(order)
    for slot in range(first, end):
        centre = mu[shown[slot]]
        largest = -np.inf
        for a in range(points):
            u = low + (2 * (a // order) + 1 + nodes[a % order]) * half
            g[a] += -0.5 * (u - centre) * (u - centre) - 0.9189385332046727
            largest = max(largest, g[a])
        if slot == end - 1 or largest == -np.inf:
            break
        _integrate_down(g, f, panels, half, weights, to_one)
    # from the top down: Φ ≤ 1, so a point whose g is far below the best integrand so far needs no Φ
    best = -np.inf
    for a in range(points - 1, -1, -1):
        if g[a] < best - 45.0 or g[a] == -np.inf:
            g[a] = -np.inf
            continue
        if end == k:
            u = low + (2 * (a // order) + 1 + nodes[a % order]) * half
            for j in range(n):
                if not _is_shown(shown, k, j):
                    g[a] += _log_ndtr(u - mu[j])
        best = max(best, g[a])
    if best == -np.inf:
        return -np.inf
    total = 0.0
    for a in range(points):
        total += weights[a % order] * math.exp(g[a] - best)
    return best + math.log(half * total)


@step
def _integrate_down(g, f, panels, half, weights, to_one):
    """g <- log of the integral of exp(g) from each point to the upper end; f is a buffer for one panel."""
    order = len(weights)
    above = -np.inf  # log of the integral from the panel's upper end on
    for panel in range(panels - 1, -1, -1):
        first = panel * order
        peak = above
        for b in range(order):
            peak = max(peak, g[first + b])
        if peak == -np.inf:
            continue
        beyond = math.exp(above - peak)
        whole = 0.0
        for b in range(order):
            f[b] = math.exp(g[first + b] - peak)
            whole += weights[b] * f[b]
        for a in range(order):
            partial = 0.0
            for b in range(order):
                partial += to_one[a, b] * f[b]
            h = beyond + half * partial
            g[first + a] = peak + math.log(h) if h > 0.0 else -np.inf
        above = peak + math.log(beyond + half * whole)
