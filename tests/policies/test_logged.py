"""Logged: what it says of the shown ranking, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.kernels.hashing import hash_integers
from foretest.policies import Logged


def rows_of(p: list[float]) -> Displays:
    n = len(p)
    shown = Ragged.of([np.zeros(1, np.int32)] * n)
    return Displays({"p": np.array(p)}, shown, np.full(n, 2), hash_integers(np.arange(n)))


def test_probabilities_and_their_logarithms() -> None:
    rows = rows_of([0.5, 1.0, 1e-300, 0.0])
    answer = Logged(prob="p").log_prob(rows, rows.ranking)
    np.testing.assert_allclose(answer, [np.log(0.5), 0.0, np.log(1e-300), -np.inf])
    rows = rows_of([-0.25, 0.0, -690.0])
    assert Logged(log_prob="p").log_prob(rows, rows.ranking).tolist() == [-0.25, 0.0, -690.0]


def test_single_precision_and_integers_become_double() -> None:
    rows = Displays(
        {"p": np.array([0.5, 0.1], np.float32), "one": np.array([1, 0])},
        Ragged.of([np.zeros(1, np.int32)] * 2), np.full(2, 2), hash_integers(np.arange(2)),
    )  # fmt: skip
    expected = np.log(np.array([0.5, 0.1], np.float32).astype(np.float64))
    assert Logged(prob="p").log_prob(rows, rows.ranking).tolist() == expected.tolist()
    assert Logged(prob="one").log_prob(rows, rows.ranking).tolist() == [0.0, -np.inf]


def test_it_prices_no_other_ranking_and_draws_none() -> None:
    policy, rows = Logged(prob="p"), rows_of([0.5])
    assert not policy.can_draw
    with pytest.raises(BadInput, match=r"^a logged policy cannot price a ranking that was not shown\.$"):
        policy.log_prob(rows, Ragged.of([np.ones(1, np.int32)]))
    with pytest.raises(NotImplementedError, match="Logged has no sample"):
        policy.sample(rows, np.full((1, 3), 0.5))


def test_it_needs_a_column() -> None:
    with pytest.raises(BadInput, match=r'^the policy "logged" needs log_prob = "column" or prob = "column"\.$'):
        Logged()
