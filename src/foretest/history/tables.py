"""The table of agreement of each metric: one row per estimator, over the tests that have it offline and online."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from foretest.displays.batch import Floats
from foretest.files import nan_if_none
from foretest.history.agreement import DECISIONS, Pairs, figures
from foretest.history.range_and_word import FULL_WORDS, WITH_LEANS, Seen
from foretest.history.records import Noise, PastTest
from foretest.results.range_text import range_of
from foretest.results.result import Estimate
from foretest.special import ndtri

Table = dict[str, dict[str, float | None]]  # estimator, figure


def agreement_tables(
    tests: Sequence[PastTest], truth: Mapping[str, float], levels: Mapping[str, float]
) -> dict[str, Table]:
    """The figures of each metric and estimator; `truth`, the first metric's, and confidence `levels` are by test."""
    tables: dict[str, Table] = {}
    metrics = list(dict.fromkeys(metric for test in tests for metric in test.metrics))
    for metric in metrics:
        known = truth if metric == metrics[0] else {}
        labels = dict.fromkeys(
            label for test in tests if metric in test.metrics for label in test.metrics[metric].offline
        )
        tables[metric] = {}
        for label in labels:
            pairs = pairs_of(tests, metric, label, known, levels)
            tables[metric][label] = {"tests": len(pairs.x), **figures(pairs)}
    return tables


class _Pair(NamedTuple):
    """One test's estimates of a metric."""

    offline: Estimate
    online: Estimate
    noise: Noise
    cis: Estimate | None
    truth: float | None
    confidence_level: float


def pairs_of(
    tests: Sequence[PastTest], metric: str, label: str, truth: Mapping[str, float], levels: Mapping[str, float]
) -> Pairs:
    """The tests in which both the estimator and the online test have an uplift, as columns."""
    pairs = []
    for test in tests:
        if metric not in test.metrics or label not in test.metrics[metric].offline:
            continue
        past = test.metrics[metric]
        pair = _Pair(
            past.offline[label], past.online, past.noise[label], past.offline.get("cis"), truth.get(test.name),
            levels[test.name],
        )  # fmt: skip
        if pair.offline.rel_effect_size is not None and pair.online.rel_effect_size is not None:
            pairs.append(pair)
    bounds = [pair.noise.covariance_bound for pair in pairs]
    return Pairs(
        x=_column(pair.offline.rel_effect_size for pair in pairs),
        y=_column(pair.online.rel_effect_size for pair in pairs),
        x_error=_column(pair.noise.offline_error for pair in pairs),
        y_error=_column(pair.noise.online_error for pair in pairs),
        covariance=_column(pair.noise.covariance for pair in pairs),
        lower=_column(pair.offline.rel_effect_size_ci_lower for pair in pairs),
        upper=_column(pair.offline.rel_effect_size_ci_upper for pair in pairs),
        offline=np.array([DECISIONS[pair.offline.verdict] for pair in pairs], np.int64),
        online=np.array([DECISIONS[pair.online.verdict] for pair in pairs], np.int64),
        cis_width=_column(_width(pair.cis) for pair in pairs),
        truth=_column(pair.truth for pair in pairs),
        seen=_seen(pairs),
        covariance_bound=_column(bounds) if any(bound is not None for bound in bounds) else None,
    )


def _seen(pairs: Sequence[_Pair]) -> Seen:
    ranges = [range_of(pair.offline) for pair in pairs]
    return Seen(
        lower=_column(limits.rel_ci_lower for limits in ranges),
        upper=_column(limits.rel_ci_upper for limits in ranges),
        z=ndtri(0.5 + 0.5 * _column(pair.confidence_level for pair in pairs)),
        word=np.array([FULL_WORDS[pair.offline.word] for pair in pairs], np.int64),
        leaning=np.array([WITH_LEANS[pair.offline.word] for pair in pairs], np.int64),
    )


def _column(values: Iterable[float | None]) -> Floats:
    return np.array([nan_if_none(value) for value in values], np.float64)


def _width(estimate: Estimate | None) -> float | None:
    """The width of an estimate's relative interval."""
    if estimate is None or estimate.rel_effect_size_ci_lower is None or estimate.rel_effect_size_ci_upper is None:
        return None
    return estimate.rel_effect_size_ci_upper - estimate.rel_effect_size_ci_lower
