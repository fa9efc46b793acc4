"""Lists of different lengths: the longest of them, and copies out of a shared array."""

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
