"""One function merges what several readers of a log have counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
import pytest

from foretest.displays.merging import by, first, joined, largest, merged, smallest
from foretest.records import dataclass


class Pair(NamedTuple):
    rows: int
    sums: np.ndarray[Any, Any]


class Set:
    """A class that knows better than its fields."""

    def __init__(self, items: set[int]) -> None:
        self.items = items

    @classmethod
    def total(cls, parts: Sequence[Set]) -> Set:
        return cls(set().union(*(part.items for part in parts)))


@dataclass(frozen=True)
class Counts:
    name: str = field(metadata=by(first))
    rows: int
    by_day: dict[str, float]
    pair: Pair
    items: Set
    latest: int | None = field(default=None, metadata=by(largest))
    lowest: int | None = field(default=None, metadata=by(smallest))
    crowded: bool = field(default=False, metadata=by(any))
    lists: list[int] = field(default_factory=list, metadata=by(joined))
    optional: float | None = None


def test_every_field_is_merged_as_it_declares() -> None:
    left = Counts("a", 2, {"mon": 1.0, "tue": 2.0}, Pair(1, np.array([1, 2])), Set({1}), 5, None, True, [1], 1.5)
    right = Counts("a", 3, {"tue": 4.0, "wed": 8.0}, Pair(2, np.array([10])), Set({1, 2}), None, 7, False, [0], 2.0)
    both = merged([left, right, left])
    assert (both.name, both.rows, both.latest, both.lowest, both.crowded) == ("a", 7, 5, 7, True)
    assert both.by_day == {"mon": 2.0, "tue": 8.0, "wed": 8.0}
    assert list(both.by_day) == ["mon", "tue", "wed"]
    assert both.pair.rows == 4
    assert both.pair.sums.tolist() == [12, 4]
    assert both.items.items == {1, 2}
    assert both.lists == [1, 0, 1]
    assert both.optional == 5.0
    assert left.pair.sums.tolist() == [1, 2]  # parts stay as they are


def test_what_is_missing_anywhere_is_missing() -> None:
    assert merged([None, np.ones(2)]) is None
    assert merged([1.0, None]) is None
    assert largest([None, None]) is None
    assert smallest([]) is None


def test_one_part_is_itself() -> None:
    array = np.ones(3)
    assert merged([array]) is array


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_shorter_arrays_end_in_zeros_along_every_axis(order: tuple[int, ...]) -> None:
    arrays = [np.ones((2, 1)), np.full((1, 3), 10), np.full((2, 2), 100.0)]
    assert merged([arrays[i] for i in order]).tolist() == [[111.0, 110.0, 10.0], [101.0, 100.0, 0.0]]


@pytest.mark.parametrize("value", ["text", True, [1], np.array(["a"]), np.array([True])])
def test_what_declares_nothing_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="declare a rule"):
        merged([value, value])
