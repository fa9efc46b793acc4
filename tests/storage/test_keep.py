"""Thinned logs in files: packed for other settings, what is refused, and that other files stay as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from tests.storage.saved.support import assert_same_result
from tests.support import SCORES, SmallLog

KINDS = ["cis", "ncis", "piece-ncis", "point-ncis-adaptive"]
NUMBERS = ("treatment", "std_error", "effect_size", "effect_size_ci_lower", "effect_size_ci_upper")


def table(rows: int = 600, seed: int = 0) -> pa.Table:
    log = SmallLog(rows=rows, units=150, seed=seed)
    m = np.random.default_rng(seed).integers(1, 6, rows)
    return log.table(keep=1.0 / m)


def offline(estimators: Any = KINDS, *, keep: str | None = "keep", **more: Any) -> ft.OfflineTest:
    log = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", keep=keep)
    return ft.OfflineTest(
        log=log, **SCORES, estimators=estimators,
        **{"strata": "stratum", "cap": 3.0, "weight_bound": 5.0, "n_resamples": 50, **more},
    )  # fmt: skip


def test_saved_sums_with_keep_are_refused_for_settings_without(tmp_path: Path) -> None:
    log, other = table(), tmp_path / "other.parquet"
    test, without = offline(), offline(keep=None)
    test.save_aggregates(log, tmp_path / "a.parquet")
    without.save_aggregates(table(seed=1), other)
    with pytest.raises(ft.BadInput, match=r'was made with \[log\] keep = "keep"'):
        without.run(str(tmp_path / "a.parquet"))
    with pytest.raises(ft.BadInput, match=r"\[log\] keep.*their sums do not add up"):
        test.run([str(tmp_path / "a.parquet"), str(other)])


def test_a_log_without_keep_leaves_no_trace_of_it() -> None:
    aggregates = offline(keep=None).aggregate(table())[0]
    names = {key.quantity.name for _, key, _ in aggregates.ledger.sums()}
    assert not names & {"rows", "squares", "keep", "stratum rows"}
    assert "multiple" not in aggregates.sample.columns()


def test_at_another_cap_sums_are_estimated_from_a_sample_with_the_column(tmp_path: Path) -> None:
    whole, linear, cap = table(), ["cis", "point-ncis-adaptive"], 2.0
    offline(linear).pack(whole, tmp_path / "packed")
    direct = offline(linear, cap=cap).run(whole)
    sampled = ("/health", "/weights")  # marked as estimated
    assert_same_result(offline(linear, cap=cap).run(str(tmp_path / "packed")), direct, leave_out=sampled)
    assert_same_result(offline(cap=cap).run(str(tmp_path / "packed")), offline(cap=cap).run(whole))
    packed = offline(linear, cap=cap).run(str(tmp_path / "packed"))
    assert packed.health["treatment_mass_kept"] == pytest.approx(direct.health["treatment_mass_kept"], rel=1e-9)
    assert packed.health["effective_sample_size"] == pytest.approx(direct.health["effective_sample_size"], rel=1e-9)


def test_a_log_packed_without_keep_is_read_whole(tmp_path: Path) -> None:
    whole, linear = table(), ["cis", "point-ncis-adaptive"]
    offline(linear, keep=None).pack(whole, tmp_path / "packed")
    result = offline(linear).run(str(tmp_path / "packed"))
    assert any("all rows were read" in note for note in result.notes)
    assert_same_result(result, offline(linear).run(whole))
