"""Moments of the shown member of a row about the mean of all, where any of them was as likely to be the shown one."""

from __future__ import annotations

import numpy as np

from foretest.kernels.jit import jit


@jit
def exchange_moments(shown, drawn):
    """For each row, e_0 = shown, e_1..e_S = drawn, ē the mean of all: e_0 − ē, and the means of (e − ē)^2, ^3, ^4."""
    rows, draws = drawn.shape
    moments = np.empty((4, rows))
    for i in range(rows):
        total = shown[i]
        for s in range(draws):
            total += drawn[i, s]
        mean = total / (draws + 1)
        e = shown[i] - mean
        moments[0, i] = e
        second, third, fourth = e * e, e * e * e, e * e * e * e
        for s in range(draws):
            e = drawn[i, s] - mean
            square = e * e
            second += square
            third += square * e
            fourth += square * square
        moments[1, i] = second / (draws + 1)
        moments[2, i] = third / (draws + 1)
        moments[3, i] = fourth / (draws + 1)
    return moments
