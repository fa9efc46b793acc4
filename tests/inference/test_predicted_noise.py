"""Predicted noise and numbers of effective rewards, against sums over all that the control could have shown."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.inference.buckets import Interval
from foretest.inference.predicted_noise import error_of, inflation, predicted_noise, with_predicted
from foretest.inference.uplift_estimate import StdErrors, Uplift
from foretest.inference.usual_intervals import UpliftIntervals
from foretest.results.result import Estimate
from foretest.simulate import WORLDS, simulate_log
from tests.support import CURVE, SmallLog

BOUND = 3.0
LOG = SmallLog(rows=300, units=90, k=2, seed=4)
KEYS = ["point-ncis-adaptive", "slot-ncis-adaptive", "cascade-ncis-adaptive", "exposure-ncis-adaptive"]


class Slots(NamedTuple):
    """Of every slot (a ranking counts as one): its reward, w̃ and E_p[w̃² | x], rows × slots."""

    r: np.ndarray
    weight: np.ndarray
    second: np.ndarray

    @property
    def observed(self) -> np.ndarray:
        return np.square(self.weight - 1.0)

    @property
    def effective(self) -> float:
        return float(self.r.sum() ** 2 / (self.r**2 * self.second).sum())

    def inflation(self, beta: float = 0.0) -> float:
        y = np.square(self.r - beta)
        return float((y * (self.second - 1.0)).sum() / (y * self.observed).sum())


def adaptive(t: np.ndarray, p: np.ndarray, bound: float) -> tuple[np.ndarray, np.ndarray]:
    """w̃ of all that can be shown, and E_p[w̃²], by bisection on the cap; the last axis is what can be shown."""
    low, high = np.full(t.shape[:-1], -60.0), np.full(t.shape[:-1], np.log(bound) + 1e-12)
    for _ in range(200):
        c = np.exp((low + high) / 2)
        fits = c <= bound * np.minimum(t, c[..., None] * p).sum(axis=-1)
        low, high = np.where(fits, np.log(c), low), np.where(fits, high, np.log(c))
    kept = np.minimum(t, np.exp(low)[..., None] * p)
    weight = np.divide(kept, p, out=np.zeros_like(p), where=p > 0.0) / kept.sum(axis=-1, keepdims=True)
    return weight, (p * weight**2).sum(axis=-1)


def slots_of(log: SmallLog, key: str, bound: float = BOUND, metric: str = "click") -> Slots:
    """What a level says of every slot, by enumeration."""
    r = getattr(log, metric)
    at, shown = np.arange(log.rows), log.rankings[log.shown]
    earned = log.shares[metric] * r[:, None]
    if key.startswith("point"):
        weight, second = adaptive(np.exp(log.log_t), np.exp(log.log_p), bound)
        return Slots(r[:, None], weight[at, log.shown][:, None], second[:, None])
    if key.startswith("slot"):
        weight, second = adaptive(log.marginals(log.log_t), log.marginals(log.log_p), bound)
        return Slots(earned, np.take_along_axis(weight, shown[:, :, None], axis=2)[:, :, 0], second)
    if key.startswith("exposure"):
        weight, second = adaptive(log.exposures(log.log_t), log.exposures(log.log_p), bound)
        return Slots(earned, np.take_along_axis(weight, shown, axis=1), np.repeat(second[:, None], log.k, axis=1))
    of_slots = []
    for k in range(1, log.k + 1):
        place = np.unique(log.rankings[:, :k], axis=0, return_inverse=True)[1].ravel()
        t, p = (
            np.stack([np.exp(of_all[:, place == j]).sum(axis=1) for j in range(place.max() + 1)], axis=1)
            for of_all in (log.log_t, log.log_p)
        )
        weight, second = adaptive(t, p, bound)
        of_slots.append((weight[at, place[log.shown]], second))
    return Slots(earned, *(np.stack(columns, axis=1) for columns in zip(*of_slots, strict=True)))


def offline(keys: list[str], **more: Any) -> ft.OfflineTest:
    columns = {
        "rewards": ["click", "revenue"], "unit": "user", "ranking": "ranking", "id": "id",
        "slot_rewards": {"click": "slot_click", "revenue": "slot_revenue"}, **more.pop("columns", {}),
    }  # fmt: skip
    settings = {"weight_bound": BOUND, "interval": "delta", "examination": list(CURVE[:2]), "normaliser": "exact"}
    return ft.OfflineTest(
        log=ft.LogColumns(**columns),
        control=ft.PlackettLuce(scores="control_scores"),
        treatment=ft.PlackettLuce(scores="treatment_scores"),
        estimators=keys,
        **{**settings, **more},
    )


@pytest.mark.parametrize("metric", ["click", "revenue"])
def test_noise_and_counts_are_those_of_all_that_could_be_shown(metric: str) -> None:
    estimates = offline(KEYS).run(LOG.table()).metrics[metric].estimates
    z = 1.6448536269514722
    for key in KEYS:
        slots, e = slots_of(LOG, key, metric=metric), estimates[key]
        assert e.predicted_effective_positives == pytest.approx(slots.effective, rel=1e-6), key
        assert e.std_error is not None
        assert e.effect_size is not None
        assert e.predicted_std_error == pytest.approx(e.std_error * np.sqrt(slots.inflation()), rel=1e-6), key
        half = z * max(e.std_error, e.predicted_std_error or 0.0)
        assert e.effect_size_ci_lower == pytest.approx(e.effect_size - half, rel=1e-6)
        assert e.effect_size_ci_upper == pytest.approx(e.effect_size + half, rel=1e-6)


def test_dense_rewards_are_counted_from_what_a_reward_is_worth() -> None:
    """All rows are weighed, values are ratios, and r − β takes the place of r."""
    keys = ["point-ncis-adaptive", "slot-ncis-adaptive"]
    estimates = offline(keys, weight_bound="auto").run(LOG.table()).metrics["click"].estimates
    for key in keys:
        e = estimates[key]
        assert e.bound_choice is not None
        assert e.treatment is not None
        assert e.std_error is not None
        slots = slots_of(LOG, key, e.bound_choice["bound"])
        beta = e.treatment / slots.r.shape[1]
        expected = e.std_error * np.sqrt(slots.inflation(beta))
        assert e.predicted_std_error == pytest.approx(expected, rel=1e-6)
        assert expected != pytest.approx(e.std_error * np.sqrt(slots.inflation()), rel=1e-3)
        assert e.predicted_effective_positives == pytest.approx(slots.effective, rel=1e-6)


def test_a_segment_with_all_rows_is_the_log() -> None:
    table = LOG.table(all=np.zeros(LOG.rows, np.int64))
    result = offline(KEYS[:3], columns={"segments": ["all"]}).run(table)
    [segment] = result.segments
    for key in KEYS[:3]:
        whole, part = (metrics["click"].estimates[key] for metrics in (result.metrics, segment.metrics))
        for name in ("predicted_effective_positives", "predicted_std_error", "effect_size_ci_lower"):
            assert getattr(part, name) == pytest.approx(getattr(whole, name), rel=1e-9), (key, name)


def test_segments_add_up_their_own_rows() -> None:
    result = offline(["slot-ncis-adaptive"], columns={"segments": ["stratum"]}).run(LOG.table())
    slots = slots_of(LOG, "slot-ncis-adaptive")
    for segment in result.segments:
        part = Slots(*(column[int(segment.value) == LOG.stratum] for column in slots))
        e = segment.metrics["click"].estimates["slot-ncis-adaptive"]
        assert e.predicted_effective_positives == pytest.approx(part.effective, rel=1e-6)
        assert e.predicted_std_error == pytest.approx((e.std_error or 0.0) * np.sqrt(part.inflation()), rel=1e-6)


def test_equal_policies_have_no_noise() -> None:
    table = LOG.table(treatment_scores=LOG.table()["control_scores"])
    estimates = offline(KEYS).run(table).metrics["click"].estimates
    for key in KEYS:
        e = estimates[key]
        assert max(abs(e.effect_size_ci_lower or 0.0), abs(e.effect_size_ci_upper or 0.0)) <= 1e-12
        assert e.predicted_effective_positives == pytest.approx(LOG.click.sum(), rel=1e-9)


def test_parts_add_up_and_parts_without_such_sums_count_as_more_of_the_same() -> None:
    test, table = offline(["slot-ncis-adaptive"]), LOG.table()
    whole, first, second = (test.aggregate(rows)[0] for rows in (table, table.slice(0, 100), table.slice(100)))
    weighting = whole.plan.point_weightings[0]
    both = predicted_noise(first + second, weighting, 0)
    assert both == pytest.approx(predicted_noise(whole, weighting, 0), rel=1e-9)
    for account, key, _ in list(first.ledger.sums()):  # as in a file of an earlier version
        if key.quantity.name.startswith("noise_"):
            del account.sums[key]
    assert predicted_noise(first, weighting, 0) is None
    mixed = predicted_noise(first + second, weighting, 0)
    alone = predicted_noise(second, weighting, 0)
    assert mixed is not None
    assert alone is not None
    clicks = LOG.click.sum(), LOG.click[100:].sum()
    assert mixed.effective(clicks[0]) == pytest.approx((alone.effective(clicks[1]) or 0.0) * clicks[0] / clicks[1])


def test_only_limits_are_moved_and_only_outwards() -> None:
    aggregates = offline(["cis"]).aggregate(LOG.table())[0]
    intervals = UpliftIntervals(StdErrors(1.0, 2.0), Uplift(0.5, Interval(-9.0, 1.0)), Uplift(1.0, Interval(0.0, 1.5)))
    absolute, relative = with_predicted(aggregates, intervals, 2.0, 0.5)[1:]
    assert absolute == (0.5, (-9.0, pytest.approx(0.5 + 2.0 * 1.6448536)))
    assert relative == (1.0, pytest.approx((1.0 - 4.0 * 1.6448536, 1.0 + 4.0 * 1.6448536)))
    assert with_predicted(aggregates, intervals, None, 0.5) == intervals


def test_a_decision_rests_on_the_larger_error() -> None:
    def estimate(error: float | None, predicted: float | None) -> Estimate:
        return Estimate(
            0.1, error, 0.0, None, None, None, None, None, "neutral", [], 40.0, predicted_std_error=predicted
        )

    assert error_of(estimate(0.2, 0.3)) == 0.3
    assert error_of(estimate(0.2, None)) == 0.2
    assert np.isnan(error_of(estimate(None, None)))
    assert inflation(estimate(0.2, 0.3), estimate(0.2, 0.1)) == pytest.approx(1.5)
    assert inflation(estimate(0.0, 0.0), estimate(None, None)) == 1.0


@pytest.mark.parametrize("seed", [9100, 9102])
def test_a_short_log_without_its_heavy_clicks_is_not_negative(seed: int) -> None:
    """The true uplift is +10 %. Both logs lack clicks of large weight, and look negative by what noise they show."""
    log = pa.Table.from_batches(simulate_log(WORLDS["paper"], 5000, seed))
    test = ft.OfflineTest(
        log=ft.LogColumns(
            rewards=["click"], unit="user", ranking="ranking", id="display_id", slot_rewards={"click": "slot_click"}
        ),
        control=ft.PlackettLuce(scores="control_scores"),
        treatment=ft.PlackettLuce(scores="treatment_scores"),
        estimators=["point-ncis-adaptive", "slot-ncis-adaptive"],
    )
    e = test.run(log, threads=1).metrics["click"].estimates["slot-ncis-adaptive"]
    assert e.word in ("neutral", "insufficient", "leans positive", "positive")
