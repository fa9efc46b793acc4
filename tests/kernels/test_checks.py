"""Faults of rankings, and items found among candidates."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretest.displays.ragged import Ragged
from foretest.kernels.checks import positions_in, ranking_faults


def ragged(lists: list[list[int]]) -> Ragged:
    values = np.array(list(chain.from_iterable(lists)), np.int32)
    return Ragged.packed(values, np.array([len(x) for x in lists], np.int64))


def faults(rankings: list[list[int]], eligible: list[int]) -> list[int]:
    r = ragged(rankings)
    return ranking_faults(r.values, r.starts, r.lengths, np.array(eligible)).tolist()


@pytest.mark.parametrize(
    ("ranking", "eligible", "fault"),
    [
        ([0], 1, 0),
        ([2, 0, 1], 3, 0),
        ([], 3, 1),
        ([0, 1, 2], 2, 2),
        ([0, 3], 3, 3),
        ([-1], 3, 3),
        ([1, 2, 1], 3, 4),
        ([1, 1, 9], 10, 4),
        ([1, 9, 1], 3, 3),  # the first fault from the left
        ([900, 3], -1, 0),  # the number of items is not known
        ([-1, 3], -1, 3),
        ([5, 5], -1, 4),
        ([], -1, 1),
    ],
)
def test_each_fault_has_its_number(ranking: list[int], eligible: int, fault: int) -> None:
    assert faults([ranking], [eligible]) == [fault]


def test_a_fault_stays_in_its_row() -> None:
    assert faults([[0], [], [1, 0], [1, 1], [0]], [1, 1, 2, 2, 1]) == [0, 1, 0, 4, 0]


def test_positions_absent_and_repeated_items() -> None:
    items = Ragged.of([np.array([4, 2, 9]), np.array([7]), np.array([2, 2]), np.array([4, 1])])
    shown = Ragged.of([np.array([9, 4]), np.array([2]), np.array([2]), np.array([1])])
    place, absent, repeated = positions_in(
        shown.values, shown.starts, shown.lengths, items.values, items.starts, items.lengths
    )
    assert place.tolist() == [2, 0, -1, 0, 1]
    assert absent.tolist() == [False, True, False, False]
    assert repeated.tolist() == [False, False, True, False]


codes = st.integers(0, 9)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.lists(codes, max_size=6), st.lists(codes, max_size=4)), max_size=6))
def test_positions_equal_a_plain_search(rows: list[tuple[list[int], list[int]]]) -> None:
    items, shown = ragged([own for own, _ in rows]), ragged([wanted for _, wanted in rows])
    place, absent, repeated = positions_in(
        shown.values, shown.starts, shown.lengths, items.values, items.starts, items.lengths
    )
    assert place.tolist() == [own.index(x) if x in own else -1 for own, wanted in rows for x in wanted]
    assert absent.tolist() == [any(x not in own for x in wanted) for own, wanted in rows]
    assert repeated.tolist() == [len(set(own)) < len(own) for own, _ in rows]
