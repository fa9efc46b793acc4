"""Slots against rankings: the limits in plain NumPy, worlds where slots influence each other and where they do not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.inference.slot_agreement import slot_agreement
from foretest.report.words import headline_reason
from tests.estimators.test_common_checks import apart
from tests.support import SCORES, SmallLog, build_test

BOTH = ["point-ncis-adaptive", "slot-ncis-adaptive"]


def terms(log: SmallLog, key: str, bound: float) -> tuple[np.ndarray, np.ndarray]:
    """d = (w̃ − 1) r and t = (w̃ − w̄) r of every row; w̄ is w̃ times q."""
    at = np.arange(log.rows)
    if key == "point-ncis-adaptive":
        t, p = np.exp(log.log_t)[:, None], np.exp(log.log_p)[:, None]
        shown, shares = np.exp(log.log_w)[:, None], np.ones((log.rows, 1))
    else:
        t, p = log.marginals(log.log_t), log.marginals(log.log_p)
        items = log.rankings[log.shown]
        shown = np.stack([t[at, k, items[:, k]] / p[at, k, items[:, k]] for k in range(log.k)], axis=1)
        shares = log.shares["click"]
    low, high = np.full(shown.shape, -60.0), np.full(shown.shape, np.log(bound) + 1e-12)
    for _ in range(200):
        c = np.exp((low + high) / 2)
        fits = c <= bound * np.minimum(t, c[:, :, None] * p).sum(axis=2)
        low, high = np.where(fits, np.log(c), low), np.where(fits, high, np.log(c))
    capped = np.minimum(shown, np.exp(low))
    h = capped / np.minimum(t, np.exp(low)[:, :, None] * p).sum(axis=2)
    h, capped = (h * shares).sum(axis=1), (capped * shares).sum(axis=1)
    return (h - 1.0) * log.click, (h - capped) * log.click


def test_limits_are_the_formula() -> None:
    """Clustered by unit, where no two units fall into one bucket; the settings' own gamma plays no part."""
    log = SmallLog(rows=300, units=60, seed=12)
    log.unit = apart(60)[log.unit]
    test = build_test(BOTH, interval="delta", gamma=5.0, weight_bound=1.5)
    aggregates, _, _ = test.aggregate(log.table())
    agreement = slot_agreement(aggregates, aggregates.plan.estimators, 0)
    assert agreement is not None
    (ds, ts), (dp, tp) = (terms(log, key, 1.5) for key in reversed(BOTH))
    down, up = 1 - 1 / 1.15, 0.3

    def error(x: np.ndarray) -> float:
        sums = np.array([(x - x.mean())[log.unit == u].sum() for u in np.unique(log.unit)])
        return float(np.sqrt(len(sums) / (len(sums) - 1) * (sums**2).sum()) / log.rows)

    low, high = (ds - down * ts) - (dp + up * tp), (ds + up * ts) - (dp - down * tp)
    assert agreement.difference == pytest.approx((ds - dp).mean(), rel=1e-6)
    assert agreement.interval.lower == pytest.approx(low.mean() - 1.6448536 * error(low), rel=1e-6)
    assert agreement.interval.upper == pytest.approx(high.mean() + 1.6448536 * error(high), rel=1e-6)
    assert min(tp.sum(), ts.sum()) > 0.0


def simulated(influence: bool, rows: int = 20_000) -> pa.Table:
    """Two slots of four items; the second earns by its own item, or where `influence` by the item above it."""
    g = np.random.default_rng(21)
    control = g.normal(size=(rows, 4))
    treatment = control + np.array([1.0, 0.0, 0.0, -1.0])
    ranking = np.argsort(-(control + g.gumbel(size=control.shape)), axis=1)[:, :2]
    decides = ranking[:, 0] if influence else ranking[:, 1]
    rate = np.where(decides == 0, 0.4, 0.05)
    click = (g.random(rows) < rate).astype(float)
    slots = np.stack([np.zeros(rows), click], axis=1)
    return pa.table({
        "click": click, "slot_click": slots.tolist(), "ranking": ranking.tolist(), "user": np.arange(rows),
        "control_scores": control.tolist(), "treatment_scores": treatment.tolist(),
    })  # fmt: skip


def test_slots_that_influence_each_other_are_found_out() -> None:
    """Clicks in slot 2 come with item 0 above it, which the treatment shows more: by slot little of that is seen."""
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", slot_rewards={"click": "slot_click"})
    test = ft.OfflineTest(log=columns, **SCORES, estimators=BOTH)
    result = test.run(simulated(influence=True))
    metric = result.metrics["click"]
    assert metric.slots is not None
    assert metric.slots["disagree"]
    assert metric.estimates["point-ncis-adaptive"].verdict == "positive"
    slot, point = (metric.estimates[key].effect_size for key in reversed(BOTH))
    assert slot < 0.5 * point
    assert metric.headline == "point-ncis-adaptive"
    assert metric.verdict == "positive"
    assert any("slots influence each other" in r for r in metric.estimates["slot-ncis-adaptive"].reasons)
    assert "not slot-ncis-adaptive: slots influence each other" in headline_reason(result, metric)
    assert "slots influence each other" in str(result)
    assert result.to_dict()["metrics"]["click"]["slots"]["disagree"]
    asked = test.replace(headline="slot-ncis-adaptive").run(simulated(influence=True)).metrics["click"]
    assert asked.headline == "slot-ncis-adaptive"  # who asks for it has it, and the reason


def test_slots_that_do_not_are_left_in_the_lead() -> None:
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", slot_rewards={"click": "slot_click"})
    metric = ft.OfflineTest(log=columns, **SCORES, estimators=BOTH).run(simulated(influence=False)).metrics["click"]
    assert metric.slots is not None
    assert not metric.slots["disagree"]
    assert metric.slots["ci_lower"] < 0.0 < metric.slots["ci_upper"]
    assert metric.headline == "slot-ncis-adaptive"
    alone = ft.OfflineTest(log=columns, **SCORES, estimators=["slot-ncis-adaptive"]).run(simulated(influence=False))
    assert alone.metrics["click"].slots is None
    assert "slots" not in alone.to_dict()["metrics"]["click"]
