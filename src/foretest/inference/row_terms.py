"""What a rewarded row adds to an uplift, and between which limits: for intervals that must know both beforehand."""

from __future__ import annotations

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.displays.batch import Floats
from foretest.errors import BadInput
from foretest.weights.slot_weights import SlotAdaptive
from foretest.weights.weightings import Adaptive, Capped, Weighting, of_metric


def weight_bound(weighting: Weighting) -> float:
    """The largest weight that a row of a bounded estimator can have, whatever the log."""
    assert isinstance(weighting, Capped | Adaptive | SlotAdaptive)
    return weighting.cap if isinstance(weighting, Capped) else weighting.bound


def kept_log_h(aggregates: Aggregates, weighting: Weighting, metric: int = 0) -> Floats:
    """log h of the rewarded rows that were kept; by slot it is another for each metric."""
    kept = aggregates.rewarded.columns()
    if not kept:
        return np.zeros(0)
    if weighting in aggregates.plan.point_weightings:
        return of_metric(kept[f"log_h:{aggregates.plan.point_weightings.index(weighting)}"], metric)
    return weighting.log_h(kept["log_w"])


def uplift_terms(aggregates: Aggregates, weighting: Weighting, metric: int) -> Floats:
    """d = (h − 1) r of the rewarded rows that were kept, of several loggers (h − w_p) r; any other row's is 0."""
    kept = aggregates.rewarded.columns()
    if "log_baseline" in kept:
        h = np.exp(kept_log_h(aggregates, weighting, metric))
        return np.asarray((h - np.exp(kept["log_baseline"])) * kept[f"r:{metric}"])
    return np.expm1(kept_log_h(aggregates, weighting, metric)) * kept[f"r:{metric}"] if kept else np.zeros(0)


def uplift_range(aggregates: Aggregates, weighting: Weighting, r_max: float) -> tuple[float, float]:
    """Where d of a row lies, whatever the log: [−r_max, (b − 1) r_max], b the bound of h, and 0 is always within.

    Of several loggers w_p is anywhere from 0 to 1/min α_p, so that it is [−r_max/min α_p, b r_max].
    """
    control, bound = aggregates.plan.settings.control, weight_bound(weighting)
    if aggregates.plan.loggers == 1:
        return -r_max, max(bound - 1.0, 0.0) * r_max
    return -r_max / control.least_share, bound * r_max  # type: ignore[attr-defined]


def unsupported_terms(aggregates: Aggregates, weighting: Weighting, metric: int) -> Floats:
    """t = (h − w̄) r of the rewarded rows that were kept, h the adaptive weight: what the band adds or takes away."""
    kept = aggregates.rewarded.columns()
    if not kept:
        return np.zeros(0)
    at = aggregates.plan.point_weightings.index(weighting)  # type: ignore[arg-type]
    if weighting.by_slot:
        log_capped = of_metric(kept[f"log_capped:{at}"], metric)
    else:
        log_capped = np.minimum(kept["log_w"], kept[f"log_cap:{at}"])
    log_h = of_metric(kept[f"log_h:{at}"], metric)
    return np.asarray((np.exp(log_h) - np.exp(log_capped)) * kept[f"r:{metric}"])


def worst_bias(aggregates: Aggregates, weighting: Weighting, r_max: float) -> float:
    """What CIS may have cut off at the most, r_max·(1 − q̄): its limit lies below the truth, never above."""
    if not isinstance(weighting, Capped):
        return 0.0
    if aggregates.sampled.get(weighting):
        asked = aggregates.plan.settings.analysis.interval
        raise BadInput(
            f'interval = "{asked}" needs the mean weight of all rows for cis; these sums have an estimate of it.'
            " Fold the log that is not packed, or pack it with this cap."
        )
    sums = aggregates.h[weighting]
    kept = float(sums.get("h").sum()) * np.exp(sums.log_unit) / aggregates.rows
    return float(r_max * max(0.0, 1.0 - kept))
