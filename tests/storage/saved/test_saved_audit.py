"""The audit of saved aggregates is that of the log they were made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import foretest as ft
from foretest.diagnostics.audit import Finding
from tests.support import SCORES, SmallLog

LOG = SmallLog(rows=800, units=300, seed=4)


def build(temperature: float = 1.0, features: tuple[str, ...] = ("v", "country"), **analysis: Any) -> ft.OfflineTest:
    return ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", features=features),
        control=ft.PlackettLuce("control_scores", temperature), treatment=ft.PlackettLuce("treatment_scores", 1.0),
        estimators=["cis", "point-ncis-adaptive"], **{"cap": 3.0, **analysis},
    )  # fmt: skip


def table() -> pa.Table:
    return LOG.table(country=pa.array([f"land {u % 4}" for u in LOG.unit]))


def parts(test: ft.OfflineTest, log: pa.Table, folder: Path, count: int = 4) -> list[str]:
    """The log's days, each folded and saved."""
    size = -(-log.num_rows // count)
    paths = [folder / f"{part}.parquet" for part in range(count)]
    for part, path in enumerate(paths):
        test.save_aggregates(log.slice(part * size, size), path)
    return [str(path) for path in paths]


def finding(result: ft.Result, name: str) -> Finding:
    assert result.audit is not None
    [found] = [finding for finding in result.audit.findings if finding.name == name]
    return found


def test_merged_parts_have_the_audit_of_the_whole(tmp_path: Path) -> None:
    test = build(temperature=1.5)
    whole, merged = test.run(table()), test.run(parts(test, table(), tmp_path))
    assert whole.audit is not None
    assert merged.audit is not None
    assert whole.audit.outcome == "fail"
    assert merged.audit.outcomes() == whole.audit.outcomes()
    for one, other in zip(merged.audit.findings, whole.audit.findings, strict=True):
        assert one.meaning == other.meaning
        assert one.p_value == (None if other.p_value is None else pytest.approx(other.p_value, rel=1e-9))
    assert merged.metrics["click"].verdict == "insufficient"


def test_copies_in_two_days_meet_when_they_are_merged(tmp_path: Path) -> None:
    """No day holds a row twice; the second day begins with the last rows of the first."""
    test, log = build(), table()
    days = [log.slice(0, 420), log.slice(380)]
    paths = [tmp_path / f"{day}.parquet" for day in range(2)]
    for day, path in zip(days, paths, strict=True):
        test.save_aggregates(day, path)
        assert finding(test.run(str(path)), "repeated rows").outcome == "pass"
    found = finding(test.run([str(path) for path in paths]), "repeated rows")
    assert found.outcome == "fail"
    assert found.statistic == 40 / 840


def test_the_audit_of_aggregates_without_their_settings(tmp_path: Path) -> None:
    """They are analysed without the policies themselves: what the audit asks of these is in the sample."""
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id"),
        control=ft.EpsilonGreedy("control_scores", epsilon=0.0), treatment=SCORES["treatment"], estimators=["cis"],
    )  # fmt: skip
    best = pa.array([[int(row.argmax())] for row in LOG.control], pa.list_(pa.int32()))
    log = table()
    log = log.set_column(log.column_names.index("ranking"), "ranking", best)
    test.save_aggregates(log, tmp_path / "a.parquet")
    bare = ft.OfflineTest.from_aggregates(str(tmp_path / "a.parquet")).run(str(tmp_path / "a.parquet"))
    assert finding(bare, "exploration").outcome == "fail"
    assert bare.audit == test.run(log).audit


def test_a_failed_audit_may_be_ignored_afterwards(tmp_path: Path) -> None:
    test = build(temperature=1.5)
    test.save_aggregates(table(), tmp_path / "a.parquet")
    ignored = build(temperature=1.5, ignore_audit=True).run(str(tmp_path / "a.parquet"))
    assert ignored.audit is not None
    assert ignored.audit.ignored
    assert ignored.metrics["click"].verdict != "insufficient"
    assert any("ignore_audit = true" in note for note in ignored.notes)


def test_a_feature_of_two_types_is_left_out(tmp_path: Path) -> None:
    """Text on one day and a number on the other: what they have in common is still audited."""
    test, log = build(), table()
    number = log.set_column(log.column_names.index("country"), "country", pa.array(LOG.unit % 4))
    test.save_aggregates(log.slice(0, 400), tmp_path / "a.parquet")
    test.save_aggregates(number.slice(400), tmp_path / "b.parquet")
    found = test.run([str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")])
    assert finding(found, "log-likelihood").outcome == "pass"
    assert "lacks country" in finding(found, "balance").meaning
