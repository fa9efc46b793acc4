"""Verdicts as far as the audit lets them stand: a log that fails its audit carries none, whatever its numbers say."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from foretest.inference.guardrails import with_roles
from foretest.results.audit import AUDIT_FAILED, FAIL, FEW_ROWS, TREATMENT, Audit
from foretest.results.result import Estimate, Segment
from foretest.results.uplift_range import leaning
from foretest.settings.metric_roles import MetricRole


def audited_estimate(estimate: Estimate, audit: Audit) -> Estimate:
    """The estimate, its verdict insufficient where the audit failed and is not overruled; where rows were too few for
    the audit, its word at most leans."""
    if not _bars_verdicts(audit):
        few = audit.unchecked == FEW_ROWS
        return dataclasses.replace(estimate, word=leaning(estimate.word)) if few else estimate
    adjusted = estimate.adjusted
    if adjusted is not None:
        adjusted = dataclasses.replace(adjusted, verdict_adjusted="insufficient")
    return dataclasses.replace(
        estimate,
        verdict="insufficient",
        reasons=[_reason(audit), *estimate.reasons],
        robustness=None,
        word="insufficient",
        adjusted=adjusted,
    )


def audited_reasons(
    estimates: Mapping[str, Estimate], evidence: Mapping[str, Estimate], audit: Audit
) -> dict[str, Estimate]:
    """The estimates; where the audit failed, with no reason but that and those of their own evidence. What compares one
    estimate with another would say which of them to trust, and none can be. Where rows were too few for the audit, with
    that as a reason."""
    if not _bars_verdicts(audit):
        return {label: _unverified(estimate, audit) for label, estimate in estimates.items()}
    return {
        label: dataclasses.replace(estimate, reasons=[_reason(audit), *evidence[label].reasons])
        for label, estimate in estimates.items()
    }


def _unverified(estimate: Estimate, audit: Audit) -> Estimate:
    """The estimate with the reason why it leans at most, where rows were too few for the audit."""
    estimate = audited_estimate(estimate, audit)
    if audit.unchecked != FEW_ROWS or estimate.word == "insufficient":
        return estimate
    return dataclasses.replace(estimate, reasons=[*estimate.reasons, _TOO_FEW])


_TOO_FEW = "too few rows for the propensity audit: no answer is better than leans"


def _bars_verdicts(audit: Audit) -> bool:
    """Did the audit fail, and does nobody overrule it?"""
    return audit.outcome == FAIL and not audit.ignored


def _reason(audit: Audit) -> str:
    return f"{AUDIT_FAILED} ({', '.join(audit.named(FAIL))}): these numbers cannot be relied on"


def audited_segment(segment: Segment, audit: Audit, roles: Mapping[str, MetricRole]) -> Segment:
    """A segment's estimates, as far as the audit lets their verdicts stand."""
    metrics = {}
    for name, metric in segment.metrics.items():
        estimates = {label: audited_estimate(estimate, audit) for label, estimate in metric.estimates.items()}
        verdict = estimates[metric.headline or ""].verdict
        metrics[name] = dataclasses.replace(metric, estimates=estimates, verdict=verdict)
    return dataclasses.replace(segment, metrics=with_roles(metrics, roles))


def audit_notes(audits: Mapping[str, Audit]) -> list[str]:
    """Notes where a failed audit was overruled, or where too little could be checked: of the control once, of every
    treatment that is taken as it is logged."""
    notes = []
    for place, (name, audit) in enumerate(audits.items()):
        if place == 0 or audit.unchecked == TREATMENT:
            whose = f"{name}: " if len(audits) > 1 and audit.unchecked == TREATMENT else ""
            notes += [f"{whose}{note}" for note in _notes(audit)]
    return notes


def _notes(audit: Audit) -> list[str]:
    doubt = audit.doubt()
    if doubt is not None:
        return [doubt]
    if not audit.ignored:
        return []
    failed = ", ".join(audit.named(FAIL))
    return [f"{AUDIT_FAILED} ({failed}), and ignore_audit = true lets the verdicts stand."]
