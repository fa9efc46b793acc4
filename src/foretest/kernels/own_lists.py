"""Policies with lists of items of their own: places in the union of two lists, and back."""

from __future__ import annotations

import numpy as np

from foretest.kernels.jit import jit


@jit
def union_places(items, starts, lengths, first, f_starts, f_lengths):
    """Each item's place in its row's union, the items of `first` and then those that only the list `items` has; the
    size of the union; rows that list an item twice.

    Items are codes, the same in both arrays.
    """
    total = 0
    for i in range(len(lengths)):
        total += lengths[i]
    codes = 1
    for code in items:
        codes = max(codes, code + 1)
    for code in first:
        codes = max(codes, code + 1)
    place = np.empty(total, np.int32)
    size = np.empty(len(starts), np.int64)
    repeated = np.zeros(len(starts), np.bool_)
    in_union = np.full(codes, -1, np.int64)  # the last row whose union has the code, and where
    place_of = np.empty(codes, np.int32)
    in_list = np.full(codes, -1, np.int64)
    at = 0
    for i in range(len(starts)):
        count = f_lengths[i]
        for j in range(count):
            code = first[f_starts[i] + j]
            in_union[code] = i
            place_of[code] = j
        for j in range(lengths[i]):
            code = items[starts[i] + j]
            if in_list[code] == i:
                repeated[i] = True
            in_list[code] = i
            if in_union[code] != i:
                in_union[code] = i
                place_of[code] = count
                count += 1
            place[at] = place_of[code]
            at += 1
        size[i] = count
    return place, size, repeated


@jit
def own_positions(rankings, r_starts, r_lengths, places, starts, lengths, out):
    """out <- rankings of the union as positions in a policy's own list, whose items have `places` in the union.

    True for rows with an item outside of that list, whose ranking becomes 0, 1, 2, …, a legal one.
    """
    outside = np.zeros(len(starts), np.bool_)
    widest = 0
    for i in range(len(starts)):
        if (
            i == 0 or starts[i] != starts[i - 1] or lengths[i] != lengths[i - 1]
        ):  # draws of one display follow one another
            for j in range(lengths[i]):
                widest = max(widest, places[starts[i] + j] + 1)
    position = np.full(widest, -1, np.int32)
    at = 0
    for i in range(len(starts)):
        if i == 0 or starts[i] != starts[i - 1] or lengths[i] != lengths[i - 1]:
            if i > 0:
                for j in range(lengths[i - 1]):
                    position[places[starts[i - 1] + j]] = -1
            for j in range(lengths[i]):
                position[places[starts[i] + j]] = j
        for slot in range(r_lengths[i]):
            place = rankings[r_starts[i] + slot]
            out[at + slot] = position[place] if place < widest else -1
            if out[at + slot] < 0:
                outside[i] = True
        if outside[i]:
            for slot in range(r_lengths[i]):
                out[at + slot] = slot
        at += r_lengths[i]
    return outside


@jit
def scatter_marginals(own, own_starts, places, starts, lengths, slots, eligible, out, out_starts):
    """out <- P(item in slot) of a policy's own items at their places in the union, 0 for all other items."""
    for i in range(len(starts)):
        for slot in range(slots[i]):
            begin = out_starts[i] + slot * eligible[i]
            for j in range(eligible[i]):
                out[begin + j] = 0.0
            for j in range(lengths[i]):
                out[begin + places[starts[i] + j]] = own[own_starts[i] + slot * lengths[i] + j]
