"""The lower bound of logarithmic smoothing against its formula, its promise by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation import fold_start
from foretest.inference.smoothing import smoothing_bound
from tests.support import SmallLog, build_test

LOG = SmallLog(rows=500, units=140, seed=21)


def by_hand(x: np.ndarray, level: float = 0.95) -> float:
    n = len(x)
    rate = 1.0 / np.sqrt(n)
    return max(0.0, (np.exp(np.log1p(rate * x).mean() - np.log(1.0 / (1.0 - level)) / n) - 1.0) / rate)


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.05, 0.3, 0.7])
def test_the_bound_is_above_the_mean_in_5_percent_of_all_samples_at_most(p: float) -> None:
    """Enumerated: 9 terms of 0, 1 or 30; that the mean is not bounded by what was seen does not matter."""
    values, chances = np.array([0.0, 1.0, 30.0]), np.array([1.0 - p, 0.8 * p, 0.2 * p])
    missed = 0.0
    for sequence in product(range(3), repeat=9):
        x = values[list(sequence)]
        bound = smoothing_bound(float(np.log1p(x / 3.0).sum()), 9)
        assert bound == pytest.approx(by_hand(x), rel=1e-12)
        missed += chances[list(sequence)].prod() * (bound > chances @ values)
    assert missed <= 0.05


@pytest.mark.parametrize("unit", ["user", None])
def test_the_bound_of_a_log(unit: str | None) -> None:
    """By unit: x is a unit's Σ w r, n the number of units, and rows share a unit's mean."""
    result = build_test(["cis", "point-ncis-adaptive"], metrics=("click", "revenue"), unit=unit).run(LOG.table())
    units = np.unique(LOG.unit, return_inverse=True)[1] if unit else np.arange(LOG.rows)
    for name, r in (("click", LOG.click), ("revenue", LOG.revenue)):
        x = np.bincount(units, weights=np.exp(LOG.log_w) * r)
        expected = by_hand(x) * len(x) / LOG.rows
        assert expected > 0.1
        for estimate in result.metrics[name].estimates.values():
            assert estimate.lower_bound == pytest.approx(expected, rel=1e-10)
            assert estimate.lower_bound < (np.exp(LOG.log_w) * r).mean()


def test_a_known_largest_reward_is_the_unit_of_rewards() -> None:
    """Cents or euros: the same bound."""
    bounds = [
        build_test(["cis"], metrics=("revenue",), r_max=30.0 * k)
        .run(LOG.table().set_column(1, "revenue", [LOG.revenue * k]))
        .metrics["revenue"].estimates["cis"].lower_bound
        for k in (1.0, 100.0)
    ]  # fmt: skip
    assert bounds[1] == pytest.approx(100.0 * bounds[0], rel=1e-10)
    x = np.bincount(np.unique(LOG.unit, return_inverse=True)[1], weights=np.exp(LOG.log_w) * LOG.revenue / 30.0)
    assert bounds[0] == pytest.approx(30.0 * by_hand(x) * len(x) / LOG.rows, rel=1e-10)


@pytest.mark.parametrize("unit", ["user", None])
def test_of_too_many_rewarded_rows_the_sums_by_bin_give_less_but_not_much(
    unit: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SmallLog(rows=4000, units=3000, seed=5)
    test = build_test(["cis"], unit=unit)
    exact = test.run(log.table()).metrics["click"].estimates["cis"].lower_bound
    monkeypatch.setattr(fold_start, "MOST_REWARDED", 100)
    rough = test.run(log.table()).metrics["click"].estimates["cis"].lower_bound
    assert exact > 0.2
    # by unit, squares are bounded by the rows of the largest unit, here 7: much for so short a log
    assert (0.99 if unit is None else 0.75) * exact < rough <= exact


def test_weights_of_any_size() -> None:
    """One row of 10^300 proves little: its logarithm counts."""
    log_t = np.zeros(400)
    log_t[7] = 300.0 * np.log(10.0)
    table = pa.table({"click": np.ones(400), "p": -1.0 - log_t, "t": np.full(400, -1.0)})
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(log_prob="p"), treatment=ft.Logged(log_prob="t"),
        estimators=["cis"],
    )  # fmt: skip
    bound = test.run(table).metrics["click"].estimates["cis"].lower_bound
    logs = (399 * np.log1p(0.05) + log_t[7] - np.log(20.0) - np.log(20.0)) / 400
    assert bound == pytest.approx(np.expm1(logs) * 20.0, rel=1e-9)


def test_never_below_zero_and_none_without_rows() -> None:
    test = build_test(["cis"])
    few = test.run(LOG.table().slice(0, 3)).metrics["click"].estimates["cis"]
    assert few.lower_bound == 0.0
    empty = test.run(LOG.table().slice(0, 0)).metrics["click"].estimates["cis"]
    assert empty.lower_bound is None
