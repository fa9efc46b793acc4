"""The values of a column that have sums of their own: for reading, unlike strata, which belong to PieceNCIS.

A column may have any number of values: the 1 000 of smallest hash have sums of their own and all others share one
block, whatever the order of rows and of merging. A value among the 1 000 of the whole log is among those of every part
of it, so none of its rows is ever lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.arrow_functions import cast, dictionary_encode, take
from foretest.displays.arrow_numbers import filled, to_arrow, to_numpy
from foretest.displays.batch import Hashes
from foretest.displays.ragged import plain
from foretest.kernels.hashing import hash_strings
from foretest.records import dataclass

MOST_VALUES = 1000
MOST_DAYS = 100  # that have sums of their own: these are made unasked, and a day of all estimators is some 600 kB
NO_VALUE = "(none)"
REST = 0  # the code that all values without sums of their own share

Ints = npt.NDArray[np.int64]


@dataclass
class Groups:
    """The values of a column: code k is the k-th of `labels`, code 0 the rest."""

    limit: int  # of unit hashes that are kept of a value
    labels: list[str] = field(default_factory=list)
    hashes: list[int] = field(default_factory=list)
    crowded: bool = False  # were there more values than have sums of their own?
    most: int = MOST_VALUES  # values with sums of their own
    units: dict[int, Hashes] = field(default_factory=dict)  # by code: the smallest unit hashes, at most `limit`

    def codes(self, column: pa.Array, move_to_rest: Callable[[int], None]) -> Ints:
        """The code of each row's value; new values get a code of their own, or that of the rest. Values that lose their
        code to others move their sums to the rest."""
        coded = _coded(column)
        used = np.zeros(len(coded.values), np.bool_)  # a dictionary may have values that no row has
        used[coded.rows] = True
        hashes = _hashes(coded.values)
        if len(self.labels) == self.most:  # most values of a crowded column have too large a hash
            likely = used & (hashes <= np.uint64(max(self.hashes)))
            self.crowded |= bool((used & ~likely).any())
            used = likely
        at = np.flatnonzero(used)
        values = dict(zip(take(coded.values, to_arrow(at)).to_pylist(), map(int, hashes[at]), strict=True))
        self._place(values, move_to_rest)
        codes = {label: code for code, label in enumerate(self.labels, start=1)}
        table = np.full(len(coded.values), REST, np.int64)
        table[at] = [codes.get(label, REST) for label in values]
        return np.asarray(table[coded.rows])

    def _place(self, values: Mapping[str, int], move_to_rest: Callable[[int], None]) -> None:
        """Give codes to the values of a batch, with their hashes; those not among the smallest join the rest."""
        placed = dict(zip(self.labels, self.hashes, strict=True))
        new = {label: hashed for label, hashed in values.items() if label not in placed}
        hashes = placed | new
        apart = set(_first_labels(hashes, self.most))
        self.crowded |= len(hashes) > len(apart)
        free = [k for k, label in enumerate(self.labels) if label not in apart]
        for label in (label for label in new if label in apart):
            if free:
                k = free.pop()
                if k + 1 in self.units:
                    self.units[REST] = _smallest([self.units.get(REST), self.units.pop(k + 1)], self.limit)
                move_to_rest(k + 1)
                self.labels[k], self.hashes[k] = label, hashes[label]
            else:
                self.labels.append(label)
                self.hashes.append(hashes[label])

    def add_units(self, code: Ints, unit: Hashes) -> None:
        """Keep the smallest unit hashes of each value, at most as many as buckets: no answer needs a larger count."""
        highest = np.full(len(self.labels) + 1, (1 << 64) - 1, np.uint64)
        for k, hashes in self.units.items():
            if len(hashes) == self.limit:
                highest[k] = hashes[-1]
        new = unit < highest[code]
        code, unit = code[new], unit[new]
        if not len(code):  # all units have a larger hash than those that are kept
            return
        order = np.lexsort([unit, code])
        code, unit = code[order], unit[order]
        begins = np.flatnonzero(np.diff(code, prepend=-1))
        for k, hashes in zip(code[begins].tolist(), np.split(unit, begins[1:]), strict=True):
            self.units[k] = _smallest([self.units.get(k), hashes], self.limit)

    def n_units(self, codes: Sequence[int]) -> int:
        """How many units some values have; the limit where there are as many or more."""
        return len(_smallest([self.units.get(code) for code in codes], self.limit))

    @classmethod
    def union(cls, parts: Sequence[Groups]) -> Groups | None:
        """The values of all parts; None of none."""
        if not parts:
            return None
        hashes = {label: h for part in parts for label, h in zip(part.labels, part.hashes, strict=True)}
        labels = _first_labels(hashes, parts[0].most)
        crowded = len(hashes) > len(labels) or any(part.crowded for part in parts)
        union = cls(parts[0].limit, labels, [hashes[label] for label in labels], crowded, parts[0].most)
        for part in parts:
            codes = union.codes_of(part)
            for code, units in part.units.items():
                union.units[codes[code]] = _smallest([union.units.get(codes[code]), units], union.limit)
        return union

    def codes_of(self, other: Groups) -> list[int]:
        """The codes here of the values of another."""
        codes = {label: code for code, label in enumerate(self.labels, start=1)}
        return [REST, *(codes.get(label, REST) for label in other.labels)]


def _first_labels(hashes: Mapping[str, int], most: int) -> list[str]:
    """The labels with the smallest hashes, as many as have sums of their own."""
    return sorted(hashes, key=lambda label: (hashes[label], label))[:most]


def _smallest(parts: Sequence[Hashes | None], most: int) -> Hashes:
    """The smallest of all hashes, each once."""
    some = [part for part in parts if part is not None]
    hashes: Hashes = np.sort(np.concatenate([*some, np.zeros(0, np.uint64)]))
    first: Hashes = hashes[np.diff(hashes, prepend=~hashes[:1]) != 0]  # np.unique would import masked arrays
    return first[:most]


class _Coded(NamedTuple):
    """A column as distinct values, null as NO_VALUE, and the place of each row's among them."""

    values: pa.Array
    rows: Ints


def _coded(column: pa.Array) -> _Coded:
    coded = column if pa.types.is_dictionary(column.type) else dictionary_encode(column)
    values = filled(cast(plain(coded.dictionary), pa.large_string()), NO_VALUE)
    indices = cast(coded.indices, pa.int64())
    if indices.null_count:
        indices = indices.fill_null(len(values))
        values = pa.concat_arrays([values, pa.array([NO_VALUE], pa.large_string())])
    return _Coded(values, to_numpy(indices))


def _hashes(values: pa.Array) -> Hashes:
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return np.asarray(hash_strings(np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8), ends))
