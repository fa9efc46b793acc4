"""Exit codes: what --fail-on looks at, and the code that follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foretest.cli.options import AUDIT, GUARDRAIL, LEANS_NEGATIVE, NO_WINNER, UNVERIFIED
from foretest.results.audit import FAIL
from foretest.settings.metric_roles import toward_good

if TYPE_CHECKING:
    from foretest.results.result import Metric, Result

CONDITION_MET = 3


def exit_code(result: Result, fail_on: list[str]) -> int:
    """3 if a condition of --fail-on is met by any metric of any treatment, by the audit, or by all of them; else 0."""
    by_treatment = [result.metrics, *(treatment.metrics for treatment in result.treatments)]
    conditions = {word for metrics in by_treatment for metric in metrics.values() for word in metric_conditions(metric)}
    if result.winner is None:
        conditions.add(NO_WINNER)
    return CONDITION_MET if conditions & set(fail_on) or audit_fails(result, fail_on) else 0


def metric_conditions(metric: Metric) -> set[str]:
    """The conditions of --fail-on that a metric meets.

    Without roles, the verdict of any metric counts. With roles, only a goal's verdict counts, and negative means worse:
    for a goal that should decrease, that it rises. A guardrail counts if it fails. `leans-negative` is met by that word
    of the headline and by `negative`.
    """
    if metric.role is not None and metric.role["role"] != "goal":
        return {GUARDRAIL} if metric.role.get("guardrail") == "fail" else set()
    conditions = {toward_good(verdict, metric.direction) for verdict in metric.verdicts}
    headline = metric.estimates.get(metric.headline or "")
    words = conditions if headline is None else {toward_good(headline.word, metric.direction), *conditions}
    return conditions | ({LEANS_NEGATIVE} if words & {"negative", "leans negative"} else set())


def audit_fails(result: Result, fail_on: list[str]) -> bool:
    """Does the propensity audit of a treatment fail, or is it unverified (also where one of its tests warns), and is
    that a condition of --fail-on?"""
    audits = [audit for audit in (result.audit, *(treatment.audit for treatment in result.treatments)) if audit]
    conditions = {AUDIT} if any(audit.outcome == FAIL for audit in audits) else set()
    if any(audit.doubt() is not None for audit in audits):
        conditions.add(UNVERIFIED)
    return bool(conditions & set(fail_on))
