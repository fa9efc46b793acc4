"""The moments of exchangeable weights by enumeration, the gamma tail against SciPy, the findings on made weights."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from foretest.aggregation.audit_context import Feature
from foretest.diagnostics.audit.moments import balance, capped_moment, exchangeable, moment_at, two_sided


def test_moments_over_all_ways_to_have_been_shown() -> None:
    """5 displays of 3 weights: the mean of z is 0, of z² 1, of z³ the skewness, of z⁴ − 3 the kurtosis, exactly."""
    rng = np.random.default_rng(1)
    weights, factors = rng.exponential(size=(5, 3)) ** 2, rng.normal(size=(5, 2))
    z = []
    for shown in product(range(3), repeat=5):
        order = np.array([[s, *(o for o in range(3) if o != s)] for s in shown])
        turned = np.take_along_axis(weights, order, axis=1)
        standing = exchangeable(turned[:, 0], turned[:, 1:], factors)
        z.append(standing.z)
    np.testing.assert_allclose(np.mean(z, axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.mean(np.square(z), axis=0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.mean(np.power(z, 3), axis=0), standing.skewness, rtol=1e-9)
    np.testing.assert_allclose(np.mean(np.power(z, 4), axis=0) - 3.0, standing.kurtosis, rtol=1e-9)


@pytest.mark.parametrize("skewness", [-2.0, -0.3, 0.01, 0.7, 3.0])
@pytest.mark.parametrize("z", [-3.5, -1.0, 0.2, 2.0, 4.0])
def test_the_tail_is_that_of_pearsons_third_type(z: float, skewness: float) -> None:
    theirs = stats.pearson3(skewness)
    expected = min(1.0, 2.0 * min(theirs.cdf(z), theirs.sf(z)))
    assert two_sided(z, skewness, 0.0) == pytest.approx(max(expected, 2.0 * stats.norm.sf(abs(z))), rel=1e-6)


def test_a_small_z_is_never_unlikely() -> None:
    """A very skewed gamma distribution ends at −2/skewness; the sum does not."""
    assert two_sided(-0.98, 2.33, 5.5) > 0.1


@pytest.mark.parametrize("kurtosis", [0.01, 1.0, 6.0])
def test_the_tail_has_the_kurtosis_of_students_t(kurtosis: float) -> None:
    theirs = stats.t(4.0 + 6.0 / kurtosis)
    assert theirs.stats("k") == pytest.approx(kurtosis)
    assert two_sided(3.5, 0.0, kurtosis) == pytest.approx(2.0 * theirs.sf(3.5 * theirs.std()), rel=1e-9)


def test_equal_weights_say_nothing() -> None:
    finding = capped_moment(np.zeros(500), np.zeros((500, 16)), 2.0, "max")
    assert finding.outcome == "pass"
    assert finding.p_value == 1.0
    assert finding.statistic == 0.0


def log_weights(rows: int, seed: int, one_in: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Weights of which one in 500 is 200 and the others small: E w = 1 has most of its mass in the tail."""
    rng = np.random.default_rng(seed)
    w = np.where(rng.random((rows, 17)) < 1 / one_in, 200.0, 0.6)
    return np.log(w[:, 0]), np.log(w[:, 1:])


def test_heavy_weights_that_were_not_shown_are_no_fault() -> None:
    """Where a log happens to hold no heavy weight, a variance from the shown ones alone is 0."""
    shown, drawn = log_weights(20_000, 3, one_in=1000)
    heavy = shown > 0
    finding = capped_moment(shown[~heavy][:16_000], drawn[~heavy][:16_000], 20.0, "max")
    assert finding.outcome == "fail"  # 16 expected, none seen: that is a fault
    finding = capped_moment(shown[~heavy][:3500], drawn[~heavy][:3500], 20.0, "max")
    assert finding.outcome == "pass"  # 3.5 expected, none seen


def test_p_values_of_heavy_weights_are_not_too_small() -> None:
    logs = [log_weights(4000, seed) for seed in range(400)]
    p = [moment_at(*log, 20.0, "max").p_value for log in logs]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=3 * np.sqrt(0.05 * 0.95 / 400))
    assert np.mean(np.array(p) < 0.01) <= 0.01 + 3 * np.sqrt(0.01 / 400)
    # over several caps, Bonferroni: here all say the same, so that it costs most
    p = [capped_moment(*log, 20.0, "max").p_value for log in logs]
    assert 0.0 < np.mean(np.array(p) < 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_weights_that_are_too_large_fail() -> None:
    shown, drawn = log_weights(20_000, 5)
    finding = capped_moment(shown + 0.2, drawn, 100.0, "max")
    assert finding.outcome == "fail"
    assert "too large" in finding.meaning
    at = moment_at(shown + 0.2, drawn, 2.0, "max")
    w, d = np.minimum(np.exp(shown + 0.2), 2.0), np.minimum(np.exp(drawn), 2.0)
    assert (at.mean, at.expected) == pytest.approx((w.mean(), d.mean()), rel=1e-12)
    assert f"mean {w.mean():.4f}, expected {d.mean():.4f} at cap 2" in finding.meaning


def test_the_caps_are_those_that_the_sample_bears() -> None:
    """A log of 900 units bears caps up to 5; at cap 100 alone it could not be tested."""
    shown, drawn = log_weights(900, 6)
    finding = capped_moment(shown, drawn, 100.0, "max")
    p = [moment_at(shown, drawn, cap, "max") for cap in (2.0, 5.0)]
    able = [m for m in p if 900 * m.expected / m.cap > 100.0]
    assert len(able) >= 1
    assert finding.p_value == pytest.approx(min(1.0, len(able) * min(m.p_value for m in able)), rel=1e-12)


def test_few_units_are_not_tested() -> None:
    shown, drawn = log_weights(150, 6)
    finding = capped_moment(shown, drawn, 100.0, "max")
    assert finding.outcome == "not made"
    assert "it has 150" in finding.meaning


def features(rows: int, rng: np.random.Generator) -> list[Feature]:
    return [Feature(f"f{i}", rng.normal(size=rows)) for i in range(5)]


def test_balance_names_the_feature_that_moves() -> None:
    rng = np.random.default_rng(7)
    drawn, treatment = rng.normal(0.0, 0.5, (5000, 16)), rng.normal(0.2, 0.5, (5000, 16))
    some = features(5000, rng)
    right = balance(some, rng.normal(0.0, 0.5, 5000), drawn, treatment, 20.0)
    assert right.outcome == "pass"
    wrong = balance(some, rng.normal(0.1 * some[3].values, 0.5), drawn, treatment, 20.0)
    assert wrong.outcome == "fail"
    assert "f3 by +0.1" in wrong.meaning
    assert wrong.statistic == pytest.approx(0.1 * np.sqrt(5000) / 0.6, rel=0.3)


def test_balance_needs_features_that_vary() -> None:
    drawn = np.zeros((5000, 16))
    assert "no feature varies" in balance([], drawn[:, 0], drawn, drawn, 20.0).meaning


def test_weights_that_are_all_alike_are_no_fault() -> None:
    """Where every ranking that the control shows has one weight, sums differ by rounding alone."""
    log_w = np.log(np.full(6000, 0.7))
    drawn = np.repeat(log_w[:, None], 16, axis=1) + 1e-16 * np.random.default_rng(0).normal(size=(6000, 16))
    finding = capped_moment(log_w, drawn, 100.0, "max")
    assert finding.outcome == "pass"
    assert finding.p_value == 1.0


def test_balance_needs_units_for_the_weights_that_there_are() -> None:
    """Near policies have no weight near the cap: 400 units bear weights up to 1.5, and not up to 20."""
    rng = np.random.default_rng(9)
    feature = [Feature("x", rng.normal(size=400))]
    near, far = rng.uniform(-0.4, 0.4, (400, 17)), rng.normal(0.0, 1.5, (400, 17))
    assert balance(feature, near[:, 0], near[:, 1:], near[:, 1:], 20.0).outcome == "pass"
    assert "weights up to 20 need more than" in balance(feature, far[:, 0], far[:, 1:], far[:, 1:], 20.0).meaning
