"""List columns of every Arrow flavour as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.arrow_functions import cast
from foretest.displays.arrow_numbers import to_numpy
from foretest.kernels.lists import gather

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ragged:
    """Lists of different lengths: list i is values[starts[i] : starts[i] + lengths[i]].

    >>> import foretest as ft
    >>> r = ft.Ragged.of([[1.0, 2.0], [3.0]])
    >>> r.padded(0.0).tolist()
    [[1.0, 2.0], [3.0, 0.0]]
    """

    values: npt.NDArray[Any]  # of all lists
    starts: Ints  # where each list begins
    lengths: Ints  # how many values each list has

    def __post_init__(self) -> None:
        # Arrow's buffers are read-only and copies are not: with both, every kernel would be compiled twice
        values = self.values.view()
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> npt.NDArray[Any]:
        return self.values[self.starts[row] : self.starts[row] + self.lengths[row]]

    @classmethod
    def of(cls, lists: Any) -> Ragged:
        """From a sequence of sequences."""
        lengths = np.array([len(item) for item in lists], dtype=np.int64)
        values = np.concatenate([np.asarray(item) for item in lists]) if len(lengths) else np.empty(0)
        return cls.packed(values, lengths)

    @classmethod
    def packed(cls, values: npt.NDArray[Any], lengths: Ints) -> Ragged:
        """From lists that follow one another without gaps."""
        starts = np.zeros(len(lengths), dtype=np.int64)
        np.cumsum(lengths[:-1], out=starts[1:])
        return cls(values, starts, lengths)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Ragged:
        """Some lists (repeats allowed), sharing the values."""
        return Ragged(self.values, self.starts[rows], self.lengths[rows])

    def flat(self) -> npt.NDArray[Any]:
        """The values of all lists, one after the other (a copy)."""
        bits = np.dtype(f"u{self.values.dtype.itemsize}")  # floats and integers of one size share a compiled loop
        out = np.empty(int(self.lengths.sum()), bits)
        gather(self.values.view(bits), self.starts, self.lengths, out)
        return out.view(self.values.dtype)

    def compact(self) -> Ragged:
        """A copy with the values of these lists alone."""
        return Ragged.packed(self.flat(), self.lengths.copy())

    def padded(self, fill: float) -> npt.NDArray[Any]:
        """A matrix with one list per row, short ones filled up with `fill`."""
        width, kind = int(self.lengths.max(initial=0)), np.result_type(self.values.dtype, type(fill))
        if int(self.lengths.min(initial=width)) == width:  # nothing to fill: half the time
            return self.flat().astype(kind, copy=False).reshape(len(self), width)
        out = np.full((len(self), width), fill, dtype=kind)
        out[np.arange(width) < self.lengths[:, None]] = self.flat()
        return out

    @staticmethod
    def concatenate(parts: list[Ragged]) -> Ragged:
        """The lists of all parts, one after the other."""
        return Ragged.packed(
            np.concatenate([part.flat() for part in parts]), np.concatenate([part.lengths for part in parts])
        )


def places_within(lengths: Ints) -> Ints:
    """0, 1, 2, … of every list, one list after the other.

    >>> places_within(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    return np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def is_list(kind: pa.DataType) -> bool:
    """Is it any of Arrow's list types?"""
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    )


def split_lists(array: pa.Array) -> tuple[pa.Array, Ints, Ints]:
    """(values, starts, lengths) of a list array without nulls, sharing its buffers where Arrow allows."""
    kind = array.type
    if pa.types.is_fixed_size_list(kind):
        width = kind.list_size
        return (
            array.flatten(),
            np.arange(len(array), dtype=np.int64) * width,
            np.full(len(array), width, np.int64),
        )
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        # a view has the begin and size of each list; Arrow's cast to lists gets the last offset wrong
        return array.values, to_numpy(array.offsets).astype(np.int64), to_numpy(array.sizes).astype(np.int64)
    offsets = to_numpy(array.offsets).astype(np.int64)
    return array.values, offsets[:-1], np.diff(offsets)


def plain(array: pa.Array) -> pa.Array:
    """The array with a dictionary decoded."""
    if not pa.types.is_dictionary(array.type):
        return array
    if without_views(array.type.value_type) != array.type.value_type:
        array = pa.DictionaryArray.from_arrays(array.indices, takeable(array.dictionary))
    return array.dictionary_decode()


def without_views(kind: pa.DataType) -> pa.DataType:
    """The type, or the one that has the same values without views of text or bytes, whose rows Arrow cannot take.

    >>> str(without_views(pa.list_(pa.string_view())))
    'list<item: large_string>'
    """
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if not is_list(kind) or without_views(kind.value_type) == kind.value_type:
        return kind
    items = kind.value_field.with_type(without_views(kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(items, kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(items)
    return pa.large_list(items) if pa.types.is_large_list(kind) else kind  # rows of list views can be taken


def takeable(array: pa.Array) -> pa.Array:
    """The array as one whose rows Arrow can take."""
    kind = without_views(array.type)
    return array if kind == array.type else array.cast(kind)


def numbers(array: pa.Array) -> npt.NDArray[Any]:
    """A numeric array without nulls as NumPy: float32 and float64 as they are, all else converted to float64."""
    array = plain(array)
    if pa.types.is_float32(array.type) or pa.types.is_float64(array.type):
        return to_numpy(array)
    if pa.types.is_decimal(array.type) or pa.types.is_float16(array.type):
        array = cast(array, pa.float64())
    values = to_numpy(array)
    return values.astype(np.float64, copy=False)


def integers(array: pa.Array) -> npt.NDArray[np.int32]:
    """An integer array without nulls as int32 positions; what does not fit becomes −1, which is no position."""
    values = to_numpy(plain(array))
    if values.dtype == np.int32:
        return values
    fits = (values >= 0) & (values < 2**31 - 1) if values.dtype.itemsize > 2 else None
    narrowed = values.astype(np.int32)
    return narrowed if fits is None else np.where(fits, narrowed, np.int32(-1))


def common_codes(left: pa.Array, right: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Equal values of two arrays as equal integers."""
    left, right = plain(left), plain(right)
    if left.type != right.type:
        wide = pa.large_string() if is_text(left.type) else pa.decimal128(20, 0)  # holds int64 and uint64
        left, right = left.cast(wide), right.cast(wide)
    coded = pa.chunked_array([left, right]).dictionary_encode()
    both = np.concatenate([to_numpy(chunk.indices) for chunk in coded.chunks] or [np.empty(0)])
    both = both.astype(np.int32)
    return both[: len(left)], both[len(left) :]


def is_text(kind: pa.DataType) -> bool:
    """Is it any of Arrow's string types?"""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
