"""Checks of rankings and slot rewards as fast as they are read: a code per row, from which others make sentences."""

from __future__ import annotations

import numpy as np

from foretest.kernels.jit import inner, jit


@inner
def _is_good(ranking, start, k, n):
    """Are k positions among n ≤ 64 in range and distinct? Without a branch, as they are in nearly all rows."""
    seen = np.uint64(0)  # one bit per position
    wrong = np.uint64(0)
    for slot in range(k):
        item = np.uint64(np.int64(ranking[start + slot]))  # a negative number becomes a very large one
        bit = np.uint64(1) << (item & np.uint64(63))
        wrong |= np.uint64(item >= n) | (seen & bit)
        seen |= bit
    return wrong == 0


@jit
def ranking_faults(ranking, starts, lengths, eligible):
    """0 for a good row; 1 empty; 2 longer than the list; 3 a position out of range; 4 an item twice.

    eligible −1: the number of items is not known, and only negative positions and repeats are faults.
    """
    out = np.zeros(len(starts), np.int8)
    for i in range(len(starts)):
        k = lengths[i]
        n = eligible[i]
        if k <= n <= 64 and k > 0 and _is_good(ranking, np.uint64(starts[i]), np.uint64(k), np.uint64(n)):
            continue
        if k == 0:
            out[i] = 1
            continue
        if n >= 0 and k > n:
            out[i] = 2
            continue
        seen = np.uint64(0)  # positions below 64, one bit each; the few beyond are compared one by one
        for slot in range(k):
            item = ranking[starts[i] + slot]
            if item < 0 or (n >= 0 and item >= n):
                out[i] = 3
                break
            if item < 64:
                bit = np.uint64(1) << np.uint64(item)
                twice = seen & bit != 0
                seen |= bit
            else:
                twice = False
                for earlier in range(slot):
                    twice |= ranking[starts[i] + earlier] == item
            if twice:
                out[i] = 4
                break
    return out


@jit
def positions_in(shown, starts, lengths, items, i_starts, i_lengths):
    """Each shown code's position in its row's items; rows with a code that is absent; rows with a repeated item."""
    total = 0
    for i in range(len(lengths)):
        total += lengths[i]
    place = np.empty(total, np.int32)
    absent = np.zeros(len(starts), np.bool_)
    repeated = np.zeros(len(starts), np.bool_)
    last_row = np.full(items.max() + 1 if len(items) else 1, -1, np.int64)
    at = 0
    for i in range(len(starts)):
        for j in range(i_lengths[i]):
            code = items[i_starts[i] + j]
            if last_row[code] == i:
                repeated[i] = True
            last_row[code] = i
        for slot in range(lengths[i]):
            code = shown[starts[i] + slot]
            place[at] = -1
            for j in range(i_lengths[i]):
                if items[i_starts[i] + j] == code:
                    place[at] = j
                    break
            if place[at] < 0:
                absent[i] = True
            at += 1
    return place, absent, repeated


@jit
def slot_faults(values, starts, lengths, shown, reward):
    """0 for a good row; 1 another length than the ranking; 2 NaN or infinite; 3 negative; 4 not the reward in sum.

    Sums may be off by rounding, up to a millionth of the reward, as they are for columns of float32.
    """
    out = np.zeros(len(starts), np.int8)
    for i in range(len(starts)):
        if lengths[i] != shown[i]:
            out[i] = 1
            continue
        total = 0.0
        least = 0.0
        for slot in range(lengths[i]):
            value = np.float64(values[starts[i] + slot])
            total += value
            least = min(least, value)
        if not abs(total) < np.inf:
            out[i] = 2
        elif least < 0.0:
            out[i] = 3
        elif not abs(total - reward[i]) <= 1e-6 * reward[i]:
            out[i] = 4
    return out
