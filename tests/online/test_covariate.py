"""Online tests adjusted for a covariate, against plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derive, derived_bucket
from foretest.online import unit_values
from foretest.online.resampling import arm_counts
from foretest.online.unit_days import SAMPLE_SALT
from foretest.settings.analysis import Analysis
from tests.late_log import BEGIN
from tests.online.support import SCHEMA, answer
from tests.schemas import validate

BUCKETS = 64


def arm(units: int, lift: float, seed: int, first: int, *, shift: float = 0.0) -> pa.Table:
    """Users whose taste shows before and in the test; the keener come more often."""
    g = np.random.default_rng(seed)
    taste = g.gamma(1.0, 1.0, units)
    before = g.poisson(4.0 * taste) + shift
    user = np.repeat(np.arange(units), 1 + g.poisson(2.0 * taste))
    click = (g.random(len(user)) < np.clip(0.2 * lift * taste[user], 0, 1)).astype(float)
    columns = {"user": user + first, "before": before[user].astype(float), "click": click}
    columns["revenue"] = click * g.gamma(2.0, 1.0, len(user))
    return pa.table(columns).take(g.permutation(len(user)))


@pytest.fixture(scope="module")
def two() -> list[pa.Table]:
    return [arm(400, 1.0, 1, 0), arm(430, 1.25, 2, 100_000)]


def online(**keywords: Any) -> ft.OnlineTest:
    log = {name: keywords.pop(name) for name in ("unit", "keep", "time", "reward_age", "id") if name in keywords}
    columns = ft.LogColumns(**{"rewards": ["click", "revenue"], "unit": "user", **log})
    return ft.OnlineTest(log=columns, **{"covariate": "before", "buckets": BUCKETS, "interval": "delta", **keywords})


class Sums(NamedTuple):
    """What an arm adds up to in each bucket: displays, rewards, units and their covariates."""

    n: np.ndarray
    r: np.ndarray
    m: np.ndarray
    x: np.ndarray


def sums_of(table: pa.Table, metric: str, counted: Callable[[np.ndarray], np.ndarray] | None = None) -> Sums:
    """The sums by bucket, from the rows; `counted` says whose covariate counts."""
    user = table["user"].to_numpy()
    units, first = np.unique(user, return_index=True)
    before = table["before"].to_numpy()[first]
    if counted is not None:
        units, before = units[counted(units)], before[counted(units)]
    rows, of_unit = (derived_bucket(hash_integers(names), BUCKET_SALT, BUCKETS) for names in (user, units))
    return Sums(
        np.bincount(rows, minlength=BUCKETS).astype(float),
        np.bincount(rows, table[metric].to_numpy(), BUCKETS),
        np.bincount(of_unit, minlength=BUCKETS).astype(float),
        np.bincount(of_unit, before, BUCKETS),
    )


def theta_of(arms: list[Sums]) -> float:
    """The slope of what buckets add to the reward per display on what they add to the mean of the covariate."""
    n, r, m, x = (np.concatenate(parts) for parts in zip(*arms, strict=True))
    a, b = r / n.sum() - r.sum() / n.sum() ** 2 * n, x / m.sum() - x.sum() / m.sum() ** 2 * m
    return float(a @ b / (b @ b))


def values_of(
    arms: list[Sums], theta: float, weights: list[np.ndarray], shares: np.ndarray | None = None
) -> tuple[float, float]:
    """The adjusted values of both arms, each bucket counted as often as its weight says; `shares` are those of the
    arms in the mean of the covariate, where they are to stay."""
    totals = [[w @ part for part in one] for one, w in zip(arms, weights, strict=True)]
    units = np.array([t[2] for t in totals]) if shares is None else shares
    overall = np.average([t[3] / t[2] for t in totals], weights=units)
    control, treatment = (r / n - theta * (x / m - overall) for n, r, m, x in totals)
    return control, treatment


def uplifts_of(
    arms: list[Sums], theta: float, weights: list[np.ndarray], shares: np.ndarray | None = None
) -> np.ndarray:
    control, treatment = values_of(arms, theta, weights, shares)
    return np.array([treatment - control, treatment / control - 1.0])


def errors_of(arms: list[Sums], theta: float) -> np.ndarray:
    """The infinitesimal jackknife: each bucket's weight is moved a little, and the uplifts move with it."""
    ones, step, squares = [np.ones(BUCKETS), np.ones(BUCKETS)], 1e-6, np.zeros(2)
    shares = np.array([one.m.sum() for one in arms])
    for which in (0, 1):
        for bucket in range(BUCKETS):
            moved = []
            for sign in (1.0, -1.0):
                weights = [w.copy() for w in ones]
                weights[which][bucket] += sign * step
                moved.append(uplifts_of(arms, theta, weights, shares))
            squares += BUCKETS / (BUCKETS - 1.0) * ((moved[0] - moved[1]) / (2.0 * step)) ** 2
    return np.sqrt(squares)


@pytest.mark.parametrize("metric", ["click", "revenue"])
def test_values_and_errors_by_bucket(metric: str, two: list[pa.Table]) -> None:
    result = online().run(*two)
    arms = [sums_of(table, metric) for table in two]
    theta = theta_of(arms)
    found, estimate = result.metrics[metric].covariate, answer(result, metric)
    control, treatment = values_of(arms, theta, [np.ones(BUCKETS)] * 2)
    assert found["coefficient"] == pytest.approx(theta, rel=1e-10)
    assert (found["control"], estimate.treatment) == pytest.approx((control, treatment), rel=1e-12)
    assert estimate.effect_size == pytest.approx(treatment - control, rel=1e-12)
    assert estimate.rel_effect_size == pytest.approx(treatment / control - 1.0, rel=1e-12)
    assert (estimate.std_error, estimate.rel_std_error) == pytest.approx(tuple(errors_of(arms, theta)), rel=1e-6)
    unadjusted = result.metrics[metric].estimates["unadjusted"]
    ratio = unadjusted.std_error**2 / estimate.std_error**2
    assert found["variance_removed"] == pytest.approx(1.0 - 1.0 / ratio)
    assert found["units_gained"] == round((400 + 430) * (ratio - 1.0))
    assert found["variance_removed"] > 0.1
    validate(result.to_dict(), SCHEMA)


def test_the_unadjusted_estimate_is_that_of_a_test_without_a_covariate(two: list[pa.Table]) -> None:
    for interval in ("delta", "bootstrap"):
        result, plain = (online(covariate=name, interval=interval).run(*two) for name in ("before", None))
        for name, metric in plain.metrics.items():
            assert result.metrics[name].estimates["unadjusted"] == metric.estimates["online"]
            assert result.metrics[name].control == metric.control
            assert list(metric.estimates) == ["online"]
            assert metric.covariate is None


def test_the_bootstrap_resamples_the_covariate_too(two: list[pa.Table]) -> None:
    result = online(interval="bootstrap", n_resamples=400).run(*two)
    arms = [sums_of(table, "click") for table in two]
    theta = theta_of(arms)
    counts = arm_counts(Analysis().replace(buckets=BUCKETS, n_resamples=400))
    drawn = np.array([uplifts_of(arms, theta, [c, t]) for c, t in zip(counts.control, counts.treatment, strict=True)])
    estimate = answer(result)
    limits = np.quantile(drawn, [0.05, 0.95], axis=0).T.ravel()
    assert (
        estimate.effect_size_ci_lower, estimate.effect_size_ci_upper, estimate.rel_effect_size_ci_lower,
        estimate.rel_effect_size_ci_upper,
    ) == pytest.approx(tuple(limits), rel=1e-9)  # fmt: skip
    assert drawn[:, 0].std() == pytest.approx(estimate.std_error, rel=0.15)


@pytest.mark.parametrize(("threads", "batch_rows"), [(1, 7), (3, 40), (2, 1 << 16)])
def test_how_the_log_is_cut_changes_nothing(threads: int, batch_rows: int, two: list[pa.Table], tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    paths = []
    for name, table in zip(("control", "treatment"), two, strict=True):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=100)
        paths.append(str(tmp_path / f"{name}.parquet"))
    found = online().run(*paths, threads=threads, batch_rows=batch_rows)
    wanted = online().run(*two, threads=1)
    for name in ("effect_size", "std_error", "rel_effect_size", "rel_std_error", "p_value"):
        assert getattr(answer(found), name) == pytest.approx(getattr(answer(wanted), name), rel=1e-11), name


def test_rows_are_units_without_a_unit_column() -> None:
    """With one display each, θ is the slope of the reward on the covariate, and the errors are Welch's."""
    g = np.random.default_rng(4)
    tables = []
    for lift in (1.0, 1.2):
        x = g.normal(1e6, 3.0, 700)
        click = (g.random(700) < np.clip(lift * (0.3 + 0.05 * (x - 1e6)), 0, 1)).astype(float)
        tables.append(pa.table({"before": x, "click": click, "revenue": click}))
    result = online(unit=None).run(*tables)
    x, y = ([t[name].to_numpy() for t in tables] for name in ("before", "click"))
    theta = np.polyfit(np.concatenate(x) - 1e6, np.concatenate(y), 1)[0]
    residuals = [b - theta * (a - np.concatenate(x).mean()) for a, b in zip(x, y, strict=True)]
    estimate = answer(result)
    assert result.metrics["click"].covariate["coefficient"] == pytest.approx(theta, rel=1e-9)
    assert estimate.effect_size == pytest.approx(residuals[1].mean() - residuals[0].mean(), rel=1e-8)
    assert estimate.std_error == pytest.approx(np.sqrt(sum(r.var(ddof=1) / len(r) for r in residuals)), rel=1e-9)


def test_thinned_rows_stand_for_several() -> None:
    """Where every row is a unit, one of keep 1/m counts as m: the values and θ of copies."""
    g = np.random.default_rng(5)
    tables, copies = [], []
    for first in (0, 10_000):
        x, m = g.poisson(3.0, 500).astype(float), g.integers(1, 4, 500)
        click = (g.random(500) < 0.1 + 0.05 * x).astype(float)
        log = pa.table({"key": first + np.arange(500), "before": x, "click": click, "revenue": click})
        tables.append(log.append_column("keep", pa.array(1.0 / m)))
        copies.append(log.take(np.repeat(np.arange(500), m)))
    thinned = online(unit=None, id="key", keep="keep").run(*tables)
    # copies of a row are together in its bucket, as rows of a unit; a unit of m rows then counts m times in Σx
    arms = [sums_of(copy.rename_columns(["user", *copy.column_names[1:]]), "click") for copy in copies]
    arms = [one._replace(m=one.n, x=_rows_of(copy)) for one, copy in zip(arms, copies, strict=True)]
    theta = theta_of(arms)
    control, treatment = values_of(arms, theta, [np.ones(BUCKETS)] * 2)
    estimate = answer(thinned)
    assert thinned.metrics["click"].covariate["coefficient"] == pytest.approx(theta, rel=1e-9)
    assert estimate.effect_size == pytest.approx(treatment - control, rel=1e-9)
    assert estimate.std_error == pytest.approx(errors_of(arms, theta)[0], rel=1e-6)


def _rows_of(table: pa.Table) -> np.ndarray:
    bucket = derived_bucket(hash_integers(table["key"].to_numpy()), BUCKET_SALT, BUCKETS)
    return np.bincount(bucket, table["before"].to_numpy(), BUCKETS)


def test_beyond_the_limit_a_sample_of_units_counts(two: list[pa.Table], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_values, "MOST_UNITS", 150)
    result = online().run(*two, batch_rows=50)
    arms = []
    for table in two:
        units = np.unique(table["user"].to_numpy())
        limit = np.sort(derive(hash_integers(units), SAMPLE_SALT))[150]
        arms.append(
            sums_of(table, "click", lambda names, limit=limit: derive(hash_integers(names), SAMPLE_SALT) < limit)
        )
        assert arms[-1].m.sum() == 150
    theta = theta_of(arms)
    estimate = answer(result)
    assert result.metrics["click"].covariate["coefficient"] == pytest.approx(theta, rel=1e-9)
    assert estimate.effect_size == pytest.approx(uplifts_of(arms, theta, [np.ones(BUCKETS)] * 2)[0], rel=1e-9)
    assert estimate.std_error == pytest.approx(errors_of(arms, theta)[0], rel=1e-6)
    assert result.health["covariate"]["sampled_shares"] == pytest.approx([150 / 400, 150 / 430], abs=0.1)
    assert any("over 2^21 units: the covariate is counted" in note for note in result.notes)
    validate(result.to_dict(), SCHEMA)


def test_a_constant_covariate_adjusts_nothing(two: list[pa.Table]) -> None:
    tables = [table.set_column(1, "before", pa.array(np.full(len(table), 0.1))) for table in two]
    result = online().run(*tables)
    assert result.metrics["click"].covariate["coefficient"] == 0.0
    assert answer(result).effect_size == result.metrics["click"].estimates["unadjusted"].effect_size
    assert result.health["covariate"]["constant"]
    assert "the covariate 'before' has one value in all units: it adjusts nothing." in result.notes
    assert "removed none of the variance" in str(result)


def test_a_covariate_that_the_treatment_moves_is_noted() -> None:
    balanced = online().run(arm(400, 1.0, 1, 0), arm(430, 1.25, 2, 100_000))
    moved = online().run(arm(400, 1.0, 1, 0), arm(430, 1.25, 2, 100_000, shift=3.0))
    assert not balanced.health["covariate"]["alert"]
    assert not any("differs between the arms" in note for note in balanced.notes)
    assert moved.health["covariate"]["alert"]
    [note] = [note for note in moved.notes if "differs between the arms" in note]
    assert note.startswith("the covariate 'before' differs between the arms beyond chance:")
    assert "adjusted uplift" in note


def test_bools_and_whole_numbers_are_covariates_too(two: list[pa.Table]) -> None:
    for values in (lambda x: x > 3, lambda x: x.astype(np.int64)):
        tables = [table.set_column(1, "before", pa.array(values(table["before"].to_numpy()))) for table in two]
        assert answer(online().run(*tables)).std_error < answer(online(covariate=None).run(*tables)).std_error


def test_units_count_that_have_a_display_in_the_window(two: list[pa.Table]) -> None:
    logs, plain = [], []
    for seed, table in enumerate(two):
        hours = np.random.default_rng(seed).integers(0, 100, len(table))
        shown = BEGIN + hours * np.timedelta64(3_600_000_000, "us")
        age = pa.array(np.zeros(len(table)))
        logs.append(table.append_column("ts", pa.array(shown)).append_column("age", age))
        plain.append(table.filter(pa.array(hours <= hours.max() - 24)))
    read_at = str(BEGIN + 99 * np.timedelta64(3_600_000_000, "us")) + "Z"
    columns = ft.LogColumns(rewards=["click"], unit="user", time="ts", reward_age="age", read_at=read_at)
    test = ft.OnlineTest(log=columns, covariate="before", buckets=BUCKETS, interval="delta", window="24h")
    assert answer(test.run(*logs)) == answer(online().run(*plain))


def test_an_arm_without_rows_has_no_adjustment(two: list[pa.Table]) -> None:
    result = online().run(two[0], two[1].slice(0, 0))
    assert answer(result).verdict == "insufficient"
    assert (answer(result).effect_size, answer(result).p_value) == (None, None)
    assert result.health["covariate"]["means"] == [None, None]
    validate(result.to_dict(), SCHEMA)
    assert "insufficient" in str(result)
    assert result.to_html()


@pytest.mark.slow
def test_the_adjusted_uplift_is_right_on_average_and_less_noisy() -> None:
    """Over 150 tests: its mean is the truth, its spread its standard error, and its variance what was promised."""
    g, adjusted, plain, removed, errors = np.random.default_rng(11), [], [], [], []
    for _ in range(150):
        tables = []
        for lift in (1.0, 1.3):
            taste = g.gamma(2.0, 0.5, 600)
            before = g.poisson(10.0 * taste).astype(float)
            user = np.repeat(np.arange(600), 1 + g.poisson(lift * taste))  # the treatment brings keen users back
            click = taste[user] * g.gamma(4.0, 0.25, len(user))
            tables.append(pa.table({"user": user + len(tables) * 10_000, "before": before[user], "click": click}))
        columns = ft.LogColumns(rewards=["click"], unit="user")
        result = ft.OnlineTest(log=columns, covariate="before", interval="delta").run(*tables, threads=1)
        adjusted.append(answer(result).effect_size)
        errors.append(answer(result).std_error)
        plain.append(result.metrics["click"].estimates["unadjusted"].effect_size)
        removed.append(result.metrics["click"].covariate["variance_removed"])
    difference = np.array(adjusted) - np.array(plain)
    assert abs(difference.mean()) < 4.0 * difference.std() / np.sqrt(150)  # the same expectation
    assert np.std(adjusted) == pytest.approx(np.mean(errors), rel=3.0 / np.sqrt(2.0 * 150))
    share = float(np.mean(removed))
    assert share > 0.4
    # the log of a ratio of variances of numbers with correlation √(1 − share) has a variance of 4·share/n
    room = 3.0 * (1.0 - share) * 2.0 * np.sqrt(share / 150)
    assert 1.0 - np.var(adjusted) / np.var(plain) == pytest.approx(share, abs=room)
