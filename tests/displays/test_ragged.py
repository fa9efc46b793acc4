"""List columns of every Arrow flavour, against Python's own lists."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretest.displays.ragged import Ragged, common_codes, integers, is_list, is_text, numbers, plain, split_lists

LISTS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [9.0, 10.0]]
RAGGED = [[1.0], [], [2.0, 3.0, 4.0], [5.0, 6.0], [7.0]]
FLAVOURS = {
    "list": pa.list_,
    "large list": pa.large_list,
    "list view": pa.list_view,
    "large list view": pa.large_list_view,
    "fixed-size list": lambda kind: pa.list_(kind, 2),
}


def read(array: pa.Array) -> list[list[float]]:
    values, starts, lengths = split_lists(array)
    lists = Ragged(numbers(values), starts, lengths)
    assert starts.dtype == lengths.dtype == np.int64
    return [lists[i].tolist() for i in range(len(lists))]


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.int16()])
def test_lists_whole_and_sliced(flavour: str, kind: pa.DataType) -> None:
    rows = LISTS if flavour == "fixed-size list" else RAGGED
    array = pa.array(rows, FLAVOURS[flavour](kind))
    assert read(array) == rows
    for begin, count in [(0, 2), (1, 3), (2, 0), (3, 2)]:
        assert read(array.slice(begin, count)) == rows[begin : begin + count]
    assert read(array.slice(1).slice(1, 2)) == rows[2:4]


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_lists_of_a_batch_with_nulls_in_other_columns(flavour: str) -> None:
    rows = LISTS if flavour == "fixed-size list" else RAGGED
    other = pa.array([None, 1, None, 2, None])
    batch = pa.record_batch({"lists": pa.array(rows, FLAVOURS[flavour](pa.float64())), "other": other})
    assert read(batch.slice(1, 3)["lists"]) == rows[1:4]


def test_no_rows() -> None:
    for make in FLAVOURS.values():
        assert read(pa.array([], make(pa.float64()))) == []


def test_only_lists_are_lists() -> None:
    for make in FLAVOURS.values():
        assert is_list(make(pa.float64()))
    for kind in (pa.float64(), pa.string(), pa.struct({"a": pa.int8()}), pa.map_(pa.int8(), pa.int8())):
        assert not is_list(kind)
    assert [is_text(kind) for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary())] == [
        True,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 0, 3], pa.int8()),
        pa.array([1, 0, 3], pa.uint64()),
        pa.array([1, 0, 3], pa.float16()),
        pa.array([1, 0, 3], pa.int64()).cast(pa.decimal128(25, 2)),
        pa.array([1, 0, 3], pa.int32()).dictionary_encode(),
        pa.array([1.0, 0.0, 3.0]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)
def test_all_numbers_become_double(array: pa.Array) -> None:
    got = numbers(array)
    assert got.dtype == np.float64
    assert got.tolist() == [1.0, 0.0, 3.0]


def test_floats_keep_their_type_and_bools_are_zero_and_one() -> None:
    assert numbers(pa.array([0.1], pa.float32())).dtype == np.float32
    assert numbers(pa.array([True, False])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
)
def test_positions_are_int32(kind: pa.DataType) -> None:
    got = integers(pa.array([0, 100, 7], kind))
    assert got.dtype == np.int32
    assert got.tolist() == [0, 100, 7]


def test_a_position_that_does_not_fit_is_in_no_list() -> None:
    assert integers(pa.array([5, 2**40, -(2**40), 2**32 + 1, -3])).tolist() == [5, -1, -1, -1, -1]
    assert integers(pa.array([2**64 - 1, 2**32, 6], pa.uint64())).tolist() == [-1, -1, 6]
    assert integers(pa.array([2**32 - 1, 6], pa.uint32())).tolist() == [-1, 6]
    assert (integers(pa.array([-3], pa.int8())) < 0).all()


TEXTS = ["a", "é", "", "a", "long text"]


@pytest.mark.parametrize("left", [pa.string(), pa.large_string(), "dictionary"])
@pytest.mark.parametrize("right", [pa.string(), pa.large_string(), "dictionary"])
def test_equal_texts_have_equal_codes_whatever_their_types(left: object, right: object) -> None:
    def array(kind: object, texts: list[str]) -> pa.Array:
        return pa.array(texts).dictionary_encode() if kind == "dictionary" else pa.array(texts, kind)

    others = ["long text", "x", "a", ""]
    a, b = common_codes(array(left, TEXTS), array(right, others))
    assert [[x == y for y in b] for x in a] == [[x == y for y in others] for x in TEXTS]
    assert a.dtype == b.dtype == np.int32
    assert min(a.min(), b.min()) >= 0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 9)), st.lists(st.integers(0, 9)), st.sampled_from([pa.int8(), pa.int64(), pa.uint32()]))
def test_equal_integers_have_equal_codes(left: list[int], right: list[int], kind: pa.DataType) -> None:
    a, b = common_codes(pa.array(left, pa.int64()), pa.array(right, kind))
    assert (len(a), len(b)) == (len(left), len(right))
    assert [[x == y for y in b] for x in a] == [[x == y for y in right] for x in left]


def test_plain_decodes_dictionaries_alone() -> None:
    array = pa.array(["b", "a", "b"])
    assert plain(array.dictionary_encode()).to_pylist() == ["b", "a", "b"]
    assert plain(array) is array


ragged_lists = st.lists(st.lists(st.integers(-5, 5), max_size=4), max_size=6)


@settings(max_examples=60, deadline=None)
@given(ragged_lists, st.data())
def test_ragged_rows_behave_as_lists_do(lists: list[list[int]], data: st.DataObject) -> None:
    ragged = Ragged.of([np.array(row, np.int64) for row in lists])
    assert [row.tolist() for row in (ragged[i] for i in range(len(ragged)))] == lists
    rows = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=8)) if lists else []
    taken = ragged.take(np.array(rows, np.int64))
    expected = [lists[i] for i in rows]
    assert taken.flat().tolist() == list(chain.from_iterable(expected))
    compact = taken.compact()
    assert [compact[i].tolist() for i in range(len(compact))] == expected
    assert len(compact.values) == sum(map(len, expected))
    padded = taken.padded(-9.0)
    width = max(map(len, expected), default=0)
    assert padded.tolist() == [row + [-9.0] * (width - len(row)) for row in expected]
    both = Ragged.concatenate([taken, ragged])
    assert [both[i].tolist() for i in range(len(both))] == expected + lists
