"""What counts as a dense reward."""

from __future__ import annotations

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.quantities import POSITIVE_DISPLAYS
from foretest.weights.weightings import Weighting

LEAST_SHARE = 0.1  # of rows with a reward: a ratio then varies a tenth less than a mean, or better


def is_dense_ratio(aggregates: Aggregates, weighting: Weighting, metric: int) -> bool:
    """Is the value of a metric a ratio of sums over all rows, of rewards that are dense?"""
    share = aggregates.ledger.plain.total(POSITIVE_DISPLAYS, metric) / max(1, aggregates.displays)
    return weighting.pointwise and aggregates.has_weights(weighting) and share >= LEAST_SHARE
