"""Metrics that are functions of several others, as ratios are, in an offline test: an estimate by every estimator that
answers for all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.choose_estimators import headline_of
from foretest.displays.batch import Floats
from foretest.estimators import Estimator
from foretest.files import finite_or_none, nan_if_none
from foretest.inference.bound_choice import at_chosen_bound
from foretest.inference.buckets import bucket_sums
from foretest.inference.joint_sums import JointSums
from foretest.inference.multiple_testing import holm, two_sided_p
from foretest.inference.predicted_noise import error_of, inflation, with_predicted
from foretest.inference.uplift_estimate import no_estimate, uplift_estimate
from foretest.inference.uplift_range import with_adjusted, without_band
from foretest.inference.verdict import decide
from foretest.offline.treatments import adjusted_verdict
from foretest.records import dataclass
from foretest.results.result import Adjusted, Control, Estimate, Metric
from foretest.settings.metric_kinds import Formula

_NO_DENOMINATOR = "the interval of {name}, which it is divided by, contains 0"


def joint_metrics(
    part: Aggregates, estimators: Sequence[Estimator], counts: Floats | None, metrics: Mapping[str, Metric],
    *, whole: Aggregates | None = None, fixed: float = 1.0,
) -> dict[str, Metric]:  # fmt: skip
    """Such metrics of a log, or of a part of the `whole`, which then chose the bounds; `metrics` are those of the same
    rows."""
    formulas = part.plan.settings.definitions.joint
    return {one.name: _Joint(one, part, whole or part, counts, fixed).metric(estimators, metrics) for one in formulas}


def joint_sums(
    part: Aggregates, whole: Aggregates, formula: Formula, estimator: Estimator, counts: Floats | None,
    fixed: float = 1.0,
) -> JointSums:  # fmt: skip
    """The sums of an estimator for what a metric is made of, with the bounds that the whole log chose."""
    places = [part.plan.shown[metric.name] for metric in formula.of]
    chosen = [at_chosen_bound(whole, estimator, m) for m in places]
    sums = [dataclasses.replace(bucket_sums(part, e, m), fixed=fixed) for e, m in zip(chosen, places, strict=True)]
    return JointSums(formula, tuple(sums), tuple(chosen), counts)


@dataclass(frozen=True)
class _Joint:
    """One such metric of the rows that some sums are of."""

    formula: Formula
    part: Aggregates
    whole: Aggregates
    counts: Floats | None
    fixed: float = 1.0

    def metric(self, estimators: Sequence[Estimator], metrics: Mapping[str, Metric]) -> Metric:
        """The estimates by every estimator that all of its metrics have, led by the first one's headline where all
        do."""
        of = [metrics[metric.name] for metric in self.formula.of]
        able = [e for e in estimators if all(e.label in metric.estimates for metric in of)]
        sums = {e.label: self._sums(e) for e in able} if self.part.rows else {}
        estimates = {
            e.label: self._estimate(sums.get(e.label), [metric.estimates[e.label] for metric in of]) for e in able
        }
        headline = of[0].headline if of[0].headline in estimates else headline_of(None, able)
        assert headline is not None
        control = sums[headline].control(self.part) if headline in sums else Control(None, None, None, None)
        per = self.formula.per(self.part.plan.settings.log.unit)
        return Metric(control, estimates, headline, estimates[headline].verdict, per=per)

    def _sums(self, estimator: Estimator) -> JointSums:
        return joint_sums(self.part, self.whole, self.formula, estimator, self.counts, self.fixed)

    def _estimate(self, sums: JointSums | None, of: Sequence[Estimate]) -> Estimate:
        """The estimate of one estimator: it has evidence where all of its metrics have."""
        reasons = list(dict.fromkeys(reason for e in of for reason in e.reasons))
        fewest = min((e.effective_positives or 0.0) for e in of)
        if sums is None:
            return no_estimate(reasons, fewest)
        if sums.may_divide_by_zero(self.part):
            return no_estimate([_NO_DENOMINATOR.format(name=self.formula.divisor), *reasons], fewest)
        intervals, control = sums.intervals(self.part), nan_if_none(sums.control(self.part).value)
        predicted = None
        if any(e.predicted_std_error is not None for e in of):
            predicted = finite_or_none(inflation(*of) * intervals.errors.absolute)
        intervals = with_predicted(self.part, intervals, predicted, control)
        enough = all(e.verdict != "insufficient" for e in of)
        estimate = uplift_estimate(
            sums.of_log(sums.value), *intervals, verdict=decide(intervals.absolute.limits, enough, control),
            reasons=reasons, effective_positives=fewest,
        )  # fmt: skip
        unsupported = max(e.unsupported_rows for e in of)
        estimate = dataclasses.replace(estimate, unsupported_rows=unsupported, predicted_std_error=predicted)
        return without_band(estimate, control)


def adjusted_joint_metrics(
    aggregates: Mapping[str, Aggregates], metrics: Mapping[str, dict[str, Metric]]
) -> dict[str, dict[str, Metric]]:
    """Such metrics of several treatments with Holm's p-values and verdicts; there are no limits that hold for all at
    once."""
    first = next(iter(aggregates.values()))
    adjusted = {name: dict(by_metric) for name, by_metric in metrics.items()}
    alpha = 1.0 - first.plan.settings.analysis.confidence_level
    for one in first.plan.settings.definitions.joint:
        labels = set.intersection(*(set(by_metric[one.name].estimates) for by_metric in metrics.values()))
        for label in labels:
            estimates = {name: metrics[name][one.name].estimates[label] for name in metrics}
            p_values = [
                two_sided_p(
                    nan_if_none(e.effect_size), error_of(e), first.n_units,
                    nan_if_none(metrics[name][one.name].control.value),
                )
                for name, e in estimates.items()
            ]  # fmt: skip
            for (name, e), p, after in zip(estimates.items(), p_values, holm(p_values), strict=True):
                verdict = adjusted_verdict(e.verdict, after, alpha)
                numbers = Adjusted(finite_or_none(p), finite_or_none(after), verdict, None, None, None, None)
                metric = adjusted[name][one.name]
                adjusted[name][one.name] = dataclasses.replace(
                    metric, estimates={**metric.estimates, label: with_adjusted(e, numbers)}
                )
    return adjusted
