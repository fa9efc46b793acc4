"""What a rewarded row adds to an uplift, and the range of that term: for intervals that need both."""

from __future__ import annotations

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold_plan import Bounded
from foretest.aggregation.logger_columns import log_baseline_of
from foretest.aggregation.quantities import WEIGHTS
from foretest.displays.batch import Floats
from foretest.errors import BadInput
from foretest.policies.logging_mixture import loggers_of
from foretest.weights.weightings import Capped, Weighting, of_metric


def weight_bound(weighting: Weighting) -> float:
    """The largest weight that a row of a bounded estimator can have, whatever the log."""
    assert isinstance(weighting, Capped | Bounded)
    return weighting.cap if isinstance(weighting, Capped) else weighting.bound


def log_weights_of_rewarded(aggregates: Aggregates, weighting: Weighting, metric: int = 0) -> Floats:
    """log h of the rewarded rows that were kept; weights by slot differ between metrics."""
    columns = aggregates.rewarded.columns()
    if not columns:
        return np.zeros(0)
    if weighting in aggregates.plan.point_weightings:
        return of_metric(columns["log_h", weighting], metric)
    return weighting.log_h(columns["log_w"])


def uplift_terms(aggregates: Aggregates, weighting: Weighting, metric: int) -> Floats:
    """d = (h − w_p) r of the rewarded rows that were kept; d of any other row is 0."""
    columns = aggregates.rewarded.columns()
    if not columns:
        return np.zeros(0)
    log_h, r = log_weights_of_rewarded(aggregates, weighting, metric), columns["r", metric]
    return np.asarray((np.expm1(log_h) - np.expm1(log_baseline_of(columns))) * r)


def uplift_range(aggregates: Aggregates, weighting: Weighting, r_max: float) -> tuple[float, float]:
    """The range of d of a row, whatever the log: [−max w_p r_max, (b − min w_p) r_max], b the bound of h; it always
    contains 0. Of one logger w_p is 1, of several anywhere from 0 to 1/min α_p."""
    lowest, highest = loggers_of(aggregates.plan.settings.control).baseline_range
    return -highest * r_max, max(weight_bound(weighting) - lowest, 0.0) * r_max


def unsupported_terms(aggregates: Aggregates, weighting: Weighting, metric: int) -> Floats:
    """t = (h − w̄) r of the rewarded rows that were kept, h the adaptive weight: what the band adds or takes away."""
    columns = aggregates.rewarded.columns()
    if not columns:
        return np.zeros(0)
    if weighting.by_slot:
        log_capped = of_metric(columns["log_capped", weighting], metric)
    else:
        log_capped = np.minimum(columns["log_w"], columns["log_cap", weighting])
    log_h = of_metric(columns["log_h", weighting], metric)
    return np.asarray((np.exp(log_h) - np.exp(log_capped)) * columns["r", metric])


def worst_bias(aggregates: Aggregates, weighting: Weighting, r_max: float) -> float:
    """The most that CIS may have cut off, r_max·(1 − q̄): its mean lies below the truth by at most that, never above."""
    if not isinstance(weighting, Capped):
        return 0.0
    if aggregates.sampled.get(weighting):
        interval = aggregates.plan.settings.analysis.interval
        raise BadInput(
            f'interval = "{interval}" needs the mean weight of all rows for cis; these sums have an estimate of it.'
            " Fold the log that is not packed, or pack it with this cap."
        )
    weights = aggregates.weights(weighting)
    mean_weight = weights.total(WEIGHTS) * np.exp(weights.log_unit) / aggregates.displays
    return float(r_max * max(0.0, 1.0 - mean_weight))
