"""From sums to the estimates of one treatment: every estimator's value, paired uplift, intervals and verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.choose_estimators import headline_of
from foretest.aggregation.thinning import are_displays
from foretest.calibration.estimate import unsupported_noise, with_calibrated
from foretest.calibration.file import Calibration
from foretest.calibration.fit import PLAIN
from foretest.diagnostics.bias_decomposition import strata_with_bias
from foretest.diagnostics.evidence import log_evidence
from foretest.diagnostics.health import control_is_deterministic
from foretest.displays.batch import Floats
from foretest.estimators import Estimator
from foretest.estimators.bounded import is_bounded
from foretest.files import finite_or_none
from foretest.inference.bernstein import bernstein_interval
from foretest.inference.betting import betting_interval
from foretest.inference.bound_choice import at_choice, choose_bound
from foretest.inference.buckets import BucketSums, Interval, bucket_sums, strata_table
from foretest.inference.company import leading_note, with_company
from foretest.inference.company_pairs import slot_model
from foretest.inference.delta import std_error
from foretest.inference.limits import control_of
from foretest.inference.model_lead import model_lead, with_model_reason
from foretest.inference.predicted_noise import predicted_error, with_noise_reason, with_predicted
from foretest.inference.sensitivity import Terms, no_sensitivity, robustness, sensitivity
from foretest.inference.slot_agreement import slot_agreement, with_agreement
from foretest.inference.smoothing import value_lower_bound
from foretest.inference.uplift import absolute_uplift_of, mean_reward, relative_uplift_of, value_of
from foretest.inference.uplift_estimate import (
    NO_UPLIFT,
    StdErrors,
    Uplift,
    no_estimate,
    relative_where_it_exists,
    uplift_estimate,
)
from foretest.inference.uplift_range import band_range, factors_by_log, with_range, without_band
from foretest.inference.usual_intervals import UpliftIntervals, usual_intervals
from foretest.inference.verdict import Evidence, Judgement, decide, judge
from foretest.offline.audited import audited_estimate, audited_reasons
from foretest.offline.curve_range import calibrated_over_curves, hull, uplift_by_curve
from foretest.offline.leading_level import leading_level, with_curve_tests
from foretest.results.audit import Audit
from foretest.results.bound_choice import BoundChoice
from foretest.results.examination_text import curve_text
from foretest.results.result import Estimate, Metric
from foretest.settings.analysis import BOUNDED
from foretest.weights.exposure_weights import ExposureWeighting


class MetricsAndNotes(NamedTuple):
    """Every metric's estimates for one treatment, and notes for the reader."""

    metrics: dict[str, Metric]
    notes: list[str]


def estimate_metrics(
    aggregates: Aggregates,
    estimators: tuple[Estimator, ...],
    counts: Floats | None,
    r_max: Mapping[str, float],
    audit: Audit,
    calibration: Calibration | None,
) -> MetricsAndNotes:
    """Every metric's estimates for one treatment, as far as the audit lets their verdicts stand."""
    plan, metrics, notes = aggregates.plan, {}, []
    for name, m in plan.shown.items():
        able = [e for e in estimators if plan.weighs(e, m)]
        if plan.settings.analysis.estimators is None and control_is_deterministic(aggregates):
            able, unable = _without_exploration(aggregates, able)
            notes += unable
        choices = {e.label: choose_bound(aggregates, e, m) for e in able}
        chosen = [at_choice(e, choices[e.label]) for e in able]
        estimates = {e.label: _estimate(aggregates, e, m, counts, r_max.get(name), choices[e.label]) for e in chosen}
        if calibration is not None and plan.combination(m).is_calibrated:
            estimates, calibration_notes = with_calibrated(estimates, aggregates, chosen, m, calibration)
            notes += calibration_notes
            estimates = {
                label: calibrated_over_curves(one, estimates[PLAIN[label]]) if label in PLAIN else one
                for label, one in estimates.items()
            }
        control = control_of(aggregates, m, counts)
        estimates = relative_where_it_exists(estimates, control, plan.combination(m))
        # both by the evidence, whatever the audit says
        agreement, model = (
            slot_agreement(aggregates, chosen, m, estimates),
            slot_model(aggregates, chosen, plan.main_part(m)),
        )
        company = None if model is None else model.beside
        evidence = estimates
        estimates = with_company(estimates, chosen, plan, model, control.value)
        estimates = {label: audited_estimate(estimate, audit) for label, estimate in estimates.items()}
        estimates = with_agreement(estimates, agreement, control.value)
        apart = company is not None and company.fails
        lead = model_lead(aggregates, chosen, m, estimates)
        estimates = with_model_reason(estimates, lead)
        estimates = audited_reasons(estimates, evidence, audit)
        if plan.main_part(m) in plan.fits:
            model = with_curve_tests(model, plan.fits[plan.main_part(m)].tests)
        level = leading_level(aggregates, chosen, model, apart=apart)
        headline = headline_of(plan.settings.analysis.headline, chosen, without=level.without, first=level.first)
        notes += leading_note(name, company, level.first, level.reason)
        if lead is not None and lead.takes_over(headline, plan.settings.analysis.headline):
            headline = lead.model
            notes.append(f"{name}: {lead.model} {lead.reason}.")
        metrics[name] = Metric(
            control, estimates, headline, estimates[headline].verdict,
            slots=None if agreement is None else agreement.to_dict(),
            slot_model=model,
            headline_reason=level.reason if level.first in (None, headline) else None,
            examination=_curve_of(aggregates, chosen, m),
            reward_model=None if lead is None else lead.to_dict(),
        )  # fmt: skip
    return MetricsAndNotes(metrics, notes)


def _curve_of(aggregates: Aggregates, chosen: list[Estimator], metric: int) -> dict[str, Any] | None:
    """The examination curve of a metric, where an estimator used it."""
    if not any(is_by_exposure(aggregates, estimator) for estimator in chosen):
        return None
    return aggregates.plan.examination.to_dict(aggregates.plan.main_part(metric))


def _without_exploration(aggregates: Aggregates, able: list[Estimator]) -> tuple[list[Estimator], list[str]]:
    """The estimators that a control which never varies allows, and a note on the others; all of them where none does,
    so that each says why it cannot answer."""
    rest = [e for e in able if is_by_exposure(aggregates, e)]
    if not rest:
        return able, []
    others = ", ".join(e.label for e in able if e not in rest)
    return rest, [
        f"{others} cannot run and were left out: the control shows one ranking with probability 1, and they need one"
        f" that explores. {', '.join(e.label for e in rest)} can: they weigh items by how likely users look at them,"
        " wherever the control put them."
    ]


def _estimate(
    aggregates: Aggregates, estimator: Estimator, metric: int, counts: Floats | None, r_max: float | None,
    choice: BoundChoice | None,
) -> Estimate:  # fmt: skip
    """One estimator's value, paired uplift, intervals and verdict; `choice` says how its bound was chosen."""
    strata = strata_table(aggregates, estimator, metric) if estimator.stratified and aggregates.rows else []
    evidence = dataclasses.replace(
        log_evidence(aggregates, estimator, metric),
        curve=_given_curve(aggregates, estimator, metric),
        strata=strata,
        deterministic=bool(control_is_deterministic(aggregates)) and not is_by_exposure(aggregates, estimator),
    )
    if aggregates.rows == 0:
        estimate = _estimate_of_no_rows(aggregates, estimator, evidence)
    else:
        estimate = _estimate_of_rows(aggregates, estimator, metric, counts, r_max, evidence, choice)
    table = strata_with_bias(aggregates, estimator, metric, strata) if estimator.stratified else None
    return dataclasses.replace(
        estimate, unsupported_rows=evidence.unsupported, strata=table,
        bound_choice=None if choice is None else choice.to_dict(),
        unsupported_noise=unsupported_noise(aggregates, estimator, metric),
    )  # fmt: skip


def _given_curve(aggregates: Aggregates, estimator: Estimator, metric: int) -> str | None:
    """The examination curve that an estimate rests on, in words, where it was given."""
    curves = aggregates.plan.examination.given.get(metric) if is_by_exposure(aggregates, estimator) else None
    if curves is None:
        return None
    return f"by {curves.column}" if curves.column else f"({curve_text(curves.thetas[0])})"


def _estimate_of_no_rows(aggregates: Aggregates, estimator: Estimator, evidence: Evidence) -> Estimate:
    plan = aggregates.plan
    band = no_sensitivity(plan.gamma(estimator)).to_dict() if plan.weighting(estimator).banded else None
    return dataclasses.replace(no_estimate(judge(evidence).reasons, evidence.effective_positives), sensitivity=band)


def _estimate_of_rows(
    aggregates: Aggregates, estimator: Estimator, metric: int, counts: Floats | None, r_max: float | None,
    evidence: Evidence, choice: BoundChoice | None,
) -> Estimate:  # fmt: skip
    sums = bucket_sums(aggregates, estimator, metric)
    total = sums.total()
    control, delta = float(mean_reward(total)[0]), float(absolute_uplift_of(estimator)(total)[0])
    value = float(value_of(estimator, total)[0])
    betting = _betting_interval(aggregates, estimator, metric, delta, r_max, evidence)
    bounded = has_limits(aggregates, estimator, metric)
    evidence = _with_betting(evidence, bounded, betting, r_max, control)
    judgement, predicted = judge(evidence), None
    if aggregates.plan.settings.analysis.interval in BOUNDED:
        intervals = _bounded_intervals(aggregates, estimator, metric, sums, betting, r_max)
    else:
        intervals = usual_intervals(aggregates, estimator, sums, counts)
        predicted = predicted_error(aggregates, estimator, metric, value, intervals.errors.absolute)
        alone, intervals = intervals, with_predicted(aggregates, intervals, predicted, control)
        judgement = with_noise_reason(judgement, alone, intervals, predicted, control)
    decided_on = betting if evidence.is_thin and betting is not None else intervals.absolute.limits
    estimate = dataclasses.replace(
        uplift_estimate(
            value, *intervals, verdict=decide(decided_on, judgement.enough, control),
            reasons=judgement.reasons, effective_positives=evidence.effective_positives,
        ),
        predicted_effective_positives=evidence.predicted,
        predicted_std_error=predicted,
        betting=None if betting is None else {
            "ci_lower": finite_or_none(betting.lower), "ci_upper": finite_or_none(betting.upper),
        },
        lower_bound=value_lower_bound(aggregates, metric, r_max) if are_displays(aggregates.ledger) else None,
    )  # fmt: skip
    if not aggregates.plan.weighting(estimator).banded:
        return without_band(estimate, control)
    betting_r_max = None if betting is None else r_max
    return _with_band(
        estimate, aggregates, estimator, metric, counts, decided_on, judgement, control, betting_r_max, choice
    )  # fmt: skip


def has_limits(aggregates: Aggregates, estimator: Estimator, metric: int) -> bool:
    """Has it a betting interval? Rewards must be 0 or more; weights need a bound, and no error of a fitted curve or
    control in them; of a thinned log nobody knows which units vanished, and how many rows the largest had."""
    fitted = is_by_exposure(aggregates, estimator) and metric in aggregates.plan.fits
    fitted |= bool(aggregates.plan.control_fits)
    bounded = is_bounded(estimator) and aggregates.plan.combination(metric).has_range
    return bounded and not fitted and are_displays(aggregates.ledger)


def is_by_exposure(aggregates: Aggregates, estimator: Estimator) -> bool:
    """Does it weigh items by their exposure, so that a control that never varies is legal?"""
    return isinstance(aggregates.plan.weighting(estimator), ExposureWeighting)


def _betting_interval(
    aggregates: Aggregates, estimator: Estimator, metric: int, delta: float, r_max: float | None, evidence: Evidence
) -> Interval | None:
    """The interval that holds with any number of rewards: where it is asked for, or where there are few."""
    a = aggregates.plan.settings.analysis
    # of a log packed with another cap, what CIS may have cut off at the most is not known
    automatic = evidence.is_thin and not aggregates.sampled.get(aggregates.plan.weighting(estimator))
    if not has_limits(aggregates, estimator, metric) or r_max is None or not (automatic or a.interval == "betting"):
        return None
    return betting_interval(aggregates, estimator, metric, delta, a.confidence_level, r_max)


def _with_betting(
    evidence: Evidence, bounded: bool, betting: Interval | None, r_max: float | None, control: float
) -> Evidence:
    """The evidence with the verdict of the betting interval, or with what would make one possible."""
    if betting is not None:
        return dataclasses.replace(evidence, betting=decide(betting, True, control))
    if bounded and r_max is None:
        return dataclasses.replace(evidence, remedy=", or r_max for an interval that holds with any number")
    return evidence


def _bounded_intervals(
    aggregates: Aggregates, estimator: Estimator, metric: int, sums: BucketSums, betting: Interval | None,
    r_max: float | None,
) -> UpliftIntervals:  # fmt: skip
    """Limits that hold at any sample size, given the range of a row; the relative ones are these over the control."""
    assert r_max is not None
    a, total, absolute = aggregates.plan.settings.analysis, sums.total(), absolute_uplift_of(estimator)
    control, delta = float(mean_reward(total)[0]), float(absolute(total)[0])
    limits = betting if a.interval == "betting" else None
    if limits is None:
        limits = bernstein_interval(aggregates, estimator, metric, delta, a.confidence_level, r_max)
    relative = NO_UPLIFT
    if control:
        share = float(relative_uplift_of(estimator)(total)[0])
        relative = Uplift(share, Interval(limits.lower / abs(control), limits.upper / abs(control)))
    errors = StdErrors(*(
        std_error(sums.influence(statistic), aggregates.displays, aggregates.n_units)
        for statistic in (absolute, relative_uplift_of(estimator))
    ))  # fmt: skip
    return UpliftIntervals(errors, Uplift(delta, limits), relative)


def _with_band(
    estimate: Estimate, aggregates: Aggregates, estimator: Estimator, metric: int, counts: Floats | None,
    decided_on: Interval, judgement: Judgement, control: float, betting_r_max: float | None,
    choice: BoundChoice | None,
) -> Estimate:  # fmt: skip
    """The estimate with its sensitivity band, its range and its word; where the settings say so decided on the band."""
    gamma, weighting = aggregates.plan.gamma(estimator), aggregates.plan.weighting(estimator)
    terms = Terms.of_estimator(aggregates, estimator, metric)
    band = sensitivity(
        aggregates, weighting, metric, plain=decided_on, verdict=estimate.verdict,
        control=control, gamma=gamma, betting=betting_r_max, terms=terms,
    )  # fmt: skip
    on_band = decide(Interval(band.ci_lower, band.ci_upper), judgement.enough, control)
    verdict, reasons = estimate.verdict, estimate.reasons
    if aggregates.plan.settings.analysis.decide_on == "band" and on_band != verdict:
        reasons = [*reasons, f"decided on the sensitivity band: the interval alone says {verdict}"]
        verdict = on_band
    unsupported = terms.mean(terms.t)
    factors = factors_by_log(gamma, Interval(band.slice_gamma_ci_lower, band.slice_gamma_ci_upper))
    moved = Interval(0.0, 0.0) if choice is None else Interval(choice.lower, choice.upper)
    losses = terms.mean(terms.t_losses)
    limits = band_range(estimate, decided_on, unsupported, factors, moved, control, losses)
    by_curve = uplift_by_curve(aggregates, estimator, metric, counts, control, moved)
    limits = hull([limits, *(uplift.range for uplift in by_curve)])
    return dataclasses.replace(
        with_range(estimate, limits, decided_on, judgement.enough, control),
        verdict=verdict,
        reasons=reasons,
        sensitivity=band.to_dict(),
        robustness=robustness(estimate.verdict, on_band, band),
        unsupported=finite_or_none((unsupported + losses) / abs(control)) if control else None,
        curves=[uplift.to_dict() for uplift in by_curve] or None,
    )
