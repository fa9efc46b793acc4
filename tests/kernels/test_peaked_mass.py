"""q of peaked policies from their few likely rankings, and enumeration of scores far apart: against all rankings."""

from __future__ import annotations

from itertools import permutations
from math import perm
from typing import Any

import numpy as np
import pytest

from foretest.kernels.enumeration import enumerate_all
from foretest.kernels.peaked_mass import peaked_masses
from tests.support import read_only


def log_probs(x: np.ndarray, k: int) -> np.ndarray:
    """log π of every ranking, in plain NumPy."""
    out = []
    for ranking in permutations(range(len(x)), k):
        left, total = x.copy(), 0.0
        for item in ranking:
            total += left[item] - np.logaddexp.reduce(left)
            left[item] = -np.inf
        out.append(total)
    return np.array(out)


def lists(t: np.ndarray, p: np.ndarray, k: int, temperature: float) -> tuple[Any, ...]:
    n, m = t.shape
    starts = np.arange(n) * m
    inverse = 1.0 / temperature
    return read_only(t.ravel()), starts, read_only(p.ravel()), starts, np.full(n, m), np.full(n, k), inverse, inverse


def scores(n: int, m: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.normal(size=(n, m))
    return 0.9 * p + 0.44 * rng.normal(size=(n, m)), p


@pytest.mark.parametrize("temperature", [0.003, 0.01, 0.03, 0.1])
@pytest.mark.parametrize(("m", "k"), [(1, 1), (5, 1), (5, 3), (5, 5), (6, 2)])
def test_both_against_all_rankings(m: int, k: int, temperature: float) -> None:
    t, p = scores(12, m)
    both = lists(t, p, k, temperature)
    of_few = peaked_masses(*both, 7.0, 4000)
    _, of_all, squares, low = enumerate_all(*both, perm(m, k), 7.0, False, np.nan)
    for i in range(12):
        log_t, log_p = log_probs(t[i] / temperature, k), log_probs(p[i] / temperature, k)
        q, below = (np.exp(np.minimum(log_t, log_p + np.log(c))).sum() for c in (7.0, 7.0 / 3.0))
        assert of_all[i] == pytest.approx(q, rel=1e-10, abs=1e-300)
        assert low[i] == pytest.approx(below, rel=1e-10, abs=1e-300)
        with np.errstate(under="ignore"):
            second = np.exp(2.0 * np.minimum(log_t, log_p + np.log(7.0)) - log_p).sum()
        assert squares[i] == pytest.approx(second, rel=1e-9, abs=1e-150)
        if q > 1e-290:
            assert of_few[i] == pytest.approx(q, rel=2e-6)


def test_what_takes_too_many_beginnings_is_not_known() -> None:
    t, p = scores(3, 8)
    both = lists(t, p, 4, 1.0)
    assert np.isnan(peaked_masses(*both, 7.0, 50)).all()
    expected = enumerate_all(*both, perm(8, 4), 7.0, False, np.nan)[1]
    np.testing.assert_allclose(peaked_masses(*both, 7.0, 10_000), expected, rtol=1e-6)


def test_a_mass_below_all_doubles_is_zero() -> None:
    t, p = np.array([[0.0, -5000.0]]), np.array([[-5000.0, 0.0]])
    assert peaked_masses(*lists(t, p, 1, 1.0), 100.0, 100).tolist() == [0.0]
    assert enumerate_all(*lists(t, p, 1, 1.0), 2, 100.0, False, np.nan)[1].tolist() == [0.0]
