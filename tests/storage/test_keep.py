"""Thinned logs in files: saved sums of days, packed logs, what is refused, and that other files stay as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.aggregation.flat import flatten
from tests.loggers import NAMES, ThreeLoggers
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


def assert_same(one: ft.Result, other: ft.Result, rel: float = 1e-9) -> None:
    mine, theirs = one.metrics["click"], other.metrics["click"]
    assert mine.control.value == pytest.approx(theirs.control.value, rel=rel)
    for label, estimate in theirs.estimates.items():
        for name in NUMBERS:
            found, wanted = getattr(mine.estimates[label], name), getattr(estimate, name)
            assert found == pytest.approx(wanted, rel=rel, abs=1e-12), (label, name)
    assert one.log["rows"] == other.log["rows"]
    assert one.log["displays"] == pytest.approx(other.log["displays"], rel=rel)


def test_sums_of_days_are_those_of_the_whole_log(tmp_path: Path) -> None:
    whole, test = table(), offline()
    for day, rows in enumerate(np.array_split(np.arange(len(whole)), 3)):
        pq.write_table(whole.take(rows), tmp_path / f"log{day}.parquet")
        test.save_aggregates(str(tmp_path / f"log{day}.parquet"), tmp_path / f"day{day}.parquet")
    days = [str(tmp_path / f"day{day}.parquet") for day in range(3)]
    merged, direct = test.run(days), test.run(whole)
    assert_same(merged, direct)
    assert [f.p_value for f in merged.audit.findings] == pytest.approx([f.p_value for f in direct.audit.findings])
    assert merged.health["treatment_mass_kept"] == pytest.approx(direct.health["treatment_mass_kept"], rel=1e-9)


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
    assert "thinned" not in flatten(aggregates).tree["fields"]
    assert "multiple" not in aggregates.sample.columns()


@pytest.mark.parametrize("cap", [3.0, 2.0])  # as packed, and another, whose sums are estimated from the sample
def test_packed_logs_keep_the_column(tmp_path: Path, cap: float) -> None:
    whole, linear = table(), ["cis", "point-ncis-adaptive"]
    offline(linear).pack(whole, tmp_path / "packed")
    direct = offline(linear, cap=cap).run(whole)
    assert_same(offline(linear, cap=cap).run(str(tmp_path / "packed")), direct)
    assert_same(offline(cap=cap).run(str(tmp_path / "packed")), offline(cap=cap).run(whole))
    packed = offline(linear, cap=cap).run(str(tmp_path / "packed"))
    assert packed.health["treatment_mass_kept"] == pytest.approx(direct.health["treatment_mass_kept"], rel=1e-9)
    assert packed.health["effective_sample_size"] == pytest.approx(direct.health["effective_sample_size"], rel=1e-9)
    if cap == 3.0:
        assert packed.health["capped_share"] == pytest.approx(direct.health["capped_share"], rel=1e-9)


def test_a_log_packed_without_keep_is_read_whole(tmp_path: Path) -> None:
    whole, linear = table(), ["cis", "point-ncis-adaptive"]
    offline(linear, keep=None).pack(whole, tmp_path / "packed")
    result = offline(linear).run(str(tmp_path / "packed"))
    assert any("all rows were read" in note for note in result.notes)
    assert_same(result, offline(linear).run(whole))


def test_days_of_several_loggers_add_up_with_keep(tmp_path: Path) -> None:
    log = ThreeLoggers(rows=450)
    keep = 1.0 / np.random.default_rng(1).integers(1, 4, log.rows) ** 0.5  # no multiple is a whole number
    whole = log.table(keep=keep)
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", date="day", logger="policy",
                          keep="keep"),
        control={name: ft.PlackettLuce(scores=f"{name}_scores") for name in NAMES},
        treatment=SCORES["treatment"], estimators=["ncis", "cis"], baseline="new", n_resamples=50,
    )  # fmt: skip
    for day in range(3):
        test.save_aggregates(whole.filter(log.day == day), tmp_path / f"{day}.parquet")
    assert_same(test.run([str(tmp_path / f"{day}.parquet") for day in range(3)]), test.run(whole))
