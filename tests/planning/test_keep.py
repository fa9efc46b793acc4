"""A plan from a thinned log: with one rate for all rows it is the plan of the same log without keep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.files import json_ready
from foretest.planning.plan import plan_log
from tests.planning.test_plan import SCHEMA
from tests.schemas import validate
from tests.support import SCORES, SmallLog, assert_close

LOG = SmallLog(rows=1200, units=400, seed=5)


def plan(keep: np.ndarray, *, given: bool) -> dict[str, Any]:
    columns = ft.LogColumns(
        rewards=["click"], unit="user", ranking="ranking", id="id", slot_rewards={"click": "slot_click"},
        keep="keep" if given else None,
    )  # fmt: skip
    test = ft.OfflineTest(log=columns, **SCORES, examination=[1.0, 0.6])
    document = plan_log(test, LOG.table(keep=keep)).to_dict()
    return json_ready(document)


@pytest.mark.slow
def test_one_rate_changes_no_number() -> None:
    keep = np.full(LOG.rows, 0.2)
    thinned, plain = plan(keep, given=True), plan(keep, given=False)
    assert thinned["log"].pop("displays") == pytest.approx(5 * LOG.rows)
    notes = thinned.pop("notes")
    plain.pop("notes")
    assert any("logs that are thinned alike" in note for note in notes)
    assert_close(thinned, plain, rel=1e-8)


def test_the_file_of_a_plan_is_valid() -> None:
    document = plan(np.where(LOG.click > 0, 1.0, 0.5), given=True)
    validate(document, json.loads(Path(SCHEMA).read_text(encoding="utf-8")))
    assert document["log"]["rows"] == LOG.rows
