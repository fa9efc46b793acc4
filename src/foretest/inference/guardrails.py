"""What a verdict means to a metric's role: better or worse, and whether a guardrail holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from foretest.settings.metric_roles import DECREASE, GUARDRAIL, MetricRole, role_of, toward_good

if TYPE_CHECKING:
    from foretest.results.result import Metric

_OUTCOMES = {"positive": "better", "negative": "worse"}


def with_roles(metrics: Mapping[str, Metric], roles: Mapping[str, MetricRole]) -> dict[str, Metric]:
    """The metrics, each with its role and what its verdict means to it; unchanged where the settings give no roles."""
    if not any(role.has_role for role in roles.values()):
        return dict(metrics)
    with_role = {}
    for name, metric in metrics.items():
        role = role_of(roles, name)
        fields: dict[str, Any] = {
            "role": role.role,
            "direction": role.direction,
            "outcome": outcome(metric.verdict, str(role.direction)),
        }
        if role.role == GUARDRAIL:
            fields |= {"margin": role.margin, "guardrail": guardrail_of(metric, role)}
        with_role[name] = dataclasses.replace(metric, role=fields)
    return with_role


def outcome(verdict: str, direction: str) -> str:
    """Better or worse, in place of up or down.

    >>> outcome("positive", "decrease"), outcome("negative", "decrease"), outcome("neutral", "increase")
    ('worse', 'better', 'neutral')
    """
    verdict = toward_good(verdict, direction)
    return _OUTCOMES.get(verdict, verdict)


def guardrail_of(metric: Metric, role: MetricRole) -> str:
    """Non-inferiority: pass if the whole interval of the relative uplift is on the good side of the margin, fail if the
    whole of it is on the bad side, else unclear. For one of several treatments, by the simultaneous interval."""
    e = metric.estimates[metric.headline or ""]
    lower, upper = e.rel_effect_size_ci_lower, e.rel_effect_size_ci_upper
    if e.adjusted is not None and e.adjusted.rel_simultaneous_ci_lower is not None:
        lower, upper = e.adjusted.rel_simultaneous_ci_lower, e.adjusted.rel_simultaneous_ci_upper
    if e.verdict == "insufficient" or lower is None or upper is None:
        return "unclear"
    good, bad = (lower > role.limit, upper < role.limit)
    if role.direction == DECREASE:
        good, bad = bad, good
    return "pass" if good else "fail" if bad else "unclear"
