"""P(item i at rank k) of a top-K ranking, by a race: item i arrives at a random time, the first K are shown in order.

    P(i at rank k) = ∫ f_i(u)·PB_{k−1}({F_j(u)}, j ≠ i) du

with f, F the density and the distribution of arrival times and PB the Poisson-binomial probability that k − 1 of the
others have arrived by then. Plackett-Luce is the race of exponentials of rate θ_j = exp(s_j/T); Thurstone's model is
the race of scores with Gaussian noise, where the highest arrives first. The trapezoid rule converges exponentially on
both: the integrands are analytic and vanish at both ends.

Only one place subtracts, and its error is bounded: marginals of 1e-200 have all their digits.
"""

from __future__ import annotations

import math

import numpy as np

from foretest.kernels.jit import inner, jit, step
from foretest.kernels.lists import longest
from foretest.kernels.normaliser import adaptive_cap, capped_mass
from foretest.kernels.ranking_draws import SLICE

_FIRST = 1e-5  # where the integrals over u begin: u²/2 of the marginal is left out, from rank 2 on
_DONE = 1e-13  # where they end: the bound on what is left out
_LOWEST = -690.0  # of log θ relative to the largest: below it θ is practically 0, but must not be 0
_FEW = 8  # slots up to which a product of two lists costs no more than a division
_DIGITS = 1e-11  # relative error that a division may leave


@inner
def _add_item(counts, slots, arrived, waiting):
    """counts[k] <- P(k have arrived) with one more item."""
    for k in range(slots - 1, 0, -1):
        counts[k] = counts[k] * waiting + counts[k - 1] * arrived
    counts[0] *= waiting


@inner
def _divided(counts, slots, arrived, waiting, out):
    """out <- counts without one item; False where that would lose digits.

    counts_k = waiting·out_k + arrived·out_{k−1} is solved from k = 0 on, with a bound on the rounding error.
    """
    if arrived > 0.5:
        return False
    inverse = 1.0 / waiting
    before = 0.0
    error = 0.0
    for k in range(slots):
        error = (2.3e-16 * counts[k] + arrived * error) * inverse
        before = (counts[k] - arrived * before) * inverse
        if not before * _DIGITS >= error:
            return False
        out[k] = before
    return True


@step
def _add_moment(arrived, waiting, density, n, slots, before, after, without, out):
    """out[k, i] += density_i·P(k others have arrived), for all items; returns P(fewer than `slots` have arrived).

    P(k others) is the product of the counts of those before i and those after it; for many slots it is found from the
    counts of all by dividing i out, where that keeps the digits.
    """
    before[0, 0] = 1.0
    for k in range(1, slots):
        before[0, k] = 0.0
    for i in range(n):
        a = arrived[i]
        w = waiting[i]
        row = before[i]
        following = before[i + 1]
        following[0] = row[0] * w
        for k in range(1, slots):
            following[k] = row[k] * w + row[k - 1] * a
    counts = before[n]
    after[0] = 1.0
    for k in range(1, slots):
        after[k] = 0.0
    for i in range(n - 1, -1, -1):
        d = density[i]
        if d > 0.0:
            if slots <= _FEW or not _divided(counts, slots, arrived[i], waiting[i], without):
                row = before[i]
                for k in range(slots):
                    total = 0.0
                    for other in range(k + 1):
                        total += row[other] * after[k - other]
                    out[k, i] += d * total
            else:
                for k in range(slots):
                    out[k, i] += d * without[k]
        _add_item(after, slots, arrived[i], waiting[i])
    reached = 0.0
    for k in range(slots):
        reached += counts[k]
    return reached


@inner
def _normalise(table, slots, n):
    """Scale each slot to sum to 1, as it shows one item, which removes the rest of the quadrature's error."""
    for k in range(slots):
        total = 0.0
        for i in range(n):
            total += table[k, i]
        if total > 0.0:
            for i in range(n):
                table[k, i] /= total


@step
def _exponential_race(theta, n, slots, arrived, waiting, density, before, after, without, table):
    """table[k, i] <- P(i at rank k), θ summing to 1; u = e^y, trapezoid on y with step ln(2)/m.

    With such a step every m-th node has twice the time: p ← p(2 − p) and, once that is near 1, 1 − p ← (1 − p)²
    replace all exponentials.
    """
    for k in range(slots):
        for i in range(n):
            table[k, i] = 0.0
    if slots > 1:
        interleaved = math.ceil(math.log(2.0) * math.sqrt(slots + 1.0) / 0.7)
        for node in range(interleaved):
            u = _FIRST * 2.0 ** (node / interleaved)
            for i in range(n):
                x = theta[i] * u
                arrived[i] = x * (1.0 - 0.5 * x * (1.0 - x / 3.0))
                waiting[i] = 1.0 - arrived[i]
            while True:
                for i in range(n):
                    density[i] = theta[i] * u * waiting[i]
                reached = _add_moment(arrived, waiting, density, n, slots, before, after, without, table)
                # the K-th arrival has an increasing hazard, so that the rest is less than this product
                if u > 1.0 and u * reached < _DONE:
                    break
                u *= 2.0
                for i in range(n):
                    if arrived[i] < 0.5:
                        arrived[i] *= 2.0 - arrived[i]
                        waiting[i] = 1.0 - arrived[i]
                    else:
                        waiting[i] *= waiting[i]
                        arrived[i] = 1.0 - waiting[i]
        _normalise(table, slots, n)
    for i in range(n):  # the first slot is the softmax itself
        table[0, i] = theta[i]


@jit
def plackett_luce(values, starts, lengths, slots, inverse_temperature, out, out_starts):
    """out <- for each row the marginals of all its items, slot by slot (K lists of M numbers)."""
    most, widest = longest(lengths), longest(slots)
    theta, arrived, waiting, density = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    before, after, without = np.empty((most + 1, widest)), np.empty(widest), np.empty(widest)
    for row in range(len(starts)):
        n, k = lengths[row], slots[row]
        high = -np.inf
        for i in range(n):
            high = max(high, np.float64(values[starts[row] + i]))
        total = 0.0
        for i in range(n):
            x = (np.float64(values[starts[row] + i]) - high) * inverse_temperature
            theta[i] = math.exp(max(x, _LOWEST))
            total += theta[i]
        for i in range(n):
            theta[i] /= total
        table = out[out_starts[row] : out_starts[row] + k * n].reshape(k, n)
        _exponential_race(theta, n, k, arrived, waiting, density, before, after, without, table)


@jit
def thurstone(values, starts, lengths, slots, sigma, out, out_starts):
    """out <- for each row the marginals of all its items, slot by slot, where scores have Gaussian noise.

    Time runs down from the highest score, with the trapezoid rule on the noisy score; it jumps over stretches without
    a score. NaN: a score is not finite.
    """
    most, widest = longest(lengths), longest(slots)
    arrived, waiting, density = np.empty(most), np.empty(most), np.empty(most)
    before, after, without = np.empty((most + 1, widest)), np.empty(widest), np.empty(widest)
    step = 0.35 / math.sqrt(widest + 1.0)
    for row in range(len(starts)):
        n, k = lengths[row], slots[row]
        high, check = -np.inf, 0.0
        for i in range(n):
            score = np.float64(values[starts[row] + i]) / sigma
            high = max(high, score)
            check += score * 0.0
        table = out[out_starts[row] : out_starts[row] + k * n].reshape(k, n)
        for slot in range(k):
            for i in range(n):
                table[slot, i] = 0.0
        if check != 0.0:
            table[:, :] = np.nan
            continue
        # where scores are huge, time is counted from one of them: their own digits do not resolve a step
        origin = high if abs(high) > 1e6 else 0.0
        y = high - origin + 9.0
        while True:
            is_near, below = _scores_near(values, starts[row], n, sigma, origin, y)
            if not is_near:
                if below == -np.inf:
                    break
                origin, y = below, 9.0
            for i in range(n):
                z = y - (np.float64(values[starts[row] + i]) / sigma - origin)
                arrived[i] = 0.5 * math.erfc(z * 0.7071067811865476)
                waiting[i] = 0.5 * math.erfc(-z * 0.7071067811865476)
                density[i] = math.exp(-0.5 * z * z)
            reached = _add_moment(arrived, waiting, density, n, k, before, after, without, table)
            if reached < 1e-30:
                break
            y -= step
        _normalise(table, k, n)


@step
def _scores_near(values, start, n, sigma, origin, y):
    """Is there a score near enough to arrive about y, or soon below? And the highest score below y."""
    is_near, below = False, -np.inf
    for i in range(n):
        score = np.float64(values[start + i]) / sigma
        is_near |= -60.0 < score - origin - y < 9.0
        if score - origin < y:
            below = max(below, score)
    return is_near, below


@jit
def centre_ranks(values, starts, lengths, out, out_starts):
    """out <- each item's place in the sort by score, from 0; ties: the lower position first."""
    for row in range(len(starts)):
        n = lengths[row]
        order = np.argsort(-values[starts[row] : starts[row] + n].astype(np.float64), kind="mergesort")
        for rank in range(n):
            out[out_starts[row] + order[rank]] = rank


@jit
def shown_marginals(table, starts, lengths, ranking, r_starts, slots, out):
    """out <- P(a_k in slot k) of every shown slot."""
    at = 0
    for row in range(len(starts)):
        for k in range(slots[row]):
            out[at] = table[starts[row] + k * lengths[row] + ranking[r_starts[row] + k]]
            at += 1


@jit
def slot_caps(t, t_starts, p, p_starts, lengths, slots, bound, out):
    """out <- for every shown slot the largest c with c/q(c) ≤ bound, q(c) = Σ_j min(P_t(j, k), c·P_p(j, k)), or 0 where
    there is none; q at this c; q at a third of it."""
    alpha, beta = np.empty(longest(lengths)), np.empty(longest(lengths))
    at = 0
    for row in range(len(lengths)):
        n = lengths[row]
        for k in range(slots[row]):
            for i in range(n):  # copies: for read-only slices all that follows would be compiled again
                alpha[i] = t[t_starts[row] + k * n + i]
                beta[i] = p[p_starts[row] + k * n + i]
            cap, mass = adaptive_cap(alpha, beta, n, bound)
            out[0, at] = cap
            out[1, at] = mass
            out[2, at] = capped_mass(alpha, beta, n, cap / SLICE, False)
            at += 1
