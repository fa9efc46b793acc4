"""Plackett-Luce for rows of any length: log-probability of a ranking, sequential sampling, a bound on the weights.

A list column is (values, starts, lengths). Scores are float32 or float64; all computations are in float64.
"""

from __future__ import annotations

import numpy as np

from foretest.kernels.exponential import exp_within, log_within, sum_of
from foretest.kernels.jit import fast, jit, reordered, step
from foretest.kernels.lists import longest

# Below this a tail sum may have lost digits to underflow: the row is redone in log space.
_TINY = 1e-280
_BLOCK = 512  # scores that stay in the fastest cache while they are worked on


@fast
def _largest(row, n):
    most = row[0]
    for j in range(1, n):
        most = row[j] if row[j] > most else most
    return np.float64(most)


@reordered
def _load_row(values, start, n, inverse_temperature, x):
    """x[:n] <- (s − max s)/T; False if a score is NaN or infinite.

    The maximum of a row with NaN is arbitrary, but the sum of differences from it is not a finite number.
    """
    row = values[start : start + n]  # a slice, whose indices are known not to be negative: the loops vectorise
    most = _largest(row, n)
    check = 0.0
    for j in range(n):
        x[j] = (np.float64(row[j]) - most) * inverse_temperature
        check += x[j]
    return check - check == 0.0


@step
def load_row(values, start, n, inverse_temperature, x):
    """x[:n] <- (s − max s)/T; False if a score is not finite. Not inlined: for kernels that work long on each row."""
    return _load_row(values, start, n, inverse_temperature, x)


@jit
def log_prob_by_tails(x, n, ranking, k):
    """log p = Σ_k x[a_k] − LSE over items not in a_1..a_{k−1} of x, tails added from the end in log space."""
    most = -np.inf
    for j in range(n):
        shown = False
        for slot in range(k):
            shown |= ranking[slot] == j
        if not shown:
            most = max(most, x[j])
    tail = -np.inf
    if most > -np.inf:
        total = 0.0
        for j in range(n):
            shown = False
            for slot in range(k):
                shown |= ranking[slot] == j
            if not shown:
                total += np.exp(x[j] - most)
        tail = most + np.log(total)
    answer = 0.0
    for slot in range(k - 1, -1, -1):
        s = x[ranking[slot]]
        high = max(s, tail)
        tail = high + np.log(np.exp(s - high) + np.exp(tail - high))
        answer += s - tail
    return answer


@reordered
def _load_block(values, start, n, inverse_temperature, x):
    """x[:n] <- s/T of adjoining rows; a bound on |x|, (Σ x⁴)^¼, which is no finite number if a score is not."""
    block = values[start : start + n]
    fourth = 0.0
    for j in range(n):
        x[j] = np.float64(block[j]) * inverse_temperature
        square = x[j] * x[j]
        fourth += square * square
    return np.sqrt(np.sqrt(fourth))


@step
def _log_prob_of_row(values, start, n, inverse_temperature, ranking, at, k, x, e, shown, items):
    """Any scores: the largest is subtracted, tails are added from the end (the rest, a_K, a_{K−1}, …)."""
    if not _load_row(values, start, n, inverse_temperature, x):
        return np.nan
    exp_within(x, e, n)
    answer = 0.0
    for slot in range(k):
        item = np.uint64(ranking[at + slot])
        items[slot] = item
        answer += x[item]
        shown[slot] = e[item]
        e[item] = 0.0
    tail = sum_of(e, n)
    product = 1.0
    exact = True
    for slot in range(k - 1, -1, -1):
        tail += shown[slot]
        exact &= tail > _TINY
        product *= tail
        if product < 1e-20 or product > 1e20:
            answer -= np.log(product)
            product = 1.0
    answer -= np.log(product)
    return answer if exact else log_prob_by_tails(x, n, items, k)


@jit
def log_prob(values, starts, lengths, ranking, r_starts, r_lengths, inverse_temperature):
    """log π(a) of each row, O(M + K); NaN where a score is not finite.

    Adjoining rows are taken in blocks: one exp per item, over the whole block; then the shown items of all rows are
    taken out, and only then the rest is added up, so that no sum waits for a store. Tails are added from the end, with
    one log for the product of a row's tails, and the logs of a block at once. Blocks with large scores go row by row.
    """
    rows = len(starts)
    out = np.empty(rows)
    width = longest(lengths)
    deep = longest(r_lengths)
    x = np.empty(max(width, _BLOCK))
    e = np.empty(max(width, _BLOCK))
    shown = np.empty(max(width, _BLOCK))
    products = np.empty(_BLOCK)
    logs = np.empty(_BLOCK)
    row_x = np.empty(width)
    row_e = np.empty(width)
    items = np.empty(deep, np.int64)
    most = 600.0 / deep - np.log(width)  # up to here a product of tails stays in range
    first = 0
    while first < rows:
        begin = starts[first]
        size = lengths[first]
        last = first + 1
        while last < rows and starts[last] == begin + size and size + lengths[last] <= _BLOCK:
            size += lengths[last]
            last += 1
        if _load_block(values, begin, size, inverse_temperature, x) < most:
            exp_within(x, e, size)
            taken = 0
            for i in range(first, last):
                here = starts[i] - begin
                at = r_starts[i]
                answer = 0.0
                for slot in range(r_lengths[i]):
                    item = np.uint64(here + ranking[np.uint64(at + slot)])
                    answer += x[item]
                    shown[taken] = e[item]
                    e[item] = 0.0
                    taken += 1
                out[i] = answer
            taken = 0
            for i in range(first, last):
                here = starts[i] - begin
                k = r_lengths[i]
                tail = sum_of(e[here : here + lengths[i]], lengths[i])
                product = 1.0
                for slot in range(k):
                    tail += shown[np.uint64(taken + k - 1 - slot)]
                    product *= tail
                taken += k
                products[i - first] = product
            log_within(products, logs, last - first)
            for i in range(first, last):
                out[i] -= logs[i - first]
        else:
            for i in range(first, last):
                out[i] = _log_prob_of_row(
                    values, starts[i], lengths[i], inverse_temperature, ranking, r_starts[i], r_lengths[i],
                    row_x, row_e, shown, items,
                )  # fmt: skip
        first = last
    return out


@jit
def sample(values, starts, lengths, slots, inverse_temperature, u, out):
    """One ranking per row, slot by slot: the item where the running sum of e over the items left passes u·(their sum).

    Each slot subtracts the largest score left, so that the other items lose no digit to a dominant one.
    """
    width = longest(lengths)
    first_x, first_e = np.empty(width), np.empty(width)
    x, e = np.empty(width), np.empty(width)
    at = 0
    for i in range(len(starts)):
        n = lengths[i]
        if i == 0 or starts[i] != starts[i - 1] or n != lengths[i - 1]:  # draws of one display follow one another
            load_row(values, starts[i], n, inverse_temperature, first_x)
            highest = _exponentials(first_x, n, first_e)
        most = highest
        for j in range(n):
            x[j], e[j] = first_x[j], first_e[j]
        for slot in range(slots[i]):
            total = 0.0
            for j in range(n):
                total += e[j]
            target = u[i, slot] * total
            running = 0.0
            chosen = -1
            for j in range(n):
                if x[j] == -np.inf:
                    continue
                running += e[j]
                chosen = j
                if running > target:
                    break
            out[at] = chosen
            at += 1
            was_most = x[chosen] == most
            x[chosen] = -np.inf
            e[chosen] = 0.0
            if was_most and slot + 1 < slots[i]:
                most = _exponentials(x, n, e)


@step
def _exponentials(x, n, e):
    """e <- exp(x − max x), and max x."""
    most = -np.inf
    for j in range(n):
        most = max(most, x[j])
    for j in range(n):
        e[j] = np.exp(x[j] - most)
    return most


@step
def _take_largest(x, n):
    best = 0
    for j in range(1, n):
        if x[j] > x[best]:
            best = j
    value = x[best]
    x[best] = -np.inf
    return value


@jit
def log_weight_bound(t_values, t_starts, p_values, p_starts, lengths, slots, t_inverse, p_inverse):
    """An upper bound on log w over all rankings of each display; w ≤ cap everywhere makes q = 1 without a draw.

    log w = Σ_k d[a_k] + Σ_k log(tail_p/tail_t), d = x_t − x_p. The first sum is at most that of the K largest d;
    the k-th tail ratio is at most max e^{−d}, and at most total_p/(total_t − its k−1 largest terms).
    """
    rows = len(lengths)
    width = longest(lengths)
    t = np.empty(width)
    p = np.empty(width)
    e = np.empty(width)
    out = np.empty(rows)
    for i in range(rows):
        n = lengths[i]
        load_row(t_values, t_starts[i], n, t_inverse, t)
        load_row(p_values, p_starts[i], n, p_inverse, p)
        exp_within(t, e, n)
        total_t = sum_of(e, n)
        exp_within(p, e, n)
        total_p = sum_of(e, n)
        least = np.inf
        for j in range(n):
            p[j] = t[j] - p[j]
            least = min(least, p[j])
        bound = 0.0
        left = total_t
        for _ in range(slots[i]):
            bound += _take_largest(p, n)
            by_total = np.log(total_p / left) if left > 1e-6 * total_t else np.inf
            bound += min(-least, by_total)
            left -= np.exp(_take_largest(t, n))
        out[i] = bound
    return out
