"""Σ w_ik and Σ w_ik r_ik of all rows by slot and cell, for `niips`, which divides the one by the other slot by slot."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.ledger import Places
from foretest.aggregation.quantities import SLOT_DISPLAYS, SLOT_WEIGHTED_REWARDS, SLOT_WEIGHTS
from foretest.displays.batch import Floats
from foretest.displays.ragged import Ints
from foretest.log.rows import Rows
from foretest.weights.slot_weights import SlotRatio, slot_prices


class SlotRatios(NamedTuple):
    """Cells × slots."""

    h: Floats
    hr: Floats


def add_slot_ratios(state: Aggregates, weighting: SlotRatio, rows: Rows, log_w: Floats, cell: Ints) -> None:
    """Add all slots of one batch, those without a reward too; `log_w` is that of the shown rankings."""
    plan, displays = state.plan, rows.displays.with_key()
    slots = displays.slots
    owner = np.repeat(np.arange(len(rows)), slots)
    slot = np.arange(len(owner)) - np.repeat(np.cumsum(slots) - slots, slots)
    at = Places(plan.cells, cell[owner], slot, int(slots.max(initial=0)))
    log_h = slot_prices(displays, log_w, plan.normaliser.for_batch(displays), ()).log_w
    m, weights = rows.displays_per_row[owner], state.weights(weighting)
    # one of 1 in units of the weights: what a slot has where a display does not reach it
    both = weights.scaled(np.append(log_h, 0.0))
    weights.add(SLOT_WEIGHTS, both[:-1] * m, at)
    weights.add(SLOT_DISPLAYS, both[-1] * m, at)
    for metric, earned in rows.slots.items():
        account = state.weighted(weighting, metric)
        account.add(SLOT_WEIGHTED_REWARDS, account.scaled(log_h) * earned.flat(), at)


def slot_ratios(aggregates: Aggregates, weighting: SlotRatio, metric: int) -> SlotRatios:
    """The sums, each in its own unit; displays that do not reach a slot add 1 to its weights."""
    cells, weights = aggregates.ledger.cells, aggregates.weights(weighting)
    h, shown, hr = (
        account.get(quantity, size=cells).reshape(-1, cells).T
        for account, quantity in (
            (weights, SLOT_WEIGHTS), (weights, SLOT_DISPLAYS),
            (aggregates.weighted(weighting, metric), SLOT_WEIGHTED_REWARDS),
        )
    )  # fmt: skip
    one = np.exp(-weights.log_unit)
    rest = np.maximum(aggregates.n[:, None] * one - shown, 0.0)
    widened = np.zeros_like(h)
    widened[:, : hr.shape[1]] = hr
    return SlotRatios(h + rest, widened)
