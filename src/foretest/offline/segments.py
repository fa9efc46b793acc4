"""The table by segment: the estimates of the whole log, once more for the rows of each value of a column."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.choose_estimators import headline_of
from foretest.aggregation.fold import Fold
from foretest.aggregation.groups import REST, Groups
from foretest.aggregation.ledger import Key, Ledger
from foretest.aggregation.quantities import (
    DISPLAYS,
    POSITIVES,
    REWARDED_ROWS,
    SECOND_BEFORE,
    SUPPORTED_BEFORE,
    UNSUPPORTED,
)
from foretest.aggregation.unit_counts import UnitCounts
from foretest.diagnostics.health import effective_count, effective_positives
from foretest.displays.batch import Floats
from foretest.estimators import NIIPS, Estimator
from foretest.files import finite_or_none, nan_if_none
from foretest.inference.bound_choice import at_chosen_bound
from foretest.inference.buckets import bucket_sums
from foretest.inference.by_logger import counts_by_logger, fixed_in_part
from foretest.inference.limits import control_of
from foretest.inference.multiple_testing import holm, two_sided_p
from foretest.inference.predicted_noise import (
    error_of,
    predicted_error,
    predicted_noise,
    with_noise_reason,
    with_predicted,
)
from foretest.inference.uplift import mean_reward, value_of
from foretest.inference.uplift_estimate import relative_where_it_exists, uplift_estimate
from foretest.inference.uplift_range import with_adjusted, without_band
from foretest.inference.usual_intervals import usual_intervals
from foretest.inference.verdict import Evidence, decide, judge
from foretest.log.rows import DAY
from foretest.offline.joint_metrics import joint_metrics
from foretest.offline.metric_multiples import displays_per_unit, metric_multiples
from foretest.offline.treatments import adjusted_verdict
from foretest.results.result import Adjusted, Estimate, Metric, Segment
from foretest.settings.analysis import BOUNDED
from foretest.weights.weightings import Weighting

MOST_SHOWN = 20
OTHER = "other"


class SegmentsAndNotes(NamedTuple):
    """The segments of all columns, the largest of each first, and notes on what is not known by segment."""

    segments: list[Segment]
    notes: list[str]


class _Counted(NamedTuple):
    """A segment and how many units it has, at most as many as there are buckets."""

    segment: Segment
    units: int


def segment_table(aggregates: Aggregates, estimators: Sequence[Estimator], counts: Floats | None) -> SegmentsAndNotes:
    """Every segment's estimates; `counts` are resamples of buckets."""
    columns = {column: ledger for column, ledger in aggregates.segments.items() if column != DAY}
    if not columns:
        return SegmentsAndNotes([], [])
    able = [e for e in estimators if has_sums_by_segment(aggregates, e)]
    notes = _notes(aggregates, estimators, able, columns)
    if not able:
        return SegmentsAndNotes([], notes)
    blank = blank_of(aggregates, able)
    segments: list[Segment] = []
    alpha = 1.0 - aggregates.plan.settings.analysis.confidence_level
    for column, ledger in columns.items():
        segments += _adjusted(_of_column(aggregates, blank, column, ledger, able, counts), alpha)
    return SegmentsAndNotes(segments, notes)


def blank_of(aggregates: Aggregates, able: Sequence[Estimator]) -> Aggregates:
    """The sums of no rows for some estimators and one treatment, which a part of the log fills in."""
    plan = dataclasses.replace(aggregates.plan, estimators=tuple(able))
    alone = next(iter(plan.settings.by_treatment().values()))
    log = dataclasses.replace(alone.log, segments=(), time=None, reward_time=None, reward_age=None, read_at=None)
    settings = dataclasses.replace(alone, log=log, analysis=alone.analysis.replace(window=None))
    return Fold(dataclasses.replace(plan, settings=settings)).finish()


def led_by(segments: Sequence[Segment], headlines: Mapping[str, str | None]) -> list[Segment]:
    """The segments with the whole log's headline of each metric, where they have that estimator: what it says of slots
    holds for its parts."""
    led = []
    for segment in segments:
        metrics = {
            name: dataclasses.replace(metric, headline=label, verdict=metric.estimates[label].verdict)
            if (label := headlines.get(name)) in metric.estimates and label is not None
            else metric
            for name, metric in segment.metrics.items()
        }
        led.append(dataclasses.replace(segment, metrics=metrics))
    return led


def has_sums_by_segment(aggregates: Aggregates, estimator: Estimator) -> bool:
    """Are all sums of an estimator there by segment? Sums by stratum, by slot and of a value model are not."""
    if estimator.stratified or estimator.uses_value or isinstance(estimator, NIIPS):
        return False
    weighting = aggregates.plan.weighting(estimator)
    return weighting in aggregates.plan.weightings or weighting in aggregates.plan.point_weightings


def _notes(
    aggregates: Aggregates, estimators: Sequence[Estimator], able: Sequence[Estimator],
    columns: Mapping[str, Ledger],
) -> list[str]:  # fmt: skip
    notes = []
    unable = [e.label for e in estimators if e not in able]
    if unable:
        notes.append(
            f"{', '.join(unable)} cannot be given by segment: the sums behind are by stratum, by slot or of a value"
            " model."
        )
    for column, ledger in columns.items():
        groups = groups_of(ledger)
        if groups.crowded:
            notes.append(
                f"segments of '{column}': there are more than {len(groups.labels):,} values; all but"
                f" {len(groups.labels):,}"
                " chosen by hash are among other."
            )
    a = aggregates.plan.settings.analysis
    if able and a.interval in BOUNDED:
        notes.append(f'interval = "{a.interval}" is for the whole log: intervals by segment are by the delta method.')
    if able and a.decide_on == "band":
        notes.append('decide_on = "band" is for the whole log: verdicts by segment are on the interval.')
    return notes


def _of_column(
    whole: Aggregates, blank: Aggregates, column: str, ledger: Ledger, able: Sequence[Estimator],
    counts: Floats | None,
) -> list[_Counted]:  # fmt: skip
    """The segments of a column: its largest values, and all others together."""
    groups, displays = groups_of(ledger), displays_by_group(ledger)
    codes = sorted(
        (c for c in range(1, len(displays)) if displays[c]), key=lambda c: (-displays[c], groups.labels[c - 1])
    )
    shown, rest = codes[:MOST_SHOWN], codes[MOST_SHOWN:]
    parts = [Part(whole, blank, ledger, [code]) for code in shown]
    names = [groups.labels[code - 1] for code in shown]
    if rest or displays[REST]:
        parts.append(Part(whole, blank, ledger, [REST, *rest]))
        names.append(OTHER)
    segments = []
    for label, part in zip(names, parts, strict=True):
        own = None
        if counts is not None:
            own = counts_by_logger(counts, part.aggregates.n, whole.plan.loggers, part.fixed)
        metrics = part.metrics(able, own)
        merged = REST in part.codes
        values = 1 if not merged else None if groups.crowded else len(rest)
        segment = Segment(column, label, part.aggregates.rows, metrics, merged, values)
        segments.append(_Counted(segment, part.aggregates.n_units))
    return segments


class Part:
    """Some values of a column, as a log of their own."""

    def __init__(self, whole: Aggregates, blank: Aggregates, ledger: Ledger, codes: Sequence[int]) -> None:
        self.codes, self.whole, self.folded = codes, whole, whole.plan
        sums = blank.ledger.filled(ledger.of_groups(codes))
        self.fixed = fixed_in_part(sums.plain.total(DISPLAYS), float(whole.n.sum()))
        units = None
        if whole.units is not None:
            # beyond the number of buckets no answer asks how many there are
            largest = np.array([whole.largest_unit], np.int64)
            units = UnitCounts(np.zeros(0, np.uint64), largest, groups_of(ledger).n_units(codes))
        rewarded = dataclasses.replace(blank.rewarded, seen=int(sums.plain.total(REWARDED_ROWS)))
        self.aggregates = dataclasses.replace(blank, ledger=sums, rewarded=rewarded, units=units)

    def metrics(self, able: Sequence[Estimator], counts: Floats | None) -> dict[str, Metric]:
        """The estimates of all metrics, in the settings' order."""
        part, definitions = self.aggregates, self.folded.settings.definitions
        metrics = {name: self.metric(m, able, counts) for name, m in part.plan.shown.items()}
        metrics |= joint_metrics(part, able, counts, metrics, whole=self.whole, fixed=self.fixed)
        # beyond the number of buckets nobody counts the units of a part
        metrics |= metric_multiples(self.folded.settings, metrics, displays_per_unit(self.whole))
        return {name: metrics[name] for name in definitions.names}

    def metric(self, metric: int, able: Sequence[Estimator], counts: Floats | None) -> Metric:
        """The estimates of one metric."""
        chosen = [at_chosen_bound(self.whole, e, metric) for e in able if self.folded.weighs(e, metric)]
        estimates = {e.label: self.estimate(e, metric, counts) for e in chosen}
        asked = self.folded.settings.analysis.headline
        headline = headline_of(asked if asked in estimates else None, chosen)
        control = control_of(self.aggregates, metric, counts, self.fixed)
        estimates = relative_where_it_exists(estimates, control, self.folded.combination(metric))
        return Metric(control, estimates, headline, estimates[headline].verdict)

    def _predicted(self, weighting: Weighting, metric: int) -> float | None:
        """Predicted effective positives, (Σr)²/Σ r²·E_p[h²|x]."""
        if not weighting.pointwise:
            return None
        noise = predicted_noise(self.aggregates, weighting, metric)
        if noise is not None:
            return noise.effective(self.aggregates.ledger.plain.total(POSITIVES, metric))
        before = (SUPPORTED_BEFORE, SECOND_BEFORE)  # sums of an earlier version
        return effective_count(*(self.aggregates.ledger.plain.total(q, metric, weighting) for q in before))

    def estimate(self, estimator: Estimator, metric: int, counts: Floats | None) -> Estimate:
        """An estimate without what needs the rewarded rows themselves: the betting interval, the lower bound and the
        sensitivity band."""
        part, fixed = self.aggregates, self.fixed
        weighting = part.plan.weighting(estimator)
        evidence = Evidence(
            rows=part.rows,
            units=part.n_units,
            positives=int(part.positives[metric]),
            effective_positives=effective_positives(part, weighting, metric),
            unsupported=int(part.ledger.plain.total(UNSUPPORTED, owner=weighting)),
            rewarded=part.rewarded.seen,
            predicted=self._predicted(weighting, metric),
        )
        judgement = judge(evidence)
        sums = dataclasses.replace(bucket_sums(part, estimator, metric), fixed=fixed)
        intervals = usual_intervals(part, estimator, sums, counts)
        control, value = float(mean_reward(sums.total())[0]), float(value_of(estimator, sums.total())[0])
        predicted = predicted_error(part, estimator, metric, value, intervals.errors.absolute)
        alone, intervals = intervals, with_predicted(part, intervals, predicted, control)
        judgement = with_noise_reason(judgement, alone, intervals, predicted, control)
        estimate = uplift_estimate(
            value, *intervals,
            verdict=decide(intervals.absolute.limits, judgement.enough, control), reasons=judgement.reasons,
            effective_positives=evidence.effective_positives,
        )  # fmt: skip
        estimate = dataclasses.replace(
            estimate, unsupported_rows=evidence.unsupported, predicted_effective_positives=evidence.predicted,
            predicted_std_error=predicted,
        )  # fmt: skip
        return without_band(estimate, control)


def groups_of(ledger: Ledger) -> Groups:
    """The values of the column that a ledger is divided by."""
    assert ledger.groups is not None
    return ledger.groups


def displays_by_group(ledger: Ledger) -> Floats:
    """How many displays each value has, the rest first."""
    return ledger.by_group(Key(DISPLAYS), ledger.plain)


def _adjusted(counted: list[_Counted], alpha: float) -> list[Segment]:
    """The segments of a column with Holm's verdicts over them: of twenty, two look decided by chance alone."""
    segments = [segment for segment, _ in counted]
    if len(segments) < 2:
        return segments
    by_segment = [dict(segment.metrics) for segment in segments]
    for metric, first in segments[0].metrics.items():
        for label in first.estimates:
            adjusted = _adjusted_estimates(counted, metric, label, alpha)
            for metrics, estimate in zip(by_segment, adjusted, strict=True):
                estimates = {**metrics[metric].estimates, label: estimate}
                metrics[metric] = dataclasses.replace(metrics[metric], estimates=estimates)
    return [dataclasses.replace(segment, metrics=m) for segment, m in zip(segments, by_segment, strict=True)]


def _adjusted_estimates(counted: list[_Counted], metric: str, label: str, alpha: float) -> list[Estimate]:
    """One estimator's estimates of a metric, segment by segment, with Holm's p-values and verdicts."""
    estimates = [segment.metrics[metric].estimates[label] for segment, _ in counted]
    p_values = [
        two_sided_p(
            nan_if_none(e.effect_size), error_of(e), units,
            nan_if_none(segment.metrics[metric].control.value),
        )
        for (segment, units), e in zip(counted, estimates, strict=True)
    ]  # fmt: skip
    return [
        with_adjusted(e, Adjusted(
            finite_or_none(p), finite_or_none(p_adjusted), adjusted_verdict(e.verdict, p_adjusted, alpha),
            None, None, None, None,
        ))
        for e, p, p_adjusted in zip(estimates, p_values, holm(p_values), strict=True)
    ]  # fmt: skip
