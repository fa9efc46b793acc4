"""The parts of a result as the content of result.json."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foretest.results.result import Estimate, Metric, Segment, Treatment


def given(**fields: Any) -> dict[str, Any]:
    """The fields that there are."""
    return {name: value for name, value in fields.items() if value is not None}


def range_fields(estimate: Estimate) -> dict[str, Any]:
    """The range as fields of a flat row."""
    return {} if estimate.range is None else {f"range_{name}": value for name, value in asdict(estimate.range).items()}


def estimate_dict(estimate: Estimate) -> dict[str, Any]:
    """One estimate, without the parts that it does not have."""
    fields = asdict(estimate)
    adjusted = fields.pop("adjusted")
    for name in ("strata", "betting", "calibration", "bound_choice", "curves", "unsupported_noise", "always_valid"):
        if fields[name] is None:
            del fields[name]
    return {**fields, **(adjusted or {})}


def treatment_dict(treatment: Treatment) -> dict[str, Any]:
    """One of several treatments."""
    metrics = {name: metric_dict(replace(metric, cap_path=None)) for name, metric in treatment.metrics.items()}
    first = {"name": treatment.name, "rank": treatment.rank, "metrics": metrics, "health": treatment.health}
    return {**first, "audit": asdict(treatment.audit), **segments_dict(treatment.segments)}


def segments_dict(segments: list[Segment]) -> dict[str, Any]:
    """The segments, where there are any."""
    listed = [{**vars(s), "metrics": {name: metric_dict(m) for name, m in s.metrics.items()}} for s in segments]
    return {"segments": listed} if listed else {}


def metric_dict(metric: Metric) -> dict[str, Any]:
    """One metric, without the parts that it does not have."""
    return {
        "control": asdict(metric.control),
        "estimates": {label: estimate_dict(estimate) for label, estimate in metric.estimates.items()},
        "headline": metric.headline,
        "verdict": metric.verdict,
        "robustness": metric.robustness,
        "cap_path": metric.cap_path,
        **given(
            slots=metric.slots,
            headline_reason=metric.headline_reason,
            examination=metric.examination,
            slot_model=None if metric.slot_model is None else metric.slot_model.to_dict(),
            reward_model=metric.reward_model,
        ),
        **({} if metric.days is None else metric.days.to_dict()),
        **given(covariate=metric.covariate, per=metric.per),
        **(metric.role or {}),
    }
