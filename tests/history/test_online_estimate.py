"""The online side from results: equal to Welch from rows, and what its error may share with offline."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import foretest as ft
from foretest.history.online_estimate import OnlineSide, effective_positives, online_side
from foretest.history.online_results import ROWS, ArmResults, ArmSums, UpliftResult
from foretest.history.shared_noise import shared_error
from foretest.online.test import OnlineTest

G = np.random.default_rng(5)
CONTROL, TREATMENT = G.gamma(0.6, 2.0, 700), G.gamma(0.6, 2.3, 500)
LEVEL = 0.9


def sums(values: np.ndarray) -> ArmSums:
    return ArmSums(len(values), float(values.mean()), float(values.var(ddof=1)))


def test_welch_from_sums_is_welch_from_rows() -> None:
    side = online_side(ArmResults(sums(CONTROL), sums(TREATMENT), ROWS), LEVEL)
    test = OnlineTest(log=ft.LogColumns(rewards=["r"]), interval="delta", confidence_level=LEVEL)
    expected = test.run(pa.table({"r": CONTROL}), pa.table({"r": TREATMENT})).metrics["r"].estimates["online"]
    for name in (
        "treatment", "std_error", "effect_size", "effect_size_ci_lower", "effect_size_ci_upper", "rel_effect_size",
        "rel_effect_size_ci_lower", "rel_effect_size_ci_upper", "rel_std_error", "effective_positives",
        "p_value",
    ):  # fmt: skip
        assert getattr(side.estimate, name) == pytest.approx(getattr(expected, name), rel=1e-12), name
    assert (side.estimate.verdict, side.estimate.word) == (expected.verdict, expected.word)
    interval = stats.ttest_ind(TREATMENT, CONTROL, equal_var=False).confidence_interval(LEVEL)
    assert side.estimate.effect_size_ci_lower == pytest.approx(interval.low, rel=1e-12)
    assert side.estimate.effect_size_ci_upper == pytest.approx(interval.high, rel=1e-12)


def test_the_relative_error_and_the_control_arms_part_of_it() -> None:
    side = online_side(ArmResults(sums(CONTROL), sums(TREATMENT)), LEVEL)
    c, t = CONTROL.mean(), TREATMENT.mean()
    own, other = (np.sqrt(v.var(ddof=1) / len(v)) for v in (CONTROL, TREATMENT))
    assert side.control_error == pytest.approx(t / c**2 * own, rel=1e-12)
    assert side.error == pytest.approx(np.hypot(t / c**2 * own, other / c), rel=1e-12)
    assert side.control_count == 700


def test_a_metric_below_0_has_an_uplift_by_its_size() -> None:
    side = online_side(ArmResults(sums(-CONTROL), sums(-0.9 * CONTROL)), LEVEL, signed=True)
    assert side.estimate.rel_effect_size == pytest.approx(0.1)
    assert side.estimate.effective_positives is None


def test_effective_positives_of_sums_are_those_of_rows() -> None:
    assert effective_positives(sums(CONTROL)) == pytest.approx(CONTROL.sum() ** 2 / np.square(CONTROL).sum())


@pytest.mark.parametrize(
    ("arm", "reason"),
    [
        (ArmSums(4, 1.0, 0.1), "only 4 units in the control: an interval needs at least 5"),
        (ArmSums(1000, 0.02, 0.0196), "only 20.0 effective positives in the control: at least 30 are needed"),
    ],
)
def test_little_evidence_is_insufficient(arm: ArmSums, reason: str) -> None:
    estimate = online_side(ArmResults(arm, ArmSums(5000, 0.05, 0.05)), LEVEL).estimate
    assert estimate.verdict == "insufficient"
    assert reason in estimate.reasons


def test_of_an_uplift_alone_there_are_no_absolute_numbers() -> None:
    side = online_side(UpliftResult(0.05, 0.02), LEVEL)
    z = stats.norm.ppf(0.95)
    assert side.estimate.rel_effect_size_ci_lower == pytest.approx(0.05 - z * 0.02)
    assert side.estimate.verdict == "positive"
    assert side.estimate.p_value == pytest.approx(2.0 * stats.norm.sf(2.5))
    assert side.estimate.effect_size is side.estimate.std_error is None
    assert side.control_error == side.error == 0.02
    assert online_side(UpliftResult(0.03, 0.02), LEVEL).estimate.verdict == "neutral"


@pytest.mark.parametrize("common", [0, 1, 150, 300])
def test_no_covariance_is_beyond_the_bound(common: int) -> None:
    """x of 300 units and y of 400, `common` of them in both: the covariance of their means, exactly, for terms that go
    together as closely as they can."""
    n_x, n_y, sigma_x, sigma_y = 300, 400, 2.0, 0.7
    exact = common * sigma_x * sigma_y / (n_x * n_y)  # of a correlation of 1
    side = OnlineSide(online_side(UpliftResult(0.1, 0.1), LEVEL).estimate, 1.0, sigma_y / np.sqrt(n_y), n_y)
    assert sigma_x / np.sqrt(n_x) * shared_error(side, n_x, common) == pytest.approx(exact, rel=1e-12)
    # with more not known the bound is larger
    assert shared_error(side, n_x, None) >= shared_error(side, n_x, common)
    unknown = side._replace(control_count=None)
    assert shared_error(unknown, n_x, common) >= shared_error(side, n_x, common) * (1.0 - 1e-12)
    assert shared_error(unknown, n_x, None) == side.control_error
    assert shared_error(side, n_x, 0) == shared_error(unknown, n_x, 0) == 0.0


def test_no_more_units_are_shared_than_there_are() -> None:
    side = online_side(ArmResults(ArmSums(400, 1.0, 1.0), ArmSums(400, 1.0, 1.0)), LEVEL)
    assert shared_error(side, 100, 300) == shared_error(side, 100, None) == pytest.approx(side.control_error * 0.5)
