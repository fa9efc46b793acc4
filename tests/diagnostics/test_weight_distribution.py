"""Figure 1 as data: shares and quantiles against plain NumPy on draws and rows, and against enumeration."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.weight_bins import CAPS
from foretest.diagnostics.weight_distribution import treatment_mass, weight_distribution
from tests.support import SCORES, SmallLog, build_test

LOG = SmallLog(spread=3.0)


def drawn_from(test: ft.OfflineTest, table: pa.Table) -> Aggregates:
    return test.aggregate(table)[0]


def logged(log_w: np.ndarray, rewards: np.ndarray, **analysis: object) -> Aggregates:
    """The aggregates of a log whose policies cannot be drawn from."""
    table = pa.table({"click": rewards, "p": np.zeros(len(log_w)), "t": log_w})
    policies = {"control": ft.Logged(log_prob="p"), "treatment": ft.Logged(log_prob="t")}
    test = ft.OfflineTest(log=ft.LogColumns(rewards=["click"]), **policies, estimators=["cis"], **analysis)
    return test.aggregate(table)[0]


def log_weights_below_one(n: int = 5000, seed: int = 3) -> np.ndarray:
    """log w of a logged policy whose probability must stay below 1: π_p = 1 here, so w ≤ 1."""
    return -np.random.default_rng(seed).gamma(2.0, 2.0, n)


@pytest.fixture(scope="module")
def aggregates() -> Aggregates:
    return drawn_from(build_test(["cis"], cap=7.0), LOG.table())


def test_shares_are_those_of_the_draws(aggregates: Aggregates) -> None:
    weights = weight_distribution(aggregates)
    assert weights is not None
    log10 = aggregates.sample.columns()["draws_treatment"].ravel() / np.log(10.0)
    assert (weights["source"], weights["displays"], weights["draws"]) == ("draws", LOG.rows, LOG.rows * 16)
    assert sum(weights["share"]) == pytest.approx(1.0, abs=1e-12)
    for lower, share in zip(weights["log10_lower"], weights["share"], strict=True):
        inside = (log10 >= lower - 1e-9) & (log10 < lower + weights["bin_width"] - 1e-9)
        assert share == pytest.approx(inside.mean(), abs=1e-12)
    assert weights["share_above_cap"] == (log10 > np.log10(7.0)).mean()
    ordered = np.sort(log10)
    for level in (0.1, 0.5, 0.9):
        assert weights["log10_quantiles"][f"{level:g}"] == ordered[int(np.ceil(level * len(ordered))) - 1]


def test_the_draws_have_the_treatments_distribution(aggregates: Aggregates) -> None:
    weights = weight_distribution(aggregates)
    assert weights is not None
    log_w, t = (LOG.log_t - LOG.log_p).ravel(), np.exp(LOG.log_t).ravel() / LOG.rows
    for cut, share in ((7.0, weights["share_above_cap"]), (1.0, treatment_mass(aggregates).above[12])):
        true = t[log_w > np.log(cut)].sum()
        assert abs(share - true) < 4.0 * np.sqrt(true * (1.0 - true) / weights["draws"])


def test_mass_at_every_cap_against_numpy(aggregates: Aggregates) -> None:
    w = np.exp(aggregates.sample.columns()["draws_treatment"].ravel())
    mass = treatment_mass(aggregates)
    assert mass.source == "draws"
    assert mass.square is not None
    for k in (0, 9, 12, 13, 16, 20, 40, 112):
        z = np.minimum(w, CAPS[k]) / w
        assert mass.beyond[k] == pytest.approx((1.0 - z).mean(), abs=1e-12)
        assert mass.above[k] == pytest.approx((w > CAPS[k]).mean(), abs=1e-12)
        assert mass.square[k] == pytest.approx((np.minimum(w, CAPS[k]) * z).mean(), rel=1e-9)


def test_mass_against_enumeration(aggregates: Aggregates) -> None:
    mass, t, p = treatment_mass(aggregates), np.exp(LOG.log_t), np.exp(LOG.log_p)
    assert mass.square is not None
    for k in (12, 14, 16):
        capped = np.minimum(t / p, CAPS[k])
        terms = {"kept": capped * p / t, "square": capped**2 * p / t}
        for name, got in (("kept", 1.0 - mass.beyond[k]), ("square", mass.square[k])):
            mean = (t * terms[name]).sum(axis=1)
            error = np.sqrt(((t * terms[name] ** 2).sum(axis=1) - mean**2).sum() / 16) / LOG.rows
            assert abs(got - mean.mean()) < 4.0 * error


def test_a_logged_policy_weighs_the_rows() -> None:
    log_w = log_weights_below_one()
    weights = weight_distribution(logged(log_w, np.ones(len(log_w)), cap=0.3))
    assert weights is not None
    w, log10 = np.exp(log_w), log_w / np.log(10.0)
    assert (weights["source"], weights["displays"], weights["draws"]) == ("log", len(w), None)
    assert weights["share_unseen"] == pytest.approx(1.0 - w.mean(), rel=1e-9)
    assert weights["share_below"] == pytest.approx(w[log10 < -3].sum() / len(w), rel=1e-9)
    for lower, share in zip(weights["log10_lower"], weights["share"], strict=True):
        inside = (log10 >= lower) & (log10 < lower + weights["bin_width"])
        assert share == pytest.approx(w[inside].sum() / len(w), rel=1e-9)
    assert weights["share_above_cap"] == pytest.approx(1.0 - w[w <= 0.3].sum() / len(w), rel=1e-9)
    assert weights["log10_quantiles"]["0.9"] is None  # nine tenths of the treatment are beyond the log
    assert "never seen" in weights["notes"][0]
    total = weights["share_below"] + sum(weights["share"]) + weights["share_beyond"] + weights["share_unseen"]
    assert total == pytest.approx(1.0, abs=1e-12)


def test_quantiles_of_a_logged_policy_lie_in_the_right_bin() -> None:
    rng = np.random.default_rng(5)
    w = np.exp(rng.normal(-0.5, 1.0, 40_000))
    w /= w.mean()
    table = pa.table({"click": np.ones(len(w)), "p": np.full(len(w), -9.0), "t": np.minimum(np.log(w) - 9.0, 0.0)})
    policies = {"control": ft.Logged(log_prob="p"), "treatment": ft.Logged(log_prob="t")}
    test = ft.OfflineTest(log=ft.LogColumns(rewards=["click"]), **policies, estimators=["cis"])
    weights = weight_distribution(test.aggregate(table)[0])
    assert weights is not None
    order = np.argsort(w)
    reached = np.cumsum(w[order]) / len(w)
    for level in (0.1, 0.5, 0.9):
        true = np.log10(w[order][np.searchsorted(reached, level)])
        assert abs(weights["log10_quantiles"][f"{level:g}"] - true) < 0.25
    mass = treatment_mass(test.aggregate(table)[0])
    assert (mass.source, mass.square) == ("log", None)
    for k in (12, 14, 18):
        assert mass.beyond[k] == pytest.approx(max(0.0, 1.0 - np.minimum(w, CAPS[k]).mean()), abs=1e-9)
        assert mass.above[k] == pytest.approx(max(0.0, 1.0 - w[w < CAPS[k]].sum() / len(w)), abs=1e-9)


def test_one_heavy_row_does_not_make_a_share_of_more_than_one() -> None:
    table = pa.table({"click": np.ones(50), "p": np.r_[np.full(49, 0.5), 1e-6], "t": np.full(50, 0.4)})
    policies = {"control": ft.Logged(prob="p"), "treatment": ft.Logged(prob="t")}
    test = ft.OfflineTest(log=ft.LogColumns(rewards=["click"]), **policies, estimators=["cis"])
    weights = weight_distribution(test.aggregate(table)[0])
    assert weights is not None
    heavy = weights["share"][weights["log10_lower"].index(5.5)]
    assert heavy == pytest.approx(1.0 - 49 * 0.8 / 50)
    assert weights["share_unseen"] == 0.0


def far_apart(scores: tuple[float, float], rows: int = 40) -> pa.Table:
    """One slot, two items: the control all but always shows the first, the treatment has `scores`."""
    lists = pa.list_(pa.float64())
    return pa.table({
        "click": np.ones(rows),
        "user": np.arange(rows),
        "id": np.arange(rows),
        "ranking": pa.array([[0]] * rows, pa.list_(pa.int32())),
        "control_scores": pa.array([[0.0, -690.0]] * rows, lists),
        "treatment_scores": pa.array([list(scores)] * rows, lists),
    })  # fmt: skip


def test_weights_of_1e300_are_counted_beyond_the_axis() -> None:
    weights = weight_distribution(drawn_from(build_test(["cis"], strata="user", value=None), far_apart((0.0, 0.0))))
    assert weights is not None
    # the second item has w = ½·e^690 = 10^299.4, the first ½
    assert weights["share_beyond"] + sum(weights["share"]) == pytest.approx(1.0)
    assert abs(weights["share_beyond"] - 0.5) < 4.0 * np.sqrt(0.25 / weights["draws"])
    assert weights["log10_quantiles"]["0.9"] == pytest.approx((690.0 + np.log(0.5)) / np.log(10.0))
    assert weights["log10_lower"] == [pytest.approx(-0.4)]
    mass = treatment_mass(drawn_from(build_test(["cis"], strata="user", value=None), far_apart((0.0, 0.0))))
    assert mass.square is not None
    assert np.isfinite(mass.square).all()
    np.testing.assert_allclose(mass.beyond[12:], weights["share_beyond"], rtol=1e-12)


def test_rankings_that_the_control_never_shows_have_infinite_weight() -> None:
    table = far_apart((0.0, 0.0))
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id"),
        control=ft.EpsilonGreedy(scores="control_scores", epsilon=0.0),
        treatment=SCORES["treatment"],
        estimators=["cis"],
    )
    weights = weight_distribution(drawn_from(test, table))
    assert weights is not None
    assert 0.3 < weights["share_infinite"] < 0.7
    assert weights["share_infinite"] + sum(weights["share"]) == pytest.approx(1.0)
    assert weights["log10_quantiles"] == {
        "0.1": pytest.approx(np.log10(0.5)),
        "0.5": weights["log10_quantiles"]["0.5"],
        "0.9": None,
    }
    assert "never shown by the control" in weights["notes"][0]
    mass = treatment_mass(drawn_from(test, table))
    np.testing.assert_allclose(mass.above[12:], weights["share_infinite"])
    np.testing.assert_allclose(mass.beyond[12:], weights["share_infinite"])


def test_equal_policies_have_one_bin_at_one() -> None:
    table = LOG.table(treatment_scores=pa.array(LOG.control.tolist(), pa.list_(pa.float64())))
    weights = weight_distribution(drawn_from(build_test(["cis"]), table))
    assert weights is not None
    assert (weights["log10_lower"], weights["share"]) == ([0.0], [pytest.approx(1.0)])
    assert weights["share_above_cap"] == 0.0


def test_an_empty_log_has_none() -> None:
    assert weight_distribution(drawn_from(build_test(["cis"]), LOG.table().slice(0, 0))) is None
