"""Lists of different lengths: the longest of them, copies out of a shared array, and small loops on one list.

In kernels such loops stand in place of `a[:] = b`, sums of whole arrays and `np.argsort`: numba compiles their checks
and messages too, which takes a second for each.
"""

from __future__ import annotations

from foretest.kernels.jit import jit, step


@jit
def gather(values, starts, lengths, out):
    """out <- the lists, one after the other."""
    at = 0
    for i in range(len(starts)):
        n = lengths[i]
        source = values[starts[i] : starts[i] + n]  # with slices the loop compiles to a copy of memory
        place = out[at : at + n]
        for j in range(n):
            place[j] = source[j]
        at += n


@step
def longest(lengths):
    """The greatest length, at least 1: the size of a buffer for any row."""
    most = 1
    for i in range(len(lengths)):
        most = max(most, lengths[i])
    return most


@step
def fill(place, value):
    """place <- the value, everywhere."""
    for j in range(len(place)):
        place[j] = value


@step
def descending(values, n, order):
    """order <- positions of the first n values, the largest first (Shell's sort; equal values in any order)."""
    for j in range(n):
        order[j] = j
    gap = n // 2
    while gap > 0:
        for j in range(gap, n):
            moved = order[j]
            place = j
            while place >= gap and values[order[place - gap]] < values[moved]:
                order[place] = order[place - gap]
                place -= gap
            order[place] = moved
        gap = 1 if gap == 2 else gap * 5 // 11
