"""From the rewards of a log to the parts that are folded: sums of rewards, gains and losses apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foretest.displays.batch import Floats
from foretest.displays.ragged import Ragged
from foretest.errors import RowFault
from foretest.log.column_values import LARGEST
from foretest.log.rows import Rows
from foretest.settings.metric_definitions import MetricDefinitions, Part, Term
from foretest.settings.settings import Settings


def with_parts(rows: Rows, metrics: MetricDefinitions) -> Rows:
    """The rows with the parts of metrics in place of reward columns; the rows themselves where both are the same."""
    if all(part.is_column for part in metrics.parts):
        return rows
    by_slot = {m: part_of_slots(rows, part) for m, part in enumerate(metrics.parts)}
    slots = {m: lists for m, lists in by_slot.items() if lists is not None}
    parts = np.column_stack([_of_rows(rows, part, slots.get(m)) for m, part in enumerate(metrics.parts)])
    names = tuple(part.name for part in metrics.parts)
    _refuse_large(parts, metrics.parts)
    return replace(rows.with_rewards(parts, slots), names=names)


def least_reward(settings: Settings, reward: str) -> float:
    """The least that a reward may be: 0, or −∞ where it may have losses."""
    return -np.inf if settings.is_signed(reward) else 0.0


def _refuse_large(rewards: Floats, parts: tuple[Part, ...]) -> None:
    """Refuse a row whose rewards times their factors are beyond what a reward may be."""
    if rewards.max(initial=0.0) <= LARGEST:
        return
    for part, values in zip(parts, rewards.T, strict=True):
        rows = np.flatnonzero(values > LARGEST)
        if len(rows):
            raise RowFault("sum-too-large", part.terms[0].column, rows,
                           f"with the factors of '{part.name}' the reward is {values[rows[0]]:g}, beyond {LARGEST:g}",
                           "Choose smaller factors in [metrics], or leave the row out.")  # fmt: skip


def linear_rewards(rows: Rows, metrics: MetricDefinitions) -> Floats:
    """Rows × metrics: every metric that is a sum of rewards, gains less losses, from rows with parts."""
    linear = (metrics.combinations[place] for place in metrics.linear.values())
    return np.column_stack([combination.of_parts(lambda m: rows.rewards[:, m]) for combination in linear])


def part_of_slots(rows: Rows, part: Part) -> Ragged | None:
    """What each slot adds to a part; None where a reward in it is not known by slot."""
    places = [rows.names.index(term.column) for term in part.terms]
    if not all(m in rows.slots for m in places):
        return None
    total = sum(
        _amount(term, rows.slots[m].flat().astype(np.float64)) for m, term in zip(places, part.terms, strict=True)
    )
    return Ragged.packed(np.asarray(total), rows.slots[places[0]].lengths)


def _of_rows(rows: Rows, part: Part, by_slot: Ragged | None) -> Floats:
    """A part of each row. Gains of one slot and losses of another are both there, though their sum may be 0."""
    if by_slot is not None and any(term.signed for term in part.terms):
        row = np.repeat(np.arange(len(rows)), by_slot.lengths)
        return np.asarray(np.bincount(row, weights=by_slot.values, minlength=len(rows)), np.float64)
    total = sum(_amount(term, rows.rewards[:, rows.names.index(term.column)]) for term in part.terms)
    return np.asarray(total)


def _amount(term: Term, rewards: Floats) -> Floats:
    """What rewards add to a part."""
    return np.asarray(term.share * np.maximum(term.sign * rewards, 0.0))
