"""Ratios of metrics in an offline test: an estimate by every estimator that answers for both metrics."""

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
from foretest.inference.multiple_testing import holm, two_sided_p
from foretest.inference.predicted_noise import error_of, inflation, with_predicted
from foretest.inference.ratio_of_metrics import RatioSums
from foretest.inference.uplift_estimate import no_estimate, uplift_estimate
from foretest.inference.uplift_range import with_adjusted, without_band
from foretest.inference.verdict import decide
from foretest.offline.treatments import adjusted_verdict
from foretest.records import dataclass
from foretest.results.result import Adjusted, Control, Estimate, Metric
from foretest.settings.metric_definitions import Ratio

_NO_DENOMINATOR = "the interval of {name}, which it is divided by, contains 0"


def ratio_metrics(
    part: Aggregates, estimators: Sequence[Estimator], counts: Floats | None, metrics: Mapping[str, Metric],
    *, whole: Aggregates | None = None, fixed: float = 1.0,
) -> dict[str, Metric]:  # fmt: skip
    """The ratios of a log, or of a part of the `whole`, which then chose the bounds; `metrics` are those of the same
    rows."""
    ratios = part.plan.settings.definitions.ratios
    return {one.name: _Ratio(one, part, whole or part, counts, fixed).metric(estimators, metrics) for one in ratios}


def ratio_sums(
    part: Aggregates, whole: Aggregates, of: Ratio, estimator: Estimator, counts: Floats | None, fixed: float = 1.0
) -> RatioSums:
    """The sums of an estimator for both metrics of a ratio, with the bounds that the whole log chose."""
    places = [part.plan.shown[name] for name in (of.above, of.below)]
    chosen = [at_chosen_bound(whole, estimator, m) for m in places]
    sums = [dataclasses.replace(bucket_sums(part, e, m), fixed=fixed) for e, m in zip(chosen, places, strict=True)]
    return RatioSums(sums[0], sums[1], chosen[0], chosen[1], counts)


@dataclass(frozen=True)
class _Ratio:
    """One ratio of the rows that some sums are of."""

    of: Ratio
    part: Aggregates
    whole: Aggregates
    counts: Floats | None
    fixed: float

    def metric(self, estimators: Sequence[Estimator], metrics: Mapping[str, Metric]) -> Metric:
        """The estimates by every estimator that both metrics have, led by the numerator's headline where both do."""
        above, below = metrics[self.of.above], metrics[self.of.below]
        both = [e for e in estimators if e.label in above.estimates and e.label in below.estimates]
        sums = {e.label: self._sums(e) for e in both} if self.part.rows else {}
        estimates = {
            e.label: self._estimate(sums.get(e.label), above.estimates[e.label], below.estimates[e.label]) for e in both
        }
        headline = above.headline if above.headline in estimates else headline_of(None, both)
        assert headline is not None
        control = sums[headline].control(self.part) if headline in sums else Control(None, None, None, None)
        return Metric(control, estimates, headline, estimates[headline].verdict, per=self.of.below)

    def _sums(self, estimator: Estimator) -> RatioSums:
        return ratio_sums(self.part, self.whole, self.of, estimator, self.counts, self.fixed)

    def _estimate(self, sums: RatioSums | None, above: Estimate, below: Estimate) -> Estimate:
        """The estimate of one estimator: it has evidence where both of its metrics have."""
        reasons = list(dict.fromkeys([*above.reasons, *below.reasons]))
        fewest = min((e.effective_positives or 0.0) for e in (above, below))
        if sums is None:
            return no_estimate(reasons, fewest)
        if sums.may_divide_by_zero(self.part):
            return no_estimate([_NO_DENOMINATOR.format(name=self.of.below), *reasons], fewest)
        intervals, control = sums.intervals(self.part), nan_if_none(sums.control(self.part).value)
        predicted = None
        if above.predicted_std_error is not None or below.predicted_std_error is not None:
            predicted = finite_or_none(inflation(above, below) * intervals.errors.absolute)
        intervals = with_predicted(self.part, intervals, predicted, control)
        enough = "insufficient" not in (above.verdict, below.verdict)
        estimate = uplift_estimate(
            sums.of_log(sums.value), *intervals, verdict=decide(intervals.absolute.limits, enough, control),
            reasons=reasons, effective_positives=fewest,
        )  # fmt: skip
        unsupported = max(above.unsupported_rows, below.unsupported_rows)
        estimate = dataclasses.replace(estimate, unsupported_rows=unsupported, predicted_std_error=predicted)
        return without_band(estimate, control)


def adjusted_ratios(
    aggregates: Mapping[str, Aggregates], metrics: Mapping[str, dict[str, Metric]]
) -> dict[str, dict[str, Metric]]:
    """The ratios of several treatments with Holm's p-values and verdicts; there are no limits that hold for all at
    once."""
    first = next(iter(aggregates.values()))
    adjusted = {name: dict(by_metric) for name, by_metric in metrics.items()}
    alpha = 1.0 - first.plan.settings.analysis.confidence_level
    for one in first.plan.settings.definitions.ratios:
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
