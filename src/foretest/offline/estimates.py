"""From sums to the estimates of one treatment: every estimator's value, paired uplift, intervals and verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.choose_estimators import headline_of
from foretest.calibration.estimate import with_calibrated
from foretest.calibration.file import Calibration
from foretest.diagnostics.bias_decomposition import strata_with_bias
from foretest.diagnostics.health import control_is_deterministic, effective_positives, predicted_effective_positives
from foretest.displays.batch import Floats
from foretest.estimators import Estimator
from foretest.estimators.bounded import is_bounded
from foretest.files import finite_or_none
from foretest.inference.bernstein import bernstein_interval
from foretest.inference.betting import betting_interval
from foretest.inference.buckets import BucketSums, Interval, Stratum, bucket_sums, strata_table
from foretest.inference.delta import std_error
from foretest.inference.limits import control_of, limits_of
from foretest.inference.sensitivity import no_sensitivity, robustness, sensitivity
from foretest.inference.slot_agreement import slot_agreement, with_reason
from foretest.inference.smoothing import value_lower_bound
from foretest.inference.uplift import absolute_uplift_of, mean_reward, relative_uplift_of
from foretest.inference.uplift_estimate import NO_UPLIFT, Uplift, no_estimate, uplift_estimate
from foretest.inference.verdict import Evidence, Judgement, decide, judge
from foretest.offline.audited import audited_estimate
from foretest.results.audit import Audit
from foretest.results.result import Estimate, Metric
from foretest.settings.analysis import BOUNDED


class MetricsAndNotes(NamedTuple):
    """Every metric's estimates for one treatment, and notes for the reader."""

    metrics: dict[str, Metric]
    notes: list[str]


def estimate_metrics(
    aggregates: Aggregates,
    estimators: Sequence[Estimator],
    counts: Floats | None,
    r_max: Mapping[str, float],
    audit: Audit,
    calibration: Calibration | None,
) -> MetricsAndNotes:
    """Every metric's estimates for one treatment, as far as the audit lets their verdicts stand."""
    plan, metrics, notes = aggregates.plan, {}, []
    for m, name in enumerate(plan.metrics):
        chosen = [e for e in estimators if plan.weighs(e, m)]
        estimates = {e.label: _estimate(aggregates, e, m, counts, r_max.get(name)) for e in chosen}
        if calibration is not None:
            estimates, calibration_notes = with_calibrated(estimates, aggregates, estimators, m, calibration)
            notes += calibration_notes
        estimates = {label: audited_estimate(estimate, audit) for label, estimate in estimates.items()}
        agreement = slot_agreement(aggregates, chosen, m)
        estimates = with_reason(estimates, agreement)
        apart = agreement is not None and agreement.disagree
        headline = headline_of(plan.settings.analysis.headline, chosen, by_slot=not apart)
        slots = None if agreement is None else agreement.to_dict()
        control = control_of(aggregates, m, counts)
        metrics[name] = Metric(control, estimates, headline, estimates[headline].verdict, slots=slots)
    return MetricsAndNotes(metrics, notes)


def _estimate(
    aggregates: Aggregates, estimator: Estimator, metric: int, counts: Floats | None, r_max: float | None
) -> Estimate:
    """One estimator's value, paired uplift, intervals and verdict."""
    strata = strata_table(aggregates, estimator, metric) if estimator.stratified and aggregates.rows else []
    evidence = _evidence(aggregates, estimator, metric, strata)
    if aggregates.rows == 0:
        estimate = _estimate_of_no_rows(aggregates, estimator, evidence)
    else:
        estimate = _estimate_of_rows(aggregates, estimator, metric, counts, r_max, evidence)
    table = strata_with_bias(aggregates, estimator, metric, strata) if estimator.stratified else None
    return dataclasses.replace(estimate, unsupported_rows=evidence.unsupported, strata=table)


def _evidence(
    aggregates: Aggregates, estimator: Estimator, metric: int, strata: Sequence[Stratum]
) -> Evidence:  # fmt: skip
    """What the verdict rests on, as far as it is known before any interval."""
    weighting = aggregates.plan.weighting(estimator)
    return Evidence(
        rows=aggregates.rows,
        units=aggregates.n_units,
        positives=int(aggregates.positives[metric]),
        effective_positives=effective_positives(aggregates, weighting, metric),
        unsupported=aggregates.unsupported.get(weighting, 0),
        rewarded=aggregates.rewarded.seen,
        strata=strata,
        predicted=predicted_effective_positives(aggregates, weighting, metric),
        deterministic=bool(control_is_deterministic(aggregates)),
    )


def _estimate_of_no_rows(aggregates: Aggregates, estimator: Estimator, evidence: Evidence) -> Estimate:
    plan = aggregates.plan
    band = no_sensitivity(plan.settings.analysis.gamma).to_dict() if plan.weighting(estimator).banded else None
    return dataclasses.replace(no_estimate(judge(evidence).reasons, evidence.effective_positives), sensitivity=band)


def _estimate_of_rows(
    aggregates: Aggregates, estimator: Estimator, metric: int, counts: Floats | None, r_max: float | None,
    evidence: Evidence,
) -> Estimate:  # fmt: skip
    a = aggregates.plan.settings.analysis
    sums = bucket_sums(aggregates, estimator, metric)
    total, absolute = sums.total(), absolute_uplift_of(estimator)
    control, delta = float(mean_reward(total)[0]), float(absolute(total)[0])
    error = std_error(sums.influence(absolute), aggregates.rows, aggregates.n_units)

    betting = _betting_interval(aggregates, estimator, metric, delta, r_max, evidence)
    evidence = _with_betting(evidence, estimator, betting, r_max, control)
    judgement = judge(evidence)
    if a.interval in BOUNDED:
        assert r_max is not None
        limits = betting if a.interval == "betting" and betting is not None else None
        if limits is None:
            limits = bernstein_interval(aggregates, estimator, metric, delta, a.confidence_level, r_max)
        uplifts = Uplift(delta, limits), _over_control(sums, estimator, limits, control)
    else:
        uplifts = _usual_intervals(aggregates, estimator, sums, counts, error)

    decided_on = betting if evidence.is_thin and betting is not None else uplifts[0].limits
    estimate = uplift_estimate(
        float(estimator.value(total)[0]), error, *uplifts, verdict=decide(decided_on, judgement.enough, control),
        reasons=judgement.reasons, effective_positives=evidence.effective_positives,
    )  # fmt: skip
    estimate = dataclasses.replace(
        estimate,
        predicted_effective_positives=evidence.predicted,
        betting=None if betting is None else {
            "ci_lower": finite_or_none(betting.lower), "ci_upper": finite_or_none(betting.upper),
        },
        lower_bound=value_lower_bound(aggregates, metric, r_max),
    )  # fmt: skip
    if not aggregates.plan.weighting(estimator).banded:
        return estimate
    return _with_band(
        estimate, aggregates, estimator, metric, decided_on, judgement, control, None if betting is None else r_max
    )


def _betting_interval(
    aggregates: Aggregates, estimator: Estimator, metric: int, delta: float, r_max: float | None, evidence: Evidence
) -> Interval | None:
    """The interval that holds with any number of rewards: where it is asked for, or where there are few."""
    a = aggregates.plan.settings.analysis
    # of a log packed with another cap, what CIS may have cut off at the most is not known
    automatic = evidence.is_thin and not aggregates.sampled.get(aggregates.plan.weighting(estimator))
    if not is_bounded(estimator) or r_max is None or not (automatic or a.interval == "betting"):
        return None
    return betting_interval(aggregates, estimator, metric, delta, a.confidence_level, r_max)


def _with_betting(
    evidence: Evidence, estimator: Estimator, betting: Interval | None, r_max: float | None, control: float
) -> Evidence:
    """The evidence with the verdict of the betting interval, or with what would make one possible."""
    if betting is not None:
        return dataclasses.replace(evidence, betting=decide(betting, True, control))
    if is_bounded(estimator) and r_max is None:
        return dataclasses.replace(evidence, remedy=", or r_max for an interval that holds with any number")
    return evidence


def _over_control(sums: BucketSums, estimator: Estimator, limits: Interval, control: float) -> Uplift:
    """The relative uplift with the limits of the absolute one over the control's value."""
    if not control:
        return NO_UPLIFT
    relative = float(relative_uplift_of(estimator)(sums.total())[0])
    return Uplift(relative, Interval(limits.lower / control, limits.upper / control))


def _usual_intervals(
    aggregates: Aggregates, estimator: Estimator, sums: BucketSums, counts: Floats | None, error: float
) -> tuple[Uplift, Uplift]:
    """The absolute and the relative uplift with bootstrap limits, or those of the delta method."""
    total, resampled = sums.total(), None if counts is None else sums.resampled(counts)
    absolute, relative = absolute_uplift_of(estimator), relative_uplift_of(estimator)
    delta = float(absolute(total)[0])
    first = Uplift(delta, limits_of(resampled, absolute, delta, error, aggregates))
    if not float(mean_reward(total)[0]):
        return first, NO_UPLIFT
    share = float(relative(total)[0])
    rel_error = std_error(sums.influence(relative), aggregates.rows, aggregates.n_units)
    return first, Uplift(share, limits_of(resampled, relative, share, rel_error, aggregates, relative=True))


def _with_band(
    estimate: Estimate, aggregates: Aggregates, estimator: Estimator, metric: int, decided_on: Interval,
    judgement: Judgement, control: float, betting_r_max: float | None,
) -> Estimate:  # fmt: skip
    """The estimate with its sensitivity band, and where the settings say so decided on it."""
    band = sensitivity(
        aggregates, aggregates.plan.weighting(estimator), metric, plain=decided_on, verdict=estimate.verdict,
        control=control, betting=betting_r_max,
    )  # fmt: skip
    on_band = decide(band.interval, judgement.enough, control)
    verdict, reasons = estimate.verdict, estimate.reasons
    if aggregates.plan.settings.analysis.decide_on == "band" and on_band != verdict:
        reasons = [*reasons, f"decided on the sensitivity band: the interval alone says {verdict}"]
        verdict = on_band
    return dataclasses.replace(
        estimate,
        verdict=verdict,
        reasons=reasons,
        sensitivity=band.to_dict(),
        robustness=robustness(estimate.verdict, on_band),
    )
