"""Sums by segment: for each value of a column, what the estimators need by bucket of units.

Segments are for reading, unlike strata, which belong to PieceNCIS. A column may have any number of values: the 1 000 of
smallest hash are kept apart and all others are one, whatever the order of rows and of merging. A value among the 1 000
of the whole log is among those of every part of it, so none of its rows is ever lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.scaled_sums import ScaledSums
from foretest.displays.batch import Floats, Hashes
from foretest.displays.ragged import plain
from foretest.kernels.hashing import hash_strings
from foretest.log.rows import Rows
from foretest.weights.weightings import PointWeights, Weighting, of_metric

MOST_VALUES = 1000
NO_VALUE = "(none)"
REST = 0  # the code of all values that are not kept apart

Ints = npt.NDArray[np.int64]
_BY_BUCKET = ("n", "r", "h", "hr")  # sums by value and bucket; the others are by value alone


@dataclass
class SegmentSums:
    """Sums of one column's values, each array with a block for each code, of `buckets` numbers or of one.

    Code 0 is the rest, code k the k-th of `labels`.
    """

    buckets: int
    labels: list[str] = field(default_factory=list)
    hashes: list[int] = field(default_factory=list)
    crowded: bool = False  # were there more values than are kept apart?
    sums: dict[str, Floats] = field(default_factory=dict)  # n, r:<metric>, r2:, positives:, rewarded, second:, …
    units: dict[int, Hashes] = field(default_factory=dict)  # by code the smallest unit hashes, as many as buckets
    h: dict[Weighting, ScaledSums] = field(default_factory=dict)  # h, h2
    hr: dict[tuple[Weighting, int], ScaledSums] = field(default_factory=dict)  # hr, hr2

    def add(
        self, plan: FoldPlan, column: pa.Array, rows: Rows, bucket: Ints, log_w: Floats,
        points: Mapping[Weighting, PointWeights],
    ) -> None:  # fmt: skip
        """Take in one batch, priced; `points` are the weights of its rewarded rows."""
        rewards, worth, rewarded = rows.rewards, rows.control_rewards, rows.rewarded
        code = self._codes(column)
        self._add_units(code, rows.unit)
        self._add(self.sums, "n", code, bucket, 1.0)
        for weighting in plan.weightings:
            log_h = weighting.log_h(log_w)
            held = self.h.setdefault(weighting, ScaledSums())
            h = held.scaled(log_h)
            self._add(held.arrays, "h", code, bucket, h)
            self._add(held.arrays, "h2", code, bucket, h * h)
            self._add_rewards(weighting, log_h[rewarded], code[rewarded], bucket[rewarded], rewards[rewarded])
        if not len(rewarded):
            return
        code, bucket, rewards, worth = code[rewarded], bucket[rewarded], rewards[rewarded], worth[rewarded]
        self._add(self.sums, "rewarded", code, bucket, 1.0)
        for m in range(rewards.shape[1]):
            r = rewards[:, m]
            for name, amount in (("r", worth[:, m]), ("positives", r > 0.0)):
                self._add(self.sums, f"{name}:{m}", code, bucket, amount)
        for i, (weighting, point) in enumerate(points.items()):
            self._add_rewards(weighting, point.log_h, code, bucket, rewards)
            self._add(self.sums, f"unsupported:{i}", code, bucket, point.unsupported)
            second = np.nan_to_num(point.second)  # weights by slot have none
            for m in range(rewards.shape[1]):
                r = np.where(second > 0.0, rewards[:, m], 0.0)
                self._add(self.sums, f"supported:{i}:{m}", code, bucket, r)
                self._add(self.sums, f"second:{i}:{m}", code, bucket, r * r * second)

    def _add_units(self, code: Ints, unit: Hashes) -> None:
        """Which units a value has is told apart while there are no more than buckets: beyond, no answer asks."""
        highest = np.full(len(self.labels) + 1, (1 << 64) - 1, np.uint64)
        for k, held in self.units.items():
            if len(held) == self.buckets:
                highest[k] = held[-1]
        new = unit < highest[code]
        code, unit = code[new], unit[new]
        order = np.lexsort([unit, code])
        code, unit = code[order], unit[order]
        begins = np.flatnonzero(np.diff(code, prepend=-1))
        for k, found in zip(code[begins].tolist(), np.split(unit, begins[1:]), strict=True):
            self.units[k] = _smallest([self.units.get(k), found], self.buckets)

    def _add_rewards(self, weighting: Weighting, log_h: Floats, code: Ints, bucket: Ints, rewards: Floats) -> None:
        for m in range(rewards.shape[1]):
            held = self.hr.setdefault((weighting, m), ScaledSums())
            hr = held.scaled(of_metric(log_h, m)) * rewards[:, m]
            self._add(held.arrays, "hr", code, bucket, hr)
            self._add(held.arrays, "hr2", code, bucket, hr * hr)

    def _width(self, name: str) -> int:
        return self.buckets if name.partition(":")[0] in _BY_BUCKET else 1

    def _add(self, arrays: dict[str, Floats], name: str, code: Ints, bucket: Ints, amounts: Any) -> None:
        width = self._width(name)
        size = (len(self.labels) + 1) * width
        held = arrays.get(name, np.zeros(0))
        if len(held) < size:
            arrays[name] = held = np.concatenate([held, np.zeros(size - len(held))])
        np.add.at(held, code * width + bucket if width > 1 else code, amounts)

    def _codes(self, column: pa.Array) -> Ints:
        """The code of each row's value; values that are new find a place, or join the rest."""
        coded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        values = pc.fill_null(plain(coded.dictionary).cast(pa.large_string()), NO_VALUE)
        indices = coded.indices.cast(pa.int64())
        if indices.null_count:
            indices = indices.fill_null(len(values))
            values = pa.concat_arrays([values, pa.array([NO_VALUE], pa.large_string())])
        rows: Ints = indices.to_numpy(zero_copy_only=False)
        used = np.zeros(len(values), np.bool_)  # a dictionary may hold values that no row has
        used[rows] = True
        hashes = _hashes(values)
        if len(self.labels) == MOST_VALUES:  # most values of a crowded column have no chance
            likely = used & (hashes <= np.uint64(max(self.hashes)))
            self.crowded |= bool((used & ~likely).any())
            used = likely
        at = np.flatnonzero(used)
        met = dict(zip(values.take(pa.array(at)).to_pylist(), map(int, hashes[at]), strict=True))
        self._place(met)
        places = {label: code for code, label in enumerate(self.labels, start=1)}
        table = np.full(len(values), REST, np.int64)
        table[at] = [places.get(label, REST) for label in met]
        return np.asarray(table[rows])

    def _place(self, met: Mapping[str, int]) -> None:
        """Find places for the values of a batch, with their hashes; what is not among the smallest joins the rest."""
        held = dict(zip(self.labels, self.hashes, strict=True))
        new = {label: hashed for label, hashed in met.items() if label not in held}
        every = held | new
        kept = set(sorted(every, key=lambda label: (every[label], label))[:MOST_VALUES])
        self.crowded |= len(every) > len(kept)
        free = [k for k, label in enumerate(self.labels) if label not in kept]
        for label in (label for label in new if label in kept):
            if free:
                k = free.pop()
                self._to_rest(k + 1)
                self.labels[k], self.hashes[k] = label, every[label]
            else:
                self.labels.append(label)
                self.hashes.append(every[label])

    def _to_rest(self, code: int) -> None:
        if code in self.units:
            self.units[REST] = _smallest([self.units.get(REST), self.units.pop(code)], self.buckets)
        for arrays in self._all_arrays():
            for name, array in arrays.items():
                held = array.reshape(-1, self._width(name))
                if code < len(held):
                    held[REST] += held[code]
                    held[code] = 0.0

    def _all_arrays(self) -> list[dict[str, Floats]]:
        return [self.sums, *(s.arrays for s in self.h.values()), *(s.arrays for s in self.hr.values())]

    @classmethod
    def total(cls, parts: Sequence[SegmentSums]) -> SegmentSums:
        """The sums of all parts."""
        hashed = {label: h for part in parts for label, h in zip(part.labels, part.hashes, strict=True)}
        kept = sorted(hashed, key=lambda label: (hashed[label], label))[:MOST_VALUES]
        places = {label: code for code, label in enumerate(kept, start=1)}
        both = cls(parts[0].buckets, kept, [hashed[label] for label in kept])
        both.crowded = len(hashed) > len(kept) or any(part.crowded for part in parts)
        moved = [part._recoded([REST, *(places.get(label, REST) for label in part.labels)]) for part in parts]
        for part in moved:
            for name, array in part.sums.items():
                both.sums[name] = _longer(both.sums.get(name), array)
            for code, held in part.units.items():
                both.units[code] = _smallest([both.units.get(code), held], both.buckets)
        for mine, theirs in ((both.h, [p.h for p in moved]), (both.hr, [p.hr for p in moved])):
            for key in dict.fromkeys(key for held in theirs for key in held):
                mine[key] = ScaledSums.total([held[key] for held in theirs if key in held])  # type: ignore[index]
        return both

    def _recoded(self, codes: list[int]) -> SegmentSums:
        new = np.array(codes, np.int64)

        def moved(arrays: Mapping[str, Floats]) -> dict[str, Floats]:
            found = {}
            for name, array in arrays.items():
                held = array.reshape(-1, self._width(name))
                out = np.zeros((max(codes) + 1, held.shape[1]))
                np.add.at(out, new[: len(held)], held)
                found[name] = out.ravel()
            return found

        h = {key: ScaledSums(moved(sums.arrays), sums.exponent) for key, sums in self.h.items()}
        hr = {key: ScaledSums(moved(sums.arrays), sums.exponent) for key, sums in self.hr.items()}
        units: dict[int, Hashes] = {}
        for code, held in self.units.items():
            units[codes[code]] = _smallest([units.get(codes[code]), held], self.buckets)
        return SegmentSums(self.buckets, self.labels, self.hashes, self.crowded, moved(self.sums), units, h, hr)

    # -- what is read of them -------------------------------------------------------------------------------------

    def rows(self) -> Floats:
        """Displays by code."""
        return np.asarray(self._blocks(self.sums, "n").sum(axis=1))

    def n_units(self, codes: Sequence[int]) -> int:
        """How many units some values have; the number of buckets where there are as many or more."""
        return len(_smallest([self.units.get(code) for code in codes], self.buckets))

    def of(self, arrays: Mapping[str, Floats], name: str, codes: Sequence[int]) -> Floats:
        """A sum over some values: by bucket, or one number."""
        return np.asarray(self._blocks(arrays, name)[list(codes)].sum(axis=0))

    def _blocks(self, arrays: Mapping[str, Floats], name: str) -> Floats:
        width, codes = self._width(name), len(self.labels) + 1
        held = arrays.get(name, np.zeros(0)).reshape(-1, width)
        return np.concatenate([held, np.zeros((codes - len(held), width))])


def _smallest(parts: Sequence[Hashes | None], most: int) -> Hashes:
    """The smallest of all hashes, each once."""
    held = [part for part in parts if part is not None]
    return np.unique(np.concatenate(held))[:most] if held else np.zeros(0, np.uint64)


def _hashes(values: pa.Array) -> npt.NDArray[np.uint64]:
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    found: npt.NDArray[np.uint64] = hash_strings(np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8), ends)
    return found


def _longer(left: Floats | None, right: Floats) -> Floats:
    if left is None or len(left) < len(right):
        left, right = right, np.zeros(0) if left is None else left
    left = left.copy()
    left[: len(right)] += right
    return left
