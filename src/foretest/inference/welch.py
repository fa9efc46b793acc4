"""Two independent arms: their variances add up, and so do, after Welch and Satterthwaite, their degrees of freedom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from foretest.inference.buckets import Interval
from foretest.special import ndtr, ndtri, stdtr, stdtrit


class TwoSampleError(NamedTuple):
    """The standard error of a difference of two independent arms, and its degrees of freedom."""

    std_error: float
    degrees: float  # infinity: normal quantiles


def mean_error(total: float, squares: float, count: int) -> float:
    """The standard error of a mean of `count` independent numbers, s/√n with s² = (Σr² − (Σr)²/n)/(n − 1)."""
    if count < 2:
        return float("nan")
    return float(np.sqrt(max(0.0, squares - total * total / count) / (count - 1.0) / count))


def two_sample_error(errors: Sequence[float], counts: Sequence[int]) -> TwoSampleError:
    """se² = Σ_k se_k² and Welch-Satterthwaite's degrees se⁴/Σ_k se_k⁴/(n_k − 1) (Welch 1947).

    >>> error = two_sample_error([3.0, 4.0], [11, 21])
    >>> round(error.std_error, 6), round(error.degrees, 6)  # 25²/(9²/10 + 16²/20)
    (5.0, 29.904306)
    """
    largest = max(errors)
    if not largest > 0.0:  # 0, or NaN
        return TwoSampleError(float(largest), float("inf"))
    squares = [(error / largest) ** 2 for error in errors]  # fourth powers of 1e-100 would vanish
    total = sum(squares)
    spread = sum(s * s / (n - 1.0) for s, n in zip(squares, counts, strict=True))
    return TwoSampleError(float(largest * np.sqrt(total)), float(total * total / spread))


def two_sample_interval(estimate: float, error: TwoSampleError, level: float) -> Interval:
    """estimate ± quantile·se: Student's quantiles, normal ones where the degrees are infinite."""
    tail = 0.5 + level / 2.0
    quantile = float(stdtrit(error.degrees, tail)) if np.isfinite(error.degrees) else float(ndtri(tail))
    return Interval(estimate - quantile * error.std_error, estimate + quantile * error.std_error)


def two_sample_p_value(estimate: float, error: TwoSampleError) -> float:
    """The two-sided p of an estimate of 0, by the reference of `two_sample_interval`; NaN without any variance.

    >>> round(two_sample_p_value(1.959964, TwoSampleError(1.0, float("inf"))), 4)
    0.05
    """
    if not error.std_error > 0.0:
        return float("nan")
    distance = -abs(estimate) / error.std_error
    return float(2.0 * (stdtr(error.degrees, distance) if np.isfinite(error.degrees) else ndtr(distance)))
