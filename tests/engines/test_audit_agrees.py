"""One body of tests over all ways to run: the same log gives the same audit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from tests.engines.input_forms import INPUT_FORMS, input_forms
from tests.engines.spark_session import spark
from tests.engines.test_sources_agree import leaves
from tests.support import SCORES, SmallLog

pytestmark = pytest.mark.slow

SMALL = SmallLog(rows=900, units=400, spread=0.7, seed=5)
ORDER = np.argsort(SMALL.stratum, kind="stable")  # so that a folder for each stratum keeps the order
RIGHT = SMALL.table(order=ORDER, country=pa.array([f"land {u % 5}" for u in SMALL.unit]))
COPIES = np.sort(np.concatenate([np.arange(900), np.arange(0, 900, 20)]))  # 45 rows are there twice


def build(control: Any, features: list[str]) -> ft.OfflineTest:
    return ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", features=features),
        control=control, treatment=ft.PlackettLuce("treatment_scores", 1.0),
        estimators=["cis", "point-ncis-adaptive"], cap=2.0, interval="delta",
    )  # fmt: skip


TESTS = {
    "right": lambda: build(SCORES["control"], ["country", "v"]),
    "copied, of another temperature": lambda: build(ft.PlackettLuce("control_scores", 1.6), []),
}
LOGS = {"right": RIGHT, "copied, of another temperature": RIGHT.take(COPIES)}


@pytest.fixture(scope="module", params=TESTS)
def expected(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return request.param, TESTS[request.param]().run(LOGS[request.param]).to_dict()


def test_what_all_ways_agree_on(expected: tuple[str, dict[str, Any]]) -> None:
    kind, want = expected
    found = {finding["name"]: finding["outcome"] for finding in want["audit"]["findings"]}
    unmade = {"logged probabilities"} if kind == "right" else {"logged probabilities", "balance"}
    assert {name for name, outcome in found.items() if outcome == "not made"} == unmade
    if kind == "right":
        assert set(found.values()) == {"pass", "not made"}
    else:
        assert found["log-likelihood"] == found["repeated rows"] == want["audit"]["outcome"] == "fail"
        assert want["metrics"]["click"]["verdict"] == "insufficient"


def assert_same_audit(result: ft.Result, want: dict[str, Any]) -> None:
    """Words and outcomes are equal, numbers to 1e-9."""
    got, wanted = leaves(result.to_dict()["audit"]), leaves(want["audit"])
    assert got.keys() == wanted.keys()
    for path, value in wanted.items():
        assert got[path] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), path
    assert result.metrics["click"].verdict == want["metrics"]["click"]["verdict"]


@input_forms
def test_same_audit(way: str, expected: tuple[str, dict[str, Any]], tmp_path: Path) -> None:
    kind, want = expected
    assert_same_audit(INPUT_FORMS[way](LOGS[kind], tmp_path, TESTS[kind]()), want)


@pytest.mark.spark
def test_same_audit_over_partitions(expected: tuple[str, dict[str, Any]], tmp_path: Path) -> None:
    """Copies of a row meet again, whichever tasks they were folded by."""
    kind, want = expected
    pq.write_table(LOGS[kind], tmp_path / "log.parquet")
    frame = spark().read.parquet(str(tmp_path / "log.parquet"))
    assert_same_audit(TESTS[kind]().run(frame.repartition(5)), want)
