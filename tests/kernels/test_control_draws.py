"""Draws of the audit: those of the policy's own sampler, priced as its own log-probability prices them."""

from __future__ import annotations

import numpy as np
import pytest

from foretest.arrow_lists import Ragged
from foretest.kernels.cell_counts import cell_counts
from foretest.kernels.control_draws import control_draws, ranks_by_score
from foretest.kernels.plackett_luce import log_prob, sample
from foretest.kernels.random import uniforms

KEYS = np.arange(200).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def ragged_scores(spread: float, dtype: type) -> tuple[Ragged, np.ndarray]:
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 13, 200)
    values = (spread * rng.normal(size=int(lengths.sum()))).astype(dtype)
    return Ragged.packed(values, lengths), np.minimum(lengths, rng.integers(1, 6, 200))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 2000.0])
def test_draws_are_those_of_the_sampler(spread: float, dtype: type) -> None:
    """Scores 30 apart leave tails to be added up anew, scores 2 000 apart underflow."""
    scores, slots = ragged_scores(spread, dtype)
    log_p, shown = control_draws(
        scores.values, scores.starts, scores.lengths, slots, 1.0 / 0.7, KEYS, 3, 4, 5, 2, 4
    )  # fmt: skip
    u = uniforms(3, 4, KEYS, 0, 5, 13)
    for d in range(5):
        drawn = np.empty(int(slots.sum()), np.int32)
        sample(scores.values, scores.starts, scores.lengths, slots, 1.0 / 0.7, u[:, d], drawn)
        rankings = Ragged.packed(drawn, slots)
        priced = log_prob(
            scores.values, scores.starts, scores.lengths, rankings.values, rankings.starts, rankings.lengths, 1.0 / 0.7
        )
        np.testing.assert_allclose(log_p[:, d], priced, rtol=1e-11, atol=1e-11)
        if d < 2:
            for i in range(200):
                wanted = rankings[i][:4].tolist()
                assert shown[i, d].tolist() == wanted + [-1] * (4 - len(wanted))


def test_ranks_are_places_in_the_sorted_scores() -> None:
    scores, _ = ragged_scores(1.0, np.float64)
    scores = Ragged.packed(np.round(scores.values), scores.lengths)  # with ties
    positions = np.full((200, 2, 3), -1, np.int32)
    rng = np.random.default_rng(2)
    for i, n in enumerate(scores.lengths):
        for r in range(2):
            k = min(int(n), 3)
            positions[i, r, :k] = rng.permutation(int(n))[:k]
    found = ranks_by_score(scores.values, scores.starts, scores.lengths, positions, 6)
    for i in range(200):
        order = np.argsort(-scores[i], kind="stable")
        for at, rank in zip(positions[i].ravel(), found[i].ravel(), strict=True):
            assert rank == (255 if at < 0 else min(6, order.tolist().index(at)))


def test_cell_counts_are_a_matrix_product() -> None:
    codes = np.random.default_rng(3).integers(0, 7, (50, 5))
    shares = np.eye(7)[codes].mean(axis=1)
    total, covariance = cell_counts(codes, 7)
    np.testing.assert_allclose(total, shares.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(covariance, np.diag(shares.sum(axis=0)) - shares.T @ shares, rtol=1e-12, atol=1e-12)
