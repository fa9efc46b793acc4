"""What a rewarded row adds to an uplift, and the range of that term: for intervals that need both."""

from __future__ import annotations

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold_plan import Bounded
from foretest.aggregation.quantities import WEIGHTS
from foretest.displays.batch import Floats
from foretest.errors import BadInput
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
    """d = (h − 1) r of the rewarded rows that were kept, (h − w_p) r with several loggers; d of any other row is 0."""
    columns = aggregates.rewarded.columns()
    if not columns:
        return np.zeros(0)
    log_h, r = log_weights_of_rewarded(aggregates, weighting, metric), columns["r", metric]
    if "log_baseline" in columns:
        return np.asarray((np.exp(log_h) - np.exp(columns["log_baseline"])) * r)
    return np.asarray(np.expm1(log_h) * r)


def uplift_range(aggregates: Aggregates, weighting: Weighting, r_max: float) -> tuple[float, float]:
    """The range of d of a row, whatever the log: [−r_max, (b − 1) r_max], b the bound of h; it always contains 0.

    With several loggers w_p is anywhere from 0 to 1/min α_p, so that the range is [−r_max/min α_p, b r_max].
    """
    control, bound = aggregates.plan.settings.control, weight_bound(weighting)
    if aggregates.plan.loggers == 1:
        return -r_max, max(bound - 1.0, 0.0) * r_max
    return -r_max / control.least_share, bound * r_max  # type: ignore[attr-defined]


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
