"""What two score lists of a display look like beside each other: rank correlation, spread, and shapes that give a
mistake away."""

from __future__ import annotations

import numpy as np

from foretest.kernels.jit import jit, step

# what the scores of a display look like, as bits
PROBABILITIES, RATES, EVENLY_SPACED, SORTED, EQUAL, SHORT = 1, 2, 4, 8, 16, 32
FEWEST = 4  # items: fewer are evenly spaced or sorted by chance
MOST = 32  # items of a display whose ranks are compared, spread evenly over its list


@jit
def rank_correlations(a, a_starts, b, b_starts, lengths):
    """Spearman's rank correlation of two lists of each display (ties share their mean rank); NaN where a list is
    constant. Of more than MOST items, MOST are compared."""
    out = np.full(len(lengths), np.nan)
    x, y = np.empty(MOST), np.empty(MOST)
    for i in range(len(lengths)):
        n = lengths[i]
        m = min(n, MOST)
        if m < 2:
            continue
        for j in range(m):
            at = j if n <= MOST else j * n // MOST
            x[j] = a[a_starts[i] + at]
            y[j] = b[b_starts[i] + at]
        xx = yy = xy = 0.0
        for j in range(m):
            # twice the rank, from its mean: items below minus items above
            rank_x = rank_y = 0
            for k in range(m):
                rank_x += (x[k] < x[j]) - np.int64(x[k] > x[j])
                rank_y += (y[k] < y[j]) - np.int64(y[k] > y[j])
            xx += rank_x * rank_x
            yy += rank_y * rank_y
            xy += rank_x * rank_y
        if xx > 0.0 and yy > 0.0:
            out[i] = xy / np.sqrt(xx * yy)
    return out


@jit
def spreads_and_shapes(values, starts, lengths):
    """The standard deviation of each list, and its shape as bits."""
    spread, shape = np.zeros(len(lengths)), np.zeros(len(lengths), np.uint8)
    for i in range(len(lengths)):
        row = values[starts[i] : starts[i] + lengths[i]]
        spread[i] = _deviation(row)
        shape[i] = shape_of(row)
    return spread, shape


@step
def _deviation(row):
    """The standard deviation of one list."""
    total = 0.0
    for j in range(len(row)):
        total += row[j]
    mean = total / len(row)
    squares = 0.0
    for j in range(len(row)):
        squares += (row[j] - mean) ** 2
    return np.sqrt(squares / len(row))


@step
def shape_of(row):
    """The bits of one list."""
    n = len(row)
    low = high = row[0]
    whole = 0.0
    for j in range(n):
        low, high, whole = min(low, row[j]), max(high, row[j]), whole + row[j]
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        return EQUAL | SHORT * (n < FEWEST)
    bits = 0
    if low >= 0.0 and high <= 1.0:
        bits |= RATES
        if abs(whole - 1.0) <= 1e-3:
            bits |= PROBABILITIES
    if n < FEWEST:
        return bits | SHORT
    up = down = 0
    for j in range(1, n):
        up += row[j] >= row[j - 1]
        down += row[j] <= row[j - 1]
    if up == n - 1 or down == n - 1:
        bits |= SORTED
    # n steps of one size: every place is whole, and their sums are those of 0..n−1
    gap = (high - low) / (n - 1)
    total = squares = 0.0
    for j in range(n):
        place = (row[j] - low) / gap
        nearest = np.floor(place + 0.5)
        if abs(place - nearest) > 1e-3:
            return bits
        total += nearest
        squares += nearest * nearest
    if total == n * (n - 1) / 2 and squares == (n - 1) * n * (2 * n - 1) / 6:
        bits |= EVENLY_SPACED
    return bits
