"""Sums by logger and bucket of units: centred by logger, resampled by unit.

How many rows each logger has was decided by those who split the traffic, not drawn: between-logger differences are no
noise. So the standard error takes each row from its own logger's mean, and a resample of units has every logger's sums
at the weight they have in the log.
"""

from __future__ import annotations

import numpy as np

from foretest.displays import Floats


def by_unit(influence: Floats, rows: Floats, loggers: int) -> Floats:
    """Σ_{i∈b} (φ_i − φ̄_{k(i)}) by bucket b, from Σ (φ_i − φ̄) by cell (logger · buckets + bucket) and the cells' rows.

    A unit's rows of several loggers stay together: its terms add up. Further axes are further statistics.

    >>> by_unit(np.array([1.0, -3.0, 2.0, 0.0]), np.array([1.0, 1.0, 2.0, 2.0]), 2).tolist()
    [3.0, -3.0]
    """
    if loggers == 1:
        return influence
    found = influence.reshape(loggers, -1, *influence.shape[1:])
    n = rows.reshape(loggers, -1, *(1,) * (influence.ndim - 1))
    mean = found.sum(axis=1, keepdims=True) / np.maximum(n.sum(axis=1, keepdims=True), 1.0)
    return np.asarray((found - n * mean).sum(axis=0))


def counts_by_logger(counts: Floats, rows: Floats, loggers: int) -> Floats:
    """How often each resample holds each cell: as often as its bucket, times n_k/n_k* with n_k* the resample's rows of
    its logger. Resamples in which a logger of the log has no row are left out.

    >>> counts_by_logger(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([1.0, 3.0, 2.0, 0.0]), 2).tolist()
    [[4.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]
    """
    if loggers == 1:
        return counts
    n = rows.reshape(loggers, -1)
    drawn, whole = counts @ n.T, n.sum(axis=1)
    counts, drawn = (array[(drawn[:, whole > 0] > 0).all(axis=1)] for array in (counts, drawn))
    factor = np.divide(whole, drawn, out=np.zeros_like(drawn), where=drawn > 0)
    return np.asarray((factor[:, :, None] * counts[:, None, :]).reshape(len(counts), -1))
