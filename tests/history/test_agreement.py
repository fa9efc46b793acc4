"""Definitions of agreement on tables made by hand, and on a correlation with known noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foretest.history import agreement
from foretest.history.agreement import Pairs, figures
from foretest.history.range_and_word import FULL_WORDS, WITH_LEANS, Seen
from foretest.results.uplift_range import WORDS


def pairs(n: int, **columns: Any) -> Pairs:
    blank: dict[str, Any] = {name: np.zeros(n) for name in Pairs.__dataclass_fields__}
    blank |= {"offline": np.zeros(n, int), "online": np.zeros(n, int), "truth": np.full(n, np.nan), "seen": None}
    given = {name: c if c is None or name == "seen" else np.asarray(c) for name, c in columns.items()}
    return Pairs(**{**blank, **given})


def decided(counts: dict[tuple[int, int], int]) -> Pairs:
    """Tests with (offline, online) decisions as often as said."""
    both = np.array([pair for pair, count in counts.items() for _ in range(count)])
    return pairs(len(both), offline=both[:, 0], online=both[:, 1])


# offline in rows, online in columns: negative, neutral, positive
TABLE = {
    (-1, -1): 3, (-1, 0): 2, (-1, 1): 1,
    (0, -1): 4, (0, 0): 5, (0, 1): 6,
    (1, -1): 0, (1, 0): 7, (1, 1): 11,
}  # fmt: skip


def test_a_table_of_39_decisions() -> None:
    p = decided(TABLE)
    assert len(p.x) == 39
    assert agreement.precision(p) == pytest.approx((3 + 5 + 11) / 39)
    assert agreement.fnr(p) == pytest.approx((2 + 1 + 6) / 39)
    assert agreement.fpr(p) == pytest.approx((4 + 0 + 7) / 39)
    assert agreement.ppv(p) == pytest.approx(11 / 18)
    assert agreement.miss_rate(p) == pytest.approx((1 + 6) / (1 + 6 + 11))


def test_insufficient_counts_as_neutral() -> None:
    assert agreement.DECISIONS["insufficient"] == agreement.DECISIONS["neutral"]
    assert agreement.DECISIONS["negative"] < agreement.DECISIONS["neutral"] < agreement.DECISIONS["positive"]


def test_what_does_not_exist_is_not_a_number() -> None:
    nobody = decided({(0, 0): 4})
    assert np.isnan(agreement.ppv(nobody))
    assert np.isnan(agreement.miss_rate(nobody))
    row = figures(nobody)
    assert row["ppv"] is None
    assert row["ppv_q10"] is None
    assert row["correlation"] is None
    assert figures(pairs(0))["precision"] is None


def test_correlation_is_pearson() -> None:
    g = np.random.default_rng(0)
    x, y = g.normal(size=(2, 30))
    assert agreement.correlation(pairs(30, x=x, y=y)) == pytest.approx(np.corrcoef(x, y)[0, 1], rel=1e-12)


def test_ci_size_is_the_mean_of_ratios() -> None:
    p = pairs(2, lower=[0.0, -1.0], upper=[1.0, 1.0], cis_width=[2.0, 1.0])
    assert agreement.ci_size(p) == pytest.approx((0.5 + 2.0) / 2)


def test_known_noise_is_taken_out() -> None:
    """True uplifts with correlation ρ = .8 on the two axes, noise as large as they are, part of it shared."""
    g = np.random.default_rng(1)
    n, rho, noise, shared = 200_000, 0.8, 1.0, 0.3
    signal = g.multivariate_normal([0, 0], [[1, rho], [rho, 1]], n)
    errors = g.multivariate_normal([0, 0], [[noise, shared], [shared, noise]], n)
    x, y = (signal + errors).T
    p = pairs(n, x=x, y=y, x_error=np.ones(n), y_error=np.ones(n), covariance=np.full(n, shared))
    assert agreement.correlation(p) == pytest.approx((rho + shared) / 2, abs=0.01)
    assert agreement.noise_ceiling(p) == pytest.approx(0.5, abs=0.01)  # a perfect estimator would show about .5
    assert agreement.deconvolved_correlation(p) == pytest.approx(rho, abs=0.02)
    drowned = pairs(5, x=np.arange(5.0), y=np.arange(5.0), x_error=np.full(5, 9.0))
    assert np.isnan(agreement.noise_ceiling(drowned))


def test_figures_against_the_truth() -> None:
    p = pairs(
        4, x=[0.1, 0.2, 0.3, 0.4], truth=[0.1, 0.1, 0.1, 0.6], lower=[0, 0.15, 0.0, 0.3], upper=[0.2, 0.3, 0.4, 0.5]
    )
    assert agreement.bias(p) == pytest.approx((0 + 0.1 + 0.2 - 0.2) / 4)
    assert agreement.rmse(p) == pytest.approx(np.sqrt((0.01 + 0.04 + 0.04) / 4))
    assert agreement.coverage(p) == pytest.approx(0.5)
    assert "rmse" in figures(p)
    assert "rmse" not in figures(pairs(4, x=[0.1, 0.2, 0.3, 0.4]))


def test_quantiles_come_from_resampled_tests() -> None:
    """The share right of 39 tests: its quantiles are those of a binomial."""
    row = figures(decided(TABLE), resamples=4000)
    p = 19 / 39
    spread = np.sqrt(p * (1 - p) / 39)
    assert row["precision_q10"] == pytest.approx(p - 1.2816 * spread, abs=0.02)
    assert row["precision_q90"] == pytest.approx(p + 1.2816 * spread, abs=0.02)
    assert figures(decided(TABLE)) == figures(decided(TABLE))


def test_the_correlation_has_its_box() -> None:
    """Quartiles beside the limits, all by resampling tests with the same seed."""
    g = np.random.default_rng(2)
    x = g.normal(size=15)
    p = pairs(15, x=x, y=x + g.normal(size=15))
    row = figures(p, seed=3, resamples=200)
    generator = np.random.Generator(np.random.Philox(3))
    correlations = []
    for _ in range(200):
        at = generator.integers(0, 15, 15)
        correlations.append(np.corrcoef(p.x[at], p.y[at])[0, 1])
    for level in (10, 25, 50, 75, 90):
        assert row[f"correlation_q{level}"] == pytest.approx(np.quantile(correlations, level / 100), rel=1e-9)
    assert "precision_q25" not in row


def seen(n: int, **columns: Any) -> Seen:
    blank: dict[str, Any] = {name: np.zeros(n) for name in Seen.__dataclass_fields__}
    return Seen(**{**blank, **{name: np.asarray(column) for name, column in columns.items()}})


def test_a_range_holds_an_online_result_allowing_for_its_noise() -> None:
    """One by one, in plain numbers: each half-width is widened to √(h² + z² se²)."""
    g = np.random.default_rng(1)
    n = 200
    x, y, error = g.normal(size=n), g.normal(size=n), g.uniform(0.1, 1.0, n)
    lower, upper, z = x - g.uniform(0.0, 1.0, n), x + g.uniform(0.0, 2.0, n), np.full(n, 1.645)
    held = 0
    for k in range(n):
        h = (x[k] - lower[k]) if y[k] < x[k] else (upper[k] - x[k])
        held += abs(y[k] - x[k]) <= (h * h + z[k] * z[k] * error[k] * error[k]) ** 0.5
    assert 0 < held < n
    shown = seen(n, lower=lower, upper=upper, z=z)
    row = figures(pairs(n, x=x, y=y, y_error=error, truth=y, seen=shown), resamples=50)
    assert row["range_held"] == pytest.approx(held / n)
    assert row["range_coverage"] == pytest.approx(np.mean((lower <= y) & (y <= upper)))
    assert 0.0 <= row["range_held_q10"] <= row["range_held"] <= row["range_held_q90"] <= 1.0  # type: ignore[operator]
    gone = seen(2, lower=[np.nan, 0.0], upper=[np.nan, 1.0])
    assert figures(pairs(2, x=[0.5, 0.5], y=[9.0, 0.7], seen=gone))["range_held"] == 1.0  # no range: it does not count
    assert figures(pairs(3))["range_held"] is None


def test_words_are_counted_with_and_without_leans() -> None:
    words = ["positive", "leans positive", "leans positive", "neutral", "leans negative", "negative", "insufficient"]
    online = [1, 1, 0, 1, 0, -1, -1]
    full, leaning = ([table[word] for word in words] for table in (FULL_WORDS, WITH_LEANS))
    assert full == [1, 0, 0, 0, 0, -1, 0]
    assert leaning == [1, 1, 1, 0, -1, -1, 0]
    row = figures(pairs(7, online=online, seen=seen(7, word=full, leaning=leaning)), resamples=10)
    assert [row[f"{name}_word"] for name in ("precision", "fnr", "fpr")] == [4 / 7, 2 / 7, 1 / 7]
    assert [row[f"{name}_leans"] for name in ("precision", "fnr", "fpr")] == [3 / 7, 2 / 7, 2 / 7]
    assert set(FULL_WORDS) == set(WITH_LEANS) == set(WORDS)


def test_the_deconvolved_correlation_at_both_ends() -> None:
    """Where a covariance is known its bound is NaN, and both ends are at it."""
    g = np.random.default_rng(3)
    x = g.normal(size=30)
    y = x + 0.3 * g.normal(size=30)
    bound = np.where(np.arange(30) < 20, 0.02, np.nan)
    p = pairs(30, x=x, y=y, x_error=np.full(30, 0.2), y_error=np.full(30, 0.3), covariance=np.full(30, 0.01),
              covariance_bound=bound)  # fmt: skip
    row = figures(p, resamples=20)
    tau = np.sqrt((np.var(x, ddof=1) - 0.04) * (np.var(y, ddof=1) - 0.09))
    for name, unknown in (("", 0.0), ("_low", 0.02 * 20 / 30), ("_high", -0.02 * 20 / 30)):
        expected = (np.cov(x, y)[0, 1] - 0.01 - unknown) / tau
        assert row[f"deconvolved_correlation{name}"] == pytest.approx(expected), name
    known = figures(pairs(30, x=x, y=y, covariance_bound=None), resamples=20)
    assert "deconvolved_correlation_low" not in known
