"""The rows of the smallest unit hashes, however the log is cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from foretest.aggregation.kept_rows import KeptRows
from foretest.displays.batch import Displays
from foretest.displays.merging import merged
from foretest.displays.ragged import Ragged

Row = tuple[int, int]


def add(smallest: KeptRows, rows: list[Row]) -> None:
    """As a fold does it: `below` first, on the unit alone."""
    unit = np.array([u for u, _ in rows], np.uint64)
    key = np.array([k for _, k in rows], np.uint64)
    keep = smallest.below(unit)
    displays = Displays(
        {"key": key.astype(np.float64), "list": Ragged.packed(key.copy(), np.ones(len(key), np.int64))},
        Ragged.packed(np.zeros(len(key), np.int32), np.ones(len(key), np.int64)),
        np.ones(len(key), np.int64),
        unit,
    )
    smallest.add({"unit": unit[keep], "key": key[keep]}, len(rows), displays.take(keep))


def folded(rows: list[Row], limit: int, cuts: list[int]) -> KeptRows:
    smallest = KeptRows(limit, ("unit", "key"))
    edges = [0, *sorted(min(c, len(rows)) for c in cuts), len(rows)]
    for begin, end in pairwise(edges):
        add(smallest, rows[begin:end])
    return smallest


def contents(smallest: KeptRows) -> list[Row]:
    columns = smallest.columns()
    return list(zip(columns["unit"].tolist(), columns["key"].tolist(), strict=True)) if columns else []


some_rows = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 30)), max_size=60)
some_cuts = st.lists(st.integers(0, 60), max_size=8)


@settings(max_examples=200, deadline=None)
@given(some_rows, st.integers(1, 12), some_cuts, st.randoms(use_true_random=False))
def test_neither_cuts_nor_order_matter(rows: list[Row], limit: int, cuts: list[int], random: object) -> None:
    expected = sorted(rows)[:limit]
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for smallest in (folded(rows, limit, cuts), folded(shuffled, limit, cuts)):
        assert contents(smallest) == expected
        assert smallest.seen == len(rows)
        assert smallest.complete == (len(rows) <= limit)
        if expected:
            assert smallest.displays[0]["key"].tolist() == [key for _, key in expected]
            assert smallest.displays[0]["list"].flat().tolist() == [key for _, key in expected]


@settings(max_examples=150, deadline=None)
@given(some_rows, some_rows, some_rows, st.integers(1, 12), some_cuts)
def test_merged_parts_equal_the_whole(a: list[Row], b: list[Row], c: list[Row], limit: int, cuts: list[int]) -> None:
    left, right = folded(a, limit, cuts), folded(b, limit, cuts)
    both = merged([left, right])
    add(both, c)  # and a merged one can go on
    assert contents(both) == sorted(a + b + c)[:limit]
    assert both.seen == len(a + b + c)
    assert contents(left) == sorted(a)[:limit]
    assert contents(right) == sorted(b)[:limit]


def test_it_holds_at_most_twice_its_limit() -> None:
    smallest = KeptRows(100, ("unit", "key"))
    rng = np.random.default_rng(0)
    for _ in range(50):
        add(smallest, [(int(u), 0) for u in rng.integers(0, 2**63, 90)])
        assert len(smallest) <= 200 + 90
    assert smallest.seen == 4500


def test_thousands_of_batches_are_few_parts() -> None:
    """What is looked through after a batch does not grow with the number of batches."""
    smallest = KeptRows(100, ("unit", "key"))
    rows = [(int(u), k) for k, u in enumerate(np.random.default_rng(1).integers(0, 2**63, 3_000))]
    for row in rows:
        add(smallest, [row])
        assert len(smallest.parts) <= 65
    assert contents(smallest) == sorted(rows)[:100]
    assert smallest.displays[0]["list"].flat().tolist() == [key for _, key in sorted(rows)[:100]]


def test_most_rows_are_seen_from_the_unit_alone() -> None:
    smallest = KeptRows(10, ("unit", "key"))
    add(smallest, [(u, 0) for u in range(100)])
    assert smallest.below(np.array([5, 9, 10, 50], np.uint64)).tolist() == [0, 1]


def test_nothing_was_added() -> None:
    smallest = KeptRows(10, ("unit", "key"))
    assert smallest.columns() == {}
    assert len(smallest) == 0
    assert smallest.complete
    assert contents(merged([smallest, smallest])) == []


@settings(max_examples=100, deadline=None)
@given(st.lists(some_rows, min_size=1, max_size=6), st.integers(1, 12), some_cuts)
def test_the_total_of_many_is_the_whole(lists: list[list[Row]], limit: int, cuts: list[int]) -> None:
    total = KeptRows.total([folded(rows, limit, cuts) for rows in lists])
    every = [row for rows in lists for row in rows]
    assert contents(total) == sorted(every)[:limit]
    assert total.seen == len(every)
