"""Quantiles: those of NumPy, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from foretest.inference.quantiles import median, quantiles

LEVELS = [0.0, 0.05, 0.25, 0.5, 0.7, 0.95, 1.0]


@pytest.mark.parametrize("size", [1, 2, 3, 10, 999, 1000])
def test_as_numpy_has_them(size: int) -> None:
    values = np.random.default_rng(size).lognormal(sigma=3.0, size=(4, size))
    assert np.array_equal(quantiles(values[0], LEVELS), np.quantile(values[0], LEVELS))
    assert np.array_equal(quantiles(values, LEVELS), np.quantile(values, LEVELS, axis=1).T)
    for numbers in (values[0], values[0].astype(np.float32)):
        assert median(numbers) == float(np.median(numbers))


def test_ties_and_gaps() -> None:
    values = np.array([[1.0, 1.0, 2.0, 2.0], [np.nan, 1.0, 2.0, 3.0], [np.inf, 1.0, 2.0, 3.0]])
    with np.errstate(invalid="ignore"):
        found, expected = quantiles(values, LEVELS), np.quantile(values, LEVELS, axis=1).T
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.isnan(found[1]).all()
    assert np.isnan(median(values[1]))
    assert median(values[2]) == 2.5
