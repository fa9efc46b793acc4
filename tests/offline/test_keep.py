"""Thinned logs: a row that was kept with probability 1/m counts as m rows do, in every sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation.quantities import WEIGHTED_REWARDS
from tests.support import SmallLog, assert_close

SLOTS = {"click": "slot_click", "revenue": "slot_revenue"}


def offline(*, keep: bool, estimators: Any = None, **more: Any) -> ft.OfflineTest:
    """A test of all estimators, with strata and V(x) from columns, by segment."""
    columns = {
        "rewards": ["click", "revenue"], "unit": "user", "ranking": "ranking", "segments": ["stratum"],
        "slot_rewards": SLOTS, **more.pop("columns", {}), **({"keep": "keep"} if keep else {}),
    }  # fmt: skip
    settings = {"strata": "stratum", "value": "v", "cap": 5.0, "weight_bound": 8.0, "n_resamples": 60, **more}
    return ft.OfflineTest(
        log=ft.LogColumns(**columns),
        control=ft.PlackettLuce(scores="control_scores"),
        treatment=ft.PlackettLuce(scores="treatment_scores"),
        estimators=estimators,
        **settings,
    )


def copied(table: pa.Table, m: np.ndarray) -> pa.Table:
    """The log in which row i is there m_i times."""
    return table.take(np.repeat(np.arange(len(m)), m))


@pytest.fixture(scope="module")
def small() -> tuple[SmallLog, np.ndarray, pa.Table]:
    """A log, how often each of its rows counts, and its table with keep."""
    log = SmallLog(rows=500, units=100)
    m = np.random.default_rng(1).integers(1, 5, log.rows)
    return log, m, log.table(keep=1.0 / m, day=log.stratum)


def test_the_tests_of_slots_are_those_of_copies() -> None:
    log = SmallLog(rows=900, units=600)
    m = np.random.default_rng(5).integers(1, 4, log.rows)
    table = log.table(keep=1.0 / m)
    kinds = ["slot-ncis-adaptive"]
    a, b = (
        offline(keep=keep, estimators=kinds).run(rows).to_dict()["metrics"]["click"]["slot_model"]
        for keep, rows in ((True, table), (False, copied(table, m)))
    )
    assert a["company"]["z"] == pytest.approx(b["company"]["z"], rel=1e-9)
    for name, test in a.items():
        if isinstance(test, dict) and test["p_value"] is not None:
            assert test["p_value"] == pytest.approx(b[name]["p_value"], rel=1e-9), name


@pytest.mark.parametrize("dense", [True, False])
def test_one_rate_for_all_rows_changes_no_answer(small: Any, dense: bool) -> None:
    """What is quadratic in rows scales with m²: bounds and caps that the log chooses, effective positives, which of two
    estimates leads, and what is seen of sampled displays."""
    log, _, _ = small
    click = log.click if dense else log.click * (np.arange(log.rows) % 8 == 0)
    table = log.table(
        keep=np.full(log.rows, 0.25), click=click, slot_click=log.slots("click", click), flag=log.stratum > 0
    )
    kinds = ["point-ncis-adaptive", "point-dr-adaptive", "slot-ncis-adaptive", "cascade-ncis-adaptive", "cis"]
    more = {
        "weight_bound": "auto", "cap": "auto", "predictions": {"click": "predicted_click"}, "estimators": kinds,
        "columns": {"rewards": ["click"], "slot_rewards": {"click": "slot_click"}, "features": ["flag"]},
    }  # fmt: skip
    a, b = (offline(keep=keep, **more).run(table).to_dict() for keep in (True, False))
    assert a["log"]["displays"] == 4 * b["log"]["rows"]
    for document in (a, b):
        document["log"].pop("displays", None)
        document["settings"]["log"].pop("keep", None)
        for name in ("notes", "provenance", "settings"):
            document.pop(name)
        for metric in document["metrics"].values():
            for estimate in metric["estimates"].values():
                estimate.pop("lower_bound"), estimate.pop("betting", None), estimate.pop("reasons")
    assert_close(a, b)


def test_values_are_those_of_plain_numpy(small: Any) -> None:
    log, m, table = small
    result = offline(keep=True, interval="delta", columns={"slot_rewards": None}).run(table)
    w, r, n = np.exp(log.log_w), log.click, m.sum()
    capped = np.minimum(w, 5.0)
    expected = {
        "is": (m * w * r).sum() / n,
        "nis": (m * w * r).sum() / (m * w).sum(),
        "cis": (m * capped * r).sum() / n,
        "ncis": (m * capped * r).sum() / (m * capped).sum(),
        "point-ncis": (m * capped / log.q(5.0) * r).sum() / n,
        "point-ncis-adaptive": (m * log.adaptive(8.0) * r).sum() / n,
    }
    metric = result.metrics["click"]
    assert metric.control.value == pytest.approx((m * r).sum() / n, rel=1e-12)
    for label, value in expected.items():
        assert metric.estimates[label].treatment == pytest.approx(value, rel=1e-9), label
        hr = m * r * {"is": w, "nis": w, "cis": capped, "ncis": capped}.get(label, 0.0)
        if hr.any():
            effective = hr.sum() ** 2 / (hr**2).sum()
            assert metric.estimates[label].effective_positives == pytest.approx(effective, rel=1e-9), label
    # the delta method by unit, of the relative uplift of ncis
    theta, mean = expected["ncis"], (m * r).sum() / n
    psi = capped * (r - theta) / ((m * capped).sum() / n)
    phi = (psi - theta / mean * (r - mean)) / mean
    sums = np.bincount(log.unit, weights=m * phi)
    units = len(np.unique(log.unit))
    # two of a hundred users may share a bucket of 1 024
    assert metric.estimates["ncis"].rel_std_error == pytest.approx(
        np.sqrt(units / (units - 1) * (sums @ sums)) / n, rel=0.05
    )
    predicted = metric.estimates["point-ncis-adaptive"].predicted_effective_positives
    t, p = np.exp(log.log_t), np.exp(log.log_p)
    low, high = np.full(log.rows, -60.0), np.full(log.rows, np.log(8.0) + 1e-12)
    for _ in range(100):
        c = np.exp((low + high) / 2)
        fits = c <= 8.0 * np.minimum(t, c[:, None] * p).sum(axis=1)
        low, high = np.where(fits, np.log(c), low), np.where(fits, high, np.log(c))
    q = np.minimum(t, np.exp(low)[:, None] * p).sum(axis=1)
    second = (np.minimum(t / p, np.exp(low)[:, None]) ** 2 * p).sum(axis=1) / q**2
    mr = m * r
    assert predicted == pytest.approx(mr.sum() ** 2 / ((mr**2) @ second), rel=1e-6)


@pytest.mark.slow
def test_thinning_at_random_leaves_expectations_as_they_are() -> None:
    """A fixed log thinned 400 times: sums of linear estimators have the full log's expectation."""
    log = SmallLog(rows=400, units=100, seed=3)
    g = np.random.default_rng(4)
    keep = np.where(log.click > 0, 0.9, 0.3)
    table, ids = log.table(keep=keep), np.arange(log.rows)
    test = offline(keep=True, estimators=["cis", "point-ncis"], columns={"slot_rewards": None, "segments": []})
    full = offline(
        keep=False, estimators=["cis", "point-ncis"], columns={"slot_rewards": None, "segments": []}
    ).aggregate(table)[0]
    sums = []
    for _ in range(400):
        part = test.aggregate(table.take(ids[g.random(log.rows) < keep]))[0]
        sums.append([part.displays, part.r[0].sum(), *(_weighted(part, e) for e in part.plan.estimators)])
    expected = [full.displays, full.r[0].sum(), *(_weighted(full, e) for e in full.plan.estimators)]
    mean, error = np.mean(sums, axis=0), np.std(sums, axis=0) / np.sqrt(len(sums))
    assert (np.abs(mean - expected) < 4.0 * error).all()
    assert (error < 0.02 * np.array(expected)).all()  # so that a factor left out would show


def _weighted(aggregates: Any, estimator: Any) -> float:
    account = aggregates.weighted(aggregates.plan.weighting(estimator), 0)
    return float(account.total(WEIGHTED_REWARDS) * np.exp(account.log_unit))


def test_rules_that_count_rows_count_those_in_the_log() -> None:
    log = SmallLog(rows=600, units=150)
    value = np.where(np.arange(600) % 10 == 0, 1.0, 4.0)  # 60 rows in the lower bin, which stand for 1 200 displays
    keep = np.where(value == 1.0, 0.05, 1.0)
    test = offline(keep=True, estimators=["piece-ncis"], strata="value-model", columns={"slot_rewards": None})
    result = test.run(log.table(keep=keep, v=value))
    assert len(result.metrics["click"].estimates["piece-ncis"].strata or []) == 1


def test_a_run_says_that_the_log_was_thinned_and_what_is_left_out(small: Any) -> None:
    _, m, table = small
    result = offline(keep=True, estimators=["cis", "point-ncis-adaptive"], r_max=20.0).run(table)
    assert any(f"500 rows stand for {m.sum():,} displays" in note for note in result.notes)
    assert f"500 rows for {m.sum():,} displays" in str(result)
    for estimate in result.metrics["click"].estimates.values():
        assert estimate.lower_bound is None
        assert estimate.betting is None


@pytest.mark.parametrize("interval", ["bernstein", "betting"])
def test_bounds_that_need_all_units_are_refused(small: Any, interval: str) -> None:
    _, _, table = small
    with pytest.raises(ft.BadInput, match=rf'interval = "{interval}" needs all rows of every unit.*keep = "keep"'):
        offline(keep=True, estimators=["cis"], interval=interval, r_max=20.0).run(table)


def test_sums_with_keep_and_without_do_not_add_up(small: Any) -> None:
    _, _, table = small
    with_keep, without = (offline(keep=keep, estimators=["ncis"]).aggregate(table)[0] for keep in (True, False))
    with pytest.raises(ft.BadInput, match="some of these sums are of a log with"):
        with_keep + without
