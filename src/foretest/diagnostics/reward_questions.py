"""Do the rewards look as rewards of displays do? A user's total joined to every display, slots whose rewards all went
to one place, and rows that were kept for their reward do not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.display_sample import NO_SLOT
from foretest.aggregation.thinning import are_displays
from foretest.diagnostics.audit.by_unit import first_of_units
from foretest.displays.batch import Floats, Hashes
from foretest.formatting import percent
from foretest.results.questions import Question

CONSTANT_IN_UNITS, ONE_SLOT, EVERY_ROW = "reward constant within units", "one slot earns all", "reward in every row"

FEWEST_UNITS = 30  # rewarded and with several rows
MOST_UNLIKE = 0.02  # of these: units whose rewards differ
MOST_BY_CHANCE = 0.5  # rewards that are nearly all the same are so within units too
FEWEST_REWARDED = 100  # rows
MOST_ABOVE_ONE = 0.2  # of the rows: where more earn over 1, it is a rating or an amount, which every row may have


def reward_questions(aggregates: Aggregates) -> list[Question]:
    """What the rewards of a log, by metric, ask for."""
    sample, plan = aggregates.sampled_displays, aggregates.plan
    if not sample:
        return []
    questions: list[Question | None] = []
    for name, m in plan.rewards.items():
        rewards = sample["r", m]
        if plan.settings.log.unit is not None:
            questions.append(_constant(name, plan.settings.log.unit, constant_in_units(sample["unit"], rewards)))
        if ("slot", m) in sample:
            questions.append(_one_slot(name, sample["slot", m]))
        if are_displays(aggregates.ledger):  # of a thinned log it is asked together with keep
            questions.append(_every_row(name, rewards, int(aggregates.positives[m]), aggregates.rows))
    return [question for question in questions if question is not None]


class ConstantUnits(NamedTuple):
    """Rewarded units with several rows."""

    rewarded: int
    constant: int  # those with one reward in all rows
    by_chance: float  # the share that would be constant, were rewards dealt to rows at random


def constant_in_units(unit: Hashes, rewards: Floats) -> ConstantUnits:
    """The count, over rows that are sorted by unit. Units without any reward say nothing and are left out."""
    starts = first_of_units(unit)
    sizes = np.diff(np.append(starts, len(unit)))
    low, high = np.minimum.reduceat(rewards, starts), np.maximum.reduceat(rewards, starts)
    asked = (sizes > 1) & (high > 0.0)
    values, counts = np.unique(rewards, return_counts=True)
    frequency, size = counts / len(rewards), sizes[sizes > 1]
    none = float(frequency[values == 0.0].sum())
    alike, rewarded = 0.0, 0.0
    for n, many in zip(*np.unique(size, return_counts=True), strict=True):
        alike += many * float((frequency[values > 0.0] ** n).sum())
        rewarded += many * (1.0 - none**n)
    by_chance = alike / rewarded if rewarded > 0.0 else 1.0
    return ConstantUnits(int(asked.sum()), int((asked & (low == high)).sum()), by_chance)


def _constant(name: str, unit: str, units: ConstantUnits) -> Question | None:
    rewarded, constant, by_chance = units
    if rewarded < FEWEST_UNITS or constant < (1.0 - MOST_UNLIKE) * rewarded or by_chance > MOST_BY_CHANCE:
        return None
    return Question(
        CONSTANT_IN_UNITS,
        f"'{name}' is the same in all rows of a {unit} (in {constant:,} of {rewarded:,} sampled ones with a reward and"
        f" several rows; {percent(by_chance)} would be by chance). Is it a total joined to every display? A row needs"
        " what its own display earned, or the total is counted once per row.",
    )


def _one_slot(name: str, slots: npt.NDArray[np.int16]) -> Question | None:
    earned = slots[slots != NO_SLOT]
    if len(earned) < FEWEST_REWARDED or (earned != earned[0]).any() or earned[0] < 0:
        return None
    return Question(
        ONE_SLOT,
        f"slot {int(earned[0]) + 1} earns all of '{name}' (in {len(earned):,} of {len(earned):,} sampled displays with"
        " a reward and several slots). Were the rewards of displays written to one slot? slot_rewards needs what each"
        " slot earned itself; where that is not known, leave it out.",
    )


def are_counts(rewards: Floats) -> bool:
    """Are they clicks and the like: whole numbers, few of them above 1?"""
    return bool((rewards == np.round(rewards)).all()) and float((rewards > 1.0).mean()) <= MOST_ABOVE_ONE


def _every_row(name: str, rewards: Floats, positives: int, rows: int) -> Question | None:
    """Asked of clicks and counts alone: minutes, ratings and amounts may well be above 0 in every row."""
    if positives < rows or rows < FEWEST_REWARDED or not are_counts(rewards):
        return None
    return Question(
        EVERY_ROW,
        f"every row has a reward in '{name}', and most earn exactly 1. Were rows without a reward dropped? The log"
        " needs all displays that were shown, rewarded or not: without them there is no rate to compare.",
    )
