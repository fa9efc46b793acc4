"""A run that fits its examination curve prices the control once, and answers as one that prices it in both passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.weights import control_marginals
from tests.support import SmallLog

KEYS = ["pbm", "exposure-ncis-adaptive", "slot-ncis-adaptive"]
LOG = SmallLog(rows=2400, units=200, seed=4)
LOG.click *= np.arange(LOG.rows) % 5 == 0  # rare enough for rewarded rows alone to be weighed
CONTROL, TREATMENT = ft.PlackettLuce(scores="control_scores"), ft.PlackettLuce(scores="treatment_scores")
COLUMNS = {
    "rewards": ["click"], "unit": "user", "id": "id", "ranking": "ranking", "slot_rewards": {"click": "slot_click"}
}  # fmt: skip
LOGGERS = {"a": CONTROL, "b": ft.PlackettLuce(scores="control_scores", temperature=1.5)}
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "without ids": {"log": ft.LogColumns(**{**COLUMNS, "id": None})},
    "without ids and units": {"log": ft.LogColumns(**{**COLUMNS, "id": None, "unit": None})},
    "mixture": {"control": ft.Mixture([(0.8, CONTROL), (0.2, TREATMENT)])},
    "two treatments": {"treatment": {"one": TREATMENT, "two": ft.Thurstone(scores="treatment_scores", sigma=1.0)}},
    "two loggers": {
        "log": ft.LogColumns(**COLUMNS, logger="policy", date="day"), "control": LOGGERS, "baseline": "a"
    },
    "dense": {"log": ft.LogColumns(**{**COLUMNS, "rewards": ["minutes"], "slot_rewards": {"minutes": "slot_minutes"}})},
}  # fmt: skip


def table() -> pa.Table:
    g = np.random.default_rng(1)
    minutes = 5.0 + g.random((LOG.rows, LOG.k))
    more = {
        "policy": np.array(["a", "b"])[g.integers(0, 2, LOG.rows)],
        "day": np.array(["2024-03-04", "2024-03-05"])[g.integers(0, 2, LOG.rows)],
        "minutes": minutes.sum(axis=1),
        "slot_minutes": pa.array(minutes.tolist()),
    }
    return LOG.table(**more)


def build(**settings: Any) -> ft.OfflineTest:
    named = {"log": ft.LogColumns(**COLUMNS), "control": CONTROL, "treatment": TREATMENT, "estimators": KEYS}
    return ft.OfflineTest(**{**named, "interval": "delta", "ignore_audit": True, **settings})


def answer(test: ft.OfflineTest, log: Any) -> Any:
    return {name: part for name, part in test.run(log).to_dict().items() if name not in ("provenance", "inputs")}


@pytest.mark.parametrize("case", CASES)
def test_no_digit_depends_on_what_is_kept(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    test, log = build(**CASES[case]), table()
    kept = answer(test, log)
    assert kept["metrics"] or kept["treatments"]
    for most in (0, 1000):  # none, and those of some rewarded rows
        monkeypatch.setattr(control_marginals, "MOST_NUMBERS", most)
        assert answer(test, log) == kept


def test_a_packed_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = build()
    test.pack(table(), tmp_path / "packed")
    kept = answer(test, str(tmp_path / "packed"))
    monkeypatch.setattr(control_marginals, "MOST_NUMBERS", 0)
    assert answer(test, str(tmp_path / "packed")) == kept
    assert test.aggregate(str(tmp_path / "packed")).aggregates.plan.known_marginals is None


@pytest.mark.parametrize(("case", "policies"), [("plain", 1), ("without ids and units", 1), ("two loggers", 2)])
def test_the_control_is_priced_once(case: str, policies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    priced: list[int] = []
    original = ft.PlackettLuce.slot_marginals

    def counting(policy: ft.PlackettLuce, displays: ft.Displays) -> ft.Ragged:
        if policy.scores == "control_scores":
            priced.append(len(displays))
        return original(policy, displays)

    monkeypatch.setattr(ft.PlackettLuce, "slot_marginals", counting)
    test = build(**CASES[case])
    test.run(table())
    once = sum(priced)
    monkeypatch.setattr(control_marginals, "MOST_NUMBERS", 0)
    test.run(table())
    assert sum(priced) - 2 * once == policies * np.count_nonzero(LOG.click)


def test_nothing_is_kept_after_the_fold() -> None:
    aggregates = build(**CASES["two treatments"]).aggregate(table()).aggregates
    for part in (aggregates, *aggregates.treatments.values()):
        assert part.plan.fits
        assert part.plan.known_marginals is None
        assert part.plan.normaliser.known is None
