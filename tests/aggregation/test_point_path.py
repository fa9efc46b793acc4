"""The point estimators along their caps and bounds: against enumeration, against runs there, against one unit more."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation.choose_estimators import choose_estimators
from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.aggregation.kept_rows import KeptRows
from foretest.aggregation.point_path import ALONG_CAP, BOUNDS, CAPS, bounds_of, caps_of
from foretest.diagnostics.cap_path import cap_path
from foretest.kernels.random import derive
from foretest.weights.policy_pair import PolicyPair
from tests.support import SmallLog, build_test

LOG = SmallLog(rows=1500, units=300, spread=2.0, seed=11)
BOTH = ["point-ncis", "point-ncis-adaptive"]
# limits along the path are of the noise that the log shows, and those of an estimate of predicted noise too
FIELDS = ("treatment", "std_error", "effect_size", "rel_effect_size", "effective_positives")


def path_of(test: ft.OfflineTest, table: pa.Table, metric: str = "click") -> dict[str, Any]:
    path = test.run(table).to_dict()["metrics"][metric]["cap_path"]
    assert path is not None
    return dict(path)


def test_grids_hold_the_run_s_own_cap_and_bound() -> None:
    plan = choose_estimators(build_test(BOTH, cap=42.0, weight_bound=20.0).settings)[0]
    assert 42.0 in caps_of(plan)
    assert len(caps_of(plan)) == len(CAPS) + 1
    assert (np.diff(caps_of(plan)) > 0.0).all()
    np.testing.assert_array_equal(bounds_of(plan), BOUNDS)
    only = choose_estimators(build_test(["cis", "point-ncis"]).settings)[0]
    assert len(bounds_of(only)) == 0


@pytest.mark.parametrize("interval", ["bootstrap", "delta"])
@pytest.mark.parametrize("metric", ["click", "revenue"])
def test_a_run_at_a_cap_or_bound_of_the_path_gives_its_numbers(interval: str, metric: str) -> None:
    """All rankings are enumerated, so that both are exact; the path has seven digits."""
    test = build_test(BOTH, metrics=("click", "revenue"), interval=interval, n_resamples=300, confidence_level=0.8)
    table = LOG.table()
    path = path_of(test, table, metric)
    for k in (0, 1, 4, 9):
        cap, bound = path["point-ncis"]["caps"][k], path["point-ncis-adaptive"]["bounds"][k]
        estimates = test.replace(cap=cap, weight_bound=bound).run(table).metrics[metric].estimates
        for key in BOTH:
            for name in FIELDS:
                expected = getattr(estimates[key], name)
                assert path[key][name][k] == pytest.approx(expected, rel=2e-6, abs=2e-7), (key, name)


@pytest.mark.slow
def test_values_and_errors_against_the_rows() -> None:
    """Every row its own unit, and a bucket a row."""
    rows = np.arange(200)
    path = path_of(build_test(BOTH, unit=None, buckets=1 << 16, interval="delta"), LOG.table().take(rows))
    r = LOG.click[:200]
    for key, grid in (("point-ncis", "caps"), ("point-ncis-adaptive", "bounds")):
        for k, place in enumerate(path[key][grid]):
            h = LOG.weights(key, place, place)[:200]
            d = (h - 1.0) * r
            assert path[key]["treatment"][k] == pytest.approx((h * r).mean(), rel=1e-6)
            assert path[key]["effect_size"][k] == pytest.approx(d.mean(), rel=1e-5, abs=1e-8)
            # a hash bucket may hold two of 200 rows
            assert path[key]["std_error"][k] == pytest.approx(d.std(ddof=1) / np.sqrt(200), rel=0.02)
            assert path[key]["effective_positives"][k] == pytest.approx((h * r).sum() ** 2 / ((h * r) ** 2).sum())


def test_draws_are_shared_with_the_estimator() -> None:
    """Two-sided: at its own bound the path is the estimate, as both are of one set of draws."""
    log = SmallLog(rows=60, units=60, m=7, k=3, spread=1.5, seed=2)
    settings = {"normaliser": "two-sided", "draws": 64, "interval": "delta", "weight_bound": 4.0}
    test = build_test(["point-ncis-adaptive"], **settings)
    path = path_of(test, log.table())["point-ncis-adaptive"]
    k = path["bounds"].index(4.0)
    estimate = test.run(log.table()).metrics["click"].estimates["point-ncis-adaptive"]
    for name in FIELDS:
        assert path[name][k] == pytest.approx(getattr(estimate, name), rel=1e-6, abs=1e-8)
    exact = path_of(test.replace(normaliser="auto"), log.table())["point-ncis-adaptive"]
    assert path["treatment"][k] != pytest.approx(exact["treatment"][k], rel=1e-6)
    assert path["treatment"][k] == pytest.approx(exact["treatment"][k], rel=0.1)


def test_a_batch_s_draws_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    true = PolicyPair.two_sided_weights

    def counted(self: PolicyPair, displays: Any, count: int, **at_a_cap: Any) -> Any:
        if count == 64:
            asked.append(len(displays))
        return true(self, displays, count, **at_a_cap)

    monkeypatch.setattr(PolicyPair, "two_sided_weights", counted)
    log = SmallLog(rows=100, units=60, m=5, k=2, spread=1.5, seed=2)
    build_test(BOTH, normaliser="two-sided", draws=64).aggregate(log.table())
    assert sum(asked) == int((log.click > 0).sum())


@pytest.mark.parametrize("policy", ["mallows", "epsilon-greedy"])
def test_policies_without_kernels(policy: str) -> None:
    make = {
        "mallows": lambda column: ft.Mallows(scores=column, dispersion=0.6),
        "epsilon-greedy": lambda column: ft.EpsilonGreedy(scores=column, epsilon=0.3),
    }[policy]
    log = SmallLog(rows=150, units=60, m=4, k=2, spread=1.0, seed=5)
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id")
    test = ft.OfflineTest(
        log=columns, control=make("control_scores"), treatment=make("treatment_scores"), estimators=BOTH,
        interval="delta", cap=3.0, weight_bound=3.0,
    )  # fmt: skip
    result = test.run(log.table())
    path = result.to_dict()["metrics"]["click"]["cap_path"]
    for key, grid in (("point-ncis", "caps"), ("point-ncis-adaptive", "bounds")):
        k = path[key][grid].index(3.0)
        for name in FIELDS:
            expected = getattr(result.metrics["click"].estimates[key], name)
            assert path[key][name][k] == pytest.approx(expected, rel=2e-6, abs=2e-7)


def test_of_many_rewarded_rows_those_kept_stand_for_all() -> None:
    whole = build_test(BOTH, interval="delta").aggregate(LOG.table())[0]
    some_rows = KeptRows(100, whole.rewarded.order)
    some_rows.add(whole.rewarded.columns(), whole.rewarded.seen)
    few = dataclasses.replace(whole, rewarded=some_rows)
    path = cap_path(few, 0, None, None, few.plan.estimators).to_dict()["point-ncis"]
    columns = some_rows.columns()
    assert path["rewarded_rows"] == 100
    assert path["notes"] == [f"from 100 of {whole.rewarded.seen:,} rewarded rows, those of the smallest unit hashes:"
                             " a wider interval"]  # fmt: skip
    r, h = columns["r", 0], np.exp(columns[ALONG_CAP].astype(float))
    np.testing.assert_allclose(path["rel_effect_size"], (h * r[:, None]).sum(axis=0) / r.sum() - 1.0, rtol=1e-9)
    # the control's value is that of the log
    np.testing.assert_allclose(path["treatment"], (h * r[:, None]).sum(axis=0) / r.sum() * LOG.click.mean(), rtol=1e-9)
    # by bucket, as a log of that share of the rows
    bucket = (derive(columns["unit"], BUCKET_SALT) % np.uint64(1024)).astype(np.int64)
    n = whole.n * r.sum() / LOG.click.sum()
    d = np.stack([np.bincount(bucket, (h[:, k] - 1.0) * r, 1024) for k in range(h.shape[1])], axis=1)
    centred = d - n[:, None] * d.sum(axis=0) / n.sum()
    units = whole.n_units
    expected = np.sqrt(units / (units - 1.0) * np.square(centred).sum(axis=0)) / n.sum()
    np.testing.assert_allclose(path["std_error"], expected, rtol=1e-9)


def test_without_rows_or_reward() -> None:
    test = build_test(BOTH)
    empty = path_of(test, LOG.table().slice(0, 0))["point-ncis-adaptive"]
    assert empty["treatment"] == [None] * len(empty["bounds"])
    none = path_of(test, LOG.table(click=np.zeros(LOG.rows)))["point-ncis"]
    assert none["rel_effect_size"] == [None] * len(none["caps"])


def test_not_for_estimators_that_do_not_run() -> None:
    path = path_of(build_test(["cis"]), LOG.table())
    assert (path["point-ncis"], path["point-ncis-adaptive"]) == (None, None)
