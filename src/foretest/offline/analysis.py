"""From sums to verdicts: estimates with their intervals, the audit, segments, diagnostics, as one `Result`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from foretest._version import __version__
from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.choose_estimators import ChosenPlan
from foretest.aggregation.differences import with_differences
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.folded import Folded
from foretest.calibration.file import Calibration
from foretest.diagnostics.audit import audits
from foretest.diagnostics.audit.rows import EXPLORATION
from foretest.diagnostics.cap_path import cap_path
from foretest.diagnostics.health import control_is_deterministic, health
from foretest.diagnostics.late_rewards import (
    late_notes,
    late_rewards,
    refuse_all_left_out,
    refuse_no_later_row,
    training_notes,
)
from foretest.diagnostics.mass_kept import mass_kept_by
from foretest.diagnostics.outside_candidates import outside_notes
from foretest.diagnostics.questions import question_kinds, question_notes
from foretest.diagnostics.reward_sizes import refuse_tiny
from foretest.diagnostics.thinning_questions import thinning_notes
from foretest.diagnostics.weight_distribution import weight_distribution
from foretest.diagnostics.winsorised import winsorised_notes, winsorised_rewards
from foretest.displays.batch import Floats
from foretest.errors import BadInput
from foretest.estimators import Estimator
from foretest.inference.bootstrap import resample_counts
from foretest.inference.by_logger import counts_by_logger
from foretest.inference.guardrails import with_roles
from foretest.inference.predicted_noise import without_noise_note
from foretest.inference.verdict import DETERMINISTIC
from foretest.offline.audited import audit_notes, audited_segment
from foretest.offline.days import with_days
from foretest.offline.estimates import estimate_metrics
from foretest.offline.examination import by_exposure, is_left_out, metrics_to_fit
from foretest.offline.joint_metrics import adjusted_joint_metrics, joint_metrics
from foretest.offline.metric_multiples import displays_per_unit, metric_multiples
from foretest.offline.metric_notes import definition_notes
from foretest.offline.prepare_and_fold import require_r_max
from foretest.offline.result_facts import log_facts, options_of, settings_dict
from foretest.offline.segments import led_by, segment_table
from foretest.offline.treatments import compare, ranked
from foretest.offline.winner import choose_winner
from foretest.provenance import rows_fingerprint, versions
from foretest.records import dataclass
from foretest.results.audit import FAIL, Audit
from foretest.results.result import Metric, Result, Segment, Treatment
from foretest.settings.analysis import AUTO
from foretest.settings.fitted_control import refuse_bounds_of_fit
from foretest.settings.settings import Settings, with_cap
from foretest.settings.winsorising import found_limits, with_limits

_BY_EXPOSURE_ALONE = (
    "the control always shows one ranking: a run has estimates by exposure alone, which rest on the examination curve"
    " that is given."
)


@dataclass(frozen=True)
class Answer:
    """What the log says of one treatment."""

    aggregates: Aggregates
    audit: Audit
    metrics: dict[str, Metric]
    segments: list[Segment]
    notes: list[str]


@dataclass(frozen=True)
class Resamples:
    """How the buckets of units are resampled; None where intervals are not by the bootstrap."""

    of_buckets: Floats | None
    of_cells: Floats | None  # by logger and bucket

    @classmethod
    def of(cls, aggregates: Aggregates) -> Resamples:
        a = aggregates.plan.settings.analysis
        if a.interval != "bootstrap":
            return cls(None, None)
        counts = resample_counts(a.buckets, a.n_resamples, a.seed)
        return cls(counts, counts_by_logger(counts, aggregates.n, aggregates.plan.loggers))


def analyse(chosen: ChosenPlan, folded: Folded, calibration: Calibration | None) -> Result:
    """The result of a test with these estimators, and the settings of their plan, from the sums of its log."""
    settings = chosen.plan.settings
    used = _settings_used(settings, folded.aggregates)
    plan, plan_notes = _plan_used(chosen, used, folded.aggregates.plan, folded.notes)
    refuse_bounds_of_fit(settings.analysis.interval, [f'{fit.parameter} = "fit"' for fit in plan.control_fits])
    require_r_max(plan, folded.r_max)
    aggregates = folded.aggregates.under(dataclasses.replace(folded.aggregates.plan, settings=used))
    aggregates = with_differences(aggregates)
    refuse_no_later_row(aggregates)
    refuse_all_left_out(aggregates)
    refuse_tiny(used.definitions.linear, aggregates.positives, aggregates.r2)
    resamples = Resamples.of(aggregates)

    outcomes = audits(by_treatment(aggregates))
    answers = {
        name: _answer(sums, outcomes[name], plan.estimators, resamples, folded.r_max, calibration)
        for name, sums in by_treatment(aggregates).items()
    }
    answers = _compared(answers, resamples, folded.r_max)
    answers = {name: _with_multiples(answer) for name, answer in answers.items()}
    answers = {name: _with_roles(answer, settings) for name, answer in answers.items()}
    answers = _with_cap_paths(answers, plan, resamples, folded.r_max)
    first = next(iter(answers.values()))
    notes = [*outside_notes(aggregates), *question_notes(aggregates), *cap_note(folded.aggregates.plan)]
    notes = [*fit_notes(plan), *winsorised_notes(aggregates), *notes]
    notes += [*training_notes(aggregates), *thinning_notes(aggregates), *late_notes(aggregates)]
    notes += [*folded.notes, *plan_notes, *without_noise_note(aggregates, plan.estimators)]
    notes += [note for answer in answers.values() for note in answer.notes]
    metrics = {name: answer.metrics for name, answer in answers.items()}
    order = ranked(metrics)
    choice = choose_winner({name: metrics[name] for name in order})
    return Result(
        version=__version__,
        log=log_facts(aggregates),
        settings=settings_dict(settings, plan),
        metrics=first.metrics,
        health=_health(aggregates, folded.notes) | mass_kept_by(aggregates, plan.estimators),
        notes=[*dict.fromkeys(notes), *audit_notes({name: answer.audit for name, answer in answers.items()})],
        weights=weight_distribution(aggregates),
        provenance={
            "versions": versions(),
            "rows_fingerprint": rows_fingerprint(aggregates.rows_by_cell, aggregates.positives),
            "estimators": options_of(plan),
        },
        audit=first.audit,
        treatments=_treatments(answers, order, plan.estimators, folded.notes) if len(answers) > 1 else [],
        segments=first.segments,
        winner=choice.winner,
        winner_reason=choice.reason,
        late_rewards=late_rewards(aggregates),
        control_fit={fit.control: fit.to_dict() for fit in plan.control_fits} or None,
        winsorised=winsorised_rewards(aggregates),
    )


def check_result(plan: FoldPlan, folded: Folded) -> Result:
    """The result of a check: facts, health and the audit, without the estimates of the plan."""
    aggregates = with_differences(_as_in_a_run(folded.aggregates, plan))
    refuse_no_later_row(aggregates)
    outcomes = audits(by_treatment(aggregates))
    outcome = next(iter(outcomes.values()))
    notes = [
        *fit_notes(aggregates.plan),
        *winsorised_notes(aggregates),
        *outside_notes(aggregates),
        *question_notes(aggregates),
    ]
    notes += [
        *cap_note(aggregates.plan),
        *training_notes(aggregates),
        *late_notes(aggregates),
        *folded.notes,
        *audit_notes(outcomes),
    ]
    if control_is_deterministic(aggregates):
        answers = by_exposure(aggregates.plan) and EXPLORATION not in outcome.named(FAIL)
        notes.append(_BY_EXPOSURE_ALONE if answers else f"{DETERMINISTIC}.")
    sums = by_treatment(aggregates) if aggregates.treatments else {}
    return Result(
        version=__version__,
        log=log_facts(aggregates),
        settings=settings_dict(plan.settings, plan),
        metrics={},
        health=_health(aggregates, folded.notes),
        notes=notes,
        weights=weight_distribution(aggregates),
        audit=outcome,
        late_rewards=late_rewards(aggregates),
        treatments=[
            Treatment(name, None, {}, _health(part, folded.notes), outcomes[name]) for name, part in sums.items()
        ],
        control_fit={fit.control: fit.to_dict() for fit in aggregates.plan.control_fits} or None,
        winsorised=winsorised_rewards(aggregates),
    )


def _as_in_a_run(aggregates: Aggregates, plan: FoldPlan) -> Aggregates:
    """The sums of a check under a plan with the estimators of a run: what the audit demands depends on them. Those by
    exposure are left out where their curve is to be fitted, which a control that never varies does not allow."""
    able = [e for e in plan.estimators if e not in by_exposure(plan) or not metrics_to_fit(plan)]
    return aggregates.under(dataclasses.replace(aggregates.plan, estimators=tuple(able)))


def _health(aggregates: Aggregates, notes: Sequence[str]) -> dict[str, Any]:
    """Health with the kinds of questions that the log and its treatment ask; `notes` are those of reading the log."""
    return health(aggregates) | {"questions": question_kinds(aggregates, notes)}


def by_treatment(aggregates: Aggregates) -> dict[str, Aggregates]:
    """The sums of every treatment, by name, in the settings' order."""
    first = next(iter(aggregates.plan.settings.treatments))
    return {first: aggregates, **aggregates.treatments}


def cap_note(plan: FoldPlan) -> list[str]:
    """A note on how the cap was chosen, where it was."""
    return [] if plan.cap_choice is None else [plan.cap_choice.sentence()]


def fit_notes(plan: FoldPlan) -> list[str]:
    """What was fitted of the control, and what is left out for it."""
    if not plan.control_fits:
        return []
    without = (
        ["estimates along the cap are left out: they take no error of a fitted number."] if plan.estimators else []
    )
    return [*(f"{fit.sentence()}." for fit in plan.control_fits), *without]


def _settings_used(settings: Settings, aggregates: Aggregates) -> Settings:
    """The test's settings with what only the fold knows: the loggers' shares, and the number of `cap = "auto"`."""
    folded = aggregates.plan.settings
    used = with_limits(dataclasses.replace(settings, control=folded.control), found_limits(folded))
    return with_cap(used, folded.analysis.cap_number) if used.analysis.cap == AUTO else used


def _plan_used(
    chosen: ChosenPlan, used: Settings, folded: FoldPlan, fold_notes: Sequence[str]
) -> tuple[FoldPlan, list[str]]:
    """The estimators to analyse, among those that were folded, and notes on what was left out and not said yet."""
    plan, notes = dataclasses.replace(chosen.plan, settings=used), [*chosen.notes]
    by_label = {e.label: e for e in folded.estimators}
    estimators = []
    for estimator in plan.estimators:
        label = estimator.label
        if used.analysis.estimators is None and label not in by_label:
            if not is_left_out(label, fold_notes):
                notes.append(f"{label} was left out: the aggregates do not have it.")
            continue
        if by_label.get(label) != estimator or folded.weighting(estimator) != plan.weighting(estimator):
            raise BadInput(f"the aggregates do not have {label} with these settings: fold the log again.")
        estimators.append(estimator)
    if not estimators:
        raise BadInput(f"the aggregates have none of the estimators that can run: {', '.join(by_label)}.")
    return dataclasses.replace(
        plan, estimators=tuple(estimators), fits=folded.fits, control_fits=folded.control_fits
    ), notes


def _answer(
    aggregates: Aggregates, outcome: Audit, estimators: tuple[Estimator, ...], resamples: Resamples,
    r_max: Mapping[str, float], calibration: Calibration | None,
) -> Answer:  # fmt: skip
    """What the log says of one treatment by itself, as far as its audit lets it."""
    metrics, notes = estimate_metrics(aggregates, estimators, resamples.of_cells, r_max, outcome, calibration)
    # as far as the audit lets those stand that they are made of
    metrics |= joint_metrics(aggregates, estimators, resamples.of_cells, metrics)
    notes += definition_notes(aggregates, estimators)
    segments, segment_notes = segment_table(aggregates, estimators, resamples.of_buckets)
    segments = led_by(segments, {name: metric.headline for name, metric in metrics.items()})
    metrics, day_notes = with_days(aggregates, estimators, resamples.of_buckets, metrics)
    return Answer(aggregates, outcome, metrics, segments, [*notes, *segment_notes, *day_notes])


def _compared(answers: dict[str, Answer], resamples: Resamples, r_max: Mapping[str, float]) -> dict[str, Answer]:
    """The answers with what is left of each verdict once all treatments are asked about together."""
    if len(answers) == 1:
        return answers
    sums = {name: answer.aggregates for name, answer in answers.items()}
    metrics = compare(sums, {name: a.metrics for name, a in answers.items()}, resamples.of_cells, r_max)
    metrics = adjusted_joint_metrics(sums, metrics)
    return {name: dataclasses.replace(answer, metrics=metrics[name]) for name, answer in answers.items()}


def _with_multiples(answer: Answer) -> Answer:
    """The answer with its metrics per unit and other multiples, all in the settings' order."""
    settings, count = answer.aggregates.plan.settings, displays_per_unit(answer.aggregates)
    metrics = answer.metrics | metric_multiples(settings, answer.metrics, count)
    return dataclasses.replace(answer, metrics={name: metrics[name] for name in settings.definitions.names})


def _with_roles(answer: Answer, settings: Settings) -> Answer:
    """The answer with what each verdict means to its metric's role."""
    roles = settings.metrics
    segments = [audited_segment(segment, answer.audit, roles) for segment in answer.segments]
    return dataclasses.replace(answer, metrics=with_roles(answer.metrics, roles), segments=segments)


def _with_cap_paths(
    answers: dict[str, Answer], plan: FoldPlan, resamples: Resamples, r_max: Mapping[str, float]
) -> dict[str, Answer]:
    """The answers, the first with its estimates along the cap, for the page's figures; there are none where rankings
    have no known weight, or where these have the error of a fitted control."""
    if not plan.prices_rankings or plan.control_fits:
        return answers
    [(first, answer), *_] = answers.items()
    metrics = answer.metrics | {
        name: dataclasses.replace(
            answer.metrics[name],
            cap_path=cap_path(answer.aggregates, m, resamples.of_cells, r_max.get(name), plan.estimators).to_dict(),
        )
        for name, m in plan.shown.items()
    }
    return {**answers, first: dataclasses.replace(answer, metrics=metrics)}


def _treatments(
    answers: Mapping[str, Answer], order: Sequence[str], estimators: Sequence[Estimator], notes: Sequence[str]
) -> list[Treatment]:
    """All treatments, in the settings' order, with their place in `order`."""
    return [
        Treatment(
            name,
            order.index(name) + 1,
            a.metrics,
            _health(a.aggregates, notes) | mass_kept_by(a.aggregates, estimators),
            a.audit,
            a.segments,
        )
        for name, a in answers.items()
    ]
