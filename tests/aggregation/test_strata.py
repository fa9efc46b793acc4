"""Strata: labels of a column, value bins, and bins too small to stand alone."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretest.aggregation.strata import FEWEST_ROWS, Strata, bin_label, merged_bins, value_bins
from foretest.errors import BadInput


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["b", "a", "b", "c"]),
        pa.array(["b", "a", "b", "c"], pa.large_string()),
        pa.array(["b", "a", "b", "c"]).dictionary_encode(),
        pa.array([7, -1, 7, 0]),
        pa.array([True, False, True, None]),
    ],
    ids=lambda column: str(column.type),
)
def test_codes_of_a_column_stand_for_its_values(column: pa.Array) -> None:
    strata = Strata()
    codes = strata.of_column(column)
    assert [strata.labels[code] for code in codes] == column.to_pylist()
    assert len(strata.labels) == 3


def test_codes_stay_the_same_from_batch_to_batch() -> None:
    strata = Strata()
    first = strata.of_column(pa.array(["x", "y"]))
    second = strata.of_column(pa.array(["z", "y", "x", "z"]))
    assert first.tolist() == [strata.codes["x"], strata.codes["y"]]
    assert second.tolist() == [strata.codes[label] for label in "zyxz"]
    assert sorted(strata.codes.values()) == [0, 1, 2]


@pytest.mark.parametrize("encode", [False, True])
def test_null_is_a_stratum_of_its_own(encode: bool) -> None:
    column = pa.array(["a", None, "b", None])
    strata = Strata()
    codes = strata.of_column(column.dictionary_encode() if encode else column)
    assert [strata.labels[code] for code in codes] == ["a", None, "b", None]
    assert strata.of_column(pa.array([None, None], pa.string())).tolist() == [strata.codes[None]] * 2


def test_sliced_columns_and_no_rows() -> None:
    strata = Strata()
    column = pa.array(["a", "b", "c", "d"])
    for part in (column.slice(1, 2), column.dictionary_encode().slice(1, 2)):
        assert [strata.labels[code] for code in strata.of_column(part)] == ["b", "c"]
    assert strata.of_column(pa.array([], pa.string())).tolist() == []


def test_too_many_strata_are_refused() -> None:
    strata = Strata()
    strata.of_column(pa.array(range(1000)))
    assert len(strata.labels) == 1000
    with pytest.raises(BadInput, match="more than 1000 strata: use a coarser column"):
        strata.of_column(pa.array([1000]))


@pytest.mark.parametrize("base", [2.0, 10.0, 1.5, 3.0])
def test_bins_are_half_open_at_every_power(base: float) -> None:
    ks = np.arange(-40, 41)
    edges = base ** ks.astype(float)
    assert value_bins(edges, base).tolist() == ks.tolist()
    assert value_bins(np.nextafter(edges, 0.0), base).tolist() == (ks - 1).tolist()
    assert value_bins(np.nextafter(edges, np.inf), base).tolist() == ks.tolist()


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-200, 1e200), st.floats(1.1, 50.0))
def test_a_value_lies_in_its_bin(value: float, base: float) -> None:
    k = float(value_bins(np.array([value]), base)[0])
    assert base**k <= value < base ** (k + 1.0)


def test_what_is_not_positive_has_a_bin_of_its_own_below_all_others() -> None:
    bins = value_bins(np.array([0.0, -1.0, 1e-300]), 2.0)
    assert bins[0] == bins[1] < bins[2]


def test_codes_of_values() -> None:
    strata = Strata()
    codes = strata.of_values(np.array([1.0, 5.0, 0.0, 1.9, 4.0]), 2.0)
    assert [strata.labels[code] for code in codes[[0, 1, 3, 4]]] == [0, 2, 0, 2]
    assert strata.labels[codes[2]] < -1000
    again = strata.of_values(np.array([7.9, 0.3]), 2.0)
    assert again[0] == codes[1]
    assert strata.labels[again[1]] == -2


@pytest.mark.parametrize(
    ("labels", "rows", "groups"),
    [
        ([], [], []),
        ([3], [5], [[0]]),
        ([-3, -2, -1], [500, 10, 300], [[0, 1], [2]]),
        ([-1, -3, -2], [300, 500, 10], [[1, 2], [0]]),  # the codes come in any order
        ([0, 1, 2], [10, 300, 300], [[0, 1], [2]]),  # the lowest joins the next higher
        ([0, 1, 2, 3], [300, 10, 10, 300], [[0, 1, 2], [3]]),
        ([0, 1, 2], [50, 50, 50], [[0, 1, 2]]),
        ([0, 1], [FEWEST_ROWS, FEWEST_ROWS], [[0], [1]]),
        ([0, 1], [FEWEST_ROWS, FEWEST_ROWS - 1], [[0, 1]]),
        ([0, 1, 2, 3], [100, 100, 300, 5], [[0, 1], [2, 3]]),
    ],
)
def test_small_bins_join_the_next_lower(labels: list[int], rows: list[int], groups: list[list[int]]) -> None:
    assert merged_bins(labels, np.array(rows, float)) == groups


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 400), min_size=1, max_size=12))
def test_merged_bins_hold_every_bin_once_in_order_and_enough_rows(rows: list[int]) -> None:
    labels = list(range(len(rows)))
    groups = merged_bins(labels, np.array(rows, float))
    assert list(chain.from_iterable(groups)) == labels
    if sum(rows) >= FEWEST_ROWS:
        assert all(sum(rows[code] for code in group) >= FEWEST_ROWS for group in groups)


def test_names_of_bins() -> None:
    strata = Strata()
    zero, small, large = strata.of_values(np.array([0.0, 0.02, 0.1]), 2.0).tolist()
    assert bin_label([small], strata.labels, 2.0) == "V in [0.0156, 0.0312)"
    assert bin_label([small, large], strata.labels, 2.0) == "V in [0.0156, 0.125)"
    assert bin_label([zero], strata.labels, 2.0) == "V = 0"
    assert bin_label([zero, small], strata.labels, 2.0) == "V in [0, 0.0312)"


def test_a_full_dictionary_with_a_null() -> None:
    codes = pa.array([*range(128), None], pa.int8())
    column = pa.DictionaryArray.from_arrays(codes, pa.array([f"s{i}" for i in range(128)]))
    strata = Strata()
    assert strata.of_column(column).tolist() == list(range(129))
    assert strata.labels[-1] is None
