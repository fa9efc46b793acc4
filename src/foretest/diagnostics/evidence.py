"""The evidence that a log has for a verdict, of one estimator and metric."""

from __future__ import annotations

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.dense import is_dense_ratio
from foretest.aggregation.quantities import UNSUPPORTED
from foretest.diagnostics.health import effective_positives, predicted_effective_positives
from foretest.diagnostics.mass_kept import mass_kept
from foretest.estimators import Estimator
from foretest.inference.verdict import (
    DENSE_MASS_KEPT,
    DENSE_POSITIVES,
    FEWEST_POSITIVES,
    LEAST_MASS_KEPT,
    Evidence,
)


def log_evidence(aggregates: Aggregates, estimator: Estimator, metric: int) -> Evidence:
    """What the sums of a log say, before any interval."""
    weighting = aggregates.plan.weighting(estimator)
    rewarded, all_weighed = aggregates.rewarded.seen, weighting in aggregates.plan.normalised_weightings
    if weighting.by_slot:  # slots without a reward are not counted, also where all rows are weighed
        rewarded = min(rewarded, int(aggregates.positives.sum()))
    dense = is_dense_ratio(aggregates, weighting, metric)
    return Evidence(
        rows=aggregates.rows,
        units=aggregates.n_units,
        positives=int(aggregates.positives[metric]),
        effective_positives=effective_positives(aggregates, weighting, metric),
        unsupported=int(aggregates.ledger.plain.total(UNSUPPORTED, owner=weighting)),
        rewarded=rewarded,
        counted="row" if all_weighed and not weighting.by_slot else "rewarded row",
        predicted=predicted_effective_positives(aggregates, weighting, metric),
        mass_kept=mass_kept(aggregates, weighting),
        fewest=DENSE_POSITIVES if dense else FEWEST_POSITIVES,
        least_mass=DENSE_MASS_KEPT if dense else LEAST_MASS_KEPT,
    )
