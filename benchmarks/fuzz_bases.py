"""What is damaged: settings of every kind, a small log that fits them, a manifest, a calibration, saved and packed."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import foretest as ft
from foretest.calibration.file import Calibration, Learned, settings_of
from foretest.calibration.fit import Fit
from foretest.settings.file import settings_from_tables

ROWS = 50
SETTINGS = {
    "plain": """\
[log]
rewards = ["click"]
unit = "user"
ranking = "ranking"
[control]
policy = "plackett-luce"
scores = "control_scores"
[treatment]
policy = "plackett-luce"
scores = "treatment_scores"
[analysis]
n_resamples = 20
buckets = 16
draws = 16
""",
    "rich": """\
[log]
rewards = ["click", "revenue"]
unit = "user"
ranking = "ranking"
id = "id"
date = "day"
features = ["country", "v"]
segments = ["country"]
slot_rewards = {click = "slots"}
[control]
policy = "plackett-luce"
scores = "control_scores"
temperature = 0.9
[[treatment]]
name = "new"
policy = "plackett-luce"
scores = "treatment_scores"
temperature = "control"
[[treatment]]
name = "bold"
policy = "mallows"
scores = "treatment_scores"
dispersion = 0.6
[metrics.click]
role = "goal"
[metrics.revenue]
role = "guardrail"
margin = 0.3
[analysis]
n_resamples = 20
buckets = 16
draws = 16
strata = "country"
value = "v"
cap = 3.0
weight_bound = 2.5
gamma = [1.2, 1.5]
r_max = {click = 1.0, revenue = 4.0}
""",
    "metrics": """\
[log]
rewards = ["click", "revenue", "v"]
unit = "user"
ranking = "ranking"
id = "id"
segments = ["country"]
slot_rewards = {click = "slots"}
[control]
policy = "plackett-luce"
scores = "control_scores"
[treatment]
policy = "plackett-luce"
scores = "treatment_scores"
[metrics.net]
sum = {revenue = 1.0, click = -0.5}
[metrics.all]
sum = {net = 2.0, v = 0.1}
[metrics.revenue]
winsorise = 0.9
[metrics.v]
signed = true
[metrics.rpc]
ratio = ["revenue", "click"]
[metrics.per_user]
per = "unit"
of = "net"
[analysis]
n_resamples = 20
buckets = 16
draws = 16
""",
    "logged": """\
[log]
rewards = ["click"]
unit = "user"
ranking = "ranking"
[control]
policy = "logged"
prob = "prob"
[treatment]
policy = "logged"
log_prob = "log_prob"
[analysis]
n_resamples = 20
buckets = 16
draws = 16
interval = "bernstein"
estimators = ["cis"]
r_max = 1
""",
    "mixture": """\
[log]
rewards = ["click"]
unit = "user"
ranking = "shown"
candidates = "items"
[control]
policy = "mixture"
[[control.components]]
share = 0.3
policy = "thurstone"
scores = "control_scores"
sigma = 1.2
[[control.components]]
share = 0.7
policy = "plackett-luce"
scores = "control_scores"
[treatment]
policy = "epsilon-greedy"
scores = "treatment_scores"
epsilon = 0.1
[analysis]
n_resamples = 20
buckets = 16
draws = 16
interval = "delta"
seed = 3
""",
    "loggers": """\
[log]
rewards = ["click"]
unit = "user"
ranking = "ranking"
date = "day"
logger = "country"
[[control]]
name = "fr"
policy = "plackett-luce"
scores = "control_scores"
[[control]]
name = "de"
policy = "plackett-luce"
scores = "other_scores"
[treatment]
policy = "plackett-luce"
scores = "treatment_scores"
[analysis]
n_resamples = 20
buckets = 16
draws = 16
baseline = "fr"
cap = "auto"
""",
    "betting": """\
[log]
rewards = ["click"]
unit = "user"
ranking = "ranking"
[control]
policy = "plackett-luce"
scores = "control_scores"
prob = "prob"
[treatment]
policy = "thurstone"
scores = "treatment_scores"
sigma = 0.8
[analysis]
n_resamples = 20
buckets = 16
draws = 16
interval = "betting"
estimators = ["cis", "point-ncis-adaptive"]
normaliser = "two-sided"
folds = 3
confidence_level = 0.95
[online]
split = [0.5, 0.5]
covariate = "before"
sequential = true
""",
}
MANIFEST = """\
settings = "settings.toml"
truth = "truth.json"
[[test]]
name = "test 1"
control = "log.parquet"
treatment = "treatment.parquet"
date = 2026-03-01
[[test]]
name = "test 2"
control = "log.parquet"
treatment = "treatment.parquet"
date = 2026-03-02
"""
TRUTH = {"test 1": {"rel_uplift": 0.02}, "test 2": {"rel_uplift": -0.01, "click": 3}}


def small_log(seed: int = 0, rows: int = ROWS) -> pa.Table:
    """A log with all columns that the settings name, rankings of 2 among 4 drawn from a Plackett-Luce control."""
    g = np.random.default_rng(seed)
    control = g.normal(size=(rows, 4))
    ranking = np.argsort(-(control + g.gumbel(size=control.shape)), axis=1)[:, :2]
    click = (g.random(rows) < 0.4).astype(np.int64)
    revenue = click * np.round(g.exponential(size=rows), 2).clip(0.0, 4.0)
    return pa.table(
        {
            "click": click, "revenue": revenue, "user": [f"u{seed}-{i % 40}" for i in range(rows)],
            "id": np.arange(rows), "before": [float(i % 40 % 7) for i in range(rows)],
            "ranking": ranking.tolist(), "shown": (ranking + 10).tolist(), "items": [[10, 11, 12, 13]] * rows,
            "control_scores": control.tolist(), "other_scores": g.normal(size=(rows, 4)).tolist(),
            "treatment_scores": (control + 0.5 * g.normal(size=control.shape)).tolist(), "prob": np.full(rows, 1 / 12),
            "log_prob": np.full(rows, -2.3), "country": ["fr", "de"] * (rows // 2), "v": g.random(rows),
            "day": [f"2026-03-0{1 + i % 3}" for i in range(rows)], "slots": np.stack([click, np.zeros(rows)],
            axis=1).tolist(),
        }
    )  # fmt: skip


def calibration() -> dict[str, Any]:
    """A calibration of one metric and two estimators that fits the plain settings."""
    fits = {
        "point-ncis-adaptive": Learned(Fit(1.2, 0.0001, 0.0002, 40), 20.0, None, "2026-01-01", "2026-03-01"),
        "slot-ncis-adaptive": Learned(Fit(float("nan"), float("nan"), float("nan"), 0), 20.0, "there is none"),
    }
    settings = settings_of(settings_from_tables(tomllib.loads(SETTINGS["plain"])))
    return Calibration(
        settings, {"click": fits}, [{"name": "test 1", "date": None}, {"name": "b", "date": "2026-03-01"}]
    ).to_dict()


def write_bases(folder: Path) -> None:
    """Write every good file that is damaged later."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in SETTINGS.items():
        (folder / f"{name}.toml").write_text(text)
    (folder / "settings.toml").write_text(SETTINGS["plain"])
    (folder / "manifest.toml").write_text(MANIFEST)
    (folder / "truth.json").write_text(json.dumps(TRUTH))
    (folder / "calibration.json").write_text(json.dumps(calibration()))
    pq.write_table(small_log(), folder / "log.parquet", row_group_size=20)
    pq.write_table(small_log(1), folder / "treatment.parquet")
    for name in ("plain", "rich", "loggers"):
        test = ft.OfflineTest.from_toml(folder / f"{name}.toml")
        test.save_aggregates(str(folder / "log.parquet"), folder / f"{name}.sums.parquet")
    ft.OfflineTest.from_toml(folder / "plain.toml").pack(str(folder / "log.parquet"), folder / "packed")
