"""The examination curve from the control's exploration: a vector, its error in every interval, tests of the model."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.engines.examination_pairs import Pairs
from foretest.inference import examination_fit
from foretest.inference.examination_fit import CannotFit, fit_curve
from foretest.kernels.exposure import paired_terms
from tests.support import SmallLog, apart, build_test, log_softmax_ranking

THETA = np.array([1.0, 0.6, 0.4])


def marginals(scores: np.ndarray, k: int) -> np.ndarray:
    """P(item in slot), slots × items, summed over all rankings."""
    table = np.zeros((k, len(scores)))
    for ranking in permutations(range(len(scores)), k):
        p = np.exp(log_softmax_ranking(scores, ranking))
        for slot, item in enumerate(ranking):
            table[slot, item] += p
    return table


def test_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination_fit, "FEWEST_REWARDS", 1.0)
    table = marginals(np.array([1.0, 0.2, -0.5, 0.0]), 2)
    pairs = Pairs(np.zeros((2, 8, 2, 2)), np.zeros((2, 2, 2)))
    for cell, (item, slot) in enumerate([(0, 0), (0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (3, 1)]):
        ranking, reward = np.zeros(2, np.int32), np.zeros(2)
        ranking[slot], reward[slot] = item, 1.0
        one = np.array([0])
        paired_terms(
            table.ravel(), one, one + 4, ranking, one, one + 2, reward, one, np.zeros(4, np.uint8), one, one + cell,
            *pairs,
        )  # fmt: skip
    sums = pairs.together.sums.sum(axis=0)
    assert sums[0, 1] == pytest.approx(1.929416702, abs=1e-8)
    assert sums[1, 0] == pytest.approx(1.471930684, abs=1e-8)
    fit = fit_curve(pairs)
    assert fit.theta == pytest.approx((1.0, 0.762888951), abs=1e-8)
    assert fit.influence.sum(axis=0) == pytest.approx([0.0, 0.0], abs=1e-12)


class PositionWorld:
    """Plackett-Luce on 6 items in 3 slots; clicks are examination times worth."""

    def __init__(self, rows: int, seed: int, *, trust: float = 0.0, units: int | None = None, turned: bool = False):
        g = np.random.default_rng(seed)
        self.quality = g.normal(size=(rows, 6))
        self.control = 0.6 * self.quality + 0.6 * g.normal(size=(rows, 6))
        if turned:  # what is best moves to the last slot, so that the curve matters much
            self.control = 2.0 * self.control
        self.treatment = -0.5 * self.control if turned else 1.2 * self.quality
        self.shown = np.argsort(-(self.control + g.gumbel(size=(rows, 6))), axis=1)[:, :3]
        worth = 0.5 / (1.0 + np.exp(-np.take_along_axis(self.quality, self.shown, 1)))
        # with `trust`, users look further down where an item is scored well
        score = np.take_along_axis(self.control, self.shown, 1)
        examined = THETA * np.exp(trust * np.arange(3) * score)
        self.clicks = (g.random((rows, 3)) < np.minimum(1.0, examined * worth)).astype(float)
        self.user = np.arange(rows) if units is None else apart(units)[g.integers(0, units, rows)]

    def table(self, rows: Any = slice(None)) -> pa.Table:
        lists = {"ranking": self.shown.astype(np.int32), "c": self.control, "t": self.treatment, "s": self.clicks}
        columns = {name: pa.array(list(values[rows])) for name, values in lists.items()}
        return pa.table({**columns, "click": self.clicks[rows].sum(axis=1), "user": self.user[rows]})


def position_test(**analysis: Any) -> ft.OfflineTest:
    return ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", slot_rewards={"click": "s"}),
        control=ft.PlackettLuce(scores="c"), treatment=ft.PlackettLuce(scores="t"),
        **{"interval": "delta", "ignore_audit": True, "estimators": ["pbm", "exposure-ncis-adaptive"], **analysis},
    )  # fmt: skip


def test_the_fitted_curve_is_near_the_truth() -> None:
    """24 logs: |z| below 2 in most, and the mean of θ̂ within 3 of its standard errors of θ."""
    test, fits = position_test(estimators=["pbm"]), []
    for seed in range(24):
        folded = test.aggregate(PositionWorld(2000, seed).table())
        fits.append(folded.aggregates.plan.fits[0])
    theta, error = (np.array([getattr(fit, name)[1:] for fit in fits]) for name in ("theta", "std_error"))
    assert (np.abs(theta - THETA[1:]) < 2.0 * error).mean() > 0.85
    assert np.abs(theta.mean(axis=0) - THETA[1:]) == pytest.approx(0.0, abs=3.0 * error.mean() / np.sqrt(24) + 0.005)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["pbm", "exposure-ncis-adaptive"])
def test_the_curves_error_is_in_the_interval(key: str) -> None:
    """The standard error is that of leaving out one unit at a time, fit and all; with the curve given it is another."""
    log = PositionWorld(900, 3, units=40, turned=True)
    test = position_test(weight_bound=3.0, estimators=[key])

    def uplift(rows: Any) -> float:
        return float(test.run(log.table(rows)).metrics["click"].estimates[key].effect_size or 0.0)

    estimate = test.run(log.table()).metrics["click"].estimates[key]
    left_out = np.array([uplift(np.flatnonzero(log.user != u)) for u in np.unique(log.user)])
    count = len(left_out)
    jackknife = np.sqrt((count - 1) / count * np.square(left_out - left_out.mean()).sum())
    assert estimate.std_error == pytest.approx(jackknife, rel=0.05)
    theta = test.aggregate(log.table()).aggregates.plan.fits[0].theta
    given = position_test(weight_bound=3.0, estimators=[key], examination=theta).run(log.table())
    alone = given.metrics["click"].estimates[key]
    assert alone.effect_size == pytest.approx(estimate.effect_size, rel=1e-9)
    assert abs(alone.std_error / estimate.std_error - 1.0) > 0.02


def test_resamples_and_segments_have_the_curves_error_too() -> None:
    log = PositionWorld(1500, 5)
    delta = position_test().run(log.table()).metrics["click"].estimates["pbm"]
    resampled = position_test(interval="bootstrap", n_resamples=400).run(log.table()).metrics["click"].estimates["pbm"]
    assert resampled.effect_size == pytest.approx(delta.effect_size, rel=1e-12)
    width = (resampled.effect_size_ci_upper - resampled.effect_size_ci_lower) / 3.29
    assert width == pytest.approx(delta.std_error, rel=0.12)
    test = position_test()
    columns = ft.LogColumns(
        rewards=["click"], unit="user", ranking="ranking", slot_rewards={"click": "s"}, segments=["all"]
    )
    settings = {"control": test.settings.control, "treatment": test.settings.treatment}
    by_segment = ft.OfflineTest(log=columns, **settings, interval="delta", estimators=["pbm"], ignore_audit=True)
    table = log.table().append_column("all", pa.array(["a"] * 1500))
    [segment] = by_segment.run(table).segments
    assert segment.metrics["click"].estimates["pbm"].std_error == pytest.approx(delta.std_error, rel=1e-9)


def test_a_log_that_does_not_show_its_curve() -> None:
    log = SmallLog(rows=80, units=40, m=5, k=3)
    with pytest.raises(ft.BadInput, match="cannot run: the log does not show how likely users look at slots 2, 3 of 3"):
        build_test(["pbm"], examination="fit").run(log.table())
    result = build_test(None, n_resamples=20).run(log.table())
    assert "pbm" not in result.metrics["click"].estimates
    pairs = Pairs(np.zeros((2, 4, 3, 3)), np.zeros((2, 3, 3)))
    assert fit_curve(pairs).theta == (1.0, 1.0, 1.0)  # without a reward any curve weighs alike
    pairs.squares[0, 0, 1] = pairs.sums[0, 0, 0, 1] = 1.0
    with pytest.raises(CannotFit, match="slots 2, 3 of 3"):
        fit_curve(pairs)


def test_a_control_that_never_varies_shows_no_curve() -> None:
    """Its items never change places: that is no log without a reward, of which any curve would do."""
    log = SmallLog(rows=400, units=400, m=4, k=3)
    order = np.argsort(-log.control, axis=1, kind="stable")[:, :3]
    table = log.table(ranking=pa.array(order.tolist(), pa.list_(pa.int32())))
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", slot_rewards={"click": "slot_click"})
    policies = {"control": ft.TopK(scores="control_scores"), "treatment": ft.TopK(scores="treatment_scores")}
    test = ft.OfflineTest(log=columns, **policies, estimators=["exposure-ncis-adaptive"])
    with pytest.raises(ft.BadInput, match="cannot run: the log does not show how likely users look at slots 2, 3 of 3"):
        test.run(table)


def test_tests_of_the_model() -> None:
    """Items of high and low score have one curve, or not; no test of a right world is below .001."""

    def p_values(trust: float, seed: int) -> dict[str, float]:
        folded = position_test(estimators=["pbm"]).aggregate(PositionWorld(4000, seed, trust=trust).table())
        return {test.name: test.p_value for test in folded.aggregates.plan.fits[0].tests}

    right = [p_values(0.0, seed) for seed in range(8)]
    assert all(set(one) == {"trust", "chain"} for one in right)
    assert min(p for one in right for p in one.values()) > 0.001
    assert p_values(0.5, 1)["trust"] < 0.001
