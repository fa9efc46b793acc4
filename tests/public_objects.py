"""One of each object that a user of the package meets, from a small log and a small history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import foretest as ft
from foretest.calibration.file import Calibration, Learned
from foretest.calibration.fit import Fit
from tests.support import SCORES, SmallLog, build_test, few_resamples_of_tests

LOG = SmallLog().table()
CLICKS = pa.table({"click": [1, 0, 0, 0] * 100}), pa.table({"click": [1, 0] * 200})


def public_objects() -> dict[str, Any]:
    """The objects by name, without the agreement of a history, which takes longer than all others."""
    test = build_test(metrics=("click", "revenue"))
    result, folded = test.run(LOG), test.aggregate(LOG)
    several = _several_treatments()
    ranked = several.run(LOG)
    online = ft.OnlineTest(log=ft.LogColumns(rewards=["click"]), confidence_level=0.8)
    return {
        "result": result, "check": test.check(LOG), "online result": online.run(*CLICKS), "ranked": ranked,
        "plan": ft.plan_log(build_test(), LOG), "metric": result.metrics["click"],
        "estimate": result.metrics["click"].estimates["piece-ncis"], "treatment": ranked.treatments[1],
        "segment": ranked.segments[0], "aggregates": folded.aggregates, "folded": folded,
        "several folded": several.aggregate(LOG), "calibration": CALIBRATION, "test": test, "several": several,
        "online test": online, "settings": several.settings, "analysis": test.settings.analysis,
        "columns": test.settings.log, "role": several.settings.metrics["revenue"], "policy": SCORES["control"],
        "mixture": ft.Mixture([(1, ft.PlackettLuce("a")), (3, ft.Mallows("b", 0.5))]), "estimator": ft.NCIS(cap=3.0),
    }  # fmt: skip


CALIBRATION = Calibration(
    {"analysis.draws": list(range(5000))},
    {
        "click": {
            "point-ncis-adaptive": Learned(Fit(1.2, 0.0001, 0.0, 40), 20.0, None),
            "slot-ncis-adaptive": Learned(Fit(float("nan"), float("nan"), float("nan"), 0), 20.0, "there is none"),
        }
    },
    [{"name": f"test-{number}", "date": None} for number in range(40)],
)


def _several_treatments() -> ft.OfflineTest:
    """A test of two treatments, with segments and roles of metrics."""
    columns = ft.LogColumns(rewards=["click", "revenue"], unit="user", ranking="ranking", id="id", segments=["stratum"])
    treatments = {"bold": SCORES["treatment"], "shy": ft.PlackettLuce("control_scores", temperature=1.2)}
    return ft.OfflineTest(
        log=columns, control=SCORES["control"], treatment=treatments, cap=3.0, n_resamples=200,
        metrics={"click": {"role": "goal"}, "revenue": {"role": "guardrail", "margin": 0.01}},
    )  # fmt: skip


def small_agreement(folder: Path) -> ft.Agreement:
    """The agreement of a history of three tests, whose files are written to a folder."""
    ft.simulate.write_history(folder, ft.simulate.WORLDS["mild"], 3, 1500, 0)
    with few_resamples_of_tests():
        return ft.run_history(folder / "manifest.toml")
