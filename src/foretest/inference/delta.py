"""The delta method, by unit: normal limits from the influence of each bucket of units."""

from __future__ import annotations

import numpy as np

from foretest.displays.batch import Floats
from foretest.inference.buckets import Interval
from foretest.special import ndtri, stdtrit

FEW_UNITS = 30


def std_error(influence: Floats, rows: float, units: int) -> float:
    """se² = C/(C−1)·Σ_u [Σ_{i∈u} (φ_i − φ̄)]²/n²; C is the number of buckets, or of units where those are fewer."""
    count = min(len(influence), units)
    if rows == 0 or count < 2:
        return float("nan")
    largest = float(np.abs(influence).max(initial=0.0))
    if largest == 0.0 or not np.isfinite(largest):
        return 0.0 if largest == 0.0 else float("nan")
    scaled = influence / largest  # squares of 1e300 would overflow
    return float(largest * np.sqrt(count / (count - 1.0) * (scaled @ scaled)) / rows)


def std_errors(influence: Floats, rows: float, units: int) -> Floats:
    """`std_error` of every column."""
    count, columns = min(len(influence), units), influence.shape[1]
    if rows == 0 or count < 2:
        return np.full(columns, np.nan)
    largest = np.abs(influence).max(axis=0, initial=0.0)
    known = (largest > 0.0) & np.isfinite(largest)
    scaled = np.divide(influence.T, largest[:, None], out=np.zeros((columns, len(influence))), where=known[:, None])
    squares = np.array([column @ column for column in scaled])
    errors = np.where(known, largest, 0.0) * np.sqrt(count / (count - 1.0) * squares) / rows
    return np.where(known | (largest == 0.0), errors, np.nan)


def quantile(units: int, level: float) -> float:
    """How many standard errors each way: normal quantiles, Student's under 30 units."""
    tail = 0.5 + level / 2.0
    return float(stdtrit(units - 1.0, tail)) if 2 <= units < FEW_UNITS else float(ndtri(tail))


def delta_interval(estimate: float, error: float, units: int, level: float) -> Interval:
    """estimate ± quantile·se."""
    half = quantile(units, level) * error
    return Interval(estimate - half, estimate + half)
