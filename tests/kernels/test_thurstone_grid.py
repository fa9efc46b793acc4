"""Thurstone's probabilities from tables of one display, against the integrals in logarithms, ranking by ranking."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.special import erfcx

from foretest.kernels import thurstone, thurstone_grid
from foretest.kernels.thurstone_grid import COARSE, FINE, Grid
from tests.support import read_only


def rankings(rng: np.random.Generator, rows: int, m: int, k: int) -> np.ndarray:
    return np.argsort(rng.random((rows, m)), axis=1)[:, :k].astype(np.int32)


def on_grid(
    values: np.ndarray, starts: np.ndarray, shown: np.ndarray, sigma: float = 1.0, fineness: Grid = FINE
) -> np.ndarray:
    """From tables; `starts` has where each ranking's list of values.shape[1] scores begins."""
    rows, k = shown.shape
    return thurstone_grid.log_prob(
        read_only(values.ravel()), starts, np.full(rows, values.shape[1]), read_only(shown.ravel()),
        np.arange(rows) * k, np.full(rows, k), sigma, *fineness,
        *thurstone_grid.tables(),
    )  # fmt: skip


def in_logs(values: np.ndarray, starts: np.ndarray, shown: np.ndarray, sigma: float = 1.0) -> np.ndarray:
    rows, k = shown.shape
    return thurstone.log_prob(
        read_only(values.ravel()), starts, np.full(rows, values.shape[1]), read_only(shown.ravel()),
        np.arange(rows) * k, np.full(rows, k), sigma, *thurstone.tables(),
    )  # fmt: skip


@pytest.mark.parametrize(("m", "k"), [(1, 1), (2, 2), (6, 1), (6, 2), (6, 3), (7, 7), (12, 5), (16, 3), (60, 3)])
@pytest.mark.parametrize("spread", [0.0, 0.5, 2.0, 8.0])
def test_the_same_to_twelve_digits(m: int, k: int, spread: float) -> None:
    """Eight rankings of each display, likely and unlikely ones."""
    rng = np.random.default_rng([m, k])
    values, starts = spread * rng.normal(size=(5, m)), np.repeat(np.arange(5) * m, 8)
    shown = rankings(rng, 40, m, k)
    expected = in_logs(values, starts, shown)
    for fineness in (COARSE, FINE):
        found = on_grid(values, starts, shown, fineness=fineness)
        known = np.isfinite(found)
        assert known[expected > 0.9 * np.log(fineness.least)].all() or spread == 8.0 or m > fineness.items
        np.testing.assert_allclose(found[known], expected[known], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("m", "k"), [(4, 1), (4, 3), (4, 4), (8, 4), (12, 1), (12, 2), (13, 4), (16, 8)])
@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
def test_nothing_is_lost_with_the_ends_of_the_line(m: int, k: int, spread: float) -> None:
    """Draws, and rankings of any kind down to the least p: the same on a line that is longer, for p down to 1e-100, and
    twice as fine."""
    rng = np.random.default_rng([m, k, 7])
    values, starts = spread * rng.normal(size=(30, m)), np.repeat(np.arange(30) * m, 8)
    shown = rankings(rng, 240, m, k)
    drawn = np.argsort(-np.repeat(values, 8, axis=0) - rng.normal(size=(240, m)), axis=1)[:, :k]
    shown[::2] = drawn[::2]
    found, fine = on_grid(values, starts, shown, fineness=COARSE), on_grid(values, starts, shown)
    known = np.isfinite(found)
    assert known[::2].mean() > 0.99
    np.testing.assert_allclose(found[known], fine[known], rtol=0.0, atol=4e-13)


def test_gaps_that_no_density_spans() -> None:
    """Two groups 45 sigma apart: where the last slot is, Φ of the first two is below all doubles."""
    values = np.array([[50.0, 49.0, 5.0, 4.0, 5.5]])
    shown = np.array([[0, 1, 2], [1, 0, 2], [0, 1, 4], [0, 1, 3]], np.int32)
    found = on_grid(values, np.zeros(4, np.int64), shown)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, in_logs(values, np.zeros(4, np.int64), shown), rtol=1e-12, atol=1e-12)


def test_rows_do_not_disturb_each_other() -> None:
    """Lists in any order, of either precision; a row that is not known leaves its neighbours alone."""
    rng = np.random.default_rng(2)
    values = rng.normal(size=(6, 5)).astype(np.float32)
    values[2, 3], values[4] = np.nan, [0.0, 300.0, 1.0, 2.0, 3.0]
    order = np.array([0, 0, 1, 2, 0, 3, 4, 4, 5, 2, 1])
    shown = rankings(rng, len(order), 5, 3)
    together = on_grid(values, order * 5, shown, 0.7)
    alone = [on_grid(values, order[[i]] * 5, shown[[i]], 0.7)[0] for i in range(len(order))]
    np.testing.assert_array_equal(together, alone)
    assert np.isinf(together).tolist() == np.isin(order, [2, 4]).tolist()


def test_what_is_too_small_or_too_large_is_left() -> None:
    """p = Φ(−30/√2·…) far below 1e-100; and more items than a table holds."""
    assert np.isinf(on_grid(np.array([[0.0, 35.0]]), np.zeros(1, np.int64), np.array([[0, 1]], np.int32)))[0]
    many = np.zeros((1, 1 + thurstone_grid._MOST_ENTRIES // 240))
    assert np.isinf(on_grid(many, np.zeros(1, np.int64), np.array([[0, 1]], np.int32)))[0]


def test_mills_ratio_against_scipy() -> None:
    t = np.concatenate([np.linspace(0.0, 12.0, 5001), np.linspace(12.0, 120.0, 501)])
    centre = thurstone_grid._CENTRE
    found = np.polyval(thurstone_grid.tables()[3], (t - centre) / (t + centre)) / (t + centre)
    np.testing.assert_allclose(found, np.sqrt(np.pi / 2) * erfcx(t / np.sqrt(2)), rtol=6e-15)


def test_rankings_that_begin_alike_need_not_be_integrated_again() -> None:
    """All rankings of 1 to 4 of 5 items, in order and shuffled: what the one before began with changes no digit."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=5)
    shown = [r for k in range(1, 5) for r in permutations(range(5), k)]
    lengths = np.array([len(r) for r in shown])
    flat, first = np.concatenate(shown).astype(np.int32), np.cumsum(lengths) - lengths

    def log_p(order: np.ndarray) -> np.ndarray:
        rows, grid = len(order), thurstone_grid
        out = np.empty(rows)
        out[order] = grid.log_prob(
            read_only(values), np.zeros(rows, np.int64), np.full(rows, 5), read_only(flat), first[order],
            lengths[order], 1.0, *COARSE, *grid.tables(),
        )  # fmt: skip
        return out

    in_order, shuffled = log_p(np.arange(len(shown))), log_p(rng.permutation(len(shown)))
    np.testing.assert_array_equal(in_order, shuffled)
    for k in range(1, 5):
        np.testing.assert_allclose(np.exp(in_order[lengths == k]).sum(), 1.0, rtol=1e-13)
