"""Sums of metrics that have losses: those of their gains less those of their losses, once a log is folded.

Estimators are linear in the reward, so that the sums of a difference are differences of sums. What is not linear says
so where it is declared (`quantities`): what counts rewards by their size (squares, effective positives, the slice test)
adds both; the terms of the sensitivity band are of gains, and beside them of losses, since what is not supported may
earn more of either.
"""

from __future__ import annotations

from dataclasses import replace

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.examination import SLOPES, FittedCurve, sums_with_curve_error
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Columns, KeptRows
from foretest.aggregation.ledger import Account, AccountKey, Ledger
from foretest.weights.exposure_weights import ExposureWeighting


def with_differences(aggregates: Aggregates) -> Aggregates:
    """Aggregates whose metrics with losses have sums, behind those of the parts; they themselves where none has."""
    plan = replace(aggregates.plan, combined=aggregates.plan.settings.definitions.combinations)
    if plan.metrics == aggregates.plan.metrics:
        return aggregates
    whole = replace(
        aggregates,
        ledger=_of_ledger(aggregates.ledger, plan),
        rewarded=_of_rows(aggregates.rewarded, plan),
        sample=_of_rows(aggregates.sample, plan),
        segments={name: _of_parts(ledger, plan) for name, ledger in aggregates.segments.items()},
        treatments={name: with_differences(further) for name, further in aggregates.treatments.items()},
    )
    return whole.under(plan)


def _of_ledger(ledger: Ledger, plan: FoldPlan) -> Ledger:
    """The sums with those of every difference; each part of one has a fitted examination curve of its own, whose error
    is in its sums by then."""
    exact = replace(
        ledger,
        accounts={
            (weighting, m): _with_curve_error(account, plan.fits[m], ledger.cells)
            if m in plan.fits and m is not None and isinstance(weighting, ExposureWeighting)
            else account
            for (weighting, m), account in ledger.accounts.items()
        },
    )
    differences = _of_parts(exact, plan).accounts
    # the parts themselves stay without the error
    return replace(ledger, accounts={**differences, **_by_metric(ledger)})


def _by_metric(ledger: Ledger) -> dict[AccountKey, Account]:
    return {name: account for name, account in ledger.accounts.items() if name[1] is not None}


def _of_parts(ledger: Ledger, plan: FoldPlan) -> Ledger:
    for place, difference in plan.differences.items():
        ledger = ledger.with_difference(place, difference.gains, difference.losses)
    return ledger


def _with_curve_error(account: Account, fit: FittedCurve, cells: int) -> Account:
    """The sums of one part with the error of its fitted curve in place of their slopes."""
    exact = {account.key(q): sums_with_curve_error(account, fit, q, cells) for q in SLOPES}
    slopes = set(SLOPES.values())
    rest = {key: array for key, array in account.sums.items() if key.quantity not in slopes}
    return replace(account, sums={**rest, **exact})


def _of_rows(rows: KeptRows, plan: FoldPlan) -> KeptRows:
    """The kept rows with the reward of every difference."""
    parts = []
    for columns in rows.parts:
        more: Columns = {
            ("r", place): columns["r", difference.gains] - columns["r", difference.losses]
            for place, difference in plan.differences.items()
            if ("r", difference.gains) in columns
        }
        parts.append({**columns, **more})
    return replace(rows, parts=parts)
