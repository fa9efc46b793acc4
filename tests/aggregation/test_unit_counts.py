"""Numbers of units and the largest unit's rows: exact, then estimated."""

from __future__ import annotations

import numpy as np
import pytest

from foretest.aggregation.unit_counts import LIMIT, UnitCounts
from foretest.displays.merging import merged
from foretest.kernels.hashing import hash_integers


def counted(*batches: np.ndarray) -> UnitCounts:
    counts = UnitCounts.empty()
    for batch in batches:
        counts.add(hash_integers(batch))
    return counts


def test_an_empty_log() -> None:
    assert (UnitCounts.empty().units, UnitCounts.empty().largest, UnitCounts.empty().exact) == (0, 0, True)


def test_exact_while_there_are_few() -> None:
    units = np.random.default_rng(0).integers(0, 5000, 40_000)
    counts = counted(units[:100], units[100:30_000], units[30_000:])
    assert counts.exact
    assert counts.units == len(np.unique(units))
    assert counts.largest == np.bincount(units).max()


def test_exact_up_to_the_limit_and_not_beyond() -> None:
    counts = counted(np.arange(LIMIT), np.arange(LIMIT))
    assert counts.exact
    assert (counts.units, counts.largest) == (LIMIT, 2)
    counts.add(hash_integers(np.array([LIMIT])))
    assert not counts.exact
    assert counts.units == pytest.approx(LIMIT + 1, rel=0.01)
    assert counts.counts.sum() == 2 * LIMIT + 1


@pytest.mark.parametrize("units", [200_000, 500_000, 2_000_000])
def test_beyond_the_limit_within_one_percent(units: int) -> None:
    counts = counted(np.arange(units), np.arange(units // 2))
    assert not counts.exact
    # a standard error of 1/√(occupied cells): 0.31 % and less
    assert counts.units == pytest.approx(units, rel=0.01)
    assert counts.counts.sum() == units + units // 2


def test_never_more_units_than_rows() -> None:
    """Where every row is a unit of its own, about half of the estimates would be above the number of rows."""
    above = 0
    for first in range(0, 8_000_000, 1_000_000):
        counts = counted(np.arange(first, first + 150_000))
        assert not counts.exact
        assert counts.lowest is not None
        estimate = LIMIT * np.count_nonzero(counts.counts) / counts.lowest.sum()
        above += estimate > 150_000
        assert counts.units == min(round(estimate), 150_000)
        # a second row of each unit: the estimate is the same, and no longer above the number of rows
        counts.add(hash_integers(np.arange(first, first + 150_000)))
        assert counts.units == round(estimate)
    assert above > 0


def test_the_largest_unit_is_never_too_small() -> None:
    heavy = np.concatenate([np.arange(300_000), np.full(700, 5), np.full(900, 250_000)])
    np.random.default_rng(0).shuffle(heavy)
    counts = counted(heavy)
    assert not counts.exact
    # the largest cell holds unit 250 000's 901 rows, and few others'
    assert 901 <= counts.largest <= 901 + 20


@pytest.mark.parametrize("cut", [0, 1000, 90_000, 250_000, 400_000])
def test_merged_parts_equal_the_whole(cut: int) -> None:
    rows = np.random.default_rng(1).integers(0, 250_000, 400_000)
    whole = counted(rows)
    for parts in ((rows[:cut], rows[cut:]), (rows[cut:], rows[:cut])):
        both = merged([counted(part) for part in parts])
        assert both.exact == whole.exact
        assert (both.units, both.largest) == (whole.units, whole.largest)
        assert np.array_equal(both.counts, whole.counts)
        assert np.array_equal(both.lowest, whole.lowest)


def test_merged_exact_parts_equal_the_whole_and_stay_as_they_were() -> None:
    rows = np.random.default_rng(2).integers(0, 900, 3000)
    left, right = counted(rows[:1000]), counted(rows[1000:])
    units = left.units
    both = merged([left, right])
    assert both.exact
    assert (both.units, both.largest) == (len(np.unique(rows)), np.bincount(rows).max())
    assert left.units == units == len(np.unique(rows[:1000]))
    assert left.counts.sum() == 1000


def test_many_rows_at_once_by_amounts() -> None:
    counts = UnitCounts.empty()
    counts.add(hash_integers(np.array([3, 4, 3])), np.array([5, 7, 10]))
    assert (counts.units, counts.largest) == (2, 15)
