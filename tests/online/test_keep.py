"""Thinned logs of an online test: values are those of copies, the sample ratio counts what units stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.displays.merging import merged
from tests.online.support import SCHEMA, answer, arm
from tests.schemas import validate

VALUES = ("treatment", "std_error", "effect_size", "effect_size_ci_lower", "effect_size_ci_upper", "rel_effect_size")


def online(*, keep: bool = True, unit: str | None = "user", **keywords: Any) -> ft.OnlineTest:
    log = {name: keywords.pop(name) for name in ("id", "date") if name in keywords}
    columns = ft.LogColumns(rewards=["click"], unit=unit, **log, **({"keep": "keep"} if keep else {}))
    return ft.OnlineTest(log=columns, n_resamples=100, **keywords)


def two_arms(units: int = 300, seed: int = 0) -> list[pa.Table]:
    arms = [arm(units, 0.2, seed), arm(units, 0.3, seed + 1, first=10_000)]
    return [pa.table(columns) for columns in arms]


def with_keep(table: pa.Table, m: np.ndarray) -> pa.Table:
    return table.append_column("keep", pa.array(1.0 / m))


@pytest.mark.parametrize("interval", ["bootstrap", "delta"])
def test_values_are_those_of_copies(interval: str) -> None:
    logs, g = two_arms(), np.random.default_rng(1)
    multiples = [g.integers(1, 5, len(log)) for log in logs]
    thinned = online(interval=interval).run(*(with_keep(log, m) for log, m in zip(logs, multiples, strict=True)))
    full = online(keep=False, interval=interval).run(
        *(log.take(np.repeat(np.arange(len(log)), m)) for log, m in zip(logs, multiples, strict=True))
    )
    for name in VALUES:
        assert getattr(answer(thinned), name) == pytest.approx(getattr(answer(full), name), rel=1e-9), name
    assert thinned.log["rows"] == len(logs[0])
    assert thinned.log["displays"] == pytest.approx(multiples[0].sum())
    assert thinned.log["treatment"]["displays"] == pytest.approx(multiples[1].sum())
    validate(thinned.to_dict(), SCHEMA)


def test_one_row_per_unit_has_the_error_of_a_ratio() -> None:
    """Welch's test knows of no weights."""
    g = np.random.default_rng(2)
    click, m = (g.random(4_000) < 0.3).astype(float), np.where(g.random(4_000) < 0.5, 1, 4)
    tables = [pa.table({"click": click[half], "keep": 1.0 / m[half]}) for half in (slice(2_000), slice(2_000, None))]
    result = online(unit=None, interval="delta", buckets=1 << 16).run(*tables)
    errors = []
    for half in (slice(2_000), slice(2_000, None)):
        r, weight = click[half], m[half]
        mean = (weight * r).sum() / weight.sum()
        errors.append(np.sqrt(2_000 / 1_999 * np.square(weight * (r - mean)).sum()) / weight.sum())
    # rows that share one of 65 536 buckets are added first
    assert answer(result).std_error == pytest.approx(np.hypot(*errors), rel=0.02)
    assert answer(result).effective_positives == pytest.approx(
        min((m * click)[h].sum() ** 2 / np.square(m * click)[h].sum() for h in (slice(2_000), slice(2_000, None)))
    )


def units_of(count: int, first: int, keep: Any) -> pa.Table:
    """Three rows of each unit, on two days."""
    user = np.repeat(np.arange(count) + first, 3)
    day = np.tile(["2024-05-01", "2024-05-01", "2024-05-02"], count)
    click = (np.arange(3 * count) % 5 == 0).astype(float)
    return pa.table({"user": user, "click": click, "day": day, "keep": keep(user)})


def test_the_sample_ratio_is_of_what_units_stand_for() -> None:
    """Half of the treatment's units were left out: as many as the control's, once keep is looked at."""
    control = units_of(4_000, 0, lambda user: np.ones(len(user)))
    treatment = units_of(2_000, 100_000, lambda user: np.full(len(user), 0.5))
    check = online(date="day").run(control, treatment).health["sample_ratio"]
    assert check["observed"] == [0.5, 0.5]
    assert check["units"] == [4_000, 2_000]
    assert check["p_value"] == 1.0
    assert check["days_checked"] == 2
    assert not check["days"]
    assert online(keep=False, date="day").run(control, treatment).health["sample_ratio"]["alert"]


def test_the_sample_ratio_is_chi_square_with_the_variance_of_weights() -> None:
    """Σ 1/keep of each arm, against (N_c − s N)²/(s(1 − s) Σ 1/keep²); with keep = 1 it is the usual one."""
    control = units_of(1_000, 0, lambda user: np.where(user % 2 == 0, 1.0, 0.5))
    treatment = units_of(1_150, 100_000, lambda user: np.where(user % 2 == 0, 1.0, 0.5))
    result = online(date="day", split=(0.4, 0.6)).run(control, treatment).health["sample_ratio"]
    totals, squares = np.array([1_500.0, 1_725.0]), 1_000 * 2.5 + 1_150 * 2.5
    z2 = (totals[0] - 0.4 * totals.sum()) ** 2 / (0.24 * squares)
    from scipy.stats import chi2

    assert result["p_value"] == pytest.approx(chi2.sf(z2, 1), rel=1e-9)
    ones = [units_of(n, first, lambda user: np.ones(len(user))) for n, first in ((1_000, 0), (1_150, 10_000))]
    check = online(date="day").run(*ones).health["sample_ratio"]
    assert check["p_value"] == pytest.approx(chi2.sf(150**2 / 2_150, 1), rel=1e-10)


def test_rows_without_a_unit_are_units() -> None:
    tables = [
        pa.table({"click": np.arange(n) % 4 == 0, "keep": np.full(n, keep)}) for n, keep in ((900, 1.0), (450, 0.5))
    ]
    assert online(unit=None).run(*tables).health["sample_ratio"]["observed"] == [0.5, 0.5]


def test_the_sample_ratio_is_not_checked_where_a_unit_has_several_rates() -> None:
    control = units_of(500, 0, lambda user: np.ones(len(user)))
    treatment = units_of(300, 100_000, lambda user: np.where(np.arange(len(user)) % 3 == 0, 1.0, 0.5))
    result = online(date="day").run(control, treatment)
    check = result.health["sample_ratio"]
    assert check["p_value"] is None
    assert not check["alert"]
    assert "kept with different probabilities" in check["obstacle"]
    assert any("the sample ratio was not checked: rows of one unit" in note for note in result.notes)
    assert "not checked" in str(result)
    validate(result.to_dict(), SCHEMA)
    assert "sample ratio" in result.to_html()


def test_displays_and_their_squares_by_day() -> None:
    """Σ m and Σ m² of each day, in batches and merged, against NumPy."""
    g = np.random.default_rng(0)
    m, days = g.integers(1, 9, 600).astype(float), np.array([f"2026-03-{1 + d:02d}" for d in g.integers(0, 4, 600)])
    table = pa.table({"click": np.ones(600), "keep": 1.0 / m, "day": days})
    test = ft.OnlineTest(log=ft.LogColumns(rewards=["click"], keep="keep", date="day"))
    halves = merged([test.arms(half, table, batch_rows=70).control for half in (table.slice(0, 250), table.slice(250))])
    for found, amounts in ((halves.rows_by_day, m), (halves.squares_by_day, m * m)):
        assert found == pytest.approx({day: amounts[days == day].sum() for day in np.unique(days)}, rel=1e-12)


def test_an_empty_arm_is_no_crash() -> None:
    control = units_of(50, 0, lambda user: np.ones(len(user)))
    result = online(date="day").run(control, control.slice(0, 0))
    assert result.metrics["click"].verdict == "insufficient"


def test_bad_keep_names_the_arm() -> None:
    control = units_of(50, 0, lambda user: np.ones(len(user)))
    with pytest.raises(ft.BadInput, match=r"the treatment's log: .*column 'keep', row 0 .*is 0, and that of a row"):
        online().run(control, units_of(50, 1_000, lambda user: np.zeros(len(user))))
