"""Ratios and values per unit in a history: the noise that both sides share, in plain NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.history.measure import measure
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derived_bucket
from foretest.online.resampling import arm_counts
from tests.support import SCORES, SmallLog

METRICS: dict[str, Any] = {
    "rpc": {"ratio": ["revenue", "click"]},
    "per_user": {"per": "unit", "of": "click"},
    "net": {"sum": {"revenue": 1.0, "click": -0.1}},
}
BUCKETS = 1024


def by_bucket(unit: np.ndarray, amounts: np.ndarray) -> np.ndarray:
    return np.bincount(derived_bucket(hash_integers(unit), BUCKET_SALT, BUCKETS), weights=amounts, minlength=BUCKETS)


def test_the_noise_of_ratios_and_values_per_unit(tmp_path: Path) -> None:
    control, treatment = SmallLog(seed=1), SmallLog(seed=2)
    treatment.unit = treatment.unit + 1000
    for name, log in (("control", control), ("treatment", treatment)):
        pq.write_table(log.table(), tmp_path / f"{name}.parquet")
    columns = ft.LogColumns(rewards=("click", "revenue"), unit="user", id="id", ranking="ranking")
    test = ft.OfflineTest(log=columns, metrics=METRICS, estimators=["is", "ncis"], cap=2.0, n_resamples=200, **SCORES)
    settings = test.settings
    found = measure(tmp_path / "control.parquet", tmp_path / "treatment.parquet", settings, 1).metrics
    assert list(found) == ["click", "revenue", *METRICS]

    counts = arm_counts(settings.analysis)
    w = np.exp(control.log_w)
    c = {name: counts.control @ by_bucket(control.unit, r) for name, r in {
        "click": control.click, "revenue": control.revenue, "w click": w * control.click,
        "w revenue": w * control.revenue, "rows": np.ones(control.rows),
    }.items()}  # fmt: skip
    t = {name: counts.treatment @ by_bucket(treatment.unit, r) for name, r in {
        "click": treatment.click, "revenue": treatment.revenue,
    }.items()}  # fmt: skip
    users_c, users_t = (
        draws @ by_bucket(np.unique(log.unit), np.ones(len(np.unique(log.unit))))
        for draws, log in ((counts.control, control), (counts.treatment, treatment))
    )
    pairs = {
        "rpc": (
            (c["w revenue"] / c["w click"]) / (c["revenue"] / c["click"]) - 1.0,
            (t["revenue"] / t["click"]) / (c["revenue"] / c["click"]) - 1.0,
        ),
        "per_user": (c["w click"] / c["click"] - 1.0, (t["click"] / users_t) / (c["click"] / users_c) - 1.0),
    }
    for name, (offline, online) in pairs.items():
        noise, spread = found[name].noise["is"], np.cov(offline, online)
        assert noise.offline_error == pytest.approx(np.sqrt(spread[0, 0]), rel=1e-9)
        assert noise.online_error == pytest.approx(np.sqrt(spread[1, 1]), rel=1e-9)
        assert noise.covariance == pytest.approx(spread[0, 1], rel=1e-9)
        assert found[name].unsupported == {}


def test_a_history_reports_every_metric(tmp_path: Path) -> None:
    text = ["settings = 'settings.toml'"]
    for k in range(3):
        for name, seed in (("control", 10 * k), ("treatment", 10 * k + 5)):
            log = SmallLog(rows=300, seed=seed)
            log.unit = log.unit + (1000 if name == "treatment" else 0)
            pq.write_table(log.table(), tmp_path / f"{name}{k}.parquet")
        text.append(f"[[test]]\nname = 't{k}'\ncontrol = 'control{k}.parquet'\ntreatment = 'treatment{k}.parquet'")
    (tmp_path / "history.toml").write_text("\n".join(text), encoding="utf-8")
    (tmp_path / "settings.toml").write_text(
        """
[log]
rewards = ["click", "revenue"]
unit = "user"
id = "id"
ranking = "ranking"
[control]
policy = "plackett-luce"
scores = "control_scores"
[treatment]
policy = "plackett-luce"
scores = "treatment_scores"
[metrics.rpc]
ratio = ["revenue", "click"]
[metrics.per_user]
per = "unit"
of = "click"
[analysis]
estimators = ["is", "ncis"]
n_resamples = 50
""",
        encoding="utf-8",
    )
    document = ft.run_history(tmp_path / "history.toml").to_dict()
    assert list(document["metrics"]) == ["click", "revenue", "rpc", "per_user"]
    for name in ("rpc", "per_user"):
        assert document["metrics"][name]["table"]["ncis"]["correlation"] is not None
