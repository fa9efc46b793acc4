"""A fixed sample of displays: rows of the smallest unit hashes, with rankings drawn from both policies.

What needs q(x) or a distribution of weights beyond the rewarded rows (health, the paper's figures, the audit) comes
from it, so that its cost does not grow with the log.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.audit_context import sampled_context
from foretest.aggregation.audit_draws import OWN, draw_rankings, drawn_columns, shown_columns
from foretest.aggregation.control_fit import is_fitted_on, units_to_audit
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Columns, KeptRows
from foretest.aggregation.likelier_number import likelier_number
from foretest.aggregation.logger_columns import columns_of_sampled
from foretest.aggregation.outside_candidates import outside_columns
from foretest.aggregation.own_policies import own_columns
from foretest.aggregation.slot_masses import mass_columns
from foretest.aggregation.thinning import multiplicity_column, standing_for
from foretest.aggregation.treatment_scores import treatment_columns
from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.log.rows import Rows
from foretest.policies.logging_mixture import LoggingMixture, OwnLogger

SAMPLE_DRAWS = 32  # of each sampled display, half from each policy


def add_to_sample(state: Aggregates, rows: Rows, log_w: Floats) -> None:
    """Add the displays of one batch that may be among the sample."""
    sample, plan = state.sample, state.plan
    chosen = sample.below(units_to_audit(rows.unit) if plan.control_fits else rows.unit)
    if plan.control_fits:  # what a number was fitted on cannot test it
        chosen = chosen[~is_fitted_on(rows.unit[chosen])]
    columns: Columns = {"unit": rows.unit[chosen], "log_w": log_w[chosen]}
    columns |= {("r", m): rows.logged_rewards[chosen, m] for m in range(len(plan.metrics))}
    if rows.log_p is not None:
        columns["log_p"] = rows.log_p[chosen]
    columns |= multiplicity_column(state.ledger, rows, chosen)
    columns |= {("slot", m): earning_slots(slots.take(chosen)) for m, slots in rows.slots.items()}
    displays = rows.displays.take(chosen)
    columns |= columns_of_sampled(plan, displays)
    if rows.context is not None:
        log = replace(plan.settings.log, candidates=plan.settings.candidates)
        context, displays = sampled_context(rows.context, chosen, displays, log)
        columns |= context
    sample.add(columns, len(rows), displays)


NO_SLOT, SEVERAL_SLOTS = -1, -2  # in place of the slot that earned a row's reward


def earning_slots(slots: Ragged) -> npt.NDArray[np.int16]:
    """The slot that earned all of a row's reward, from 0; NO_SLOT where none did, or the row shows one item alone.

    >>> earning_slots(Ragged.of([[0.0, 2.0], [1.0, 1.0], [0.0, 0.0], [3.0]])).tolist()
    [1, -2, -1, -1]
    """
    earns = slots.padded(0.0) > 0.0
    if not earns.size:
        return np.full(len(slots), NO_SLOT, np.int16)
    count = np.where(slots.lengths > 1, earns.sum(axis=1), 0)
    return np.where(count == 1, earns.argmax(axis=1), np.where(count > 1, SEVERAL_SLOTS, NO_SLOT)).astype(np.int16)


def with_keys(sample: KeptRows) -> None:
    """Add the displays' keys, which break ties among the last rows: for those still in the sample, not for all."""
    sample.parts = [
        {**part, "key": displays.key()} for part, displays in zip(sample.parts, sample.displays, strict=True)
    ]


def priced(aggregates: Aggregates) -> Aggregates:
    """Aggregates whose sample of displays is priced, and no longer has the displays."""
    for further in aggregates.treatments.values():
        priced(further)
    sample = aggregates.sample
    columns = sample.columns()
    if columns and sample.displays:
        [displays, *_] = sample.displays
        drawn = _drawn(aggregates.plan, displays, columns)
        drawn |= likelier_number(aggregates.plan, displays, drawn, standing_for(columns))
        masses = mass_columns(aggregates.plan, displays, columns["log_w"])
        sample.parts = [{**columns, **drawn, **masses, **outside_columns(aggregates.plan, displays)}]
    sample.displays = []
    return aggregates


def _drawn(plan: FoldPlan, displays: Displays, known: Columns) -> Columns:
    """The audit's columns; log w of rankings drawn from both policies, and q(x) at the cap."""
    a, control, pair = plan.settings.analysis, plan.settings.control, plan.normaliser.pair
    columns = shown_columns(control, displays, known.get("log_p"))
    if plan.settings.log.unit is None and plan.settings.log.id is None:
        # equal rows have equal keys, and must not share their draws: they would err together
        displays = replace(displays, identity=known["unit"], key_columns=None)
    if control.can_draw or plan.settings.treatment.can_draw:
        displays = displays.with_key()
    columns |= treatment_columns(plan, displays)
    columns |= own_columns({"control": control, "treatment": plan.settings.treatment}, displays, a.seed)
    if not control.can_draw:
        return columns
    half = SAMPLE_DRAWS // 2
    drawn = draw_rankings(pair, displays, half, weigh=plan.can_draw)
    if isinstance(control, LoggingMixture):  # the audit asks whether a row is a draw of its own logger
        columns |= _own_columns(plan, OwnLogger(control), displays, half)
    else:
        columns |= drawn_columns(control, plan.settings.treatment, displays, columns["log_p"], drawn, a.seed)
    if drawn.log_w is None or drawn.log_w_treatment is None:
        return columns
    q = plan.normaliser.mass(displays, a.cap_number, zero=a.capping == "zero", log_w=drawn.log_w_treatment)
    return {**columns, "draws_treatment": drawn.log_w_treatment, "draws_control": drawn.log_w, "q": q}


def _own_columns(plan: FoldPlan, own: OwnLogger, displays: Displays, count: int) -> Columns:
    """The audit's columns for a row's own logger: its probability of what was shown, and its draws."""
    logged, recomputed = own.shown(displays), own.log_prob(displays, displays.ranking)
    drawn = draw_rankings(replace(plan.normaliser.pair, control=own), displays, count, weigh=False)
    settings = plan.settings
    of_draws = drawn_columns(own, settings.treatment, displays, recomputed, drawn, settings.analysis.seed)
    columns: Columns = {OWN: logged, **of_draws}
    return {**columns, "log_p_scores": recomputed} if own.has_logged else columns
