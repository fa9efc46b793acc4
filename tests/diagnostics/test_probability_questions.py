"""Columns of probabilities that belong to other rows are questioned, right ones are not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.diagnostics.probability_questions import standard_ranks


def questions(log_p: np.ndarray, log_t: np.ndarray) -> list[str]:
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(log_prob="p"), treatment=ft.Logged(log_prob="t")
    )
    click = np.arange(len(log_p)) % 7 == 0
    return list(test.check(pa.table({"p": log_p, "t": log_t, "click": click.astype(float)})).health["questions"])


def bandit(rows: int, epsilon: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """One slot of ten items, two models that agree in part; the control by softmax, or epsilon-greedy."""
    rng = np.random.default_rng(2)
    appeal = rng.normal(size=(rows, 10))
    p, t = (appeal + rng.normal(size=appeal.shape) for _ in range(2))
    prob, log_t = (np.exp(s - np.logaddexp.reduce(s, axis=1, keepdims=True)) for s in (p, t))
    if epsilon is not None:
        prob = (1.0 - epsilon) * (p == p.max(axis=1, keepdims=True)) + epsilon / 10
    shown = (prob.cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1)
    return np.log(prob[np.arange(rows), shown]), np.log(log_t[np.arange(rows), shown])


@pytest.mark.parametrize("epsilon", [None, 0.3])
def test_rows_that_were_moved_are_asked_for(epsilon: float | None) -> None:
    log_p, log_t = bandit(3000, epsilon)
    assert questions(log_p, log_t) == []
    assert questions(log_p, np.roll(log_t, 1)) == ["order of rows"]
    assert questions(np.roll(log_p, 1), log_t) == ["order of rows"]


def test_a_uniform_control_and_a_short_log_say_nothing() -> None:
    _, log_t = bandit(3000)
    assert questions(np.full(3000, np.log(0.1)), log_t) == []
    log_p, log_t = bandit(90)
    assert questions(log_p, np.roll(log_t, 1)) == []


def test_ranks_are_those_of_scipy() -> None:
    from scipy.stats import rankdata

    values = np.random.default_rng(1).integers(0, 6, 50).astype(float)
    ranks = rankdata(values)
    found = standard_ranks(values)
    assert found is not None
    np.testing.assert_allclose(found, (ranks - ranks.mean()) / ranks.std())
    assert standard_ranks(np.zeros(5)) is None
