"""Empirical Bernstein limits against the formula on unit terms, written out."""

from __future__ import annotations

import numpy as np
import pytest

import foretest as ft
from foretest.aggregation import fold_start
from tests.support import SmallLog, build_test

LOG = SmallLog(rows=500, units=140, seed=21)


def by_hand(
    log: SmallLog, h: np.ndarray, bound: float, r_max: float, alpha: float, unit: np.ndarray
) -> tuple[float, float]:
    units = np.unique(unit)
    c, n = len(units), log.rows
    x = np.array([((h - 1.0) * log.click)[unit == u].sum() * c / n for u in units])
    spread = bound * r_max * c * max(np.bincount(np.unique(unit, return_inverse=True)[1])) / n
    half = np.sqrt(2 * np.var(x, ddof=1) * np.log(4 / alpha) / c) + 7 * spread * np.log(4 / alpha) / (3 * (c - 1))
    return x.mean() - half, x.mean() + half


@pytest.mark.parametrize("capping", ["max", "zero"])
@pytest.mark.parametrize("key", ["cis", "point-ncis-adaptive"])
@pytest.mark.parametrize("unit", ["user", None])
def test_limits_are_maurer_and_pontil(key: str, unit: str | None, capping: str) -> None:
    if key == "point-ncis-adaptive" and capping == "zero":
        return
    test = build_test([key], interval="bernstein", r_max=1.0, unit=unit, capping=capping, confidence_level=0.8)
    estimate = test.run(LOG.table()).metrics["click"].estimates[key]
    h = LOG.weights(key, 2.0, 3.0, capping)
    lower, upper = by_hand(LOG, h, 2.0 if key == "cis" else 3.0, 1.0, 0.2, LOG.unit if unit else np.arange(LOG.rows))
    if key == "cis":
        upper += max(0.0, 1.0 - h.mean())  # the worst-case bias
    assert estimate.effect_size_ci_lower == pytest.approx(lower, rel=1e-9)
    assert estimate.effect_size_ci_upper == pytest.approx(upper, rel=1e-9)
    mean = LOG.click.mean()
    assert estimate.rel_effect_size_ci_lower == pytest.approx(lower / mean, rel=1e-9)
    # the standard error stays the delta method's
    plain = build_test([key], interval="delta", unit=unit, capping=capping).run(LOG.table())
    assert estimate.std_error == pytest.approx(plain.metrics["click"].estimates[key].std_error, rel=1e-12)


def test_beyond_the_kept_rows_buckets_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = build_test(["cis"], interval="bernstein", r_max=1.0).run(LOG.table()).metrics["click"].estimates["cis"]
    monkeypatch.setattr(fold_start, "MOST_REWARDED", 20)
    near = build_test(["cis"], interval="bernstein", r_max=1.0).run(LOG.table()).metrics["click"].estimates["cis"]
    width = exact.effect_size_ci_upper - exact.effect_size_ci_lower
    assert near.effect_size_ci_upper - near.effect_size_ci_lower == pytest.approx(width, rel=0.1)


def test_bool_rewards_are_bounded_by_1() -> None:
    import pyarrow as pa

    table = LOG.table().set_column(0, "click", pa.array(LOG.click > 0))
    free = build_test(["cis"], interval="bernstein").run(table).metrics["click"].estimates["cis"]
    given = build_test(["cis"], interval="bernstein", r_max=1.0).run(LOG.table()).metrics["click"].estimates["cis"]
    assert free.effect_size_ci_lower == pytest.approx(given.effect_size_ci_lower, rel=1e-12)
    with pytest.raises(ft.BadInput, match="needs r_max, the largest possible reward of 'click'"):
        build_test(["cis"], interval="bernstein").run(LOG.table())
