"""How much of the treatment weights by slot, prefix and exposure keep, on sampled displays: q(x) at every bound."""

from __future__ import annotations

import numpy as np

from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Columns
from foretest.displays.batch import Displays, Floats
from foretest.weights.exposure_weights import UNCAPPED, ExposurePricer
from foretest.weights.prefix_weights import prefix_prices
from foretest.weights.slot_weights import Pricer, SlotPricer, marginal_parts

DISPLAYS = 512  # of the sample, the first by hash: enough for a mean to a hundredth or two
SLOT, PREFIX, EXPOSURE = "slot_q", "prefix_q", "exposure_q"


def mass_columns(plan: FoldPlan, displays: Displays, log_w: Floats) -> Columns:
    """q of each display, one column per bound of the plan, by slot and by prefix the mean over slots; NaN beyond the
    first displays. By exposure it is that of the first metric which has a curve."""
    bounds = {SLOT: plan.slot_bounds or (), PREFIX: plan.prefix_bounds, EXPOSURE: capped_bounds(plan)}
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
    by_bound: dict[str, list[Floats]] = {}
    for name, pricer in pricers.items():
        if isinstance(pricer, SlotPricer):
            caps = pricer.prices().caps
            by_bound[name] = [_mean_over_slots(part, caps[bound][1]) for bound in bounds[name]]
        else:
            by_bound[name] = [pricer.caps[bound, 0][1] for bound in bounds[name]]  # type: ignore[attr-defined]
    if bounds[PREFIX]:
        every = np.ones(int(part.slots.sum()), np.bool_)
        ascending = tuple(sorted(bounds[PREFIX]))
        prices = prefix_prices(part, first, plan.normaliser, every, ascending, together=ascending)
        by_bound[PREFIX] = [_mean_over_slots(part, prices.caps[bound][1]) for bound in bounds[PREFIX]]
    columns: Columns = {}
    for name, masses in by_bound.items():
        columns[name] = np.full((len(displays), len(bounds[name])), np.nan)
        columns[name][: len(part)] = np.stack(masses, axis=1)
    return columns


def _mean_over_slots(displays: Displays, of_slots: Floats) -> Floats:
    row = np.repeat(np.arange(len(displays)), displays.slots)
    return np.asarray(np.bincount(row, weights=of_slots, minlength=len(displays)) / displays.slots)


def capped_bounds(plan: FoldPlan) -> tuple[float, ...]:
    """The bounds of weights by exposure that have one."""
    return tuple(bound for bound in plan.exposure_bounds if bound != UNCAPPED)
