"""The noise of an uplift as it is on average, and not as this log happens to show it.

A few rewards of large weight carry most of the variance. A log that lacks them shows little noise, and its answer is
the one that is farthest off, so that few rewards give confident answers that are wrong. What the control could have
shown says how large noise is on average: with the error s by unit, and over the rewards of the log

    s*² = s²·Σ (r − β)² E_p[(w̃ − 1)² | x] / Σ (r − β)² (w̃ − 1)²

β = 0 but where rewards are dense (`weights.noise_terms`). The noise interval is the smallest that contains the usual
one and Δ̂ ± z·s*. Estimators without E_p[w̃ | x] = 1 have no s*, and neither have sums of an earlier version.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.noise_sums import NoiseSums, noise_sums
from foretest.estimators import Estimator
from foretest.files import finite_or_none
from foretest.inference.buckets import Interval, mean_weights
from foretest.inference.delta import quantile
from foretest.inference.uplift_estimate import Uplift
from foretest.inference.usual_intervals import UpliftIntervals
from foretest.inference.verdict import Judgement, decide
from foretest.results.result import Estimate
from foretest.weights.weightings import Weighting


def predicted_noise(aggregates: Aggregates, weighting: Weighting, metric: int, value: float = 0.0) -> NoiseSums | None:
    """What the rewards of a metric add to noise, as drawn and on average; `value` is what the weighting estimates."""
    if not aggregates.has_weighted(weighting, metric):
        return None
    is_ratio = mean_weights(aggregates, weighting) is not None
    return noise_sums(aggregates.weighted(weighting, metric), value * aggregates.displays if is_ratio else 0.0)


def predicted_error(
    aggregates: Aggregates, estimator: Estimator, metric: int, value: float, error: float
) -> float | None:
    """s* of an uplift with the standard error `error`; None where it is not known."""
    noise = predicted_noise(aggregates, aggregates.plan.weighting(estimator), metric, value)
    if noise is None:
        return None
    if math.isinf(noise.inflation):
        return finite_or_none(math.sqrt(noise.expected) / aggregates.displays)
    return finite_or_none(error * math.sqrt(noise.inflation))


def inflation(*estimates: Estimate) -> float:
    """How many times its standard error the predicted one of an estimate is, at least 1: the most of several."""
    pairs = [(e.predicted_std_error, e.std_error) for e in estimates]
    return max([1.0, *(predicted / error for predicted, error in pairs if predicted and error)])


def error_of(estimate: Estimate) -> float:
    """The standard error that a decision rests on: the larger of the log's own and the predicted one; NaN for none."""
    if estimate.std_error is None:
        return math.nan
    return max(estimate.std_error, estimate.predicted_std_error or 0.0)


def with_predicted(
    aggregates: Aggregates, intervals: UpliftIntervals, error: float | None, control: float
) -> UpliftIntervals:
    """The intervals, each with Δ̂ ± z·s* in it; `error` is s* and `control` the mean reward."""
    if error is None:
        return intervals
    level = aggregates.plan.settings.analysis.confidence_level
    half = quantile(aggregates.n_units, level) * error
    relative = intervals.relative if not control else _hull(intervals.relative, half / abs(control))
    return intervals._replace(absolute=_hull(intervals.absolute, half), relative=relative)


def with_noise_reason(
    judgement: Judgement, alone: UpliftIntervals, both: UpliftIntervals, error: float | None, control: float
) -> Judgement:
    """The judgement, where predicted noise takes the verdict of the log's own noise away with that as a reason."""
    verdict = decide(alone.absolute.limits, judgement.enough, control)
    if error is None or verdict == decide(both.absolute.limits, judgement.enough, control):
        return judgement
    larger = f"{error / alone.errors.absolute:.1f} times as large" if alone.errors.absolute else "larger"
    reason = (
        f"the noise that this log happens to show would make it {verdict}; if what the control rarely shows earns like"
        f" the rest, noise is {larger}"
    )
    return Judgement(judgement.enough, [*judgement.reasons, reason])


def without_noise_note(aggregates: Aggregates, estimators: Sequence[Estimator]) -> list[str]:
    """A note where sums of an earlier version lack what noise is predicted from."""
    plan = aggregates.plan
    lacking = [
        e.label
        for e in estimators
        if plan.weighting(e).banded
        and any(
            aggregates.positives[m] and predicted_noise(aggregates, plan.weighting(e), m) is None
            for m in plan.shown.values()
            if plan.weighs(e, m)
        )
    ]
    if not lacking:
        return []
    return [
        f"noise is not predicted for {', '.join(lacking)}: these sums were saved by an earlier version. Fold the log"
        " again before you trust an answer from few rewards."
    ]


def _hull(uplift: Uplift, half: float) -> Uplift:
    lower, upper = uplift.limits
    return Uplift(uplift.value, Interval(min(lower, uplift.value - half), max(upper, uplift.value + half)))
