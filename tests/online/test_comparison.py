"""The comparison of two arms: formulas against plain NumPy, a jackknife and SciPy; verdicts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import foretest as ft
from foretest.inference.bootstrap import resample_counts
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derive
from foretest.online.metric_arms import MetricArms
from foretest.online.resampling import ArmCounts, arm_counts, replicates
from foretest.online.test import OnlineTest
from tests.online.support import SCHEMA, answer, arm, flat, online
from tests.schemas import validate

MANY = 1 << 20  # buckets enough that every unit has its own
Z = stats.norm.ppf


def by_unit(rows: dict[str, Any], metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Σr and rows of each unit."""
    _, unit = np.unique(rows["user"], return_inverse=True)
    return np.bincount(unit, weights=rows[metric]), np.bincount(unit).astype(float)


def buckets_of(user: np.ndarray, buckets: int) -> np.ndarray:
    return np.asarray(derive(hash_integers(user.astype(np.int64)), 1) % np.uint64(buckets)).astype(np.int64)


@pytest.mark.parametrize("metric", ["click", "revenue"])
def test_delta_method_by_unit(two: Any, metric: str) -> None:
    """Against the definition in plain NumPy: se² = C/(C−1)·Σ_u (Σ_{i∈u}(r − R))²/n² an arm."""
    rows = [pa.table(part) for part in two]
    e = answer(online(rewards=(metric,), interval="delta", buckets=MANY).run(*rows), metric)
    (s_c, n_c), (s_t, n_t) = (by_unit(part, metric) for part in two)
    control, treatment = s_c.sum() / n_c.sum(), s_t.sum() / n_t.sum()

    def variance(s: np.ndarray, n: np.ndarray) -> float:
        return float(len(s) / (len(s) - 1) * ((s - s.sum() / n.sum() * n) ** 2).sum() / n.sum() ** 2)

    delta, se = treatment - control, np.sqrt(variance(s_c, n_c) + variance(s_t, n_t))
    relative = treatment / control - 1
    rel_se = np.sqrt(variance(s_t, n_t) + (1 + relative) ** 2 * variance(s_c, n_c)) / control
    z = Z(0.95)
    expected = [treatment, se, delta, delta - z * se, delta + z * se,
                relative, relative - z * rel_se, relative + z * rel_se]  # fmt: skip
    numbers = [e.treatment, e.std_error, e.effect_size, e.effect_size_ci_lower, e.effect_size_ci_upper,
               e.rel_effect_size, e.rel_effect_size_ci_lower, e.rel_effect_size_ci_upper]  # fmt: skip
    assert numbers == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("metric", ["click", "revenue"])
def test_standard_errors_are_those_of_a_jackknife_over_units(metric: str) -> None:
    two = arm(3000, 0.2, 3), arm(3400, 0.25, 4, first=10_000)
    (s_c, n_c), (s_t, n_t) = (by_unit(part, metric) for part in two)
    without = {
        "c": (np.array([s_c.sum() - s_c, n_c.sum() - n_c]), np.array([s_t.sum(), n_t.sum()])[:, None]),
        "t": (np.array([s_c.sum(), n_c.sum()])[:, None], np.array([s_t.sum() - s_t, n_t.sum() - n_t])),
    }
    variance, rel_variance = 0.0, 0.0
    for control, treatment in without.values():
        absolute = treatment[0] / treatment[1] - control[0] / control[1]
        relative = (treatment[0] / treatment[1]) / (control[0] / control[1]) - 1
        count = len(absolute)
        variance += (count - 1) / count * ((absolute - absolute.mean()) ** 2).sum()
        rel_variance += (count - 1) / count * ((relative - relative.mean()) ** 2).sum()
    test = online(rewards=(metric,), interval="delta", buckets=MANY, confidence_level=2 * stats.norm.cdf(1.0) - 1)
    e = answer(test.run(*(pa.table(part) for part in two)), metric)
    assert e.std_error == pytest.approx(np.sqrt(variance), rel=0.02)
    assert e.rel_effect_size_ci_upper - e.rel_effect_size == pytest.approx(np.sqrt(rel_variance), rel=0.02)


@pytest.mark.parametrize("metric", ["click", "revenue"])
@pytest.mark.parametrize("unit", ["user", None])
@pytest.mark.parametrize("sizes", [(40, 90), (9, 12)])
def test_welch_where_every_unit_has_one_row(metric: str, unit: str | None, sizes: tuple[int, int]) -> None:
    rows = [arm(n, 0.3, 5 + n, first=1000 * n, repeats=False) for n in sizes]
    test = online(unit, rewards=(metric,), interval="delta", confidence_level=0.95)
    e = answer(test.run(*(pa.table(part) for part in rows)), metric)
    theirs = stats.ttest_ind(rows[1][metric], rows[0][metric], equal_var=False)
    interval = theirs.confidence_interval(0.95)
    numbers = [e.effect_size_ci_lower, e.effect_size_ci_upper, e.effect_size / e.std_error]
    assert numbers == pytest.approx([interval.low, interval.high, theirs.statistic], rel=1e-9)


def test_few_units_have_student_limits() -> None:
    rows = [arm(8, 0.5, 5), arm(9, 0.5, 6, first=100)]
    e = answer(online(interval="delta", buckets=MANY).run(*(pa.table(part) for part in rows)))
    half = (e.effect_size_ci_upper - e.effect_size_ci_lower) / 2 / e.std_error
    assert stats.t.ppf(0.95, 15) <= half <= stats.t.ppf(0.95, 7)


def test_bootstrap_limits_from_the_rows(two: Any) -> None:
    """Each resample rebuilt from rows, each row as often as its bucket was drawn."""
    test = online(buckets=64, n_resamples=200, seed=9, confidence_level=0.8)
    counts = arm_counts(test.settings.analysis)
    np.testing.assert_array_equal(counts.control, resample_counts(64, 200, 9))
    assert not np.array_equal(*counts)
    means = []
    for part, drawn in zip(two, counts, strict=True):
        bucket = buckets_of(part["user"], 64)
        means.append([np.repeat(part["click"], drawn[b][bucket].astype(int)).mean() for b in range(200)])
    control, treatment = np.array(means)
    e = answer(test.run(*(pa.table(part) for part in two)))
    limits = np.quantile(treatment - control, [0.1, 0.9])
    relative = np.quantile(treatment / control - 1, [0.1, 0.9])
    numbers = [e.effect_size_ci_lower, e.effect_size_ci_upper, e.rel_effect_size_ci_lower, e.rel_effect_size_ci_upper]
    assert numbers == pytest.approx([*limits, *relative], rel=1e-9)


def test_resamples_without_rows_or_reward_are_left_out() -> None:
    rows = {"user": np.arange(4), "click": np.array([1.0, 0.0, 0.0, 1.0])}
    test = online(buckets=8)
    arms = test.arms(pa.table(rows), pa.table({**rows, "user": rows["user"] + 100}))
    bucket = buckets_of(rows["user"], 8)
    nothing, all_once = np.zeros((1, 8)), np.ones((1, 8))
    no_reward = all_once - np.isin(np.arange(8), bucket[[0, 3]])
    sides = MetricArms.at(arms, 0)

    def uplifts(control: np.ndarray, treatment: np.ndarray) -> list[float]:
        """Of the first resample, absolute and relative."""
        found = replicates(sides, ArmCounts(control, treatment))
        return [float(found.absolute[0]), float(found.relative[0])]

    assert np.isnan(uplifts(nothing, all_once)).all()
    assert np.isnan(uplifts(all_once, nothing)).all()
    if (no_reward @ arms.control.n)[0]:
        assert np.isnan(uplifts(no_reward, all_once)).tolist() == [False, True]
    assert uplifts(all_once, all_once) == [0.0, 0.0]


@pytest.mark.parametrize("unit", ["user", None])
def test_the_control_is_the_offline_test_s(two: Any, unit: str | None) -> None:
    """Bucket by bucket, and so resample by resample: offline and online can be paired."""
    control = {**two[0], "p": np.full(len(two[0]["user"]), 0.5)}
    logged = ft.Logged(prob="p")
    columns = ft.LogColumns(rewards=["click"], unit=unit)
    offline = ft.OfflineTest(log=columns, control=logged, treatment=logged, estimators=["ncis"], n_resamples=100)
    aggregates, _, _ = offline.aggregate(pa.table(control))
    test = OnlineTest.from_settings(offline.settings)
    arms = test.arms(pa.table(control), pa.table(two[1]))
    np.testing.assert_array_equal(arms.control.n, aggregates.n)
    np.testing.assert_allclose(arms.control.r, aggregates.r, rtol=1e-12)
    mine, theirs = test.analyse(arms).metrics["click"].control, offline.run(pa.table(control)).metrics["click"].control
    assert vars(mine) == pytest.approx(vars(theirs), rel=1e-12)


def test_minimum_detectable_effect(two: Any) -> None:
    result = online(interval="delta", confidence_level=0.95).run(*(pa.table(part) for part in two))
    effect, e = result.health["minimum_detectable_effect"]["click"], answer(result)
    z = Z(0.975)
    rel_se = (e.rel_effect_size_ci_upper - e.rel_effect_size) / z
    assert effect["absolute"] == pytest.approx((z + Z(0.8)) * e.std_error, rel=1e-9)
    assert effect["relative"] == pytest.approx((z + Z(0.8)) * rel_se, rel=1e-9)
    assert effect["power"] == 0.8


def test_ten_copies_of_every_row_change_no_error(two: Any) -> None:
    tables = [pa.table(part) for part in two]
    test = online(interval="delta")
    once, ten = (answer(test.run(*(pa.concat_tables([t] * copies) for t in tables))) for copies in (1, 10))
    assert ten.std_error == pytest.approx(once.std_error, rel=1e-9)


@pytest.mark.parametrize(
    ("control", "treatment", "verdict", "reason"),
    [
        (flat(1000, 100), flat(1000, 200, 5000), "positive", None),
        (flat(1000, 200), flat(1000, 100, 5000), "negative", None),
        (flat(1000, 100), flat(1000, 101, 5000), "neutral", None),
        (flat(1000, 100), flat(1000, 29, 5000), "insufficient", "only 29.0 effective positives in the treatment"),
        (flat(1000, 0), flat(1000, 200, 5000), "insufficient", "only 0.0 effective positives in the control"),
        (flat(1000, 0), flat(1000, 0, 5000), "insufficient", "no row has a reward"),
        (flat(1000, 100), flat(1000, 200, 5000, units=4), "insufficient", "only 4 units in the treatment"),
        (flat(1000, 100, units=1), flat(1000, 200, 5000), "insufficient", "only 1 unit in the control"),
        (flat(0, 0), flat(1000, 200, 5000), "insufficient", "the control's log is empty"),
        (flat(1000, 100), flat(0, 0, 5000), "insufficient", "the treatment's log is empty"),
        (flat(0, 0), flat(0, 0), "insufficient", "the control's log is empty"),
    ],
)
@pytest.mark.parametrize("interval", ["bootstrap", "delta"])
def test_verdicts(control: pa.Table, treatment: pa.Table, verdict: str, reason: str | None, interval: str) -> None:
    result = online(interval=interval, n_resamples=200).run(control, treatment)
    e = answer(result)
    assert e.verdict == result.metrics["click"].verdict == verdict
    assert bool(reason is None or any(reason in r for r in e.reasons)), e.reasons
    validate(result.to_dict(), SCHEMA)
    json.loads(result.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert max(map(len, str(result).splitlines())) <= 80
