"""Is every item shown in every slot as often as the control says? Counts against those of drawn rankings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.special import gammaincc

from foretest.displays.batch import Floats
from foretest.kernels.cell_counts import cell_counts
from foretest.results.audit import Finding, not_made, tested

NAME = "items by slot"
FEWEST_EXPECTED = 25.0  # of a cell; smaller ones are pooled
MOST_CELLS = 40  # of a slot; the others are pooled


class Slot(NamedTuple):
    """χ² of one slot, and its cell farthest from what was expected."""

    chi2: float
    degrees: int
    p_value: float
    cell: Any  # None: those that were pooled
    observed: float
    expected: float


def slot_test(codes: npt.NDArray[np.int32], labels: npt.NDArray[Any]) -> Slot | None:
    """χ² of the shown items against those of the drawn rankings; None where fewer than two cells are left.

    `codes` is displays × rankings, the shown one first, each number the place of the slot's item in `labels`.
    Shown and drawn are exchangeable where the control is right. With e_0 the shown item's indicator, e_1..e_D those of
    the draws and ē the mean of all, d = Σ_i (e_0 − ē) then has mean 0 and covariance
    V = Σ_i mean_s (e_s − ē)(e_s − ē)ᵀ over which of them was shown, whatever the displays' probabilities are, and
    dᵀ V⁻ d is χ² of rank(V) degrees. Cells are chosen and pooled by the count of all, which does not tell them apart.
    """
    rows, rankings = codes.shape
    expected = np.bincount(codes.ravel(), minlength=len(labels)) / rankings
    often = np.flatnonzero(expected >= FEWEST_EXPECTED)
    kept = often[np.argsort(-expected[often], kind="stable")][: MOST_CELLS - 1]
    rest = rows - expected[kept].sum()
    if 0.5 / rankings < rest < FEWEST_EXPECTED:
        kept, rest = kept[:-1], FEWEST_EXPECTED  # what is pooled is a cell too, and must not be small
    count = len(kept) + (rest > 0.5 / rankings)
    if len(kept) == 0 or count < 2:
        return None
    place = np.full(len(labels), len(kept))
    place[kept] = np.arange(len(kept))
    codes = place[codes]
    total, covariance = cell_counts(codes, count)
    observed = np.bincount(codes[:, 0], minlength=count)
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
        labels[kept[worst]] if worst < len(kept) else None, float(observed[worst]), float(among_draws[worst]),
    )  # fmt: skip


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
    """One χ² a slot, adjusted by Benjamini and Hochberg.

    `cells` is displays × rankings × slots, one display a unit, the shown ranking first; `absent` marks slots that a
    display does not have; `label` says how to name a cell, None that it has no name.
    """
    coded = pa.array(cells.ravel()).dictionary_encode()
    labels = coded.dictionary.to_numpy(zero_copy_only=False)
    codes = coded.indices.to_numpy(zero_copy_only=False).reshape(cells.shape)
    found: dict[int, Slot] = {}
    for slot in range(cells.shape[2]):
        there = cells[:, 0, slot] != absent
        answer = slot_test(codes[there, :, slot], labels) if there.any() else None
        if answer is not None:
            found[slot] = answer
    if not found:
        return not_made(NAME, f"no two items of a slot are expected {FEWEST_EXPECTED:.0f} times or more")
    p = simes([slot.p_value for slot in found.values()])
    at, worst = min(found.items(), key=lambda item: item[1].p_value)
    chi2 = f"chi-square {worst.chi2:.1f} on {worst.degrees} degrees in slot {at + 1}"
    named = "the rarer items together were" if worst.cell is None else _name(worst.cell, label)
    return tested(
        NAME, p, worst.chi2,
        f"items are shown in every slot as often as the control says ({len(found)} slots; {chi2})",
        f"in slot {at + 1} {named} shown {worst.observed:,.0f} times, expected about {worst.expected:,.0f} ({chi2})",
        "Something else than [control] chose or moved items. Look for rules after the ranking (blocked or pinned"
        " items), for items that were not eligible, and for scores of another version.",
    )  # fmt: skip


def _name(cell: Any, label: str | None) -> str:
    if label is None:
        return "one item was"
    if label == "rank":
        return f"the item that scores {_ordinal(int(cell) + 1)} was"
    return f"the item {int(cell)} was"


def _ordinal(place: int) -> str:
    """
    >>> _ordinal(1), _ordinal(2), _ordinal(12)
    ('highest', '2nd highest', '12th highest')
    """
    if place == 1:
        return "highest"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th") if place % 100 not in (11, 12, 13) else "th"
    return f"{place}{ending} highest"
