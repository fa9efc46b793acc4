"""What the tests of slots and their company need of each rewarded row: terms for each metric that is by slot.

A term of a row is Σ_k r_k (S_k − E_p[S_k | a_k]) over its slots, S_k the worth of what is shown next to slot k, by the
control's scores or by pairs with the items above. Its mean is 0 if what a slot earns depends on its own item and place
alone. Of the items below, by scores and by pairs, terms are Σ_k r_k (S_k − E_p[S_k | a_1..a_k]): their mean is 0 also
where it depends on the items above. Terms are NaN where no slot that earns can be compared. Kept with the rewarded
rows, they are bounded in number, and days add up.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Column, Columns
from foretest.displays.batch import Floats
from foretest.log.rows import Rows
from foretest.weights.company import COLUMNS, PAIRS, company_excess, has_company


def above_columns(metric: int) -> list[Column]:
    """The columns of kept rows with the terms of a metric by pairs of a slot's item with those above it."""
    return [("above", metric, number) for number in range(PAIRS)]


def below_columns(metric: int) -> list[Column]:
    """The columns with the terms of the items below: of their worth by scores, then by pairs."""
    return [("below", metric, number) for number in range(1 + PAIRS)]


def company_columns(plan: FoldPlan, rows: Rows, marginals: Floats | None) -> Columns:
    """The terms of rewarded rows; `marginals` has P_p(a_k in k) of their shown slots, where it is known."""
    control, log, displays = plan.normaliser.control, plan.settings.log, rows.displays
    if not plan.reads_slots or not rows.slots or not has_company(control):
        return {}
    if log.unit is None and log.id is None:
        # equal rows have equal keys, and must not share their draws: they would err together
        displays = replace(displays, identity=rows.unit, key_columns=None)
    earned = {m: lists.flat().astype(np.float64) for m, lists in rows.slots.items()}
    earns, owner = np.any([r > 0.0 for r in earned.values()], axis=0), np.repeat(np.arange(len(rows)), displays.slots)
    is_paid = np.bincount(owner[earns], minlength=len(rows)) > 0
    paid, here = np.flatnonzero(is_paid), is_paid[owner]
    excess = np.full((len(owner), COLUMNS), np.nan)
    if len(paid):
        shown = None if marginals is None else marginals[here]
        excess[here] = company_excess(control, displays.take(paid), earns[here], plan.settings.analysis.seed, shown)
    columns: Columns = {}
    for m, r in earned.items():
        used = np.isfinite(excess[:, 0]) & (r > 0.0)
        is_compared = np.bincount(owner[used], minlength=len(rows)) > 0
        for name, column in zip([("company", m), *above_columns(m), *below_columns(m)], excess.T, strict=True):
            total = np.bincount(owner[used], weights=r[used] * column[used], minlength=len(rows))
            columns[name] = np.where(is_compared, total, np.nan)
    return columns
