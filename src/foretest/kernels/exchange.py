"""Moments of one member of a row against the mean of all, where each may have been the one."""

from __future__ import annotations

import numpy as np

from foretest.kernels.jit import jit


@jit
def exchange_moments(shown, drawn):
    """Of each row, e_0 = shown, e_1..e_S = drawn, ē the mean of all: e_0 − ē, the means of (e − ē)² and of (e − ē)³."""
    rows, count = drawn.shape
    apart, second, third = np.empty(rows), np.empty(rows), np.empty(rows)
    for i in range(rows):
        total = shown[i]
        for d in range(count):
            total += drawn[i, d]
        mean = total / (count + 1)
        e = shown[i] - mean
        apart[i] = e
        squares, cubes = e * e, e * e * e
        for d in range(count):
            e = drawn[i, d] - mean
            squares += e * e
            cubes += e * e * e
        second[i] = squares / (count + 1)
        third[i] = cubes / (count + 1)
    return apart, second, third
