"""Tests of a history whose control's log is of several loggers: offline pooled, online by the baseline's rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.history.run import run_history
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derive
from foretest.offline.test import OfflineTest
from foretest.online.resampling import arm_counts
from foretest.online.test import OnlineTest
from tests.loggers import NAMES, ThreeLoggers

pytestmark = pytest.mark.usefixtures("few_resamples")

LABEL, BOUND = "point-ncis-adaptive", 3.0
CONTROLS = "".join(
    f'[[control]]\nname = "{name}"\npolicy = "plackett-luce"\nscores = "{name}_scores"\n' for name in NAMES
)
SETTINGS = f"""
[log]
rewards = ["click"]
unit = "user"
ranking = "ranking"
id = "id"
date = "day"
logger = "policy"
{CONTROLS}
[treatment]
policy = "plackett-luce"
scores = "treatment_scores"
[analysis]
baseline = "new"
estimators = ["{LABEL}"]
weight_bound = {BOUND}
buckets = 64
n_resamples = 200
"""
MANIFEST = """
settings = "settings.toml"
[[test]]
name = "one"
control = "control.parquet"
treatment = "treatment.parquet"
"""


def write(folder: Path, log: ThreeLoggers) -> pa.Table:
    """The log of all loggers, and the arm of a treatment for other users."""
    g = np.random.default_rng(7)
    shown = np.array([g.choice(len(p), p=np.exp(p) / np.exp(p).sum()) for p in log.log_all["treatment"]])
    click = (g.random(log.rows) < 0.2 + 0.25 * (log.rankings[shown, 0] == 0) + 0.2 * log.day).astype(float)
    table = log.table()
    treated = table.set_column(0, "click", pa.array(click)).set_column(1, "user", pa.array(log.unit + 10_000))
    pq.write_table(table, folder / "control.parquet")
    pq.write_table(treated, folder / "treatment.parquet")
    (folder / "settings.toml").write_text(SETTINGS)
    (folder / "manifest.toml").write_text(MANIFEST)
    return treated


def test_offline_is_pooled_and_online_is_of_the_baselines_rows(tmp_path: Path) -> None:
    log = ThreeLoggers(rows=600, units=150)
    treated = write(tmp_path, log)
    document = run_history(tmp_path / "manifest.toml").to_dict()
    assert not document["failures"]
    [test] = document["tests"]
    alone = OfflineTest.from_toml(tmp_path / "settings.toml").run(str(tmp_path / "control.parquet"))
    assert test["offline"][LABEL]["rel_effect_size"] == pytest.approx(
        alone.metrics["click"].estimates[LABEL].rel_effect_size, rel=1e-12
    )
    own = log.table().filter(pc.equal(pa.array([NAMES[k] for k in log.logger]), "new"))
    online = OnlineTest.from_toml(tmp_path / "settings.toml").run(own, treated).metrics["click"].estimates["online"]
    for name in ("rel_effect_size", "rel_effect_size_ci_lower", "rel_std_error", "treatment"):
        assert test["online"][name] == pytest.approx(getattr(online, name), rel=1e-12), name


def test_the_log_is_resampled_once_for_both(tmp_path: Path) -> None:
    """Every replicate from the rows themselves: offline each logger at its weight in the log, online the baseline's."""
    log = ThreeLoggers(rows=600, units=150)
    treated = write(tmp_path, log)
    noise = run_history(tmp_path / "manifest.toml").to_dict()["tests"][0]["noise"][LABEL]
    analysis = OfflineTest.from_toml(tmp_path / "settings.toml").settings.analysis
    mix = log.mixture()
    h, w_p = log.weights(LABEL, 100.0, BOUND, mix), log.baseline_weights("new", mix)
    own, t_click, t_bucket = log.logger == 0, np.asarray(treated["click"]), bucket_of(treated["user"])
    x, y = [], []
    for c, t in zip(*arm_counts(analysis), strict=True):
        m, k = c[log.buckets(64)], t[t_bucket]
        factor = np.array([(log.logger == j).sum() / m[log.logger == j].sum() for j in range(3)])[log.logger]
        x.append((m * factor * h * log.click).sum() / (m * factor * w_p * log.click).sum() - 1.0)
        y.append((k * t_click).sum() / k.sum() / ((m * log.click)[own].sum() / m[own].sum()) - 1.0)
    spread = np.cov(x, y)
    assert noise["offline_error"] == pytest.approx(np.sqrt(spread[0, 0]), rel=1e-9)
    assert noise["online_error"] == pytest.approx(np.sqrt(spread[1, 1]), rel=1e-9)
    assert noise["covariance"] == pytest.approx(spread[0, 1], rel=1e-9)
    assert noise["covariance_bound"] is None


def bucket_of(unit: pa.ChunkedArray) -> np.ndarray:
    return (derive(hash_integers(np.asarray(unit)), BUCKET_SALT) % np.uint64(64)).astype(int)


def test_loggers_that_are_one_policy_have_the_offline_answer_of_one(tmp_path: Path) -> None:
    log = ThreeLoggers(rows=600, units=150)
    log.scores |= dict.fromkeys(NAMES, log.scores["new"])
    write(tmp_path, log)
    pooled = run_history(tmp_path / "manifest.toml").to_dict()["tests"][0]
    single = SETTINGS.replace(CONTROLS, '[control]\npolicy = "plackett-luce"\nscores = "new_scores"\n')
    single = single.replace('logger = "policy"\n', "").replace('baseline = "new"\n', "")
    (tmp_path / "settings.toml").write_text(single)
    one = run_history(tmp_path / "manifest.toml").to_dict()["tests"][0]
    for name in ("rel_effect_size", "treatment", "unsupported"):
        assert pooled["offline"][LABEL][name] == pytest.approx(one["offline"][LABEL][name], rel=1e-9), name
    assert pooled["online"]["treatment"] == pytest.approx(one["online"]["treatment"], rel=1e-12)
    assert pooled["online"]["rel_effect_size"] != one["online"]["rel_effect_size"]  # of the baseline's rows alone


def test_rows_without_a_unit_are_resampled_where_they_are_in_the_whole_log(tmp_path: Path) -> None:
    """With rows as units, the covariance of offline and online is of the same rows."""
    log = ThreeLoggers(rows=600, units=150)
    write(tmp_path, log)
    (tmp_path / "settings.toml").write_text(SETTINGS.replace('unit = "user"\n', "").replace('id = "id"\n', ""))
    [test] = run_history(tmp_path / "manifest.toml").to_dict()["tests"]
    places = np.arange(log.rows)
    bucket = (derive(hash_integers(places), BUCKET_SALT) % np.uint64(64)).astype(int)
    analysis = OfflineTest.from_toml(tmp_path / "settings.toml").settings.analysis
    treated, own = np.asarray(pq.read_table(tmp_path / "treatment.parquet")["click"]), log.logger == 0
    y = [
        (t[bucket] * treated).sum() / t[bucket].sum() / ((c[bucket] * log.click)[own].sum() / c[bucket][own].sum())
        for c, t in zip(*arm_counts(analysis), strict=True)
    ]
    assert test["noise"][LABEL]["online_error"] == pytest.approx(np.std(y, ddof=1), rel=1e-9)
