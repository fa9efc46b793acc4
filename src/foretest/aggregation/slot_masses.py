"""How much of the treatment weights by slot and by exposure keep, on displays of the sample: q(x) at every bound."""

from __future__ import annotations

import numpy as np

from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Columns
from foretest.displays.batch import Displays, Floats
from foretest.weights.exposure_weights import UNCAPPED, ExposurePricer
from foretest.weights.slot_weights import Pricer, SlotPricer, marginal_parts

DISPLAYS = 512  # of the sample, the first by hash: enough for a mean to a hundredth or two
SLOT, EXPOSURE = "slot_q", "exposure_q"


def mass_columns(plan: FoldPlan, displays: Displays, log_w: Floats) -> Columns:
    """q of each display, one column per bound of the plan, by slot the mean over slots; NaN beyond the first displays.
    By exposure it is that of the first metric which has a curve."""
    bounds = {SLOT: plan.slot_bounds or (), EXPOSURE: capped_bounds(plan)}
    curves = list(plan.examination.curves.values())
    if not any(bounds.values()) or not (displays.slots > 0).all():
        return {}
    part, first = displays.take(np.arange(min(DISPLAYS, len(displays)))), log_w[:DISPLAYS]
    pricers: dict[str, Pricer] = {}
    if bounds[SLOT]:
        pricers[SLOT] = SlotPricer(part, bounds[SLOT])
    if bounds[EXPOSURE] and curves:
        pricers[EXPOSURE] = ExposurePricer(part, curves[0], bounds[EXPOSURE])
    for priced in marginal_parts(part, first, plan.normaliser) if pricers else ():
        for pricer in pricers.values():
            pricer.add(priced)
    columns: Columns = {}
    for name, pricer in pricers.items():
        columns[name] = np.full((len(displays), len(bounds[name])), np.nan)
        for at, bound in enumerate(bounds[name]):
            if isinstance(pricer, SlotPricer):
                row = np.repeat(np.arange(len(part)), part.slots)
                q = np.bincount(row, weights=pricer.caps[bound][1], minlength=len(part)) / part.slots
            else:
                q = pricer.caps[bound, 0][1]  # type: ignore[attr-defined]
            columns[name][: len(part), at] = q
    return columns


def capped_bounds(plan: FoldPlan) -> tuple[float, ...]:
    """The bounds of weights by exposure that have one."""
    return tuple(bound for bound in plan.exposure_bounds if bound != UNCAPPED)
