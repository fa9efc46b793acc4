"""Intervals of PieceNCIS in an unevenly thinned log: the jackknife's error, percentiles without their bias."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.inference.bootstrap import resample_counts
from foretest.inference.buckets import bucket_sums
from tests.support import SmallLog, apart

CAP, UNITS, KEEP = 5.0, 90, 0.05
Z = 1.6448536269514722


@pytest.fixture(scope="module")
def thinned() -> dict[str, np.ndarray]:
    """A log of users none of whom share a bucket, of whose rows without a click one in twenty was kept."""
    log = SmallLog(rows=6000, units=UNITS, seed=3)
    keep = np.where(log.click > 0.0, 1.0, KEEP)
    some = np.flatnonzero(np.random.default_rng(5).random(log.rows) < keep)
    table = log.table(keep=keep, user=apart(UNITS)[log.unit]).take(some)
    weights = np.minimum(np.exp(log.log_w), CAP)
    return {"table": table, "unit": log.unit[some], "stratum": log.stratum[some], "click": log.click[some],
            "w": weights[some], "m": 1.0 / keep[some]}  # fmt: skip


def offline(**settings: Any) -> ft.OfflineTest:
    columns = {"rewards": ["click"], "unit": "user", "ranking": "ranking", "keep": "keep"}
    return ft.OfflineTest(
        log=ft.LogColumns(**{**columns, **settings.pop("columns", {})}), control=ft.PlackettLuce("control_scores"),
        treatment=ft.PlackettLuce(settings.pop("treatment", "treatment_scores")), estimators=["ncis", "piece-ncis"],
        strata="stratum", cap=CAP, **settings,
    )  # fmt: skip


def uplift(log: dict[str, np.ndarray], some: np.ndarray) -> float:
    """The absolute uplift by PieceNCIS of some rows, by its formula."""
    m, w, r, stratum = (log[name][some] for name in ("m", "w", "click", "stratum"))
    value = sum(m[g].sum() * (m[g] * w[g] * r[g]).sum() / (m[g] * w[g]).sum() for g in (stratum == s for s in range(3)))
    return float((value - (m * r).sum()) / m.sum())


def test_the_error_is_that_of_leaving_out_each_user(thinned: dict[str, np.ndarray]) -> None:
    result = offline(interval="delta").run(thinned["table"]).metrics["click"].estimates["piece-ncis"]
    everyone = np.ones(len(thinned["m"]), bool)
    users = np.unique(thinned["unit"])
    without = np.array([uplift(thinned, thinned["unit"] != user) for user in users])
    error = np.sqrt((len(users) - 1) / len(users) * np.square(without - without.mean()).sum())
    value = uplift(thinned, everyone)
    assert result.effect_size == pytest.approx(value, rel=1e-9)
    assert result.std_error == pytest.approx(error, rel=1e-9)
    assert result.effect_size_ci_lower == pytest.approx(value - Z * error, rel=1e-9)
    assert result.effect_size_ci_upper == pytest.approx(value + Z * error, rel=1e-9)


def test_percentiles_lose_twice_the_bias_of_the_resamples(thinned: dict[str, np.ndarray]) -> None:
    test = offline(n_resamples=200)
    estimate = test.run(thinned["table"]).metrics["click"].estimates["piece-ncis"]
    aggregates = test.aggregate(thinned["table"]).aggregates
    sums = bucket_sums(aggregates, aggregates.plan.estimators[1], 0)
    replicate = sums.resampled(resample_counts(1024, 200, 0))
    uplifts = ((replicate.n * replicate.hr / replicate.h).sum(axis=1) - replicate.r) / replicate.rows
    twice = 2.0 * (uplifts.mean() - estimate.effect_size)
    assert abs(twice) > 1e-5
    lower, upper = np.quantile(uplifts, [0.05, 0.95]) - twice
    assert estimate.effect_size_ci_lower == pytest.approx(lower, rel=1e-9)
    assert estimate.effect_size_ci_upper == pytest.approx(upper, rel=1e-9)


def test_other_estimators_and_even_thinning_keep_the_delta_error(thinned: dict[str, np.ndarray]) -> None:
    without = offline(interval="delta", columns={"keep": None})
    even = thinned["table"].set_column(
        thinned["table"].column_names.index("keep"), "keep", [np.full(len(thinned["m"]), KEEP)]
    )
    for label in ("ncis", "piece-ncis"):
        at_one_rate = offline(interval="delta").run(even).metrics["click"].estimates[label]
        as_it_is = without.run(thinned["table"]).metrics["click"].estimates[label]
        assert at_one_rate.std_error == pytest.approx(as_it_is.std_error, rel=1e-9)
    ncis = offline(interval="delta").run(thinned["table"]).metrics["click"].estimates["ncis"]
    m, w, r = (thinned[name] for name in ("m", "w", "click"))
    n, mean = m.sum(), (m * r).sum() / m.sum()
    value = (m * w * r).sum() / (m * w).sum()
    phi = m * (w * (r - value) * n / (m * w).sum() - (r - mean))
    by_user = np.bincount(thinned["unit"], weights=phi, minlength=UNITS)
    users = len(np.unique(thinned["unit"]))
    assert ncis.std_error == pytest.approx(np.sqrt(users / (users - 1) * (by_user**2).sum()) / n, rel=1e-9)


@pytest.mark.parametrize("interval", ["delta", "bootstrap"])
def test_the_control_against_itself_is_exactly_0(thinned: dict[str, np.ndarray], interval: str) -> None:
    test = offline(treatment="control_scores", interval=interval, n_resamples=50)
    estimate = test.run(thinned["table"]).metrics["click"].estimates["piece-ncis"]
    limits = (estimate.effect_size, estimate.effect_size_ci_lower, estimate.effect_size_ci_upper)
    assert limits == pytest.approx((0.0, 0.0, 0.0), abs=1e-15)


@pytest.mark.parametrize("size", [1e-99, 1e99])
def test_rewards_of_any_size(thinned: dict[str, np.ndarray], size: float) -> None:
    table = thinned["table"]
    scaled = table.set_column(table.column_names.index("click"), "click", [size * thinned["click"]])
    one, other = (
        offline(interval="delta").run(log).metrics["click"].estimates["piece-ncis"] for log in (table, scaled)
    )
    assert other.std_error / size == pytest.approx(one.std_error, rel=1e-9)
    assert other.rel_std_error == pytest.approx(one.rel_std_error, rel=1e-9)
