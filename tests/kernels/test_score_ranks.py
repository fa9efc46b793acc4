"""What the audit counts: the places of items among their scores, and how often they are shown together."""

from __future__ import annotations

import numpy as np

from foretest.displays.ragged import Ragged
from foretest.kernels.cell_counts import cell_counts
from foretest.kernels.score_ranks import ranks_by_score


def test_ranks_are_places_in_the_sorted_scores() -> None:
    rng = np.random.default_rng(2)
    lengths = rng.integers(1, 13, 200)
    scores = Ragged.packed(np.round(rng.normal(size=lengths.sum())), lengths)  # with ties
    positions = np.full((200, 2, 3), -1, np.int32)
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
