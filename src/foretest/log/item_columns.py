"""List columns with one value per eligible item, for the reward model: features of items, or predicted rewards."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.arrow_numbers import to_arrow
from foretest.displays.ragged import is_text, numbers, plain
from foretest.errors import RowFault
from foretest.log.column_values import LARGEST, lists_of
from foretest.records import dataclass

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ItemLists:
    """One list per row, with one value per eligible item: numbers or text."""

    values: pa.Array
    starts: Ints

    def at(self, row: Ints, item: Ints) -> pa.Array:
        """The values of some items of some rows."""
        return self.values.take(to_arrow(self.starts[row] + item))


def item_lists(name: str, array: pa.Array, eligible: Ints, what: str) -> ItemLists:
    """A list column, checked; `eligible` is the number of items of each row, `what` the thing that has a value."""
    values, starts, lengths = lists_of(name, array)
    other = np.flatnonzero(lengths != eligible)
    if len(other):
        at = other[0]
        raise RowFault("item-list-length", name, other,
                       f"the list has length {lengths[at]}, but the row has {eligible[at]} eligible items",
                       "Give one value for each eligible item, in the order of the scores.")  # fmt: skip
    values = plain(values)
    if is_text(values.type):
        return ItemLists(values.cast(pa.large_string()), starts)
    as_numbers = numbers(values).astype(np.float64, copy=False)
    _refuse_not_finite(name, as_numbers, starts, lengths, what)
    return ItemLists(to_arrow(as_numbers), starts)


def _refuse_not_finite(name: str, values: npt.NDArray[np.float64], starts: Ints, lengths: Ints, what: str) -> None:
    """Refuse rows with a value that is NaN, infinite or too large to be squared."""
    with np.errstate(invalid="ignore"):
        wrong = ~(np.abs(values) <= LARGEST)
    if not wrong.any():
        return
    rows = np.array([i for i in range(len(starts)) if wrong[starts[i] : starts[i] + lengths[i]].any()], np.int64)
    if not len(rows):  # beyond the lists
        return
    own = values[starts[rows[0]] : starts[rows[0]] + lengths[rows[0]]]
    first = own[~(np.abs(own) <= LARGEST)][0]
    text = "NaN" if np.isnan(first) else "infinite" if np.isinf(first) else f"{first:g}, beyond {LARGEST:g}"
    raise RowFault("item-not-finite", name, rows, f"{what} is {text}",
                   "Every eligible item needs a finite number: fix it, or leave the row out.")  # fmt: skip
