"""Spark, for policies that never vary, logged slots and lists of their own: the digits of one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from tests.engines.spark_session import spark
from tests.engines.test_spark import assert_same
from tests.own_lists import OwnLog, own_test
from tests.support import CURVE, EXPOSURE_KEYS, SCORES, SmallLog

pytestmark = pytest.mark.spark

BY_SLOT = ["iips", "slot-ncis-adaptive", *EXPOSURE_KEYS]
COLUMNS = ft.LogColumns(
    rewards=["click", "revenue"], unit="user", ranking="ranking", id="id",
    slot_rewards={"click": "slot_click", "revenue": "slot_revenue"},
)  # fmt: skip


def best_first(scores: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def drawn() -> pa.Table:
    """A log drawn from the control's scores, with its slot probabilities, a device and the treatment's best items."""
    log = SmallLog(rows=300, units=80, seed=3)
    marginals, at, shown = log.marginals(log.log_p), np.arange(log.rows), log.rankings[log.shown]
    probs = np.stack([marginals[at, k, shown[:, k]] for k in range(log.k)], axis=1)
    return log.table(
        probs=pa.array(probs.tolist()), matrix=pa.array(marginals.reshape(log.rows, -1).tolist()),
        device=pa.array(np.where(at % 3 == 0, "phone", "desktop")),
        best=pa.array(best_first(log.treatment, log.k).tolist()),
    )  # fmt: skip


def sorted_log() -> pa.Table:
    """A log of the control's best items, but for one row; a column has these items."""
    log = SmallLog(rows=300, units=80, seed=4)
    best = best_first(log.control, log.k)
    shown = best.copy()
    shown[17] = shown[17, ::-1]
    log.shown = np.array([log.rankings.tolist().index(row) for row in shown.tolist()])
    return log.table(served=pa.array(best.tolist()))


class Case(NamedTuple):
    """A test, and the rows it is run on."""

    test: ft.OfflineTest
    table: pa.Table


def case(name: str) -> Case:
    given: dict[str, Any] = {"log": COLUMNS, "n_resamples": 50, "weight_bound": 3.0, "examination": CURVE}
    new = {"treatment": SCORES["treatment"]}
    if name == "top-k":
        return Case(ft.OfflineTest(control=ft.TopK("control_scores"), estimators=BY_SLOT, **given, **new), sorted_log())
    if name == "fixed":
        top = {"treatment": ft.TopK("treatment_scores")}
        return Case(ft.OfflineTest(control=ft.Fixed("served"), estimators=EXPOSURE_KEYS, **given, **top), sorted_log())
    if name == "slots":
        fixed = {"treatment": ft.Fixed("best")}
        control = ft.LoggedSlots(probs="probs")
        return Case(ft.OfflineTest(control=control, estimators=["iips"], **given, **fixed), drawn())
    if name == "matrix":
        return Case(
            ft.OfflineTest(control=ft.LoggedSlots(matrix="matrix"), estimators=BY_SLOT, **given, **new), drawn()
        )
    if name == "curves by device and metric":
        curves = {"column": "device", "curves": {"phone": (1.0, 0.3), "desktop": (1.0, 0.8)}}
        given["examination"] = {"click": curves, "revenue": "fit"}
        return Case(ft.OfflineTest(control=SCORES["control"], estimators=EXPOSURE_KEYS, **given, **new), drawn())
    control = ft.PlackettLuce("control_scores")
    own = own_test(control, ft.TopK("treatment_scores"), estimators=["is", "point-ncis-adaptive", *BY_SLOT])
    return Case(own, OwnLog(control, rows=120).table(ids=str, kind=pa.string()))


NAMES = ("top-k", "fixed", "slots", "matrix", "curves by device and metric", "own candidates")


@pytest.mark.parametrize("name", NAMES)
def test_the_digits_of_one_machine(name: str, tmp_path: Path) -> None:
    test, table = case(name)
    pq.write_table(table, tmp_path / "log.parquet")
    wanted = test.run(table)
    found = test.run(spark().read.parquet(str(tmp_path / "log.parquet")).repartition(3, "user"))
    assert_same(found, wanted)
    assert wanted.metrics["click"].estimates
    for metric in wanted.metrics:
        assert found.metrics[metric].headline == wanted.metrics[metric].headline
    assert found.audit is not None
    assert wanted.audit is not None
    assert [f.outcome for f in found.audit.findings] == [f.outcome for f in wanted.audit.findings]
    for number in ("outside_candidates", "control_deterministic", "unsupported_rows"):
        ours, theirs = found.health.get(number), wanted.health.get(number)
        assert ours == (theirs if theirs is None else pytest.approx(theirs, rel=1e-9)), number
    kept = wanted.health.get("mass_kept", {})
    assert found.health.get("mass_kept", {}) == pytest.approx(kept, rel=1e-9)


def test_bad_slots_are_one_sentence(tmp_path: Path) -> None:
    test, table = case("matrix")
    matrix = table["matrix"].to_pylist()
    matrix[5][0] += 0.5
    at = table.schema.get_field_index("matrix")
    pq.write_table(table.set_column(at, "matrix", pa.array(matrix)), tmp_path / "log.parquet")
    with pytest.raises(ft.BadInput, match=r"partition 0: column 'matrix', row 5 .*: the probabilities of .* sum to"):
        test.run(spark().read.parquet(str(tmp_path / "log.parquet")).coalesce(1))
