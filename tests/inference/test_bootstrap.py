"""The bootstrap: multinomial counts, percentile limits, everything resampled together."""

from __future__ import annotations

import numpy as np
import pytest

from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.inference.bootstrap import percentile_interval, resample_counts
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derive
from tests.support import SmallLog, build_test


def test_counts_are_multinomial() -> None:
    counts = resample_counts(50, 4000, seed=1)
    assert (counts.sum(axis=1) == 50).all()
    # mean 1, variance 1 − 1/G, covariance −1/G
    assert counts.mean() == pytest.approx(1.0)
    error = np.sqrt(2.0 / counts.size)
    assert abs(counts.var() - 0.98) < 4 * 3 * error
    assert abs(np.cov(counts[:, 0], counts[:, 1])[0, 1] + 0.02) < 4 / np.sqrt(4000)
    assert np.array_equal(counts, resample_counts(50, 4000, seed=1))
    assert not np.array_equal(counts, resample_counts(50, 4000, seed=2))


def test_percentiles_leave_out_what_does_not_exist() -> None:
    values = np.array([np.nan, 1.0, 2.0, 3.0, np.inf, 4.0, 5.0])
    assert percentile_interval(values, 0.5) == (2.0, 4.0)
    assert np.isnan(percentile_interval(np.full(3, np.nan), 0.9)).all()


@pytest.mark.parametrize("key", ["is", "cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive", "nis", "dr"])
def test_limits_are_those_of_resampled_rows(key: str) -> None:
    """Each replicate recomputed from the rows themselves, repeated as often as their bucket."""
    log = SmallLog(rows=300, units=80, seed=4)
    g, resamples = 64, 200
    test = build_test([key], buckets=g, n_resamples=resamples, seed=9)
    estimate = test.run(log.table()).metrics["click"].estimates[key]
    bucket = (derive(hash_integers(log.unit), BUCKET_SALT) % np.uint64(g)).astype(int)
    h = log.weights(key, 2.0, 3.0)
    absolute, relative = [], []
    for counts in resample_counts(g, resamples, seed=9):
        m = counts[bucket]
        n, mean = m.sum(), (m * log.click).sum() / m.sum()
        if key == "dr":
            theta = (m * ((log.click - log.value) * h + log.value)).sum() / n
        elif key in ("nis", "ncis"):
            theta = (m * h * log.click).sum() / (m * h).sum()
        elif key == "piece-ncis":
            theta = 0.0
            for s in range(3):
                rows = log.stratum == s
                weight = (m * h)[rows].sum()
                theta += m[rows].sum() / n * ((m * h * log.click)[rows].sum() / weight if weight else 0.0)
        else:
            theta = (m * h * log.click).sum() / n
        absolute.append(theta - mean)
        relative.append(theta / mean - 1.0)
    lower, upper = np.quantile(absolute, [0.05, 0.95])
    assert estimate.effect_size_ci_lower == pytest.approx(lower, rel=1e-9)
    assert estimate.effect_size_ci_upper == pytest.approx(upper, rel=1e-9)
    lower, upper = np.quantile(relative, [0.05, 0.95])
    assert estimate.rel_effect_size_ci_lower == pytest.approx(lower, rel=1e-9)
    assert estimate.rel_effect_size_ci_upper == pytest.approx(upper, rel=1e-9)


def test_a_stratum_may_vanish_from_a_replicate() -> None:
    """A stratum that lives in one bucket: replicates without it give it no value, and shares are their own."""
    log = SmallLog(rows=300, units=80, seed=4)
    log.stratum = np.where(log.unit == log.unit[0], 1, 0)
    test = build_test(["piece-ncis"], buckets=16, n_resamples=300)
    estimate = test.run(log.table()).metrics["click"].estimates["piece-ncis"]
    assert np.isfinite([estimate.effect_size_ci_lower, estimate.effect_size_ci_upper]).all()
