"""Columns of a batch as plain arrays; a row that cannot be read is a `RowFault`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.arrow_numbers import filled, to_numpy
from foretest.displays.batch import Floats
from foretest.displays.column_types import (
    is_number,
)
from foretest.displays.keys import refuse_nulls
from foretest.displays.ragged import Ragged, is_list, is_text, numbers, plain, split_lists
from foretest.errors import RowFault

LARGEST = 1e100  # of a reward or V(x): sums of squares stay far below 1e308


def features_of(batch: pa.RecordBatch, names: tuple[str, ...]) -> pa.RecordBatch:
    """Context features of every Arrow form as text or float64, times in microseconds."""
    arrays = []
    for array in (plain(batch[name]) for name in names):
        kind = array.type
        if is_text(kind):
            arrays.append(array.cast(pa.large_string()))
            continue
        if pa.types.is_temporal(kind):
            is_time, is_duration = pa.types.is_time(kind), pa.types.is_duration(kind)
            unit = pa.time64("us") if is_time else pa.duration("us") if is_duration else pa.timestamp("us")
            array = array.cast(unit, safe=False).cast(pa.int64())
        arrays.append(array.cast(pa.float64(), safe=False))
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def finite_numbers(name: str, array: pa.Array, what: str) -> Floats:
    refuse_nulls(name, array)
    values = numbers(array).astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        # as it is where one of them is not finite, or larger
        suspect = not -LARGEST <= values.min(initial=0.0) <= values.max(initial=0.0) <= LARGEST
    rows = np.flatnonzero(~np.isfinite(values)) if suspect else np.empty(0, np.int64)
    if len(rows):
        kind = "NaN" if np.isnan(values[rows[0]]) else "infinite"
        raise RowFault("not-finite", name, rows, f"{what} is {kind}",
                       "Every row needs a finite number: fix it, or leave the row out.")  # fmt: skip
    rows = np.flatnonzero(np.abs(values) > LARGEST) if suspect else rows
    if len(rows):
        raise RowFault("too-large", name, rows, f"{what} is {values[rows[0]]:g}, beyond {LARGEST:g}",
                       "Sums of such numbers and of their squares cannot be represented: fix it, or leave the row out."
                       )  # fmt: skip
    return values


def logged_numbers(name: str, array: pa.Array) -> Floats:
    refuse_nulls(name, array)
    return numbers(array).astype(np.float64, copy=False)


def any_column(name: str, array: pa.Array) -> Any:
    """A column of a user's policy: a list of numbers, numbers, or whatever Arrow makes of it."""
    if is_list(array.type) and is_number(array.type.value_type):
        return list_of_numbers(name, array)
    refuse_nulls(name, array)
    return numbers(array) if is_number(array.type) else to_numpy(plain(array))


class SplitLists(NamedTuple):
    """A list column: list i is values[starts[i] : starts[i] + lengths[i]]."""

    values: pa.Array
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]


def lists_of(name: str, array: pa.Array) -> SplitLists:
    refuse_nulls(name, array)
    values, starts, lengths = split_lists(array)
    if pa.types.is_dictionary(values.type) and values.dictionary.null_count:  # which its indices do not count
        values = plain(values)
    if values.null_count:
        inside = Ragged(to_numpy(values.is_null()), starts, lengths)
        rows = [i for i in range(len(array)) if inside[i].any()]
        if rows:
            raise RowFault("null-inside", name, np.array(rows), "the list holds a null",
                           "Every entry needs a value: fill it, or leave the row out.")  # fmt: skip
        values = plain(values)
        values = values.fill_null("" if is_text(values.type) else 0)
    return SplitLists(values, starts, lengths)


def list_of_numbers(name: str, array: pa.Array) -> Ragged:
    values, starts, lengths = lists_of(name, array)
    return Ragged(numbers(values), starts, lengths)


def list_lengths(name: str, array: pa.Array) -> npt.NDArray[np.int64]:
    return lists_of(name, array)[2]


def eligible_items(lists: dict[str, npt.NDArray[np.int64]], rows: int) -> npt.NDArray[np.int64]:
    """The number of eligible items, on which all lists must agree."""
    if not lists:
        return np.zeros(rows, np.int64)
    first, eligible = next(iter(lists.items()))
    if (eligible == 0).any():
        raise RowFault("list-empty", first, np.flatnonzero(eligible == 0), "the list of candidates is empty",
                       "A display needs at least one eligible item.")  # fmt: skip
    for name, lengths in lists.items():
        other = np.flatnonzero(lengths != eligible)
        if len(other):
            at = other[0]
            raise RowFault("list-length", name, other,
                           f"the list has length {lengths[at]} where column '{first}' has length {eligible[at]}",
                           "All lists of a row have one entry for each eligible item.")  # fmt: skip
    return eligible


def label_codes(array: pa.Array, labels: Sequence[str]) -> npt.NDArray[np.int64]:
    """The place of each value among `labels`, as text; −1 where it is not there, or null. A settings file writes true
    and false as TOML does, Python as it does.

    >>> label_codes(pa.array(["b", None, "c", "a"]), ["a", "b"]).tolist()
    [1, -1, -1, 0]
    >>> label_codes(pa.array([True, False]), ["true", "False"]).tolist()
    [0, 1]
    """
    coded = plain(array).dictionary_encode()
    values = [str(label) for label in coded.dictionary.to_pylist()]
    if pa.types.is_boolean(coded.type.value_type):
        values, labels = [value.lower() for value in values], [label.lower() for label in labels]
    places = np.array([*(labels.index(value) if value in labels else -1 for value in values), -1], np.int64)
    indices = to_numpy(filled(coded.indices, len(values)))
    return np.asarray(places[indices])
