"""A log that comes row by row, with more units than buckets: short batches, as at the end of a file, change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.simulate import WORLDS, simulate_log
from tests.storage.saved.support import assert_same_result

ROWS, BUCKETS = 300, 16
CONTROL, TREATMENT = ft.PlackettLuce("control_scores"), ft.PlackettLuce("treatment_scores")


def log() -> pa.Table:
    table = pa.Table.from_batches(simulate_log(WORLDS["mild"], rows=ROWS))
    rng = np.random.default_rng(0)
    table = table.append_column("device", pa.array(np.array(["phone", "desk", "tablet"])[rng.integers(0, 3, ROWS)]))
    return table.append_column("keep", pa.array(np.where(rng.random(ROWS) < 0.5, 1.0, 0.5)))


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "days and segments": ({"date": "day", "segments": ["device"]}, {}),
    "slots, and a curve that is fitted": ({"slot_rewards": {"click": "slot_click"}}, {"examination": "fit"}),
    "thinned": ({"keep": "keep", "segments": ["device"]}, {}),
    "two treatments": (
        {"date": "day"},
        {"treatment": {"new": TREATMENT, "bolder": ft.PlackettLuce("control_scores", 0.8)}},
    ),
    "a value model": ({"features": ["recency", "activity"]}, {"estimators": ["ncis", "piece-ncis", "dr"]}),
    "another policy": ({}, {"treatment": ft.Mallows("treatment_scores", 0.5)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_rows_one_by_one(case: str) -> None:
    columns, others = CASES[case]
    test = ft.OfflineTest(
        log=ft.LogColumns(
            **{"rewards": ["click"], "unit": "user", "ranking": "ranking", "id": "display_id", **columns}
        ),
        **{"control": CONTROL, "treatment": TREATMENT, "n_resamples": 50, "buckets": BUCKETS, "draws": 32, **others},
    )
    # the rewards that carry a larger bound come from a difference of nearly equal sums: 4e-9 here
    assert_same_result(test.run(log(), batch_rows=1, threads=1), test.run(log()), leave_out=("bound_choice",))
