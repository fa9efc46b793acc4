"""Moments of one member of a row against the mean of all, where each may have been the one."""

from __future__ import annotations

import numpy as np

from foretest.kernels.jit import jit


@jit
def exchange_moments(shown, drawn):
    """Of each row, e_0 = shown, e_1..e_S = drawn, ē the mean of all: e_0 − ē, and the means of (e − ē)^2, ^3, ^4."""
    rows, count = drawn.shape
    apart, second, third, fourth = np.empty(rows), np.empty(rows), np.empty(rows), np.empty(rows)
    for i in range(rows):
        total = shown[i]
        for d in range(count):
            total += drawn[i, d]
        mean = total / (count + 1)
        apart[i] = shown[i] - mean
        square = apart[i] * apart[i]
        squares, cubes, fourths = square, square * apart[i], square * square
        for d in range(count):
            e = drawn[i, d] - mean
            square = e * e
            squares += square
            cubes += square * e
            fourths += square * square
        second[i] = squares / (count + 1)
        third[i] = cubes / (count + 1)
        fourth[i] = fourths / (count + 1)
    return apart, second, third, fourth
