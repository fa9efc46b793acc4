"""Is every item shown in every slot as often as the control says? Counts against those of drawn rankings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.arrow_functions import dictionary_encode
from foretest.displays.arrow_numbers import to_arrow, to_numpy
from foretest.displays.batch import Floats
from foretest.formatting import plural
from foretest.kernels.cell_counts import cell_counts
from foretest.results.audit import Finding, not_made, tested
from foretest.special import gammaincc

NAME = "items by slot"
FEWEST_EXPECTED = 25.0  # displays of a cell, an item in a slot; smaller cells are pooled
MOST_CELLS = 40  # of a slot; the rarer ones are pooled


class Slot(NamedTuple):
    """χ² of one slot, and its cell farthest from what was expected."""

    chi2: float
    degrees: int
    p_value: float
    cell: Any  # None: the pooled cells
    observed: float
    expected: float


def slot_test(codes: npt.NDArray[np.int32], labels: npt.NDArray[Any]) -> Slot | None:
    """χ² of the shown items against those of the drawn rankings; None where fewer than two cells are left.

    `codes` is displays × rankings, the shown one first, each number the place of the slot's item in `labels`.
    Shown and drawn are exchangeable where the control is right. With e_0 the shown item's indicator, e_1..e_D those of
    the draws and ē the mean of all, d = Σ_i (e_0 − ē) then has mean 0 and covariance
    V = Σ_i mean_s (e_s − ē)(e_s − ē)ᵀ over which of them was shown, whatever the displays' probabilities are, and
    dᵀ V⁻ d is χ² of rank(V) degrees. Cells are chosen and pooled by their count over shown and drawn rankings together,
    which says nothing about the difference between the two.
    """
    rankings = codes.shape[1]
    cells = _chosen_cells(codes, len(labels))
    if cells is None:
        return None
    by_cell = cells.place[codes]
    total, covariance = cell_counts(by_cell, cells.size)
    observed = np.bincount(by_cell[:, 0], minlength=cells.size)
    difference = observed - total
    chi2, degrees = _quadratic_form(difference, covariance)
    if degrees == 0:
        return None
    # against the draws alone: the shown one is a part of ē
    among_draws = (total * rankings - observed) / (rankings - 1)
    z = difference / np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    worst = int(np.abs(z).argmax())
    return Slot(
        chi2, degrees, float(gammaincc(degrees / 2.0, chi2 / 2.0)),
        labels[cells.apart[worst]] if worst < len(cells.apart) else None,
        float(observed[worst]), float(among_draws[worst]),
    )  # fmt: skip


class _Cells(NamedTuple):
    """The cells of a slot: those of the frequent items, and one that pools all others."""

    apart: npt.NDArray[np.int64]  # items with a cell of their own, by their place in the labels
    place: npt.NDArray[np.int64]  # the cell of each label
    size: int  # how many cells there are


def _chosen_cells(codes: npt.NDArray[np.int32], labels: int) -> _Cells | None:
    """The cells that are large enough; None where there are fewer than two."""
    rows, rankings = codes.shape
    expected = np.bincount(codes.ravel(), minlength=labels) / rankings
    frequent = np.flatnonzero(expected >= FEWEST_EXPECTED)
    apart = frequent[np.argsort(-expected[frequent], kind="stable")][: MOST_CELLS - 1]
    rest = rows - expected[apart].sum()
    if 0.5 / rankings < rest < FEWEST_EXPECTED:
        apart, rest = apart[:-1], FEWEST_EXPECTED  # what is pooled is a cell too, and must not be small
    size = len(apart) + (rest > 0.5 / rankings)
    if len(apart) == 0 or size < 2:
        return None
    place = np.full(labels, len(apart))
    place[apart] = np.arange(len(apart))
    return _Cells(apart, place, int(size))


def _quadratic_form(difference: Floats, covariance: Floats) -> tuple[float, int]:
    """dᵀ V⁻ d and the rank of V."""
    values, vectors = np.linalg.eigh(covariance)
    some = values > 1e-9 * max(float(values.max()), 1e-300)
    along = vectors[:, some].T @ difference
    return float((along**2 / values[some]).sum()), int(some.sum())


def simes(p_values: list[float]) -> float:
    """The smallest of Benjamini and Hochberg's adjusted p-values: min over k of m·p_(k)/k.

    >>> round(simes([0.01, 0.04, 0.03]), 6)
    0.03
    """
    ordered = np.sort(p_values)
    return float((len(ordered) * ordered / np.arange(1, len(ordered) + 1)).min())


def items_by_slot(cells: npt.NDArray[Any], absent: int, label: str | None) -> Finding:
    """One χ² per slot, adjusted by Benjamini and Hochberg.

    `cells` is displays × rankings × slots, one display per unit, the shown ranking first; `absent` marks slots that a
    display does not have; `label` says how to name a cell, None that it has no name.
    """
    coded = dictionary_encode(to_arrow(cells.ravel()))
    labels = to_numpy(coded.dictionary)
    codes = to_numpy(coded.indices).reshape(cells.shape)
    slots: dict[int, Slot] = {}
    for slot in range(cells.shape[2]):
        there = cells[:, 0, slot] != absent
        tested_slot = slot_test(codes[there, :, slot], labels) if there.any() else None
        if tested_slot is not None:
            slots[slot] = tested_slot
    if not slots:
        return not_made(NAME, f"no two items of a slot are expected {FEWEST_EXPECTED:.0f} times or more")
    p = simes([slot.p_value for slot in slots.values()])
    at, worst = min(slots.items(), key=lambda item: item[1].p_value)
    chi2 = f"chi-square {worst.chi2:.1f} on {worst.degrees} degrees in slot {at + 1}"
    named = "the rarer items together were" if worst.cell is None else _name(worst.cell, label)
    return tested(
        NAME, p, worst.chi2,
        f"items are shown in every slot as often as the control says ({plural(len(slots), 'slot')}; {chi2})",
        f"in slot {at + 1} {named} shown {worst.observed:,.0f} times, expected about {worst.expected:,.0f} ({chi2})",
        "Something else than [control] chose or moved items. Look for rules after the ranking (blocked or pinned"
        " items), for items that were not eligible, and for scores of another version.",
    )  # fmt: skip


def _name(cell: Any, label: str | None) -> str:
    """The subject of a sentence about a cell, with its verb."""
    if label is None:
        return "one item was"
    if label == "rank":
        return f"the item that scores {_ordinal(int(cell) + 1)} was"
    return f"the item {int(cell)} was"


def _ordinal(place: int) -> str:
    """The rank of a score in words.

    >>> _ordinal(1), _ordinal(2), _ordinal(12)
    ('highest', '2nd highest', '12th highest')
    """
    if place == 1:
        return "highest"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th") if place % 100 not in (11, 12, 13) else "th"
    return f"{place}{ending} highest"
