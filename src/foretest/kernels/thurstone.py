"""Thurstone's model with independent Gaussian noise: log-probability of a top-K ranking by nested quadrature."""

from __future__ import annotations

import math

import numpy as np

from foretest.kernels.jit import jit, step
from foretest.kernels.lists import longest

_ORDER = 10


def _quadrature() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on [−1, 1], and Q[i, j] = ∫ from node i to 1 of the j-th Lagrange polynomial."""
    nodes, weights = np.polynomial.legendre.leggauss(_ORDER)
    basis = np.polynomial.legendre.legvander(nodes, _ORDER - 1)
    integrals = np.empty((_ORDER, _ORDER))
    for degree in range(_ORDER):
        series = np.polynomial.legendre.Legendre.basis(degree).integ()
        integrals[:, degree] = series(1.0) - series(nodes)
    return nodes, weights, integrals @ np.linalg.inv(basis)


NODES, WEIGHTS, TO_ONE = _quadrature()


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

    Scores are in units of sigma. The line is divided into panels narrow enough for the steepest Gaussian on it; each
    panel is scaled by its own maximum, so that probabilities of 1e-300 keep their digits. NaN: a score is not finite,
    or scores are over 1 000 sigma apart, which would need too many panels.
    """
    order = len(nodes)
    out = np.empty(len(starts))
    mu = np.empty(longest(lengths))
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
            low = min(low, mu[ranking[r_starts[i] + slot]])
        if check != 0.0 or high - low > 1000.0:
            out[i] = np.nan
            continue
        low -= 9.0
        high += 9.0
        panels = math.ceil((high - low) * (high - low) / 8.0)
        half = 0.5 * (high - low) / panels
        points = panels * order
        g = np.zeros(points)
        f = np.empty(order)
        for slot in range(k):
            centre = mu[ranking[r_starts[i] + slot]]
            top = -np.inf
            for a in range(points):
                u = low + (2 * (a // order) + 1 + nodes[a % order]) * half
                g[a] += -0.5 * (u - centre) * (u - centre) - 0.9189385332046727
                top = max(top, g[a])
            if slot == k - 1 or top == -np.inf:
                break
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
        # from the top down: Φ ≤ 1, so a point whose g is far below the best integrand so far needs no Φ
        best = -np.inf
        for a in range(points - 1, -1, -1):
            if g[a] < best - 45.0 or g[a] == -np.inf:
                g[a] = -np.inf
                continue
            u = low + (2 * (a // order) + 1 + nodes[a % order]) * half
            for j in range(n):
                shown = False
                for slot in range(k):
                    shown |= ranking[r_starts[i] + slot] == j
                if not shown:
                    g[a] += _log_ndtr(u - mu[j])
            best = max(best, g[a])
        if best == -np.inf:
            out[i] = -np.inf
            continue
        total = 0.0
        for a in range(points):
            total += weights[a % order] * math.exp(g[a] - best)
        # independent Gaussians tie with probability 0, but a certain ranking may round to just above 1
        out[i] = min(0.0, best + math.log(half * total))
    return out
