"""The uplift day by day, and a test of whether it is the same on all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.choose_estimators import headline_of
from foretest.aggregation.groups import REST
from foretest.displays.batch import Floats
from foretest.estimators import Estimator
from foretest.files import nan_if_none
from foretest.formatting import p_value, plural
from foretest.inference.bound_choice import at_chosen_bound
from foretest.inference.buckets import bucket_sums
from foretest.inference.by_logger import counts_by_logger
from foretest.inference.heterogeneity import DayEstimate, heterogeneity
from foretest.inference.uplift import relative_uplift_of
from foretest.log.rows import DAY
from foretest.offline.segments import Part, blank_of, displays_by_group, groups_of, has_sums_by_segment
from foretest.results.days import Day, Days
from foretest.results.result import Metric

DIFFER = 0.01  # a p-value below it is worth a note


class MetricsAndNotes(NamedTuple):
    """Metrics with their days, and notes."""

    metrics: dict[str, Metric]
    notes: list[str]


def with_days(
    aggregates: Aggregates, estimators: Sequence[Estimator], counts: Floats | None, metrics: Mapping[str, Metric]
) -> MetricsAndNotes:
    """The metrics with the headline's uplift by day; as they are where displays have no time, or all have one day."""
    ledger = aggregates.segments.get(DAY)
    if ledger is None:
        return MetricsAndNotes(dict(metrics), [])
    labels = groups_of(ledger).labels
    if groups_of(ledger).crowded:
        note = f"there are more than {len(labels):,} days: the uplift by day is left out."
        return MetricsAndNotes(dict(metrics), [note])
    able = [e for e in estimators if has_sums_by_segment(aggregates, e)]
    if len(labels) < 2 or not able:
        return MetricsAndNotes(dict(metrics), [])
    blank = blank_of(aggregates, able)
    codes, displays = (
        sorted(range(REST + 1, len(labels) + 1), key=lambda code: labels[code - 1]),
        displays_by_group(ledger),
    )
    parts = {labels[code - 1]: Part(aggregates, blank, ledger, [code]) for code in codes if displays[code]}
    by_metric, notes = dict(metrics), []
    for name, m in aggregates.plan.shown.items():
        leader = _leader(aggregates, able, m, metrics[name].headline)
        if leader is None:
            continue
        days = _days(aggregates, parts, leader, m, counts)
        by_metric[name] = dataclasses.replace(metrics[name], days=days)
        notes += _notes(name, days, metrics[name].headline)
    return MetricsAndNotes(by_metric, list(dict.fromkeys(notes)))


def _leader(aggregates: Aggregates, able: Sequence[Estimator], metric: int, headline: str | None) -> Estimator | None:
    """The metric's headline where its sums are by day, else the first estimator, by the order of headlines, whose
    are."""
    weighing = [e for e in able if aggregates.plan.weighs(e, metric)]
    if not weighing:
        return None
    label = headline if headline in [e.label for e in weighing] else headline_of(None, weighing)
    return next(e for e in weighing if e.label == label)


def _days(
    aggregates: Aggregates, parts: Mapping[str, Part], leader: Estimator, metric: int, counts: Floats | None
) -> Days:
    """One estimator's uplift on every day, and the test."""
    chosen, days, tested = at_chosen_bound(aggregates, leader, metric), [], []
    for day, part in parts.items():
        own = None
        if counts is not None:
            own = counts_by_logger(counts, part.aggregates.n, aggregates.plan.loggers, part.fixed)
        estimate = part.estimate(chosen, metric, own)
        days.append(Day.of(day, part.aggregates.rows, leader.label, estimate))
        if estimate.verdict != "insufficient":
            sums = dataclasses.replace(bucket_sums(part.aggregates, chosen, metric), fixed=part.fixed)
            influence = sums.influence(relative_uplift_of(chosen)) / part.aggregates.displays
            tested.append(DayEstimate(nan_if_none(estimate.rel_effect_size), influence))
    return Days(leader.label, days, heterogeneity(tested, aggregates.n_units))


def _notes(name: str, days: Days, headline: str | None) -> list[str]:
    notes, test = [], days.heterogeneity
    if headline is not None and days.estimator != headline:
        notes.append(f"uplifts by day are by {days.estimator}: {headline} has no sums by day.")
    if test is not None and test.p_value is not None and test.p_value < DIFFER:
        notes.append(
            f"the uplift in '{name}' differs from day to day more than chance explains (χ² = {test.chi2:.1f} on"
            f" {plural(test.df, 'degree')} of freedom, p {p_value(test.p_value)}): look at the days before you trust"
            " one number for all of them."
        )
    return notes
