"""The audit of a log of several loggers takes each row against its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft

ROWS, M, K = 4000, 5, 2
OF_DRAWS = ("log-likelihood", "rank among draws", "items by slot")


def log_of(seed: int, swapped: bool = False) -> pa.Table:
    g = np.random.default_rng(seed)
    scores = {name: 1.5 * g.normal(size=(ROWS, M)) for name in ("new", "old", "treatment")}
    is_old = g.random(ROWS) < 0.4
    served = np.where(is_old[:, None], scores["old"], scores["new"])
    shown = np.argsort(-(served + g.gumbel(size=(ROWS, M))), axis=1)[:, :K]
    return pa.table({
        "click": g.random(ROWS) < 0.2,
        "id": np.arange(ROWS),
        "policy": np.where(is_old != swapped, "old", "new"),
        "ranking": shown.tolist(),
        **{f"{name}_scores": s.tolist() for name, s in scores.items()},
    })  # fmt: skip


def outcomes(table: pa.Table, **analysis: Any) -> dict[str, str]:
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking", id="id", logger="policy"),
        control={name: ft.PlackettLuce(scores=f"{name}_scores") for name in ("new", "old")},
        treatment=ft.PlackettLuce(scores="treatment_scores"),
        estimators=["cis"],
        baseline="new",
        **analysis,
    )
    answer = test.check(table).audit
    assert answer is not None
    return {finding.name: finding.outcome for finding in answer.findings}


def test_a_right_log_passes():
    by_test = outcomes(log_of(1))
    assert [by_test[name] for name in OF_DRAWS] == ["pass", "pass", "pass"]


@pytest.mark.parametrize("name", ["log-likelihood", "rank among draws"])
def test_rows_under_the_wrong_logger_fail(name):
    # the mixture of both is the same: only a row's own logger can tell
    assert outcomes(log_of(1, swapped=True))[name] == "fail"
