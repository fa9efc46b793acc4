"""How sums move with the fitted number of a control, and the error that this adds to them.

The sums of some rows are folded with the number moved up and down by a small step on its scale, τ: the difference over
twice the step is their slope ∂S/∂τ, up to a few 1e-4 of it, and up to chance where weights are from draws. Slope times
the influence of each cell on τ is added to the sums by cell. As influences sum to 0, totals stay as they are, while
resamples and standard errors then have the error of the number in them, together with that of the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.model_sums import PREDICTED
from foretest.aggregation.scaled_sums import ScaledSums, add_padded
from foretest.aggregation.segment_sums import REST, SegmentSums
from foretest.aggregation.slot_ratios import BY_SLOT
from foretest.aggregation.strata import Strata
from foretest.displays.batch import Floats

_OF_H = ("h", "hv")
_OF_HR = ("hr", "t", "slice", "slice_expected", PREDICTED)
Key = TypeVar("Key")


class Moved(NamedTuple):
    """Sums of the same rows with a number above and below the fitted one."""

    above: Aggregates
    below: Aggregates
    factor: float  # what the slope is the difference times: rows of the log per row here, over twice the step

    def of_treatment(self, name: str) -> Moved:
        """The same for a further treatment."""
        return Moved(self.above.treatments[name], self.below.treatments[name], self.factor)


class MovedSums(NamedTuple):
    """The sums of rows of all kinds, for what all rows add, and of rewarded ones, for what only they do."""

    all_rows: Moved
    rewarded: Moved

    def of_treatment(self, name: str) -> MovedSums:
        """The same for a further treatment."""
        return MovedSums(*(moved.of_treatment(name) for moved in self))


def with_error(whole: Aggregates, moved: MovedSums, influence: Floats) -> Aggregates:
    """The sums with the error of a fitted number; `influence` has that of every cell on τ."""
    some, rewarded = moved
    labels = [e.label for e in whole.plan.estimators]
    r = (rewarded.above.r.sum(axis=1) - rewarded.below.r.sum(axis=1)) * rewarded.factor
    return replace(
        whole,
        r=whole.r + r[:, None] * influence,
        h={w: _moved_sums(sums, w, moved, influence, whole, _OF_H, lambda a: a.h) for w, sums in whole.h.items()},
        hr={k: _moved_sums(sums, k, moved, influence, whole, _OF_HR, lambda a: a.hr) for k, sums in whole.hr.items()},
        v={
            key: array + (some.above.v[key].sum() - some.below.v[key].sum()) * some.factor * influence
            if key[0] in labels
            else array
            for key, array in whole.v.items()
        },
        segments={
            column: _moved_segments(sums, column, moved, influence) for column, sums in whole.segments.items()
        },
        treatments={
            name: with_error(further, moved.of_treatment(name), influence)
            for name, further in whole.treatments.items()
        },
    )  # fmt: skip


def _moved_sums(
    sums: ScaledSums, key: Key, moved: MovedSums, influence: Floats, whole: Aggregates, kinds: tuple[str, ...],
    among: Callable[[Aggregates], Mapping[Key, ScaledSums]],
) -> ScaledSums:  # fmt: skip
    """The sums of one weighting (and metric) with the error in those that are by cell."""
    arrays, cells = dict(sums.arrays), len(influence)
    for name, array in sums.arrays.items():
        kind, _, table = name.partition(":")
        if kind not in kinds:
            continue
        side = moved.all_rows if kinds is _OF_H or kind == PREDICTED else moved.rewarded
        above, below = among(side.above)[key], among(side.below)[key]
        if table in whole.strata and kind in ("h", "hr") and name != kind:
            totals = _by_stratum(above, name, side.above.strata[table], whole.strata[table], sums.log_unit, cells)
            totals -= _by_stratum(below, name, side.below.strata[table], whole.strata[table], sums.log_unit, cells)
            arrays[name] = add_padded(array.copy(), (side.factor * totals[:, None] * influence).ravel())
        elif table == BY_SLOT:
            slots = len(array) // cells
            totals = _by_slot(above, name, slots, sums.log_unit, cells)
            totals -= _by_slot(below, name, slots, sums.log_unit, cells)
            arrays[name] = array + (side.factor * totals[:, None] * influence).ravel()
        else:
            slope = (_total(above, name, sums.log_unit) - _total(below, name, sums.log_unit)) * side.factor
            arrays[name] = array + slope * influence
    return ScaledSums(arrays, sums.exponent)


def _by_slot(sums: ScaledSums, name: str, slots: int, log_unit: float, cells: int) -> Floats:
    """A sum over all cells of each slot, in another unit; the last slots may have none."""
    totals, by_slot = np.zeros(slots), sums.get(name, 0).reshape(-1, cells).sum(axis=1)
    totals[: len(by_slot)] = by_slot
    return np.asarray(totals * np.exp(sums.log_unit - log_unit))


def _total(sums: ScaledSums, name: str, log_unit: float) -> float:
    """A sum over all cells, in another unit."""
    return float(sums.get(name).sum() * np.exp(sums.log_unit - log_unit))


def _by_stratum(sums: ScaledSums, name: str, strata: Strata, whole: Strata, log_unit: float, cells: int) -> Floats:
    """A sum over all cells of each stratum, by the codes of the whole log."""
    totals, blocks = np.zeros(len(whole.labels)), sums.get(name, 0).reshape(-1, cells).sum(axis=1)
    for label, total in zip(strata.labels, blocks, strict=False):  # the last may have no sums
        totals[whole.codes[label] if whole.codes else whole.labels.index(label)] += total
    return np.asarray(totals * np.exp(sums.log_unit - log_unit))


def _moved_segments(whole: SegmentSums, column: str, moved: MovedSums, influence: Floats) -> SegmentSums:
    """The sums by segment with the error in those that are by cell."""

    def added(array: Floats, slopes: Floats) -> Floats:
        return np.asarray(add_padded(array.copy(), (slopes[:, None] * influence).ravel()))

    def scaled(sums: ScaledSums, name: str, slopes: Floats) -> ScaledSums:
        return ScaledSums({**sums.arrays, name: added(sums.arrays[name], slopes)}, sums.exponent)

    def slopes(side: Moved, both: Sequence[ScaledSums | None], name: str, log_unit: float) -> Floats:
        parts = (side.above.segments[column], side.below.segments[column])
        above, below = (_by_segment(whole, p, s, name, log_unit) for p, s in zip(parts, both, strict=True))
        return side.factor * (above - below)

    some, rewarded = moved
    of_all, of_rewarded = ([a.segments[column] for a in (side.above, side.below)] for side in moved)
    plain = [ScaledSums(part.sums) for part in of_rewarded]
    by_metric = {name: array for name, array in whole.sums.items() if name.startswith("r:")}
    return replace(
        whole,
        sums={**whole.sums, **{n: added(a, slopes(rewarded, plain, n, 0.0)) for n, a in by_metric.items()}},
        h={
            key: scaled(sums, "h", slopes(some, [part.h.get(key) for part in of_all], "h", sums.log_unit))
            for key, sums in whole.h.items()
        },
        hr={
            key: scaled(sums, "hr", slopes(rewarded, [part.hr.get(key) for part in of_rewarded], "hr", sums.log_unit))
            for key, sums in whole.hr.items()
        },
    )


def _by_segment(whole: SegmentSums, part: SegmentSums, sums: ScaledSums | None, name: str, log_unit: float) -> Floats:
    """A sum over all cells of each segment, by the codes of the whole log."""
    totals = np.zeros(len(whole.labels) + 1)
    if sums is not None:
        places = {label: code for code, label in enumerate(whole.labels, start=1)}
        codes = [REST, *(places.get(label, REST) for label in part.labels)]
        np.add.at(totals, codes, np.exp(sums.log_unit - log_unit) * part.totals(sums.arrays, name))
    return totals
