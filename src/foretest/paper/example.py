"""The one A/B test of sections 4.3 and 5.2: a log of the world's own treatment, with its truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from foretest.offline.test import OfflineTest
from foretest.paper.estimators import TABLE_2_KEYS, UNCAPPED
from foretest.simulate import World, write_log

METRIC = "click"


class Example(NamedTuple):
    """The log, its test, the result and the truth."""

    log: str
    test: OfflineTest
    result: dict[str, Any]  # the content of result.json
    truth: dict[str, Any]  # of the clicks
    by_group: list[dict[str, Any]]  # the strata of PieceNCIS, where these are the groups of users

    @property
    def metric(self) -> dict[str, Any]:
        metric: dict[str, Any] = self.result["metrics"][METRIC]
        return metric


def run_example(folder: Path, world: World, rows: int, seed: int) -> Example:
    """Simulate the log in `folder` and run the test on it; the caller removes the folder."""
    write_log(folder, world, rows, seed)
    log = str(folder / "log.parquet")
    test = OfflineTest.from_toml(folder / "settings.toml").replace(estimators=[*TABLE_2_KEYS, *UNCAPPED])
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))["metrics"][METRIC]
    grouped = test.replace(estimators=["ncis", "piece-ncis"], strata="group").run(log)
    strata = grouped.metrics[METRIC].estimates["piece-ncis"].strata
    return Example(log, test, test.run(log).to_dict(), truth, strata or [])
