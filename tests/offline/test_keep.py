"""Thinned logs: a row that was kept with probability 1/m counts as m rows do, in every sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation.quantities import WEIGHTED_REWARDS, WEIGHTS
from tests.loggers import NAMES, ThreeLoggers
from tests.support import SmallLog, assert_close

VALUES = (
    "treatment", "std_error", "effect_size", "effect_size_ci_lower", "effect_size_ci_upper", "rel_effect_size",
    "rel_effect_size_ci_lower", "rel_effect_size_ci_upper",
)  # fmt: skip
LIMITS = tuple(name for name in VALUES if "_ci_" in name)
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


def assert_same(thinned: dict[str, Any], full: dict[str, Any]) -> None:
    """The metrics of two results have the same values, errors and limits; but limits where noise is predicted too: of
    it a row that stands for m adds m² squares, and m copies, whose sum is as large, m."""
    assert thinned.keys() == full.keys()
    for name, metric in thinned.items():
        for key, value in metric["control"].items():
            assert value == pytest.approx(full[name]["control"][key], abs=1e-9), (name, key)
        assert metric["estimates"].keys() == full[name]["estimates"].keys()
        for label, estimate in metric["estimates"].items():
            for key in VALUES:
                if key in LIMITS and estimate["predicted_std_error"] is not None:
                    continue
                other = full[name]["estimates"][label][key]
                assert estimate[key] == pytest.approx(other, rel=1e-9, abs=1e-9), (name, label, key)


@pytest.fixture(scope="module")
def small() -> tuple[SmallLog, np.ndarray, pa.Table]:
    """A log, how often each of its rows counts, and its table with keep."""
    log = SmallLog(rows=500, units=100)
    m = np.random.default_rng(1).integers(1, 5, log.rows)
    return log, m, log.table(keep=1.0 / m, day=log.stratum)


def test_rows_with_keep_count_as_their_copies_do(small: Any) -> None:
    _, m, table = small
    thinned = offline(keep=True, examination=[1.0, 0.6]).run(table)
    full = offline(keep=False, examination=[1.0, 0.6]).run(copied(table, m))
    assert len(thinned.metrics["click"].estimates) >= 12  # by ranking, by slot, by exposure
    a, b = thinned.to_dict(), full.to_dict()
    assert_same(a["metrics"], b["metrics"])
    assert a["log"]["rows"] == len(m)
    assert a["log"]["displays"] == pytest.approx(b["log"]["rows"])
    assert a["log"]["units"] == b["log"]["units"]
    for part, whole in zip(a["segments"], b["segments"], strict=True):
        assert_same(part["metrics"], whole["metrics"])
    assert [s["rows"] for s in a["segments"]] == np.bincount(table["stratum"]).tolist()
    for key in ("treatment_mass_kept", "capped_share", "max_weight"):
        assert a["health"][key] == pytest.approx(b["health"][key], rel=1e-9), key
    strata = [r["metrics"]["click"]["estimates"]["piece-ncis"]["strata"] for r in (a, b)]
    for mine, theirs in zip(*strata, strict=True):
        assert mine["share"] == pytest.approx(theirs["share"], rel=1e-9)
        assert mine["value"] == pytest.approx(theirs["value"], rel=1e-9)


def test_the_band_the_slice_test_and_a_fitted_curve_are_those_of_copies(small: Any) -> None:
    _, m, table = small
    kinds = ["exposure-ncis-adaptive", "slot-ncis-adaptive", "point-ncis"]
    thinned = offline(keep=True, estimators=kinds).run(table).to_dict()["metrics"]["click"]
    full = offline(keep=False, estimators=kinds).run(copied(table, m)).to_dict()["metrics"]["click"]
    # a pair's weight in the fit of θ is 1/(Σa²/A² + …), by rows that were drawn: with two slots there is but one pair
    assert thinned["examination"]["theta"] == pytest.approx(full["examination"]["theta"], rel=1e-9)
    assert thinned["examination"]["std_error"] == pytest.approx(full["examination"]["std_error"], rel=1e-9)
    for label in kinds:
        mine, theirs = (metric["estimates"][label]["sensitivity"] for metric in (thinned, full))
        for key in ("effect_size_lower", "effect_size_upper", "slice_gamma"):
            assert mine[key] == pytest.approx(theirs[key], rel=1e-9), (label, key)


def test_a_metric_with_losses_is_that_of_copies(small: Any) -> None:
    log, m, table = small
    hide = log.click * (np.arange(log.rows) % 3 == 0)
    table = table.append_column("hide", pa.array(hide)).append_column("slot_hide", log.slots("click", hide))
    columns = {"rewards": ["click", "hide"], "slot_rewards": {"click": "slot_click", "hide": "slot_hide"}}
    metrics = {"net": {"sum": {"click": 1.0, "hide": -0.5}}}
    thinned, full = (
        offline(keep=keep, columns=dict(columns), metrics=metrics, examination=[1.0, 0.6]).run(rows).to_dict()
        for keep, rows in ((True, table), (False, copied(table, m)))
    )
    assert_same(thinned["metrics"], full["metrics"])
    assert full["metrics"]["net"]["estimates"]["ncis"]["effect_size"] is not None


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


def test_dense_rewards_and_reward_models_are_those_of_copies(small: Any) -> None:
    _, m, table = small
    kinds = ["point-dr-adaptive", "cascade-dr", "dr", "point-ncis-adaptive"]
    more = {"predictions": {name: f"predicted_{name}" for name in SLOTS}, "estimators": kinds}
    a, b = (offline(keep=keep, **more).run(log).to_dict() for keep, log in ((True, table), (False, copied(table, m))))
    assert_same(a["metrics"], b["metrics"])
    more["weight_bound"] = "auto"
    thinned, full = (
        offline(keep=keep, **more).aggregate(log)[0] for keep, log in ((True, table), (False, copied(table, m)))
    )
    assert thinned.plan.dense
    for weighting in thinned.plan.normalised_weightings:
        accounts = [part.weights(weighting) for part in (thinned, full)]
        assert np.allclose(*(a.get(WEIGHTS) * np.exp(a.log_unit) for a in accounts), rtol=1e-9)


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


def test_several_loggers_with_keep_are_those_of_copies() -> None:
    log = ThreeLoggers(rows=400)
    m = np.random.default_rng(2).integers(1, 4, log.rows)
    table = log.table(keep=1.0 / m)

    def run(table: pa.Table, **columns: Any) -> dict[str, Any]:
        test = ft.OfflineTest(
            log=ft.LogColumns(
                rewards=["click"], unit="user", ranking="ranking", date="day", logger="policy", segments=["stratum"],
                **columns,
            ),
            control={name: ft.PlackettLuce(scores=f"{name}_scores") for name in NAMES},
            treatment=ft.PlackettLuce(scores="treatment_scores"),
            estimators=["ncis", "point-ncis-adaptive"], baseline="new", cap=2.0, weight_bound=3.0, n_resamples=50,
        )  # fmt: skip
        return test.run(table).to_dict()

    a, b = run(table, keep="keep"), run(copied(table, m))
    assert_same(a["metrics"], b["metrics"])
    for part, whole in zip(a["segments"], b["segments"], strict=True):
        assert_same(part["metrics"], whole["metrics"])
    for name in NAMES:
        assert a["log"]["loggers"][name]["share"] == pytest.approx(b["log"]["loggers"][name]["share"], rel=1e-12)
    counts = {name: log.logger.tolist().count(j) for j, name in enumerate(NAMES)}
    assert {name: part["rows"] for name, part in a["log"]["loggers"].items()} == counts


def test_several_treatments_with_keep_are_those_of_copies(small: Any) -> None:
    log, m, _ = small
    table = log.table(keep=1.0 / m, other=pa.array((log.treatment + 0.5 * log.control).tolist()))
    both = {"first": ft.PlackettLuce(scores="treatment_scores"), "second": ft.PlackettLuce(scores="other")}
    documents = []
    for keep, rows in ((True, table), (False, copied(table, m))):
        test = offline(keep=keep, estimators=["ncis", "point-ncis-adaptive"], columns={"slot_rewards": None})
        log_columns, analysis = test.settings.log, {"cap": 5.0, "weight_bound": 8.0, "n_resamples": 60}
        more = ft.OfflineTest(
            log=log_columns, control=test.settings.control, treatment=both, estimators=["ncis", "point-ncis-adaptive"],
            **analysis,
        )  # fmt: skip
        documents.append(more.run(rows).to_dict())
    for mine, theirs in zip(*(document["treatments"] for document in documents), strict=True):
        assert_same(mine["metrics"], theirs["metrics"])
        adjusted = [part["metrics"]["click"]["estimates"]["ncis"] for part in (mine, theirs)]
        assert adjusted[0]["simultaneous_ci_upper"] == pytest.approx(adjusted[1]["simultaneous_ci_upper"], rel=1e-9)
        assert adjusted[0]["p_adjusted"] == pytest.approx(adjusted[1]["p_adjusted"], rel=1e-9, abs=1e-12)


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


def test_keep_that_is_one_everywhere_changes_nothing(small: Any) -> None:
    log, _, _ = small
    table = log.table(keep=np.ones(log.rows))
    a, b = (
        offline(keep=keep, estimators=["ncis", "point-ncis-adaptive"]).run(table).to_dict() for keep in (True, False)
    )
    assert_same(a["metrics"], b["metrics"])
    assert a["log"]["displays"] == b["log"]["rows"]
    assert [f["p_value"] for f in a["audit"]["findings"]] == [f["p_value"] for f in b["audit"]["findings"]]
