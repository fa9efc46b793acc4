"""Sums by logger and bucket of units: centred by logger, resampled by unit.

How many rows each logger has was decided by whoever split the traffic, not drawn: differences between loggers are no
noise. So the standard error measures each row from its own logger's mean, and a resample of units has every logger's
sums at the weight they have in the log.

In a part of the log (a segment) these numbers are fixed only so far as it is the whole: a tenth of the users is nearly
a random draw, and how many rows of each logger it has is left to chance. With f the part's share of the rows,
differences between loggers count with 1 − f of their variance, as in sampling without replacement, hence
`fixed` = 1 − √(1 − f) of each difference is taken away.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats


def fixed_in_part(rows: float, whole: float) -> float:
    """How far each logger's number of rows is fixed in a part of a log: 1 in all of it, 0 in the smallest.

    >>> fixed_in_part(75.0, 100.0)
    0.5
    """
    return float(1.0 - np.sqrt(1.0 - rows / whole)) if whole else 1.0


def by_unit(influence: Floats, rows: Floats, loggers: int, fixed: float = 1.0) -> Floats:
    """Σ_{i∈b} (φ_i − φ̄_{k(i)}) by bucket b, from Σ (φ_i − φ̄) by cell (logger · buckets + bucket) and the cells' rows.

    A unit's rows of several loggers stay together: its terms add up. Further axes are further statistics.

    >>> by_unit(np.array([1.0, -3.0, 2.0, 0.0]), np.array([1.0, 1.0, 2.0, 2.0]), 2).tolist()
    [3.0, -3.0]
    """
    if loggers == 1:  # whose terms have the mean 0: it would only be rounded
        return influence
    by_cell = influence.reshape(loggers, -1, *influence.shape[1:])
    n = rows.reshape(loggers, -1, *(1,) * (influence.ndim - 1))
    with np.errstate(invalid="ignore"):  # sums of weights beyond any float
        mean = by_cell.sum(axis=1, keepdims=True) / np.maximum(n.sum(axis=1, keepdims=True), 1.0)
        return np.asarray((by_cell - fixed * n * mean).sum(axis=0))


def complete_resamples(counts: Floats, rows: Floats, loggers: int) -> npt.NDArray[np.bool_]:
    """Which resamples have a row of every logger that the log has rows of; of one logger all are.

    >>> complete_resamples(np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([1.0, 3.0, 2.0, 0.0]), 2).tolist()
    [True, False]
    """
    if loggers == 1:
        return np.ones(len(counts), np.bool_)
    n = rows.reshape(loggers, -1)
    return np.asarray(((counts @ n.T)[:, n.sum(axis=1) > 0] > 0).all(axis=1))


def counts_by_logger(counts: Floats, rows: Floats, loggers: int, fixed: float = 1.0) -> Floats:
    """How often each cell is in each resample: as often as its bucket, times n_k/n_k* with n_k* the resample's rows of
    its logger (to the power of `fixed`). For a whole log, resamples in which a logger has no row are left out.

    >>> counts_by_logger(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([1.0, 3.0, 2.0, 0.0]), 2).tolist()
    [[4.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]
    """
    if loggers == 1:
        return counts
    n = rows.reshape(loggers, -1)
    drawn, whole = counts @ n.T, n.sum(axis=1)
    if fixed == 1.0:
        complete = complete_resamples(counts, rows, loggers)
        counts, drawn = counts[complete], drawn[complete]
    factor = np.divide(whole, drawn, out=np.zeros_like(drawn), where=drawn > 0)
    factor = np.power(factor, fixed, where=drawn > 0, out=factor)
    return np.asarray((factor[:, :, None] * counts[:, None, :]).reshape(len(counts), -1))
