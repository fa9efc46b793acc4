"""From sums to the answers of one treatment: every estimator's value, paired uplift, intervals and verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.choose_estimators import headline_of
from foretest.calibration.estimate import with_calibrated
from foretest.calibration.file import Calibration
from foretest.diagnostics.audit import FAIL, Audit
from foretest.diagnostics.bias_decomposition import strata_with_bias
from foretest.diagnostics.health import control_is_deterministic, effective_positives, predicted_effective_positives
from foretest.displays.batch import Floats
from foretest.estimators import Estimator, Sums
from foretest.estimators.bounded import is_bounded
from foretest.files import finite_or_none
from foretest.inference.bernstein import bernstein_interval
from foretest.inference.betting import betting_interval
from foretest.inference.buckets import Interval, bucket_sums, strata_table
from foretest.inference.delta import std_error
from foretest.inference.guardrails import with_roles
from foretest.inference.limits import control_of, limits_of
from foretest.inference.sensitivity import no_sensitivity, robustness, sensitivity
from foretest.inference.slot_agreement import slot_agreement, with_reason
from foretest.inference.smoothing import value_lower_bound
from foretest.inference.uplift import mean_reward, relative_uplift, uplift
from foretest.inference.verdict import are_few, decide, reasons_against
from foretest.results.audit import AUDIT_FAILED
from foretest.results.result import Estimate, Metric, Segment
from foretest.settings.analysis import BOUNDED
from foretest.settings.metric_roles import MetricRole


def estimate_metrics(
    aggregates: Aggregates,
    estimators: tuple[Estimator, ...],
    counts: Floats | None,
    r_max: Mapping[str, float],
    found: Audit,
    calibration: Calibration | None,
) -> tuple[dict[str, Metric], list[str]]:
    """Every metric's answers for one treatment, as far as the audit lets them stand, and notes."""
    plan, metrics, notes = aggregates.plan, {}, []
    for m, name in enumerate(plan.metrics):
        chosen = [e for e in estimators if plan.weighs(e, m)]
        estimates = {e.label: _estimate(aggregates, e, m, counts, r_max.get(name)) for e in chosen}
        if calibration is not None:
            estimates, said = with_calibrated(estimates, aggregates, estimators, m, calibration)
            notes += said
        estimates = {label: _audited(estimate, found) for label, estimate in estimates.items()}
        agreement = slot_agreement(aggregates, chosen, m)
        estimates = with_reason(estimates, agreement)
        apart = agreement is not None and agreement.disagree
        headline = headline_of(plan.settings.analysis.headline, chosen, by_slot=not apart)
        slots = None if agreement is None else agreement.to_dict()
        control = control_of(aggregates, m, counts)
        metrics[name] = Metric(control, estimates, headline, estimates[headline].verdict, slots=slots)
    return metrics, notes


def _estimate(
    aggregates: Aggregates, estimator: Estimator, metric: int, counts: Floats | None, r_max: float | None
) -> Estimate:
    """One estimator's value, paired uplift, intervals and verdict."""
    a, rows, units = aggregates.plan.settings.analysis, aggregates.rows, aggregates.n_units
    weighting = aggregates.plan.weighting(estimator)
    strata = strata_table(aggregates, estimator, metric) if estimator.stratified and rows else []
    positives = int(aggregates.positives[metric])
    unsupported = aggregates.unsupported.get(weighting, 0)
    effective = effective_positives(aggregates, weighting, metric)
    predicted = predicted_effective_positives(aggregates, weighting, metric)
    evidence: dict[str, Any] = {
        "rows": rows, "units": units, "positives": positives, "effective_positives": effective, "strata": strata,
        "unsupported": unsupported, "rewarded": aggregates.rewarded.seen, "predicted": predicted,
        "deterministic": bool(control_is_deterministic(aggregates)),
    }  # fmt: skip
    table = strata_with_bias(aggregates, estimator, metric, strata) if estimator.stratified else None
    if rows == 0:
        _, reasons = reasons_against(**evidence)
        no_band = no_sensitivity(a.gamma).to_dict() if weighting.banded else None
        return Estimate(
            None, None, None, None, None, None, None, None, "insufficient", reasons, effective, unsupported, table,
            sensitivity=no_band,
        )  # fmt: skip

    sums = bucket_sums(aggregates, estimator, metric)

    def absolute(s: Sums) -> Any:
        return uplift(estimator.value, s)

    def relative(s: Sums) -> Any:
        return relative_uplift(estimator.value, s)

    total = sums.total()
    treatment = float(estimator.value(total)[0])
    control = float(mean_reward(total)[0])
    delta = float(absolute(total)[0])
    error = std_error(sums.influence(absolute), rows, units)
    nothing = Interval(float("nan"), float("nan"))
    few, betting = are_few(effective, predicted), None
    # of a log packed with another cap, what CIS may have cut off at the most is not known
    automatic = few and not aggregates.sampled.get(weighting)
    if is_bounded(estimator) and r_max is not None and (automatic or a.interval == "betting"):
        betting = betting_interval(aggregates, estimator, metric, delta, a.confidence_level, r_max)
        evidence["betting"] = decide(betting, True, control)
    elif is_bounded(estimator) and r_max is None:
        evidence["remedy"] = ", or r_max for an interval that holds with any number"
    enough, reasons = reasons_against(**evidence)
    if a.interval in BOUNDED:
        assert r_max is not None
        limits = (
            betting
            if a.interval == "betting" and betting is not None
            else bernstein_interval(aggregates, estimator, metric, delta, a.confidence_level, r_max)
        )
        rel_limits = Interval(limits.lower / control, limits.upper / control) if control else nothing
    else:
        resampled = None if counts is None else sums.resampled(counts)
        limits = limits_of(resampled, absolute, delta, error, aggregates)
        rel_limits = nothing
        if control:
            rel_error = std_error(sums.influence(relative), rows, units)
            rel_limits = limits_of(resampled, relative, float(relative(total)[0]), rel_error, aggregates, relative=True)
    plain = betting if few and betting is not None else limits
    verdict, agrees, band = decide(plain, enough, control), None, None
    if weighting.banded:
        band = sensitivity(
            aggregates, weighting, metric, plain=plain, verdict=verdict, control=control,
            betting=None if betting is None else r_max,
        )  # fmt: skip
        on_band = decide(band.interval, enough, control)
        agrees = robustness(verdict, on_band)
        if a.decide_on == "band" and on_band != verdict:
            reasons.append(f"decided on the sensitivity band: the interval alone says {verdict}")
            verdict = on_band
    return Estimate(
        treatment=finite_or_none(treatment),
        std_error=finite_or_none(error),
        effect_size=finite_or_none(delta),
        effect_size_ci_lower=finite_or_none(limits.lower),
        effect_size_ci_upper=finite_or_none(limits.upper),
        rel_effect_size=finite_or_none(float(relative(total)[0])) if control else None,
        rel_effect_size_ci_lower=finite_or_none(rel_limits.lower),
        rel_effect_size_ci_upper=finite_or_none(rel_limits.upper),
        verdict=verdict,
        reasons=reasons,
        effective_positives=effective,
        unsupported_rows=unsupported,
        strata=table,
        predicted_effective_positives=predicted,
        betting=None
        if betting is None
        else {"ci_lower": finite_or_none(betting.lower), "ci_upper": finite_or_none(betting.upper)},
        lower_bound=value_lower_bound(aggregates, metric, r_max),
        sensitivity=None if band is None else band.to_dict(),
        robustness=agrees,
    )


def _audited(estimate: Estimate, found: Audit) -> Estimate:
    """A log that fails its audit carries no verdict, whatever its numbers say."""
    if found.outcome != FAIL or found.ignored:
        return estimate
    reason = f"{AUDIT_FAILED} ({', '.join(found.named(FAIL))}): these numbers cannot be relied on"
    left = estimate.adjusted
    return dataclasses.replace(
        estimate,
        verdict="insufficient",
        reasons=[reason, *estimate.reasons],
        robustness=None,
        adjusted=None if left is None else dataclasses.replace(left, verdict_adjusted="insufficient"),
    )


def audited_segment(segment: Segment, found: Audit, roles: Mapping[str, MetricRole]) -> Segment:
    """A segment's answers, as far as the audit lets them stand."""
    metrics = {}
    for name, metric in segment.metrics.items():
        estimates = {label: _audited(estimate, found) for label, estimate in metric.estimates.items()}
        verdict = estimates[metric.headline or ""].verdict
        metrics[name] = dataclasses.replace(metric, estimates=estimates, verdict=verdict)
    return dataclasses.replace(segment, metrics=with_roles(metrics, roles))


def ignored_audit(found: Audit) -> list[str]:
    """That a failed audit was overruled, in words."""
    if not found.ignored:
        return []
    failed = ", ".join(found.named(FAIL))
    return [f"{AUDIT_FAILED} ({failed}), and ignore_audit = true lets the verdicts stand."]
