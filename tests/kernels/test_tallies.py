"""Rows by unit in a hash table and in cells, against plain counting."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from foretest.kernels.tallies import tally, tally_cells


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 5)), max_size=60))
def test_the_table_counts_as_a_dictionary_does(entries: list[tuple[int, int]]) -> None:
    # a table of 16 places for at most 8 units: collisions and wrap-around are common
    keys, counts = np.zeros(16, np.uint64), np.zeros(16, np.int64)
    units = np.array([u for u, _ in entries], np.uint64)
    amounts = np.array([a for _, a in entries], np.int64)
    used, taken = tally(keys, counts, 0, 8, units, amounts)
    expected: Counter[int] = Counter()
    for i, (unit, amount) in enumerate(entries):
        if unit not in expected and len(expected) == 8:
            assert taken == i
            break
        expected[unit] += amount
    else:
        assert taken == len(entries)
    assert used == len(expected)
    assert {int(k): int(c) for k, c in zip(keys, counts, strict=True) if c} == dict(expected)


def test_counting_goes_on_where_it_stopped() -> None:
    keys, counts = np.zeros(4, np.uint64), np.zeros(4, np.int64)
    used, taken = tally(keys, counts, 0, 2, np.array([7, 3], np.uint64), np.array([1, 1]))
    assert (used, taken) == (2, 2)
    # units already in the table are counted also when it is full
    used, taken = tally(keys, counts, used, 2, np.array([3, 7, 5, 3], np.uint64), np.array([1, 1, 1, 1]))
    assert (used, taken) == (2, 2)
    assert sorted(counts.tolist()) == [0, 0, 2, 2]


def test_cells_hold_the_rows_and_the_lowest_hash() -> None:
    rng = np.random.default_rng(0)
    units = rng.integers(0, 2**64, 500, dtype=np.uint64)
    amounts = rng.integers(1, 4, 500)
    size = 1 << 17
    counts, lowest = np.zeros(size, np.int64), np.ones(size)
    # 500 units in eight cells
    units = (units & ~np.uint64(size - 1)) | (units & np.uint64(7))
    tally_cells(counts, lowest, units, amounts)
    cell = (units & np.uint64(size - 1)).astype(int)
    assert np.array_equal(counts, np.bincount(cell, weights=amounts, minlength=size))
    for c in range(8):
        assert lowest[c] == ((units[cell == c] >> np.uint64(17)) / 2**47).min()
    assert (lowest[8:] == 1.0).all()
