"""The common checks of estimators on a log of several loggers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from tests.loggers import NAMES, ThreeLoggers, build

KEYS = ("is", "nis", "cis", "ncis", "piece-ncis", "dr", "point-ncis", "point-ncis-adaptive")
RATIOS = ("nis", "ncis", "piece-ncis")
LOG = ThreeLoggers(rows=240, units=60, seed=12)


def estimate(test: ft.OfflineTest, table: pa.Table, key: str) -> Any:
    return test.run(table).metrics["click"].estimates[key]


@pytest.mark.parametrize("key", RATIOS)
def test_a_constant_reward_is_returned(key: str) -> None:
    found = estimate(build([key], interval="delta"), LOG.table(click=np.full(LOG.rows, 0.7)), key)
    assert found.treatment == pytest.approx(0.7, rel=1e-12)


@pytest.mark.parametrize("interval", ["bootstrap", "delta", "betting"])
def test_rewards_scale(interval: str) -> None:
    keys = ("cis", "point-ncis-adaptive") if interval == "betting" else tuple(k for k in KEYS if k != "dr")
    one, many = (
        build(keys, interval=interval, n_resamples=50, r_max=2.0 * k).run(LOG.table(click=LOG.click * k))
        for k in (1.0, 250.0)
    )
    for key in keys:
        a, b = (result.metrics["click"].estimates[key] for result in (one, many))
        for name in ("treatment", "effect_size", "std_error", "effect_size_ci_lower", "effect_size_ci_upper"):
            assert getattr(b, name) == pytest.approx(250.0 * getattr(a, name), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("key", "limit"), [("cis", "is"), ("ncis", "nis"), ("point-ncis", "is")])
def test_a_cap_without_effect(key: str, limit: str) -> None:
    found = build([key, limit], cap=1e12, interval="delta").run(LOG.table()).metrics["click"].estimates
    for name in ("treatment", "effect_size", "std_error"):
        assert getattr(found[key], name) == pytest.approx(getattr(found[limit], name), rel=1e-9)


def test_copies_under_one_unit_add_no_evidence() -> None:
    ten = pa.concat_tables([LOG.table(id=np.arange(LOG.rows) + 1000 * k) for k in range(10)])
    test = build(KEYS, interval="delta")
    one, copied = (test.run(table).metrics["click"].estimates for table in (LOG.table(), ten))
    for key in KEYS:
        assert copied[key].effect_size == pytest.approx(one[key].effect_size, rel=1e-7)
        assert copied[key].std_error == pytest.approx(one[key].std_error, rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["ncis", "piece-ncis", "point-ncis-adaptive"])
def test_errors_are_those_of_a_jackknife(key: str) -> None:
    """Without one unit at a time, the rest of each logger at its weight in the log; shares are those of the log."""
    mix = LOG.mixture()
    h, w_p, r = LOG.weights(key, 2.0, 3.0, mix), LOG.baseline_weights("new", mix), LOG.click

    def uplift(times: np.ndarray) -> float:
        def ratio(rows: np.ndarray) -> float:
            return float((times * h * r)[rows].sum() / (times * h)[rows].sum())

        whole = np.ones(LOG.rows, np.bool_)
        if key == "ncis":
            value = ratio(whole)
        elif key == "piece-ncis":
            value = sum(times[g].sum() / times.sum() * ratio(g) for g in (LOG.stratum == 0, LOG.stratum == 1))
        else:
            value = (times * h * r).sum() / times.sum()
        return float(value - (times * w_p * r).sum() / times.sum())

    units, left_out = np.unique(LOG.unit), []
    for unit in units:
        times = (LOG.unit != unit).astype(float)
        for j in range(3):
            mine = LOG.logger == j
            times[mine] *= mine.sum() / times[mine].sum()
        left_out.append(uplift(times))
    count = len(units)
    jackknife = np.sqrt((count - 1) / count * np.square(left_out - np.mean(left_out)).sum())
    found = estimate(build([key], interval="delta", buckets=1 << 14), LOG.table(), key)
    assert found.effect_size == pytest.approx(uplift(np.ones(LOG.rows)), rel=1e-6)
    assert found.std_error == pytest.approx(jackknife, rel=0.03)


def test_weights_of_any_size() -> None:
    """Log-probabilities from columns: weights from 1e-299 to 1e299, against sums of fractions."""
    g = np.random.default_rng(2)
    n = 200
    far = 688.0 * g.permutation(np.arange(n) // 2) / (n // 2 - 1)
    rare = g.permutation(
        np.arange(n) % 2 == 0
    )  # what the loggers hardly show; elsewhere what the treatment hardly shows
    log_p, log_q = (-g.uniform(0.1, 2.0, n) - far * rare for _ in range(2))
    log_t = -g.uniform(0.1, 2.0, n) - far * ~rare
    r = (g.random(n) < 0.5).astype(float)
    names = np.where(np.arange(n) % 4 == 0, "old", "new")
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], id="id", logger="policy"),
        control={"new": ft.Logged(log_prob="p"), "old": ft.Logged(log_prob="q")},
        treatment=ft.Logged(log_prob="t"), baseline="new", interval="delta", estimators=["nis", "is", "ncis"], cap=10.0,
    )  # fmt: skip
    table = pa.table({"click": r, "policy": names, "id": np.arange(n), "p": log_p, "q": log_q, "t": log_t})
    mix = np.logaddexp(np.log(0.75) + log_p, np.log(0.25) + log_q)
    w, w_p = [Fraction(x) for x in np.exp(log_t - mix)], np.exp(log_p - mix)
    assert max(w) > 10**290
    assert min(w) < Fraction(1, 10**290)
    found = test.run(table).metrics["click"].estimates
    total = sum(x * Fraction(y) for x, y in zip(w, r, strict=True))
    assert found["is"].treatment == pytest.approx(float(total / n), rel=1e-9)
    assert found["nis"].treatment == pytest.approx(float(total / sum(w)), rel=1e-9)
    kept = np.minimum(np.exp(log_t - mix), 10.0)
    value = (kept * r).sum() / kept.sum()
    assert found["ncis"].effect_size == pytest.approx(value - (w_p * r).mean(), rel=1e-9)
    assert all(np.isfinite(e.std_error) for e in found.values())


@pytest.mark.parametrize("what", ["empty", "no reward", "one unit"])
def test_nothing_to_go_on_is_an_answer(what: str) -> None:
    table = LOG.table()
    if what == "empty":
        table = table.slice(0, 0)
    elif what == "no reward":
        table = LOG.table(click=np.zeros(LOG.rows), slot_click=[[0.0, 0.0]] * LOG.rows)
    else:
        table = LOG.table(user=np.zeros(LOG.rows, np.int64))
    result = build([k for k in KEYS if k != "dr"], n_resamples=20, r_max=1.0).run(table)
    assert set(result.log["loggers"]) == set(NAMES)
    for found in result.metrics["click"].estimates.values():
        assert found.verdict == "insufficient"
        assert found.reasons
    result.to_json()
    str(result)
