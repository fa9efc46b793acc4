"""Strata of contexts: labels found in the log, as small integers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from foretest.displays.batch import Floats
from foretest.errors import BadInput

MOST_STRATA = 1000

FEWEST_ROWS = 200  # of a value bin; a smaller one merges with the next lower


@dataclass
class Strata:
    """The strata met so far. A label is what the column says, or k of the value bin [b^k, b^(k+1)) (None: V = 0)."""

    labels: list[Any] = field(default_factory=list)
    codes: dict[Any, int] = field(default_factory=dict)

    def code(self, label: Any) -> int:
        if label not in self.codes:
            if len(self.labels) == MOST_STRATA:
                raise BadInput(f'more than {MOST_STRATA} strata: use a coarser column, or "value-model".')
            self.codes[label] = len(self.labels)
            self.labels.append(label)
        return self.codes[label]

    def of_column(self, column: pa.Array) -> npt.NDArray[np.int64]:
        """Codes of a column's values; null is a stratum of its own."""
        if pa.types.is_signed_integer(column.type) and len(column) and not column.null_count:
            values = column.to_numpy().astype(np.int64)
            low, high = int(values.min()), int(values.max())
            if high - low < MOST_STRATA:  # a table of all between them is quicker than a search
                values -= low
                met = np.flatnonzero(np.bincount(values))
                table = np.zeros(high - low + 1, np.int64)
                table[met] = [self.code(label) for label in (met + low).tolist()]
                return np.asarray(table[values])
        coded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        table = np.array([self.code(label) for label in coded.dictionary.to_pylist()], dtype=np.int64)
        indices = coded.indices.cast(pa.int64())
        if indices.null_count:
            table = np.append(table, self.code(None))
            indices = indices.fill_null(len(table) - 1)
        return np.asarray(table[indices.to_numpy(zero_copy_only=False)])

    def of_values(self, value: Floats, base: float) -> npt.NDArray[np.int64]:
        """Codes of the half-open bins [b^k, b^(k+1)); what is not positive has a bin of its own."""
        bins = value_bins(value, base)
        found, inverse = np.unique(bins, return_inverse=True)
        table = np.array([self.code(int(k)) for k in found], dtype=np.int64)
        return np.asarray(table[inverse])


_NOT_POSITIVE = -(1 << 30)


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
    held = 0.0
    for code in sorted(range(len(labels)), key=lambda c: labels[c]):
        if groups and (rows[code] < FEWEST_ROWS or held < FEWEST_ROWS):
            groups[-1].append(code)
            held += rows[code]
        else:
            groups.append([code])
            held = rows[code]
    return groups


def bin_label(group: list[int], labels: list[int], base: float) -> str:
    """The range of a group of value bins, in words of V."""
    ks = [labels[code] for code in group]
    low = 0.0 if min(ks) == _NOT_POSITIVE else base ** min(ks)
    high = 0.0 if max(ks) == _NOT_POSITIVE else base ** (max(ks) + 1)
    return f"V in [{low:.3g}, {high:.3g})" if high else "V = 0"
