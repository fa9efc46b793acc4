"""Strata of contexts: the labels of the log as small integers."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.arrow_numbers import filled, to_numpy
from foretest.displays.batch import Floats
from foretest.errors import BadInput
from foretest.records import dataclass

MOST_STRATA = 1000
FEWEST_ROWS = 200  # of a value bin; one with fewer merges with the next lower


@dataclass
class Strata:
    """The strata so far. A label is a value of the column, or k of the value bin [b^k, b^(k+1))."""

    labels: list[Any] = field(default_factory=list)
    codes: dict[Any, int] = field(default_factory=dict)

    def code(self, label: Any) -> int:
        """The code of a label, a new one where it is new."""
        if label not in self.codes:
            if len(self.labels) == MOST_STRATA:
                raise BadInput(f'more than {MOST_STRATA} strata: use a coarser column, or "value-model".')
            self.codes[label] = len(self.labels)
            self.labels.append(label)
        return self.codes[label]

    def of_column(self, column: pa.Array) -> npt.NDArray[np.int64]:
        """Codes of a column's values; null is a stratum of its own."""
        if pa.types.is_signed_integer(column.type) and len(column) and not column.null_count:
            values = to_numpy(column).astype(np.int64)
            if int(values.max()) - int(values.min()) < MOST_STRATA:
                return self._of_integers(values)
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        labels = [*coded.dictionary.to_pylist(), None]
        indices = to_numpy(filled(coded.indices.cast(pa.int64()), len(labels) - 1))
        table = np.zeros(len(labels), np.int64)
        used = np.flatnonzero(np.bincount(indices))  # a dictionary may have values that no row has: they are no strata
        table[used] = [self.code(labels[code]) for code in used.tolist()]
        return np.asarray(table[indices])

    def _of_integers(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Codes of integers that are near each other: a table of all between them is quicker than a search."""
        low = int(values.min())
        values -= low
        present = np.flatnonzero(np.bincount(values))
        table = np.zeros(int(values.max()) + 1, np.int64)
        table[present] = [self.code(label) for label in (present + low).tolist()]
        return np.asarray(table[values])

    def of_values(self, value: Floats, base: float) -> npt.NDArray[np.int64]:
        """Codes of the half-open bins [b^k, b^(k+1)) of V(x); what is not positive has a bin of its own."""
        bins, inverse = np.unique(value_bins(value, base), return_inverse=True)
        table = np.array([self.code(int(k)) for k in bins], dtype=np.int64)
        return np.asarray(table[inverse])


_NOT_POSITIVE = -(1 << 30)  # the label of the bin of V ≤ 0


def value_bins(value: Floats, base: float) -> npt.NDArray[np.int64]:
    """k with base^k ≤ V < base^(k+1); a very low k where V ≤ 0.

    >>> value_bins(np.array([0.25, 0.3, 0.5, 1.0, 7.9, 8.0]), 2.0).tolist()
    [-2, -2, -1, 0, 2, 3]
    """
    positive = value > 0.0
    safe = np.where(positive, value, 1.0)
    k = np.floor(np.log(safe) / np.log(base))
    k += base ** (k + 1.0) <= safe  # the logarithm may round across an edge
    k -= base**k > safe
    return np.where(positive, k, _NOT_POSITIVE).astype(np.int64)


def merged_bins(labels: list[int], rows: Floats) -> list[list[int]]:
    """Value bins as groups of codes, lowest first: one under 200 rows joins the next lower (the lowest, the next).

    >>> merged_bins([-3, -2, -1], np.array([500.0, 10.0, 300.0]))
    [[0, 1], [2]]
    """
    groups: list[list[int]] = []
    rows_of_last = 0.0
    for code in sorted(range(len(labels)), key=lambda c: labels[c]):
        if groups and (rows[code] < FEWEST_ROWS or rows_of_last < FEWEST_ROWS):
            groups[-1].append(code)
            rows_of_last += rows[code]
        else:
            groups.append([code])
            rows_of_last = rows[code]
    return groups


def bin_label(group: list[int], labels: list[int], base: float) -> str:
    """The range of V in a group of value bins."""
    ks = [labels[code] for code in group]
    low = 0.0 if min(ks) == _NOT_POSITIVE else base ** min(ks)
    high = 0.0 if max(ks) == _NOT_POSITIVE else base ** (max(ks) + 1)
    return f"V in [{low:.3g}, {high:.3g})" if high else "V = 0"
