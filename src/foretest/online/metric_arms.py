"""Metrics of an online test that are made of others: both arms as a ratio, or a value per unit, needs them.

An arm's value is Σr/Σn, by default per display. Of a ratio r and n are the sums of its two metrics; of a value per unit
n counts units. What is said of Σr/Σn, by bucket of units, then holds for these too: it is a ratio of two sums whose
error is that of r − (Σr/Σn)·n.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.aggregation.ledger import Ledger
from foretest.aggregation.quantities import DISPLAYS, POSITIVES, REWARDS, SQUARED_REWARDS
from foretest.displays.batch import Floats
from foretest.inference.delta import quantile
from foretest.kernels.random import derived_bucket
from foretest.online.arm_errors import arm_error
from foretest.online.arms import Arm, Arms
from foretest.records import dataclass
from foretest.settings.metric_definitions import PerUnit, Ratio


@dataclass(frozen=True)
class MadeArm(Arm):
    """An arm whose one metric is Σr/Σn with an n that does not count displays."""

    row_count: int = 0
    effective: float | None = None

    @property
    def rows(self) -> int:
        return self.row_count

    @property
    def displays(self) -> float:
        return float(self.n.sum())

    @property
    def one_row_per_unit(self) -> bool:
        return False  # sums of squares are of rows of the log

    def effective_positives(self, metric: int) -> float | None:
        return self.effective


def ratio_arms(arms: Arms, one: Ratio, places: dict[str, int]) -> Arms:
    """Both arms with the sums of a ratio."""
    above, below = places[one.above], places[one.below]

    def made(arm: Arm) -> Arm:
        effective = [arm.effective_positives(m) or 0.0 for m in (above, below)]
        positives = min(arm.positives[above], arm.positives[below])
        return _made(arm, arm.r[below], arm.r[above], positives, min(effective))

    return Arms(*(made(arm) for arm in arms))


def per_unit_arms(arms: Arms, one: PerUnit, places: dict[str, int]) -> Arms:
    """Both arms with the sums of a value per unit."""
    m = places[one.of]
    return Arms(*(
        _made(arm, units_by_bucket(arm), arm.r[m], arm.positives[m], arm.effective_positives(m)) for arm in arms
    ))  # fmt: skip


def units_by_bucket(arm: Arm) -> Floats:
    """How many units each bucket has; where they are too many to be counted one by one, their mean number."""
    buckets = len(arm.n)
    if arm.units is None:
        return arm.n
    if not arm.units.exact:
        return np.full(buckets, arm.n_units / buckets)
    keys = arm.units.keys[arm.units.counts > 0]
    return np.bincount(derived_bucket(keys, BUCKET_SALT, buckets), minlength=buckets).astype(np.float64)


def _made(arm: Arm, n: Floats, r: Floats, positives: float, effective: float | None) -> MadeArm:
    ledger = Ledger(len(n))
    plain = ledger.plain
    plain.put(DISPLAYS, n)
    plain.put(REWARDS, r, 0)
    plain.put(SQUARED_REWARDS, 0.0, 0)
    plain.put(POSITIVES, positives, 0)
    given: dict[str, Any] = {field.name: getattr(arm, field.name) for field in fields(Arm)}
    return MadeArm(**{**given, "ledger": ledger, "row_count": arm.rows, "effective": effective})


def may_divide_by_zero(arms: Arms, one: Ratio, places: dict[str, int], level: float) -> bool:
    """Does the interval of a ratio's denominator contain 0, in either arm?"""
    m = places[one.below]

    def contains(arm: Arm) -> bool:
        half = quantile(arm.n_units, level) * arm_error(arm, m)
        return not abs(arm.mean(m)) > half

    return any(contains(arm) for arm in arms)
