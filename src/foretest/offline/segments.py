"""The table by segment: the answers of the whole log, once more for the rows of each value of a column."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.choose_estimators import headline_of
from foretest.aggregation.fold import Fold
from foretest.aggregation.scaled_sums import ScaledSums
from foretest.aggregation.segment_sums import REST, SegmentSums
from foretest.aggregation.unit_counts import UnitCounts
from foretest.diagnostics.health import effective_count, effective_positives
from foretest.displays.batch import Floats
from foretest.estimators import Estimator, Sums
from foretest.files import finite_or_none, nan_if_none
from foretest.inference.buckets import Interval, bucket_sums
from foretest.inference.by_logger import counts_by_logger, fixed_in_part
from foretest.inference.delta import std_error
from foretest.inference.limits import control_of, limits_of
from foretest.inference.several import holm, two_sided_p
from foretest.inference.uplift import mean_reward, relative_uplift, uplift
from foretest.inference.verdict import decide, reasons_against
from foretest.offline.treatments import adjusted_verdict
from foretest.results.result import Adjusted, Estimate, Metric, Segment
from foretest.settings.analysis import BOUNDED
from foretest.weights.weightings import Weighting

MOST_SHOWN = 20
OTHER = "other"


def segment_table(
    aggregates: Aggregates, estimators: Sequence[Estimator], counts: Floats | None
) -> tuple[list[Segment], list[str]]:
    """Every segment's answers, the largest first, and notes on what cannot be told by segment."""
    if not aggregates.segments:
        return [], []
    able = [e for e in estimators if can_tell(aggregates, e)]
    notes = _notes(aggregates, estimators, able)
    if not able:
        return [], notes
    plan = dataclasses.replace(aggregates.plan, estimators=tuple(able))
    alone = next(iter(plan.settings.by_treatment().values()))
    log = dataclasses.replace(alone.log, segments=())
    blank = Fold(dataclasses.replace(plan, settings=dataclasses.replace(alone, log=log))).finish()
    found: list[Segment] = []
    alpha = 1.0 - plan.settings.analysis.confidence_level
    for column, sums in aggregates.segments.items():
        found += _adjusted(_of_column(aggregates, blank, column, sums, able, counts), alpha)
    return found, notes


def can_tell(aggregates: Aggregates, estimator: Estimator) -> bool:
    """Are all sums that an estimator works on there by segment? Those by stratum and of a value model are not."""
    if estimator.stratified or estimator.uses_value:
        return False
    weighting = aggregates.plan.weighting(estimator)
    return weighting in aggregates.plan.weightings or weighting in aggregates.plan.point_weightings


def _notes(aggregates: Aggregates, estimators: Sequence[Estimator], able: Sequence[Estimator]) -> list[str]:
    notes = []
    unable = [e.label for e in estimators if e not in able]
    if unable:
        notes.append(f"{', '.join(unable)} cannot be told by segment: the sums behind are by stratum or value model.")
    for column, sums in aggregates.segments.items():
        if sums.crowded:
            notes.append(
                f"segments of '{column}': there are more than {len(sums.labels):,} values; all but {len(sums.labels):,}"
                " chosen by hash are among other."
            )
    a = aggregates.plan.settings.analysis
    if able and a.interval in BOUNDED:
        notes.append(f'interval = "{a.interval}" is for the whole log: intervals by segment are by the delta method.')
    if able and a.decide_on == "band":
        notes.append('decide_on = "band" is for the whole log: verdicts by segment are on the interval.')
    return notes


def _of_column(
    whole: Aggregates, blank: Aggregates, column: str, sums: SegmentSums, able: Sequence[Estimator],
    counts: Floats | None,
) -> list[tuple[Segment, int]]:  # fmt: skip
    """The segments of a column, with the units of each (at most as many as buckets)."""
    rows = sums.rows()
    codes = sorted((c for c in range(1, len(rows)) if rows[c]), key=lambda c: (-rows[c], sums.labels[c - 1]))
    shown, rest = codes[:MOST_SHOWN], codes[MOST_SHOWN:]
    held = [_Part(whole, blank, sums, [code]) for code in shown]
    names = [sums.labels[code - 1] for code in shown]
    if rest or rows[REST]:
        held.append(_Part(whole, blank, sums, [REST, *rest]))
        names.append(OTHER)
    answer = []
    for label, part in zip(names, held, strict=True):
        own = None
        if counts is not None:
            own = counts_by_logger(counts, part.aggregates.n, whole.plan.loggers, part.fixed)
        metrics = {name: part.metric(m, able, own) for m, name in enumerate(blank.plan.metrics)}
        merged = REST in part.codes
        values = 1 if not merged else None if sums.crowded else len(rest)
        found = Segment(column, label, part.aggregates.rows, metrics, merged, values)
        answer.append((found, part.aggregates.n_units))
    return answer


class _Part:
    """Some values of a column, as a log of their own."""

    def __init__(self, whole: Aggregates, blank: Aggregates, sums: SegmentSums, codes: Sequence[int]) -> None:
        self.sums, self.codes, self.folded = sums, codes, whole.plan
        n = self._sum("n")
        self.fixed = fixed_in_part(float(n.sum()), float(whole.n.sum()))
        metrics = range(len(blank.plan.metrics))
        units = None
        if whole.units is not None:
            # beyond the number of buckets no answer asks how many there are
            largest = np.array([whole.largest_unit], np.int64)
            units = UnitCounts(np.zeros(0, np.uint64), largest, sums.n_units(codes))
        self.aggregates = dataclasses.replace(
            blank,
            n=n,
            r=np.stack([self._sum(f"r:{m}") for m in metrics]),
            positives=np.array([self._number(f"positives:{m}") for m in metrics]),
            h={w: self._scaled(sums.h.get(w), ("h", "h2")) for w in blank.h},
            hr={key: self._scaled(sums.hr.get(key), ("hr", "hr2")) for key in blank.hr},
            unsupported={w: int(self._number(f"unsupported:{self._place(w)}")) for w in blank.plan.point_weightings},
            rewarded=dataclasses.replace(blank.rewarded, seen=int(self._number("rewarded"))),
            units=units,
        )

    def _sum(self, name: str) -> Floats:
        return self.sums.of(self.sums.sums, name, self.codes)

    def _number(self, name: str) -> float:
        return float(self._sum(name)[0])

    def _scaled(self, held: ScaledSums | None, names: Sequence[str]) -> ScaledSums:
        if held is None:
            return ScaledSums()
        return ScaledSums({name: self.sums.of(held.arrays, name, self.codes) for name in names}, held.exponent)

    def _place(self, weighting: Weighting) -> int:
        """Where the sums have a pointwise weighting."""
        return self.folded.point_weightings.index(weighting)  # type: ignore[arg-type]

    def metric(self, metric: int, able: Sequence[Estimator], counts: Floats | None) -> Metric:
        chosen = [e for e in able if self.folded.weighs(e, metric)]
        estimates = {e.label: self._estimate(e, metric, counts) for e in chosen}
        asked = self.folded.settings.analysis.headline
        headline = headline_of(asked if asked in estimates else None, chosen)
        control = control_of(self.aggregates, metric, counts, self.fixed)
        return Metric(control, estimates, headline, estimates[headline].verdict)

    def _predicted(self, weighting: Weighting, metric: int) -> float | None:
        """Predicted effective positives, (Σr)²/Σ r²·E_p[h²|x], as of the whole log."""
        if not weighting.pointwise:
            return None
        i = self._place(weighting)
        return effective_count(self._number(f"supported:{i}:{metric}"), self._number(f"second:{i}:{metric}"))

    def _estimate(self, estimator: Estimator, metric: int, counts: Floats | None) -> Estimate:
        """As for the whole log, but for what needs the rewarded rows themselves: the betting interval, the lower bound
        and the sensitivity band."""
        part = self.aggregates
        rows, units, weighting = part.rows, part.n_units, part.plan.weighting(estimator)
        effective, unsupported = effective_positives(part, weighting, metric), part.unsupported.get(weighting, 0)
        predicted = self._predicted(weighting, metric)
        enough, reasons = reasons_against(
            rows=rows, units=units, positives=int(part.positives[metric]), effective_positives=effective,
            unsupported=unsupported, rewarded=part.rewarded.seen, strata=[], predicted=predicted,
        )  # fmt: skip
        sums = dataclasses.replace(bucket_sums(part, estimator, metric), fixed=self.fixed)
        resampled = None if counts is None else sums.resampled(counts)
        total = sums.total()
        control = float(mean_reward(total)[0])

        def answer(statistic: Any) -> tuple[float, float, Interval]:
            def asked(s: Sums) -> Any:
                return statistic(estimator.value, s)

            value, error = float(asked(total)[0]), std_error(sums.influence(asked), rows, units)
            is_relative = statistic is relative_uplift
            return value, error, limits_of(resampled, asked, value, error, part, relative=is_relative)

        missing = float("nan")
        delta, error, limits = answer(uplift)
        relative, _, rel_limits = answer(relative_uplift) if control else (missing, missing, Interval(missing, missing))
        return Estimate(
            treatment=finite_or_none(float(estimator.value(total)[0])),
            std_error=finite_or_none(error),
            effect_size=finite_or_none(delta),
            effect_size_ci_lower=finite_or_none(limits.lower),
            effect_size_ci_upper=finite_or_none(limits.upper),
            rel_effect_size=finite_or_none(relative),
            rel_effect_size_ci_lower=finite_or_none(rel_limits.lower),
            rel_effect_size_ci_upper=finite_or_none(rel_limits.upper),
            verdict=decide(limits, enough, control),
            reasons=reasons,
            effective_positives=effective,
            unsupported_rows=unsupported,
            predicted_effective_positives=predicted,
        )


def _adjusted(found: list[tuple[Segment, int]], alpha: float) -> list[Segment]:
    """The same with Holm's verdicts over the segments of a column: of twenty, two look decided by chance alone."""
    segments = [segment for segment, _ in found]
    answer = [dict(segment.metrics) for segment in segments]
    for metric, first in segments[0].metrics.items() if len(segments) > 1 else ():
        for label in first.estimates:
            alone = [segment.metrics[metric].estimates[label] for segment in segments]
            p = [
                two_sided_p(
                    nan_if_none(e.effect_size),
                    nan_if_none(e.std_error),
                    units,
                    nan_if_none(segment.metrics[metric].control.value),
                )
                for (segment, units), e in zip(found, alone, strict=True)
            ]
            for held, e, p_value, adjusted in zip(answer, alone, p, holm(p), strict=True):
                verdict = adjusted_verdict(e.verdict, adjusted, alpha)
                left = Adjusted(finite_or_none(p_value), finite_or_none(adjusted), verdict, None, None, None, None)
                changed = {**held[metric].estimates, label: dataclasses.replace(e, adjusted=left)}
                held[metric] = dataclasses.replace(held[metric], estimates=changed)
    return [dataclasses.replace(segment, metrics=m) for segment, m in zip(segments, answer, strict=True)]
