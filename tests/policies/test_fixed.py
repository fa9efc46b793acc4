"""Fixed: the ranking of a column, over all rankings, and as the treatment or the control of whole tests."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.kernels.hashing import hash_integers
from foretest.policies import Fixed
from foretest.testing import check_policy
from tests.support import SCORES, SmallLog, build_test

KEYS = ["is", "cis", "point-ncis-adaptive", "iips", "rips", "slot-ncis-adaptive"]
OWN = [4, 1, 0, 6, 2]  # of seven items: two are never shown


def displays(rankings: list[tuple[int, ...]]) -> Displays:
    n = len(rankings)
    own = Ragged(np.array(OWN, np.int32), np.zeros(n, np.int64), np.full(n, len(OWN)))
    shown = Ragged.of(np.array(rankings, np.int32))
    return Displays({"r": own}, shown, np.full(n, 7), hash_integers(np.arange(n)))


@pytest.mark.parametrize("k", [1, 3, 5])
def test_one_of_all_rankings_is_certain(k: int) -> None:
    every = list(permutations(range(7), k))
    rows = displays(every)
    log_p = Fixed("r").log_prob(rows, rows.ranking)
    assert [every[i] for i in np.flatnonzero(log_p == 0.0)] == [tuple(OWN[:k])]
    assert np.count_nonzero(log_p == -np.inf) == len(every) - 1
    drawn = Fixed("r").sample(rows, np.random.default_rng(0).random((len(rows), 8)))
    assert (drawn.flat().reshape(-1, k) == OWN[:k]).all()
    table = Fixed("r").slot_marginals(rows.take(np.arange(3)))
    for row in range(3):
        wanted = [[float(item == OWN[slot]) for item in range(7)] for slot in range(k)]
        assert table[row].reshape(k, 7).tolist() == wanted


def test_lists_of_different_lengths() -> None:
    own = Ragged.of([np.array(x, np.int32) for x in ([2, 0, 1], [0], [3, 1])])
    shown = Ragged.of([np.array(x, np.int32) for x in ([2, 0], [0], [1, 3])])
    rows = Displays({"r": own}, shown, np.array([3, 1, 4]), hash_integers(np.arange(3)))
    assert Fixed("r").log_prob(rows, rows.ranking).tolist() == [0.0, 0.0, -np.inf]
    assert [row.tolist() for row in Fixed("r").sample(rows, np.empty((3, 5)))] == [[2, 0], [0], [3, 1]]


def test_it_declares_what_it_reads() -> None:
    policy = Fixed("r", prob="p")
    assert (policy.columns, policy.score_columns, policy.ranking_columns) == (("r", "p"), (), ("r",))
    assert policy.deterministic
    assert not policy.full_support
    mixed = ft.Mixture([(1, Fixed("r")), (1, ft.PlackettLuce("s")), (1, Fixed("q"))])
    assert (mixed.columns, mixed.ranking_columns) == (("r", "s", "q"), ("r", "q"))


def test_check_policy_takes_rows_of_a_log() -> None:
    report = check_policy(Fixed("r"), {"r": [[2, 0, 1], [0], [3, 1, 2]]}, slots=2)
    assert report.displays == 2  # a list of one item shows no two
    assert report.rankings == 6 + 12


def test_as_a_treatment_it_equals_the_sort_of_its_scores() -> None:
    """Against every estimator's answer for top-k, whose ranking the column holds, by position and by id."""
    log = SmallLog(rows=300, seed=3)
    best = np.argsort(-log.treatment, axis=1, kind="stable")
    ids = np.array([f"item {i}" for i in range(log.m)])
    table = log.table(
        best=pa.array(best.tolist()), shown=pa.array(ids[log.rankings[log.shown]].tolist()),
        best_ids=pa.array(ids[best[:, : log.k]].tolist()), items=pa.array([ids.tolist()] * log.rows),
    )  # fmt: skip
    test = build_test(KEYS)
    by_id = ft.LogColumns(
        rewards=["click"],
        unit="user",
        ranking="shown",
        candidates="items",
        id="id",
        slot_rewards={"click": "slot_click"},
    )
    answers = [
        run(test.settings.log, SCORES["control"], ft.TopK("treatment_scores"), table),
        run(test.settings.log, SCORES["control"], Fixed("best"), table),
        run(by_id, SCORES["control"], Fixed("best_ids"), table),
    ]
    assert answers[0] == answers[1] == answers[2]
    certain = (log.rankings[log.shown] == best[:, : log.k]).all(axis=1)
    expected = (certain * log.click * np.exp(-log.log_p[np.arange(log.rows), log.shown])).mean()
    assert answers[1]["is"].treatment == pytest.approx(expected, rel=1e-10)


def run(log: ft.LogColumns, control: ft.Policy, treatment: ft.Policy, table: pa.Table) -> dict[str, Any]:
    test = ft.OfflineTest(log=log, control=control, treatment=treatment, estimators=KEYS, n_resamples=50)
    return dict(test.run(table).metrics["click"].estimates)


def test_two_fixed_policies_need_no_list_of_items() -> None:
    """Both columns hold positions, and nothing else says how many items a row has: those that are named."""
    log = SmallLog(rows=200, seed=5)
    shown = log.rankings[log.shown]
    other = np.where(np.arange(200)[:, None] % 3 == 0, shown, (shown + 1) % log.m)
    table = log.table(new=pa.array(other.tolist()))
    answers = run(build_test(KEYS).settings.log, Fixed("ranking"), Fixed("new"), table)
    same = np.arange(200) % 3 == 0
    assert answers["is"].treatment == pytest.approx((same * log.click).mean(), rel=1e-12)
    assert answers["iips"].treatment == pytest.approx((same * log.click).mean(), rel=1e-12)
    assert answers["is"].verdict == "insufficient"  # a control that never varies


def test_positions_that_are_ids_are_refused() -> None:
    log = SmallLog(rows=20)
    ids = (log.rankings[log.shown] + 10_000).tolist()
    columns = {"click": log.click, "shown": ids, "new": ids}
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="shown"), control=Fixed("shown"), treatment=Fixed("new")
    )
    with pytest.raises(ft.BadInput, match=r"row 0 .* is beyond 10,000, and the row has no list of items; 20 rows"):
        test.run(pa.table(columns))


def test_as_a_control_what_was_shown_is_its_ranking() -> None:
    log = SmallLog(rows=60)
    own = log.rankings[log.shown]
    treatment = SCORES["treatment"]
    result = run(build_test(KEYS).settings.log, Fixed("own"), treatment, log.table(own=pa.array(own.tolist())))
    t = np.exp(log.log_t[np.arange(60), log.shown])
    assert result["is"].treatment == pytest.approx((t * log.click).mean(), rel=1e-10)
    # what was shown counts where that is another: the audit says how often
    own[[20, 40]] = own[[20, 40], ::-1]
    again = run(build_test(KEYS).settings.log, Fixed("own"), treatment, log.table(own=pa.array(own.tolist())))
    assert again["is"].treatment == result["is"].treatment


def test_batches_of_any_size(tmp_path: Path) -> None:
    """From memory and from a file, in batches of other sizes."""
    log = SmallLog(rows=200, seed=8)
    best = np.argsort(-log.treatment, axis=1, kind="stable")
    table = log.table(best=pa.array(best.tolist()))
    test = ft.OfflineTest(
        log=build_test(KEYS).settings.log, control=SCORES["control"], treatment=Fixed("best"), estimators=KEYS,
        n_resamples=50,
    )  # fmt: skip
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=64)
    whole = test.run(table).metrics["click"].estimates
    again = test.run(tmp_path / "log.parquet", batch_rows=37).metrics["click"].estimates
    for key in KEYS:
        assert again[key].effect_size_ci_upper == pytest.approx(whole[key].effect_size_ci_upper, abs=1e-12)
