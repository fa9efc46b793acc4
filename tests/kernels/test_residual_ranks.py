"""Residual ranks against a list that shrinks, and back again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretest.displays.ragged import Ragged
from foretest.kernels.residual_ranks import items_at, residual_ranks


def ranks_of(scores: Ragged, rankings: Ragged) -> list[int]:
    out = np.empty(int(rankings.lengths.sum()), np.int64)
    residual_ranks(
        scores.values, scores.starts, scores.lengths, rankings.values, rankings.starts, rankings.lengths, out
    )
    return out.tolist()


def plain_ranks(scores: list[float], ranking: list[int]) -> list[int]:
    left = sorted(range(len(scores)), key=lambda j: (-scores[j], j))
    out = []
    for item in ranking:
        out.append(left.index(item))
        left.remove(item)
    return out


rows = st.lists(st.sampled_from([-1.5, 0.0, 0.25, 2.0]), min_size=1, max_size=7).flatmap(
    lambda scores: st.tuples(
        st.just(scores),
        st.permutations(range(len(scores))).flatmap(
            lambda order: st.integers(1, len(order)).map(lambda k: list(order[:k]))
        ),
    )
)


@settings(max_examples=60, deadline=None)
@given(st.lists(rows, min_size=1, max_size=5), st.sampled_from([np.float32, np.float64]))
def test_ranks_with_ties_and_back(displays: list[tuple[list[float], list[int]]], kind: type) -> None:
    scores = Ragged.of([np.array(s, kind) for s, _ in displays])
    rankings = Ragged.of([np.array(r, np.int32) for _, r in displays])
    expected = [rank for s, r in displays for rank in plain_ranks(s, r)]
    assert ranks_of(scores, rankings) == expected
    items = np.array(expected, np.int32)
    items_at(scores.values, scores.starts, scores.lengths, items, rankings.lengths)
    assert items.tolist() == rankings.flat().tolist()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_marks_its_row_alone(bad: float) -> None:
    scores = Ragged.of([np.array([1.0, 2.0]), np.array([1.0, bad, 0.0]), np.array([3.0])])
    rankings = Ragged.of([np.array([0, 1]), np.array([0, 2]), np.array([0])])
    assert ranks_of(scores, rankings) == [1, 0, -1, -1, 0]
