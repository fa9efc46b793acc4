"""Thinned logs: the audit on displays that stand for equally many each, and what keep and rewards ask for together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation.thinning import MULTIPLE, evenly_thinned
from foretest.diagnostics.audit import item_slots, likelihood, possible_weights
from foretest.diagnostics.thinning_questions import INVERTED, NO_UNREWARDED
from foretest.kernels.hashing import hash_integers
from foretest.simulate import WORLDS, simulate_log


def thin(table: pa.Table, keep: np.ndarray, seed: int) -> pa.Table:
    """The rows of a log that are kept, with keep."""
    some = np.flatnonzero(np.random.default_rng(seed).random(len(table)) < keep)
    return table.append_column("keep", pa.array(keep)).take(some)


def check(table: pa.Table, **columns: Any) -> Any:
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="display_id", **columns),
        control=ft.PlackettLuce(scores="control_scores"),
        treatment=ft.PlackettLuce(scores="treatment_scores"),
    )
    return test.check(table)


def world(rows: int, seed: int) -> pa.Table:
    return pa.Table.from_batches(simulate_log(WORLDS["rewards"], rows=rows, seed=seed))


def test_accepted_displays_stand_for_equally_many() -> None:
    """Each row is accepted with probability min keep/keep: shares are those of the log before it was thinned."""
    g = np.random.default_rng(0)
    rewarded = g.random(400_000) < 0.2
    keep = np.where(rewarded, 0.8, 0.1)
    there = g.random(400_000) < keep
    unit = hash_integers(np.arange(400_000))
    columns = {"unit": unit, "key": unit, MULTIPLE: 1.0 / keep, "r": rewarded.astype(float)}
    sample = evenly_thinned({name: column[there] for name, column in columns.items()})
    share, count = sample["r"].mean(), len(sample["r"])
    assert count == pytest.approx(40_000, abs=5 * np.sqrt(40_000))
    assert share == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / count))
    again = evenly_thinned(sample)  # hashes are fixed: those that are accepted stay
    assert len(again["r"]) == count


def best_item_earns(rows: int, seed: int) -> pa.Table:
    """Displays of one item of five, whose reward depends on whether the best-scored was shown."""
    g = np.random.default_rng(seed)
    scores = g.normal(size=(rows, 5))
    shown = (scores + g.gumbel(size=scores.shape)).argmax(axis=1)  # a draw of the softmax
    click = g.random(rows) < np.where(shown == scores.argmax(axis=1), 0.3, 0.02)
    return pa.table({
        "click": click.astype(float), "user": g.integers(0, rows // 2, rows), "display_id": np.arange(rows),
        "ranking": pa.array(shown[:, None].tolist(), pa.list_(pa.int32())),
        "control_scores": pa.array(scores.tolist()),
        "treatment_scores": pa.array((scores + 0.5 * g.normal(size=scores.shape)).tolist()),
    })  # fmt: skip


@pytest.mark.slow
def test_the_audit_of_right_logs_passes_and_on_all_rows_would_fail() -> None:
    """Rows are kept by their reward, which depends on what was shown: on all rows the tests of draws fail."""
    with_keep, without = [], []
    for seed in range(20):
        table = best_item_earns(8_000, seed)
        thinned = thin(table, np.where(np.asarray(table["click"]) > 0, 1.0, 0.1), seed)
        with_keep.append(check(thinned, keep="keep").audit)
        without.append(check(thinned).audit.outcome)
    assert [audit.outcome for audit in with_keep].count("fail") == 0
    # 20 logs with some six tests each, at a level of .01: more than 5 have a chance of 1 in 1 000
    assert [audit.outcome for audit in with_keep].count("warn") <= 5
    assert without.count("fail") == 20
    run = {finding.name for finding in with_keep[0].findings if finding.outcome != "not made"}
    assert {likelihood.CALIBRATION, likelihood.PIT, possible_weights.NAME, item_slots.NAME} <= run


def test_a_wrong_control_still_fails() -> None:
    table = world(20_000, 1)
    thinned = thin(table, np.where(np.asarray(table["click"]) > 0, 1.0, 0.3), 1)
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="display_id", keep="keep"),
        control=ft.PlackettLuce(scores="control_scores", temperature=0.7),
        treatment=ft.PlackettLuce(scores="treatment_scores", temperature=1.0),
    )
    assert test.check(thinned).audit.outcome == "fail"


def test_health_is_that_of_the_log_before_it_was_thinned() -> None:
    table = best_item_earns(20_000, 2)
    thinned = thin(table, np.where(np.asarray(table["click"]) > 0, 1.0, 0.1), 2)
    whole, part = check(table).health, check(thinned, keep="keep").health
    for name in ("treatment_mass_kept", "capped_share"):
        assert part[name] == pytest.approx(whole[name], abs=0.05), name
    assert part["treatment"]["entropy_control"] == pytest.approx(whole["treatment"]["entropy_control"], abs=0.02)
    assert part["support"]["displays"] < check(thinned).log["rows"]


def kinds(keep: Any, click: Any) -> list[str]:
    table = world(1500, 3)
    click = np.asarray(click(np.asarray(table["click"])))
    table = table.set_column(table.column_names.index("click"), "click", pa.array(click))
    rows = np.flatnonzero(click) if keep is ALL else np.arange(len(table))
    values = np.full(len(table), 0.5) if keep is ALL else keep(click)
    return check(table.append_column("keep", pa.array(values)).take(rows), keep="keep").health["questions"]


ALL = object()


def as_it_is(click: np.ndarray) -> np.ndarray:
    return click


@pytest.mark.parametrize(
    ("keep", "click", "asked"),
    [
        (lambda click: np.where(click > 0, 1.0, 0.05), as_it_is, None),  # as logs are thinned
        (lambda click: np.full(len(click), 0.1), as_it_is, None),
        (lambda click: np.where(click > 0, 0.05, 1.0), as_it_is, INVERTED),
        (lambda click: np.ones(len(click)), np.ones_like, NO_UNREWARDED),
        (ALL, as_it_is, NO_UNREWARDED),
    ],
)
def test_keep_that_rewards_contradict_is_questioned(keep: Any, click: Any, asked: str | None) -> None:
    of_keep = [kind for kind in kinds(keep, click) if kind in (INVERTED, NO_UNREWARDED)]
    assert of_keep == ([] if asked is None else [asked])
