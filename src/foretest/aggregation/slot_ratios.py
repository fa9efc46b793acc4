"""Σ w_ik and Σ w_ik r_ik of all rows by slot and cell, for `niips`, which divides the one by the other slot by slot."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold_state import FoldState
from foretest.displays.batch import Floats
from foretest.displays.ragged import Ints
from foretest.log.rows import Rows, times
from foretest.weights.slot_weights import SlotRatio, slot_prices

BY_SLOT = "slots"
_WEIGHTS, _SHOWN, _REWARDS = (f"{name}:{BY_SLOT}" for name in ("h", "n", "hr"))


class SlotRatios(NamedTuple):
    """Cells × slots."""

    h: Floats
    hr: Floats


def add_slot_ratios(state: FoldState, weighting: SlotRatio, rows: Rows, log_w: Floats, cell: Ints) -> None:
    """Add all slots of one batch, those without a reward too; `log_w` is that of the shown rankings."""
    plan, displays = state.plan, rows.displays.with_key()
    slots, cells = displays.slots, plan.cells
    owner = np.repeat(np.arange(len(rows)), slots)
    slot = np.arange(len(owner)) - np.repeat(np.cumsum(slots) - slots, slots)
    place, places = slot * cells + cell[owner], int(slots.max(initial=0)) * cells
    log_h = slot_prices(displays, log_w, plan.normaliser.for_batch(displays), ()).log_w
    multiple = None if rows.multiple is None else rows.multiple[owner]
    weights = state.h[weighting]
    # one of 1 in units of the weights: what a slot has where a display does not reach it
    both = weights.scaled(np.append(log_h, 0.0))
    for name, amounts in ((_WEIGHTS, both[:-1]), (_SHOWN, np.full(len(owner), both[-1]))):
        weights.add(name, np.bincount(place, weights=times(amounts, multiple), minlength=places))
    for metric, earned in rows.slots.items():
        sums = state.hr[weighting, metric]
        h = sums.scaled(log_h)
        sums.add(_REWARDS, np.bincount(place, weights=h * earned.flat(), minlength=places))


def slot_ratios(aggregates: Aggregates, weighting: SlotRatio, metric: int) -> SlotRatios:
    """The sums, each in its own unit; displays that do not reach a slot add 1 to its weights."""
    cells, weights = len(aggregates.n), aggregates.h[weighting]
    h, shown, hr = (
        sums.get(name, cells).reshape(-1, cells).T
        for sums, name in ((weights, _WEIGHTS), (weights, _SHOWN), (aggregates.hr[weighting, metric], _REWARDS))
    )
    one = np.exp(-weights.log_unit)
    rest = np.maximum(aggregates.n[:, None] * one - shown, 0.0)
    widened = np.zeros_like(h)
    widened[:, : hr.shape[1]] = hr
    return SlotRatios(h + rest, widened)
