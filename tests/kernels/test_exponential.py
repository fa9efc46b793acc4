"""The vectorised exponential and logarithm against the C library."""

from __future__ import annotations

import numpy as np

from foretest.kernels.exponential import exp_within, exponentials, log_within
from foretest.kernels.jit import jit


@jit
def within(x: np.ndarray, out: np.ndarray, n: int) -> None:
    exp_within(x, out, n)


def exponential(x: np.ndarray) -> np.ndarray:
    out = np.empty_like(x)
    within(x, out, len(x))
    return out


def test_a_unit_in_the_last_place() -> None:
    x = np.concatenate(
        [np.linspace(-708.0, 700.0, 400_001), -np.logspace(-300, 0, 2001), np.arange(-1020, 1001) * np.log(2)]
    )
    expected = np.exp(x)
    assert (np.abs(exponential(x) - expected) <= np.spacing(expected)).all()


def test_zero_is_one() -> None:
    assert exponential(np.array([0.0, -0.0])).tolist() == [1.0, 1.0]


def test_what_lies_below_the_range_is_its_smallest_value() -> None:
    floor = exponential(np.array([-708.0]))[0]
    assert floor > 0.0
    assert exponential(np.array([-708.1, -1e4, -1e308])).tolist() == [floor] * 3


def test_the_first_n_alone() -> None:
    x, out = np.array([-1.0, -2.0, -3.0]), np.full(3, 9.0)
    within(x, out, 2)
    np.testing.assert_allclose(out, [np.exp(-1.0), np.exp(-2.0), 9.0], rtol=1e-15)


@jit
def logarithm(x: np.ndarray) -> np.ndarray:
    out = np.empty_like(x)
    log_within(x, out, len(x))
    return out


def test_logarithms_to_a_unit_in_the_last_place() -> None:
    near = 1.0 + np.linspace(-0.5, 1.0, 200_001)
    far = np.exp(np.linspace(-708.0, 709.0, 200_001))
    for x in (near, far, 2.0 ** np.arange(-1022, 1024), np.nextafter(np.sqrt(0.5) * 2.0 ** np.arange(-9, 9), 0.0)):
        expected = np.log(x)
        assert (np.abs(logarithm(x) - expected) <= np.spacing(np.abs(expected)) + 1e-300).all()


def test_the_logarithm_of_one_is_zero() -> None:
    assert logarithm(np.ones(3)).tolist() == [0.0, 0.0, 0.0]


def test_shifted_exponentials_of_any_length() -> None:
    x = np.random.default_rng(0).normal(scale=300.0, size=2500)
    for size in (0, 1, 1024, 1025, 2500):
        expected = np.exp(np.minimum(x[:size] - 900.0, 700.0))
        expected[x[:size] - 900.0 < -708.0] = 0.0
        np.testing.assert_allclose(exponentials(np.minimum(x[:size], 1600.0), 900.0), expected, rtol=1e-15)
    assert exponentials(np.array([-np.inf, 5.0]), 5.0).tolist() == [0.0, 1.0]
