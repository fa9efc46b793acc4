"""Policies that never vary, logged slots, curves by device and lists of their own: the same on every road."""

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
    if name in ("matrix", "all rows"):
        keys = BY_SLOT if name == "matrix" else ["niips", "slot-ncis-adaptive"]
        return Case(ft.OfflineTest(control=ft.LoggedSlots(matrix="matrix"), estimators=keys, **given, **new), drawn())
    if name.startswith("curves by device"):
        curves = {"column": "device", "curves": {"phone": (1.0, 0.3), "desktop": (1.0, 0.8)}}
        given["examination"] = {"click": curves, "revenue": "fit" if "fit" in name else (1.0, 0.5)}
        return Case(ft.OfflineTest(control=SCORES["control"], estimators=EXPOSURE_KEYS, **given, **new), drawn())
    control = ft.PlackettLuce("control_scores")
    own = own_test(control, ft.TopK("treatment_scores"), estimators=["is", "point-ncis-adaptive", *BY_SLOT])
    return Case(own, OwnLog(control, rows=120).table(ids=str, kind=pa.string()))


NAMES = (
    "top-k", "fixed", "slots", "matrix", "all rows", "curves by device and metric", "curves by device and fit",
    "own candidates",
)  # fmt: skip
ROADS = ("batches", "saved", "recorded", "packed", pytest.param("spark", marks=pytest.mark.spark))


def run(road: str, test: ft.OfflineTest, table: pa.Table, folder: Path) -> ft.Result:
    """The answer on one of the roads from a file of the log."""
    path = folder / "log.parquet"
    pq.write_table(table, path, row_group_size=64)
    if road == "spark":
        return test.run(spark().read.parquet(str(path)).repartition(3, "user"))
    if road == "packed":
        test.pack(path, folder / "packed")
        return test.run(folder / "packed")
    if road == "batches":
        return test.run(path, threads=2, batch_rows=37)
    sums = [folder / "a.sums", folder / "b.sums"]
    for half, file in zip((table.slice(0, 50), table.slice(50)), sums, strict=True):
        test.save_aggregates(half, file)
    return (test if road == "saved" else ft.OfflineTest.from_aggregates(sums)).run(sums[::-1])


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("name", NAMES)
def test_every_road_says_the_same(name: str, road: str, tmp_path: Path) -> None:
    test, table = case(name)
    if "fit" in name.split() and road in ("saved", "recorded"):
        with pytest.raises(ft.BadInput, match="a curve that is fitted would differ"):
            run(road, test, table, tmp_path)
        return
    wanted, found = test.run(table), run(road, test, table, tmp_path)
    assert_same(found, wanted)
    assert found.settings == wanted.settings
    assert wanted.metrics["click"].estimates
    assert found.audit is not None
    assert wanted.audit is not None
    assert [f.meaning for f in found.audit.findings] == [f.meaning for f in wanted.audit.findings]
    assert found.audit.outcomes() == wanted.audit.outcomes()
    for number in ("outside_candidates", "control_deterministic", "unsupported_rows"):
        ours, theirs = found.health.get(number), wanted.health.get(number)
        assert ours == (theirs if theirs is None else pytest.approx(theirs, rel=1e-9)), number
    if road == "packed":  # of rewarded rows alone it is not known how much of the treatment is kept, by slot
        return
    assert found.health.get("mass_kept", {}) == pytest.approx(wanted.health.get("mass_kept", {}), rel=1e-9)
    assert [m.headline for m in found.metrics.values()] == [m.headline for m in wanted.metrics.values()]


@pytest.mark.spark
def test_bad_slots_are_one_sentence(tmp_path: Path) -> None:
    test, table = case("matrix")
    matrix = table["matrix"].to_pylist()
    matrix[5][0] += 0.5
    at = table.schema.get_field_index("matrix")
    pq.write_table(table.set_column(at, "matrix", pa.array(matrix)), tmp_path / "log.parquet")
    with pytest.raises(ft.BadInput, match=r"partition 0: column 'matrix', row 5 .*: the probabilities of .* sum to"):
        test.run(spark().read.parquet(str(tmp_path / "log.parquet")).coalesce(1))
