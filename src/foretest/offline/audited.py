"""Verdicts as far as the audit lets them stand: a log that fails its audit carries none, whatever its numbers say."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from foretest.inference.guardrails import with_roles
from foretest.results.audit import AUDIT_FAILED, FAIL, Audit
from foretest.results.result import Estimate, Segment
from foretest.settings.metric_roles import MetricRole


def audited_estimate(estimate: Estimate, audit: Audit) -> Estimate:
    """The estimate, its verdict insufficient where the audit failed and is not overruled."""
    if audit.outcome != FAIL or audit.ignored:
        return estimate
    reason = f"{AUDIT_FAILED} ({', '.join(audit.named(FAIL))}): these numbers cannot be relied on"
    adjusted = estimate.adjusted
    if adjusted is not None:
        adjusted = dataclasses.replace(adjusted, verdict_adjusted="insufficient")
    return dataclasses.replace(
        estimate,
        verdict="insufficient",
        reasons=[reason, *estimate.reasons],
        robustness=None,
        word="insufficient",
        adjusted=adjusted,
    )


def audited_segment(segment: Segment, audit: Audit, roles: Mapping[str, MetricRole]) -> Segment:
    """A segment's estimates, as far as the audit lets their verdicts stand."""
    metrics = {}
    for name, metric in segment.metrics.items():
        estimates = {label: audited_estimate(estimate, audit) for label, estimate in metric.estimates.items()}
        verdict = estimates[metric.headline or ""].verdict
        metrics[name] = dataclasses.replace(metric, estimates=estimates, verdict=verdict)
    return dataclasses.replace(segment, metrics=with_roles(metrics, roles))


def audit_note(audit: Audit) -> list[str]:
    """A note where a failed audit was overruled, or where too little could be checked."""
    doubt = audit.doubt()
    if doubt is not None:
        return [doubt]
    if not audit.ignored:
        return []
    failed = ", ".join(audit.named(FAIL))
    return [f"{AUDIT_FAILED} ({failed}), and ignore_audit = true lets the verdicts stand."]
