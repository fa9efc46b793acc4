"""Sums by bin of log w: every cap of the path against NumPy on the rows."""

from __future__ import annotations

import numpy as np

from foretest.aggregation.ledger import Account
from foretest.aggregation.weight_bins import BINS, CAPS, WeightBins


def rows(n: int = 3000, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    log_w = rng.normal(scale=6.0, size=n)
    log_w[:6] = [-np.inf, -700.0, 690.0, np.log(CAPS[0]), np.log(CAPS[50]), np.log(CAPS[-1])]
    rewards = np.where(rng.random((n, 2)) < 0.3, 4.0 * rng.random((n, 2)), 0.0)
    rewards[:6] = 1.0
    return log_w, rng.integers(0, 5, n), rewards


def binned(log_w: np.ndarray, bucket: np.ndarray, rewards: np.ndarray) -> WeightBins:
    bins = WeightBins(Account(), 5)
    take_in(bins, log_w, bucket, rewards)
    return bins


def take_in(bins: WeightBins, log_w: np.ndarray, bucket: np.ndarray, rewards: np.ndarray) -> None:
    bins.add(log_w, bucket, np.ones(len(log_w)))
    some = np.flatnonzero(rewards.any(axis=1))
    bins.add_rewarded(log_w[some], bucket[some], rewards[some])


def capped_directly(
    log_w: np.ndarray, bucket: np.ndarray, amount: np.ndarray, cap: float
) -> np.ndarray:  # fmt: skip
    with np.errstate(over="ignore"):
        return np.bincount(bucket, weights=np.minimum(np.exp(log_w), cap) * amount, minlength=5)


def test_the_path_is_quarter_decades() -> None:
    assert len(CAPS) == 113
    np.testing.assert_allclose(CAPS[[0, 12, 14, 20, -1]], [1e-3, 1.0, np.sqrt(10), 100.0, 1e25], rtol=1e-12)
    assert len(CAPS) + 1 == BINS


def test_capped_sums_at_every_cap() -> None:
    log_w, bucket, rewards = rows()
    bins = binned(log_w, bucket, rewards)
    for metric in (0, 1):
        w, wr = bins.capped_sums(metric)
        assert w.shape == wr.shape == (5, len(CAPS))
        for j, cap in enumerate(CAPS):
            expected = capped_directly(log_w, bucket, np.ones(len(log_w)), cap)
            np.testing.assert_allclose(w[:, j], expected, rtol=1e-11)
            np.testing.assert_allclose(wr[:, j], capped_directly(log_w, bucket, rewards[:, metric], cap), rtol=1e-11)


def test_squares_and_counts_by_bin() -> None:
    log_w, bucket, rewards = (column[6:] for column in rows())  # on an edge, rounding decides
    bins = binned(log_w, bucket, rewards)
    place = np.searchsorted(np.log(CAPS), log_w, side="right")
    assert bins.n.reshape(5, BINS).sum(axis=0).tolist() == np.bincount(place, minlength=BINS).tolist()
    w = np.exp(log_w)
    for metric in (0, 1):
        r = rewards[:, metric]
        for which, amount in enumerate((r, w * r, r**2, (w * r) ** 2)):
            got = bins.rewards(metric)[which].reshape(5, BINS).sum(axis=0)
            np.testing.assert_allclose(got, np.bincount(place, weights=amount, minlength=BINS), rtol=1e-11)


def test_rows_without_weight_fall_in_the_lowest_bin() -> None:
    bins = WeightBins(Account(), 1)
    take_in(bins, np.array([-np.inf, -1000.0]), np.zeros(2, np.int64), np.ones((2, 1)))
    assert bins.n.reshape(1, BINS)[0, 0] == 2
    w, wr = bins.capped_sums(0)
    assert (w == 0.0).all()
    assert (wr == 0.0).all()
