"""A metric `share = ["a", "b"]`, which a patch of one file adds: a/(a + b), offline and online, against plain NumPy.

`tests/test_patches.py` runs this with the patched sources.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.inference.delta import quantile
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derived_bucket
from foretest.online.resampling import arm_counts
from tests.feature_cases import FEATURES, REFUSED, Feature

SHARE: dict[str, Any] = {"hidden": {"share": ["hide", "click"]}}
# before the pairwise test is read, which then has it in its cases
FEATURES["share"] = Feature(metrics={"paid": {"share": ["revenue", "click"]}})

from tests import test_pairwise  # noqa: E402
from tests.offline.test_metrics_of_metrics import MixedLog, offline  # noqa: E402
from tests.online.test_metrics_of_metrics import arm  # noqa: E402
from tests.schemas import validate  # noqa: E402
from tests.support import SCORES  # noqa: E402

SCHEMA = Path(ft.__file__).parent / "schema" / "result-1.json"
BUCKETS = 1024


class Rows(NamedTuple):
    """Rows of a log as NumPy has them: a and b, the weights w, and the unit of each."""

    a: np.ndarray
    b: np.ndarray
    w: np.ndarray
    unit: np.ndarray


def rows_of(log: MixedLog) -> Rows:
    return Rows(log.hide, log.click, np.exp(log.log_w), log.unit)


def share(a: np.ndarray, b: np.ndarray) -> float:
    return float(a.sum() / (a.sum() + b.sum()))


def terms(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The influence of each row on its share: (a − s·(a + b))/mean(a + b)."""
    return np.asarray((a - share(a, b) * (a + b)) / (a + b).mean())


def error_of(term: np.ndarray, unit: np.ndarray) -> float:
    """The standard error of a mean, by unit, each of which is in a bucket of its own."""
    _, code = np.unique(unit, return_inverse=True)
    by_unit = np.bincount(code, weights=term - term.mean())
    units = len(by_unit)
    return float(np.sqrt(units / (units - 1.0) * np.square(by_unit).sum()) / len(term))


def assert_offline(metric: Any, rows: Rows) -> None:
    """The numbers of `is`, values and errors."""
    a, b, w, unit = rows
    e, control, treated = metric.estimates["is"], share(a, b), share(w * a, w * b)
    assert metric.per == "hide + click"
    assert metric.control.value == pytest.approx(control, rel=1e-12)
    assert e.treatment == pytest.approx(treated, rel=1e-12)
    assert e.effect_size == pytest.approx(treated - control, rel=1e-9)
    assert e.rel_effect_size == pytest.approx(treated / control - 1.0, rel=1e-9)
    of_control, of_treated = terms(a, b), terms(w * a, w * b)
    relative = of_treated / control - treated * of_control / control**2
    assert metric.control.std_error == pytest.approx(error_of(of_control, unit), rel=1e-9)
    assert e.std_error == pytest.approx(error_of(of_treated - of_control, unit), rel=1e-9)
    assert e.rel_std_error == pytest.approx(error_of(relative, unit), rel=1e-9)


@pytest.fixture(scope="module")
def log() -> MixedLog:
    mixed = MixedLog(rows=2000)
    mixed.hide = (np.random.default_rng(7).random(2000) < 0.3).astype(float)
    return mixed


def test_offline(log: MixedLog) -> None:
    result = offline({"change": {"signed": True}, **SHARE}, estimators=["is", "ncis"]).run(log.full_table())
    assert_offline(result.metrics["hidden"], rows_of(log))
    assert list(result.metrics) == ["click", "revenue", "hide", "change", "hidden"]
    document = json.loads(result.to_json())
    assert document["settings"]["metrics"]["hidden"] == {"share": ["hide", "click"]}
    validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert any(note.startswith("hidden: a share has the interval of noise alone") for note in result.notes)
    assert "hide + click" in str(result)


def resampled(arm: dict[str, np.ndarray], counts: np.ndarray) -> np.ndarray:
    bucket = derived_bucket(hash_integers(arm["user"]), BUCKET_SALT, BUCKETS)
    a, b = (counts @ np.bincount(bucket, weights=arm[name], minlength=BUCKETS) for name in ("hide", "click"))
    return np.asarray(a / (a + b))


@pytest.mark.parametrize("interval", ["delta", "bootstrap"])
def test_online(interval: str) -> None:
    arms = [arm(1, 1.0, 0), arm(2, 1.3, 400)]
    for k, one in enumerate(arms):
        one["hide"] = (np.random.default_rng(k).random(len(one["user"])) < 0.2).astype(float)
    columns = ft.LogColumns(rewards=["click", "hide"], unit="user")
    test = ft.OnlineTest(log=columns, metrics=SHARE, interval=interval, n_resamples=100)
    metric = test.run(*map(pa.table, arms)).metrics["hidden"]
    (control, treated), e = (share(one["hide"], one["click"]) for one in arms), metric.estimates["online"]
    errors = [error_of(terms(one["hide"], one["click"]), one["user"]) for one in arms]
    assert metric.per == "hide + click"
    assert metric.control.value == pytest.approx(control, rel=1e-12)
    assert e.treatment == pytest.approx(treated, rel=1e-12)
    assert e.std_error == pytest.approx(np.hypot(*errors), rel=1e-9)
    relative = np.hypot(treated / control * errors[0], errors[1]) / control
    assert e.rel_std_error == pytest.approx(relative, rel=1e-9)
    if interval == "delta":
        half = quantile(400, 0.9) * np.hypot(*errors)
        assert e.effect_size_ci_lower == pytest.approx(treated - control - half, rel=1e-9)
    else:
        counts = arm_counts(test.settings.analysis)
        uplifts = np.subtract(*(resampled(one, drawn) for one, drawn in zip(arms[::-1], counts[::-1], strict=True)))
        limits = (e.effect_size_ci_lower, e.effect_size_ci_upper)
        assert limits == pytest.approx(np.quantile(uplifts, [0.05, 0.95]), rel=1e-9)


@pytest.mark.parametrize(
    ("metrics", "sentence"),
    [
        ({"x": {"share": ["click"]}}, r"\[metrics.x\] share = \['click'\]: expected two metrics"),
        ({"x": {"share": ["click", "clik"]}}, r"\[metrics.x\] share names 'clik', which is no metric. Did you mean"),
        ({"x": {"share": ["click", "hide"], "ratio": ["click", "hide"]}},
         "ratio and share are both given: a metric is one of sum, ratio, share, or per and of"),
    ],
)  # fmt: skip
def test_a_fault_is_one_sentence(metrics: dict[str, Any], sentence: str) -> None:
    columns = ft.LogColumns(rewards=("click", "hide"), ranking="ranking")
    with pytest.raises(ft.BadInput, match=sentence):
        ft.OfflineTest(log=columns, metrics=metrics, **SCORES)
    with pytest.raises(ft.BadInput, match='interval = "bernstein" is for rewards of 0 or more, and hidden is not one'):
        ft.OfflineTest(log=columns, metrics=SHARE, interval="bernstein", r_max=1.0, **SCORES)


# -- the properties of the pairwise test ----------------------------------------------------------------------------

CASES = [tuple(name for name in case if name != "spark") for case in test_pairwise.CASES if "share" in case]
IDLE_PAIRS = [pair for pair in test_pairwise.IDLE_PAIRS if "share" in pair]


@pytest.mark.parametrize("case", CASES, ids=" + ".join)
def test_a_case(case: tuple[str, ...], tmp_path: Path) -> None:
    test_pairwise.test_a_case(case, tmp_path)


@pytest.mark.parametrize(("idle", "name"), IDLE_PAIRS)
def test_a_setting_that_says_nothing_new_changes_nothing(idle: str, name: str, tmp_path: Path) -> None:
    bare = partial(lambda folder, name: test_pairwise.answer([name], folder), tmp_path / "bare")
    test_pairwise.test_a_setting_that_says_nothing_new_changes_nothing(idle, name, tmp_path / "idle", bare)


def test_it_is_in_cases_with_every_feature_that_it_may_go_with() -> None:
    others = {name for case in CASES for name in case} - {"share"}
    assert others == set(FEATURES) - {"share", "spark"}
    assert not any("share" in pair for pair in REFUSED)
