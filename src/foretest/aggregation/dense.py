"""What counts as a dense reward."""

from __future__ import annotations

from foretest.aggregation.aggregates import Aggregates
from foretest.weights.weightings import Weighting

LEAST_SHARE = 0.1  # of rows with a reward: a ratio then varies a tenth less than a mean, or better


def is_dense_ratio(aggregates: Aggregates, weighting: Weighting, metric: int) -> bool:
    """Is the value of a metric a ratio of sums over all rows, of rewards that are dense?"""
    positives = aggregates.positives if aggregates.thinned is None else aggregates.thinned.positives
    share = float(positives[metric]) / max(1, aggregates.displays)
    return weighting.pointwise and weighting in aggregates.h and share >= LEAST_SHARE
