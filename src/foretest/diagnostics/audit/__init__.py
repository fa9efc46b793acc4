"""The propensity audit: was this log drawn from the control as the settings describe it?

Importance weighting is as right as the control's probabilities. Each test looks at them from another side; none of them
asks whether the mean weight is 1, which fails for right probabilities where weights are heavy.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.audit_context import HASHED_ITEMS, ITEMS, NUMBER, TEXT, features_that_vary
from foretest.aggregation.audit_draws import NO_ITEM, NO_RANK, OWN, RANKS
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Columns
from foretest.diagnostics.audit import item_slots, likelihood, moments, rows
from foretest.diagnostics.audit.by_unit import first_of_units
from foretest.results.audit import FAIL, NOT_MADE, PASS, WARN, Audit, Finding, not_made

__all__ = ["FAIL", "NOT_MADE", "PASS", "WARN", "Audit", "Finding", "audit"]

FEWEST_UNITS = 100  # in the sample


def audit(aggregates: Aggregates) -> Audit:
    """All tests, on the fixed sample of displays."""
    plan, kept = aggregates.plan, aggregates.sample.columns()
    tests: dict[str, Callable[[Columns, FoldPlan], Finding]] = {
        rows.EXPLORATION: _exploration,
        rows.LOGGED: _logged,
        likelihood.CALIBRATION: _calibration,
        likelihood.PIT: _ranks,
        item_slots.NAME: _items,
        moments.MOMENT: _moment,
        moments.BALANCE: _balance,
        rows.REPEATS: _repeats,
    }
    findings = []
    for name, test in tests.items():
        obstacle = _obstacle(name, kept, plan)
        findings.append(test(kept, plan) if obstacle is None else not_made(name, obstacle))
    return Audit.of(findings, ignore=plan.settings.analysis.ignore_audit)


_OF_DRAWS = (likelihood.CALIBRATION, likelihood.PIT, item_slots.NAME)
_OF_BOTH = (moments.MOMENT, moments.BALANCE)


def _obstacle(name: str, kept: Columns, plan: FoldPlan) -> str | None:
    """Why a test cannot be made; None if it can."""
    log, control, treatment = plan.settings.log, plan.settings.control, plan.settings.treatment
    if not kept:
        return "the log is empty"
    if name == rows.REPEATS and log.id is None and "scores" not in kept:
        return "without an id or scores, equal rows cannot be told from copies; name the display's id in [log]"
    if name == rows.LOGGED and "log_p_scores" not in kept:
        has = "logged probability" if control.can_draw else "scores"
        return f"the control has no {has} to compare"
    if name not in (*_OF_DRAWS, *_OF_BOTH):
        return None
    for role, policy in (("control", control), ("treatment", treatment)):
        if not policy.can_draw and (role == "control" or name in _OF_BOTH):
            return f"it draws rankings, and the {role} is a logged policy; log the scores of all eligible items"
    if _is_deterministic(kept):
        return "the control is deterministic"
    if name == moments.BALANCE and not log.features:
        return "the settings name no context features; name some in [log] features"
    lacking = [f for f in log.features if NUMBER + f not in kept and TEXT + f not in kept]
    if name == moments.BALANCE and lacking:
        return f"the saved sample of displays lacks {', '.join(lacking)}; pack or fold the log again"
    if name == item_slots.NAME and not {ITEMS, HASHED_ITEMS, RANKS} & set(kept):
        return "the control declares no score columns, and the log has no candidates"
    units = len(first_of_units(kept["unit"]))
    return f"{units:,} units are too few, {FEWEST_UNITS} are needed" if units < FEWEST_UNITS else None


def _is_deterministic(kept: Columns) -> bool:
    """Did the control have no choice wherever there was one? Seen from rows: saved sums do not have the policy."""
    return bool(kept["certain"].any()) and bool((kept["certain"] | kept["single"]).all())


def _exploration(kept: Columns, plan: FoldPlan) -> Finding:
    return rows.exploration(kept["certain"], _is_deterministic(kept))


def _logged(kept: Columns, plan: FoldPlan) -> Finding:
    return rows.logged_probabilities(kept.get(OWN, kept["log_p"]), kept["log_p_scores"])


def _calibration(kept: Columns, plan: FoldPlan) -> Finding:
    priced = kept.get("log_p_scores", kept.get(OWN, kept["log_p"]))
    return likelihood.calibration(priced, kept["expected_log_p"], first_of_units(kept["unit"]))


def _ranks(kept: Columns, plan: FoldPlan) -> Finding:
    return likelihood.ranks(kept["place"][first_of_units(kept["unit"])])


def _items(kept: Columns, plan: FoldPlan) -> Finding:
    first = first_of_units(kept["unit"])
    for name, label, absent in ((ITEMS, "id", NO_ITEM), (HASHED_ITEMS, None, NO_ITEM), (RANKS, "rank", NO_RANK)):
        if name in kept:
            return item_slots.items_by_slot(kept[name][first], absent, label)
    raise AssertionError("an obstacle that was not seen")


def _moment(kept: Columns, plan: FoldPlan) -> Finding:
    a, first = plan.settings.analysis, first_of_units(kept["unit"])
    return moments.capped_moment(kept["log_w"][first], kept["draws_control"][first], a.cap_number, a.capping)


def _balance(kept: Columns, plan: FoldPlan) -> Finding:
    a, first = plan.settings.analysis, first_of_units(kept["unit"])
    names = [kind + name for name in plan.settings.log.features for kind in (NUMBER, TEXT)]
    features = features_that_vary({name: kept[name][first] for name in names if name in kept})
    drawn = kept["draws_control"][first], kept["draws_treatment"][first]
    return moments.balance(features, kept["log_w"][first], *drawn, min(a.cap_number, a.weight_bound))


def _repeats(kept: Columns, plan: FoldPlan) -> Finding:
    log = plan.settings.log
    if log.id is not None:
        return rows.repeated_ids(kept["unit"], kept["key"])
    alike = [np.asarray(kept[name]) for name in kept if name == "log_w" or name.startswith("r:")]
    return rows.repeated_rows(kept["unit"], kept["key"], kept["scores"], alike, has_unit=log.unit is not None)
