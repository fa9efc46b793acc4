"""Top-K against the sort by score, and as a treatment and a control of whole tests."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.kernels.hashing import hash_integers
from foretest.policies import EpsilonGreedy, TopK

SCORES = [0.5, 2.0, 0.5, -1.0, 2.0, 7.0, -1.0]
ORDER = [5, 1, 4, 0, 2, 3, 6]  # ties go to the lower position


def displays(rankings: list[tuple[int, ...]]) -> Displays:
    n = len(rankings)
    lists = Ragged(np.array(SCORES), np.zeros(n, np.int64), np.full(n, len(SCORES)))
    return Displays({"s": lists}, Ragged.of(np.array(rankings, np.int32)), lists.lengths, hash_integers(np.arange(n)))


@pytest.mark.parametrize("k", [1, 3, 7])
def test_one_of_all_rankings_is_certain(k: int) -> None:
    every = list(permutations(range(7), k))
    rows = displays(every)
    log_p = TopK("s").log_prob(rows, rows.ranking)
    assert [every[i] for i in np.flatnonzero(log_p == 0.0)] == [tuple(ORDER[:k])]
    assert np.count_nonzero(log_p == -np.inf) == len(every) - 1
    drawn = TopK("s").sample(rows, np.random.default_rng(0).random((len(rows), 8)))
    assert (drawn.flat().reshape(-1, k) == ORDER[:k]).all()


def test_slot_marginals_are_zero_or_one() -> None:
    table = TopK("s").slot_marginals(displays([(0, 1, 2)]))[0].reshape(3, 7)
    assert table.tolist() == [[float(item == ORDER[slot]) for item in range(7)] for slot in range(3)]


def test_it_declares_what_it_is() -> None:
    assert TopK("s").deterministic
    assert not TopK("s").full_support
    assert TopK("s").can_draw


def log_of(rows: int = 400) -> pa.Table:
    g = np.random.default_rng(5)
    new = np.round(g.normal(size=(rows, 4)), 1)
    shown = np.array([g.permutation(4)[:2] for _ in range(rows)])
    return pa.table({
        "ranking": shown.tolist(), "new": new.tolist(), "old": g.normal(size=(rows, 4)).tolist(),
        "click": g.random(rows) < 0.5, "display": np.arange(rows),
    })  # fmt: skip


def run(control: ft.Policy, treatment: ft.Policy, table: pa.Table) -> ft.Result:
    return ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking", id="display"), control=control, treatment=treatment,
        estimators=["is", "ncis", "point-ncis-adaptive"],
    ).run(table)  # fmt: skip


def test_as_a_treatment_it_is_epsilon_greedy_that_never_explores() -> None:
    table, uniform = log_of(), EpsilonGreedy("old", 1.0)
    ours, same = (run(uniform, p, table).metrics["click"].estimates for p in (TopK("new"), EpsilonGreedy("new", 0.0)))
    assert ours == same
    best = np.argsort(-np.array(table["new"].to_pylist()), axis=1, kind="stable")[:, :2]
    is_best = (np.array(table["ranking"].to_pylist()) == best).all(axis=1)
    expected = 12.0 * (is_best & table["click"].to_numpy()).mean()  # each of 4·3 rankings is as likely
    assert ours["is"].treatment == pytest.approx(expected, rel=1e-12)


def test_as_a_control_what_was_shown_counts() -> None:
    table = log_of()
    best = np.argsort(-np.array(table["new"].to_pylist()), axis=1, kind="stable")[:, :2]
    right = table.set_column(0, "ranking", pa.array(best.tolist()))
    result = run(TopK("new"), ft.PlackettLuce("new"), right)
    assert result.health["control_deterministic"]
    assert result.audit is not None
    assert next(f for f in result.audit.findings if f.name == "as served").outcome == "pass"
    best[7] = best[7, ::-1]
    result = run(TopK("new"), ft.PlackettLuce("new"), table.set_column(0, "ranking", pa.array(best.tolist())))
    assert result.audit is not None
    assert next(f for f in result.audit.findings if f.name == "as served").outcome == "warn"
