"""The delta method: standard errors by unit, normal or Student quantiles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from foretest.inference.delta import delta_interval, std_error, std_errors
from tests.support import SmallLog, build_test


def test_standard_error_is_the_formula() -> None:
    influence = np.random.default_rng(0).normal(size=40)
    assert std_error(influence, 100.0, 1000) == pytest.approx(np.sqrt(40 / 39 * (influence**2).sum()) / 100.0)
    # fewer units than buckets: the empty buckets are no evidence
    assert std_error(influence, 100.0, 10) == pytest.approx(np.sqrt(10 / 9 * (influence**2).sum()) / 100.0)
    assert std_error(influence * 1e300, 100.0, 1000) == pytest.approx(1e300 * std_error(influence, 100.0, 1000))
    assert np.isnan(std_error(influence, 0.0, 1000))
    assert np.isnan(std_error(influence, 100.0, 1))
    assert std_error(np.zeros(5), 100.0, 5) == 0.0


@pytest.mark.parametrize(("rows", "units"), [(100.0, 1000), (100.0, 10), (0.0, 1000), (100.0, 1)])
def test_standard_errors_of_columns(rows: float, units: int) -> None:
    """The same bits as column by column; of nothing, of what is no number, and of what no square can have."""
    influence = np.random.default_rng(1).normal(size=(40, 7)) * 10.0 ** np.arange(-3, 4)
    influence[:, 1] = 0.0
    influence[3, 2], influence[5, 3] = np.inf, np.nan
    influence[:, 4] *= 1e300
    expected = [std_error(column, rows, units) for column in influence.T]
    np.testing.assert_array_equal(std_errors(influence, rows, units), expected)


@pytest.mark.parametrize(
    ("units", "quantile"), [(1000, stats.norm.ppf(0.95)), (30, stats.norm.ppf(0.95)), (12, stats.t.ppf(0.95, 11))]
)
def test_quantiles(units: int, quantile: float) -> None:
    assert delta_interval(1.0, 0.1, units, 0.9) == pytest.approx((1.0 - 0.1 * quantile, 1.0 + 0.1 * quantile))


@pytest.mark.parametrize("buckets", [200, 1000])
def test_buckets_agree_with_units(buckets: int) -> None:
    """Hash buckets of many units estimate the same variance: within the noise of 200 or 1000 squares."""
    log = SmallLog(rows=4000, units=2500, seed=2, m=4)
    fine = build_test(["cis"], interval="delta", buckets=1 << 14).run(log.table()).metrics["click"].estimates["cis"]
    coarse = build_test(["cis"], interval="delta", buckets=buckets).run(log.table()).metrics["click"].estimates["cis"]
    assert coarse.effect_size == pytest.approx(fine.effect_size, rel=1e-12)
    assert coarse.std_error == pytest.approx(fine.std_error, rel=4 / np.sqrt(2 * buckets) * 1.5)


def test_the_uplift_is_paired() -> None:
    """The standard error is that of the difference on the same rows, not of two independent means."""
    log = SmallLog(rows=3000, units=3000, seed=6, spread=0.3, m=4)
    log.unit = np.arange(3000)
    result = build_test(["cis"], interval="delta", cap=1e6).run(log.table()).metrics["click"]
    estimate = result.estimates["cis"]
    w = np.exp(log.log_w)
    apart = np.sqrt(np.var(w * log.click) / 3000 + np.var(log.click) / 3000)
    paired = np.std((w - 1) * log.click) / np.sqrt(3000)
    assert estimate.std_error == pytest.approx(paired, rel=0.1)
    assert estimate.std_error < 0.7 * apart
