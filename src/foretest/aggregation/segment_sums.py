"""Sums by segment: for each value of a column, what the estimators need by bucket of units.

Segments are for reading, unlike strata, which belong to PieceNCIS. A column may have any number of values: the 1 000 of
smallest hash have sums of their own and all others share one block, whatever the order of rows and of merging. A value
among the 1 000 of the whole log is among those of every part of it, so none of its rows is ever lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.aggregation.examination import slope_name
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.noise_sums import noise_amounts
from foretest.aggregation.scaled_sums import ScaledSums, add_padded
from foretest.displays.arrow_functions import cast, dictionary_encode, take
from foretest.displays.arrow_numbers import filled, to_arrow, to_numpy
from foretest.displays.batch import Floats, Hashes
from foretest.displays.ragged import plain
from foretest.kernels.hashing import hash_strings
from foretest.log.rows import Rows, times
from foretest.records import dataclass
from foretest.weights.weightings import PointWeights, Slopes, Weighting, of_metric

MOST_VALUES = 1000
MOST_DAYS = 100  # that have sums of their own: these are made unasked, and a day of all estimators is some 600 kB
NO_VALUE = "(none)"
ROWS = "rows"  # the sums of a thinned log that count rows, where n counts displays
REST = 0  # the code that all values without sums of their own share

Ints = npt.NDArray[np.int64]
Key = TypeVar("Key")
_BY_BUCKET = ("n", "r", "h", "hr")  # sums by value and bucket; the others are by value alone


@dataclass
class SegmentSums:
    """The sums of one column's values: each array has one block per code, of `buckets` numbers or of one.

    Code 0 is the rest, code k the k-th of `labels`.
    """

    buckets: int
    labels: list[str] = field(default_factory=list)
    hashes: list[int] = field(default_factory=list)
    crowded: bool = False  # were there more values than have sums of their own?
    sums: dict[str, Floats] = field(default_factory=dict)  # n, r:<metric>, r2:, positives:, rewarded, second:, …
    units: dict[int, Hashes] = field(default_factory=dict)  # by code: the smallest unit hashes, at most `buckets`
    h: dict[Weighting, ScaledSums] = field(default_factory=dict)  # h, h2
    hr: dict[tuple[Weighting, int], ScaledSums] = field(default_factory=dict)  # hr, hr2, and of their noise
    most: int | None = field(default=None, metadata={"optional": True})  # values with sums of their own, where fewer

    def add(
        self, plan: FoldPlan, column: pa.Array, rows: Rows, bucket: Ints, log_w: Floats,
        points: Mapping[Weighting, PointWeights], rewarded: Ints,
    ) -> None:  # fmt: skip
        """Add the rows of one batch; `points` are the weights of its rewarded rows, at the places `rewarded`."""
        code = self._codes(column)
        self._add_units(code, rows.unit)
        m = rows.multiple
        self._add(self.sums, "n", code, bucket, 1.0 if m is None else m)
        if m is not None:
            self._add(self.sums, ROWS, code, bucket, 1.0)
        for weighting in plan.weightings:
            log_h = weighting.log_h(log_w)
            self._add_weights(weighting, log_h, code, bucket, m)
            self._add_weighted_rewards(
                weighting, log_h[rewarded], code[rewarded], bucket[rewarded], rows.rewards[rewarded]
            )  # fmt: skip
        if len(rewarded):
            self._add_rewarded(rows, rewarded, code[rewarded], bucket[rewarded], points)
            for weighting in plan.normalised_weightings:
                of_some = None if m is None else m[rewarded]
                self._add_weights(weighting, points[weighting].log_mean, code[rewarded], bucket[rewarded], of_some)

    def _add_rewarded(
        self, rows: Rows, at: Ints, code: Ints, bucket: Ints, points: Mapping[Weighting, PointWeights]
    ) -> None:  # fmt: skip
        """Add the rewards of the rewarded rows, with their places, codes and buckets, and their pointwise weights."""
        rewards, control_rewards = rows.rewards[at], rows.control_rewards[at]
        metrics = range(rewards.shape[1])
        multiple = np.ones(len(at)) if rows.multiple is None else rows.multiple[at]
        slots = (multiple, multiple * rows.displays.slots[at])  # of rankings, and by slot
        self._add(self.sums, "rewarded", code, bucket, 1.0)
        for m in metrics:
            self._add(self.sums, f"r:{m}", code, bucket, control_rewards[:, m])
            self._add(self.sums, f"positives:{m}", code, bucket, rewards[:, m] > 0.0)
        for i, (weighting, point) in enumerate(points.items()):
            self._add_weighted_rewards(weighting, point.log_h, code, bucket, rewards, point.slopes)
            self._add(self.sums, f"unsupported:{i}", code, bucket, point.unsupported)
            for m, noise in point.noise.items():
                sums = self.hr[weighting, m]
                if sums.exponent is None:  # no reward so far
                    sums.raise_to(0)
                for name, of_rows in noise_amounts(noise, rewards[:, m], slots[weighting.by_slot], sums.log_unit):
                    self._add(sums.arrays, name, code, bucket, of_rows)

    def _add_units(self, code: Ints, unit: Hashes) -> None:
        """Keep the smallest unit hashes of each value, at most as many as buckets: no answer needs a larger count."""
        highest = np.full(len(self.labels) + 1, (1 << 64) - 1, np.uint64)
        for k, hashes in self.units.items():
            if len(hashes) == self.buckets:
                highest[k] = hashes[-1]
        new = unit < highest[code]
        code, unit = code[new], unit[new]
        if not len(code):  # all units have a larger hash than those that are kept
            return
        order = np.lexsort([unit, code])
        code, unit = code[order], unit[order]
        begins = np.flatnonzero(np.diff(code, prepend=-1))
        for k, hashes in zip(code[begins].tolist(), np.split(unit, begins[1:]), strict=True):
            self.units[k] = _smallest([self.units.get(k), hashes], self.buckets)

    def _add_weights(
        self, weighting: Weighting, log_h: Floats, code: Ints, bucket: Ints, multiple: Floats | None
    ) -> None:
        sums = self.h.setdefault(weighting, ScaledSums())
        h = times(sums.scaled(log_h), multiple)
        self._add(sums.arrays, "h", code, bucket, h)
        self._add(sums.arrays, "h2", code, bucket, h * h)

    def _add_weighted_rewards(
        self, weighting: Weighting, log_h: Floats, code: Ints, bucket: Ints, rewards: Floats,
        slopes: Slopes | None = None,
    ) -> None:  # fmt: skip
        for m in range(rewards.shape[1]):
            sums = self.hr.setdefault((weighting, m), ScaledSums())
            hr = sums.scaled(of_metric(log_h, m)) * rewards[:, m]
            self._add(sums.arrays, "hr", code, bucket, hr)
            self._add(sums.arrays, "hr2", code, bucket, hr * hr)
            for slot, slope in enumerate(() if slopes is None else slopes.log_h[:, m].T):
                self._add(sums.arrays, slope_name("hr", slot), code, bucket, hr * slope)

    @property
    def _most(self) -> int:
        return MOST_VALUES if self.most is None else self.most

    def _width(self, name: str) -> int:
        """How many numbers a block of an array has."""
        return self.buckets if name.partition(":")[0] in _BY_BUCKET else 1

    def _add(self, arrays: dict[str, Floats], name: str, code: Ints, bucket: Ints, amounts: Any) -> None:
        """Add amounts of some rows to an array, which grows with the codes."""
        width = self._width(name)
        size = (len(self.labels) + 1) * width
        array = arrays.get(name, np.zeros(0))
        if len(array) < size:
            arrays[name] = array = np.concatenate([array, np.zeros(size - len(array))])
        np.add.at(array, code * width + bucket if width > 1 else code, amounts)

    def _codes(self, column: pa.Array) -> Ints:
        """The code of each row's value; new values get a code of their own, or that of the rest."""
        coded = _coded(column)
        used = np.zeros(len(coded.values), np.bool_)  # a dictionary may have values that no row has
        used[coded.rows] = True
        hashes = _hashes(coded.values)
        if len(self.labels) == self._most:  # most values of a crowded column have too large a hash
            likely = used & (hashes <= np.uint64(max(self.hashes)))
            self.crowded |= bool((used & ~likely).any())
            used = likely
        at = np.flatnonzero(used)
        values = dict(zip(take(coded.values, to_arrow(at)).to_pylist(), map(int, hashes[at]), strict=True))
        self._place(values)
        codes = {label: code for code, label in enumerate(self.labels, start=1)}
        table = np.full(len(coded.values), REST, np.int64)
        table[at] = [codes.get(label, REST) for label in values]
        return np.asarray(table[coded.rows])

    def _place(self, values: Mapping[str, int]) -> None:
        """Give codes to the values of a batch, with their hashes; those not among the smallest join the rest."""
        placed = dict(zip(self.labels, self.hashes, strict=True))
        new = {label: hashed for label, hashed in values.items() if label not in placed}
        hashes = placed | new
        apart = set(_first_labels(hashes, self._most))
        self.crowded |= len(hashes) > len(apart)
        free = [k for k, label in enumerate(self.labels) if label not in apart]
        for label in (label for label in new if label in apart):
            if free:
                k = free.pop()
                self._to_rest(k + 1)
                self.labels[k], self.hashes[k] = label, hashes[label]
            else:
                self.labels.append(label)
                self.hashes.append(hashes[label])

    def _to_rest(self, code: int) -> None:
        """Move the sums of a code to the rest."""
        if code in self.units:
            self.units[REST] = _smallest([self.units.get(REST), self.units.pop(code)], self.buckets)
        for arrays in self._all_arrays():
            for name, array in arrays.items():
                blocks = array.reshape(-1, self._width(name))
                if code < len(blocks):
                    blocks[REST] += blocks[code]
                    blocks[code] = 0.0

    def _all_arrays(self) -> list[dict[str, Floats]]:
        return [self.sums, *(s.arrays for s in self.h.values()), *(s.arrays for s in self.hr.values())]

    @classmethod
    def total(cls, parts: Sequence[SegmentSums]) -> SegmentSums:
        """The sums of all parts."""
        hashes = {label: h for part in parts for label, h in zip(part.labels, part.hashes, strict=True)}
        labels = _first_labels(hashes, parts[0]._most)
        codes = {label: code for code, label in enumerate(labels, start=1)}
        recoded = [part._recoded([REST, *(codes.get(label, REST) for label in part.labels)]) for part in parts]
        total = cls(parts[0].buckets, labels, [hashes[label] for label in labels], most=parts[0].most)
        total.crowded = len(hashes) > len(labels) or any(part.crowded for part in parts)
        for part in recoded:
            for name, array in part.sums.items():
                total.sums[name] = add_padded(total.sums.get(name), array)
            for code, units in part.units.items():
                total.units[code] = _smallest([total.units.get(code), units], total.buckets)
        total.h = _totals([part.h for part in recoded])
        total.hr = _totals([part.hr for part in recoded])
        return total

    def _recoded(self, codes: list[int]) -> SegmentSums:
        """These sums with `codes[k]` in place of code k; those that become one are added up."""
        new = np.array(codes, np.int64)

        def moved(arrays: Mapping[str, Floats]) -> dict[str, Floats]:
            recoded = {}
            for name, array in arrays.items():
                blocks = array.reshape(-1, self._width(name))
                sums = np.zeros((max(codes) + 1, blocks.shape[1]))
                np.add.at(sums, new[: len(blocks)], blocks)
                recoded[name] = sums.ravel()
            return recoded

        h = {key: ScaledSums(moved(sums.arrays), sums.exponent) for key, sums in self.h.items()}
        hr = {key: ScaledSums(moved(sums.arrays), sums.exponent) for key, sums in self.hr.items()}
        units: dict[int, Hashes] = {}
        for code, hashes in self.units.items():
            units[codes[code]] = _smallest([units.get(codes[code]), hashes], self.buckets)
        return SegmentSums(
            self.buckets, self.labels, self.hashes, self.crowded, moved(self.sums), units, h, hr, self.most
        )

    def rows(self) -> Floats:
        """The number of displays of each code."""
        return self.totals(self.sums, "n")

    def n_units(self, codes: Sequence[int]) -> int:
        """How many units some values have; the number of buckets where there are as many or more."""
        return len(_smallest([self.units.get(code) for code in codes], self.buckets))

    def of(self, arrays: Mapping[str, Floats], name: str, codes: Sequence[int]) -> Floats:
        """A sum over some values: by bucket, or one number."""
        return np.asarray(self._blocks(arrays, name)[list(codes)].sum(axis=0))

    def totals(self, arrays: Mapping[str, Floats], name: str) -> Floats:
        """A sum over all buckets, by code."""
        return np.asarray(self._blocks(arrays, name).sum(axis=1))

    def _blocks(self, arrays: Mapping[str, Floats], name: str) -> Floats:
        """An array with one row per code."""
        width, codes = self._width(name), len(self.labels) + 1
        blocks = arrays.get(name, np.zeros(0)).reshape(-1, width)
        return np.concatenate([blocks, np.zeros((codes - len(blocks), width))])


def _totals(parts: Sequence[Mapping[Key, ScaledSums]]) -> dict[Key, ScaledSums]:
    """The totals of scaled sums by key; a part need not have all keys."""
    keys = dict.fromkeys(key for part in parts for key in part)
    return {key: ScaledSums.total([part[key] for part in parts if key in part]) for key in keys}


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
