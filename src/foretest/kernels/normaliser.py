"""The pointwise normaliser q(x) = E_t[z | x] = Σ_a min(π_t, c·π_p), on a set of rankings that represents all.

A set is given by α and β of each ranking, enumerated or of rankings that were drawn; `adaptive_cap` finds the cap of
the paper's appendix on either.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.kernels.jit import fast, inner, jit, reordered, step
from foretest.kernels.ranking_draws import SLICE

_BLOCK = 512  # rows whose draws stay in the cache

Floats = npt.NDArray[np.float64]


@fast
def max_capped_mass(alpha, beta, n, cap):
    """q(c) = Σ min(α, c·β)."""
    q = 0.0
    for j in range(n):
        a = alpha[j]
        b = cap * beta[j]
        q += a if a < b else b
    return q


@fast
def _below_and_above(alpha, beta, n, cap):
    """A = Σ_{α≤cβ} α and B = Σ_{α>cβ} β."""
    a = 0.0
    b = 0.0
    for j in range(n):
        below = alpha[j] <= cap * beta[j]
        a += alpha[j] if below else 0.0
        b += 0.0 if below else beta[j]
    return a, b


@fast
def total_and_reach(alpha, beta, n):
    """Σ α and Σ_{α>0} β."""
    total = 0.0
    reach = 0.0
    for j in range(n):
        total += alpha[j]
        reach += beta[j] if alpha[j] > 0.0 else 0.0
    return total, reach


@inner
def is_feasible(reach, bound):
    """Is there a c > 0 with c/q(c) ≤ bound? Iff P_p(W > 0) ≥ 1/bound (the paper's appendix says always)."""
    return reach >= (1.0 - 1e-12) / bound


@step
def largest_root(alpha, beta, n, bound, c):
    """The largest c with c/q(c) = bound, and q = A + c·B there, searched from a c to the right of it.

    q is concave and piecewise linear and q(0) = 0, so Newton's steps on q(c) − c/bound from the right,
    c ← A/(1/bound − B), fall onto the largest root in a few steps.
    """
    for _ in range(200):
        a, b = _below_and_above(alpha, beta, n, c)
        slope = 1.0 / bound - b
        if slope <= 0.0 or a <= 0.0:
            break
        following = a / slope
        if following >= c * (1.0 - 1e-15):
            break
        c = following
    return c, a + c * b


@jit
def adaptive_cap(alpha, beta, n, bound):
    """The largest c with c/q(c) ≤ bound, q(c) = Σ min(α, c·β), and q there; (0, 0) where there is none."""
    total, reach = total_and_reach(alpha, beta, n)
    if not is_feasible(reach, bound):
        return 0.0, 0.0
    return largest_root(alpha, beta, n, bound, bound * total)


@reordered
def masses_of_draws(w, alpha, beta):
    """The masses that two-sided draws represent: α = 2W/(1+W)/S and β = 2/(1+W)/S."""
    count = len(w)
    for d in range(count):
        v = min(w[d], 1e300)
        beta[d] = 2.0 / (count * (1.0 + v))
        alpha[d] = v * beta[d]


@jit
def adaptive_caps_of_draws(w, bound):
    """Row by row, the adaptive cap on two-sided draws, q there and at a third of it."""
    rows, count = w.shape
    alpha = np.empty(count)
    beta = np.empty(count)
    cap = np.empty(rows)
    q = np.empty(rows)
    low = np.empty(rows)
    for i in range(rows):
        masses_of_draws(w[i], alpha, beta)
        cap[i], q[i] = adaptive_cap(alpha, beta, count, bound)
        low[i] = max_capped_mass(alpha, beta, count, cap[i] / SLICE)
    return cap, q, low


def two_sided_means(log_w: Floats, cap: float, zero: bool) -> Floats:
    """Row by row, mean of 2·w̄/(1+W): 2·min(W, c)/(1+W) under max capping.

    In NumPy: a few passes take less time than a compilation. log W counts as 709 at most: beyond, W is no double.
    """
    means = np.empty(len(log_w))
    for begin in range(0, len(log_w), _BLOCK):
        part = log_w[begin : begin + _BLOCK]
        w = np.exp(np.minimum(part, 709.0))
        capped = np.where(part < np.log(cap), w, 0.0) if zero else np.minimum(w, cap)
        w += 1.0
        capped /= w
        means[begin : begin + _BLOCK] = 2.0 * capped.mean(axis=1)
    return means


@jit
def capped_mass(alpha, beta, n, cap, zero):
    """q = Σ min(α, c·β) under max capping, Σ α·1(α < c·β) under zero capping."""
    q = 0.0
    for j in range(n):
        if zero:
            q += alpha[j] if alpha[j] < cap * beta[j] else 0.0
        else:
            q += min(alpha[j], cap * beta[j])
    return q


@reordered
def _cut(w, cap, zero):
    """Σ (W − w̄)/(1+W)."""
    total = 0.0
    over = 0.0 if zero else cap
    for d in range(len(w)):
        v = min(w[d], 1e300)
        total += (v - over) / (1.0 + v) if v >= cap else 0.0
    return total


@reordered
def _squares(w, cap, zero):
    """Σ w̄²/(1+W)."""
    total = 0.0
    over = 0.0 if zero else cap
    for d in range(len(w)):
        capped = w[d] if w[d] < cap else over
        total += capped * capped / (1.0 + w[d])
    return total


@jit
def cut_of_draws(w, cap, zero):
    """Row by row, 1 − q on two-sided draws: mean of 2·(W − w̄)/(1+W), with little noise where little is cut."""
    rows, count = w.shape
    out = np.empty(rows)
    for i in range(rows):
        out[i] = 2.0 * _cut(w[i], cap, zero) / count
    return out


@jit
def squares_of_draws(w, caps, zero):
    """Row by row, E_p[w̄²] on two-sided draws: mean of 2·w̄²/(1+W)."""
    rows, count = w.shape
    out = np.empty(rows)
    for i in range(rows):
        out[i] = 2.0 * _squares(w[i], caps[i], zero) / count
    return out
