"""Online tests that are looked at while they run, and p-values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from foretest.inference.always_valid import always_valid_quantile, mixture_variance
from foretest.inference.peeking import false_alarm
from tests.commands import exit_code_of
from tests.online.support import SCHEMA, answer, online
from tests.schemas import validate


@pytest.fixture(scope="module")
def tables(two: Any) -> list[pa.Table]:
    return [pa.table(part) for part in two]


def with_days(table: pa.Table, seed: int) -> pa.Table:
    days = np.random.default_rng(seed).choice(["2026-03-01", "2026-03-02", "2026-03-04"], len(table), p=[0.5, 0.2, 0.3])
    return table.append_column("day", pa.array(days))


@pytest.mark.parametrize("interval", ["delta", "bootstrap"])
def test_always_valid_limits_are_wider_ones_about_the_same_uplift(interval: str, tables: list[pa.Table]) -> None:
    result = online(interval=interval, sequential=True, sequential_units=500).run(*tables)
    estimate, facts = answer(result), result.sequential
    variance = mixture_variance(500, 0.9)
    quantile = always_valid_quantile(640, variance, 0.9)
    assert facts["mixture_variance"] == pytest.approx(variance)
    assert (facts["units"], facts["tightest_at_units"]) == (640, 500)
    assert facts["quantile"] == pytest.approx(quantile)
    always = estimate.always_valid
    half, rel_half = quantile * estimate.std_error, quantile * estimate.rel_std_error
    assert always["ci_lower"] == pytest.approx(estimate.effect_size - half)
    assert always["ci_upper"] == pytest.approx(estimate.effect_size + half)
    assert always["rel_ci_lower"] == pytest.approx(estimate.rel_effect_size - rel_half)
    assert always["rel_ci_upper"] == pytest.approx(estimate.rel_effect_size + rel_half)
    assert always["verdict"] == ("positive" if always["ci_lower"] > 0 else "neutral")
    document = result.to_dict()
    validate(document, SCHEMA)
    assert document["settings"]["online"] == {"split": [0.5, 0.5], "sequential": True, "sequential_units": 500}


def test_nothing_else_changes(tables: list[pa.Table]) -> None:
    plain, watched = (online(sequential=flag, n_resamples=100).run(*tables) for flag in (False, True))
    assert plain.sequential is None
    assert answer(plain).always_valid is None
    assert "sequential" not in plain.to_dict()
    assert "always valid" not in str(plain)
    for name, value in vars(answer(plain)).items():
        if name != "always_valid":
            assert getattr(answer(watched), name) == value, name


def test_the_looks_are_the_days_of_the_logs(tables: list[pa.Table]) -> None:
    dated = [with_days(table, seed) for seed, table in enumerate(tables)]
    facts = online(date="day", sequential=True).run(*dated).sequential
    days = np.concatenate([table["day"].to_numpy(zero_copy_only=False) for table in dated])
    displays = [int((days == day).sum()) for day in sorted(set(days))]
    assert (facts["looks"], facts["days_known"]) == (3, True)
    assert facts["false_alarm"] == false_alarm(displays, 0.9)
    undated = online(sequential=True).run(*tables).sequential
    assert (undated["looks"], undated["days_known"]) == (14, False)
    assert undated["false_alarm"] == false_alarm([1.0] * 14, 0.9)
    assert undated["false_alarm_limit"] == 0.1


def test_numbered_days_are_in_order() -> None:
    """Day 10 follows day 9, and not day 1."""
    day = np.repeat([1, 2, 10], [600, 200, 200])
    tables = [pa.table({"user": first + np.arange(1000), "click": [1.0, 0.0] * 500, "day": day}) for first in (0, 5000)]
    facts = online(date="day", sequential=True).run(*tables).sequential
    assert facts["false_alarm"] == false_alarm([1200, 400, 400], 0.9)
    assert facts["false_alarm"] != false_alarm([1200, 400 + 400], 0.9)


def test_the_command(tables: list[pa.Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for name, table in zip(("control", "treatment"), tables, strict=True):
        pq.write_table(table, f"{name}.parquet")
    Path("test.toml").write_text('[log]\nrewards = ["click"]\nunit = "user"\n', encoding="utf-8")
    command = ("online", "control.parquet", "treatment.parquet", "-c", "test.toml", "-o", "out")
    assert exit_code_of(monkeypatch, *command, "--sequential") == 0
    shown = capsys.readouterr().out
    assert "  always valid " in shown
    assert "once a day, on 14 days, raises a false alarm in" in " ".join(shown.split())
    assert "tightest at 10,000 units" in " ".join(shown.split())
    document = json.loads(Path("out/result.json").read_text(encoding="utf-8"))
    validate(document, SCHEMA)
    assert document["sequential"]["tightest_at_units"] == 10_000
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "Looking while the test runs" in page
    assert exit_code_of(monkeypatch, *command, "--sequential-units", "700", "--json") == 0
    assert json.loads(capsys.readouterr().out)["sequential"]["tightest_at_units"] == 700
    Path("test.toml").write_text(
        '[log]\nrewards = ["click"]\nunit = "user"\n[online]\nsequential = true\n', encoding="utf-8"
    )
    assert exit_code_of(monkeypatch, *command, "--markdown") == 0
    shown = capsys.readouterr().out
    assert "| always valid |" in shown
    assert "raises a false alarm" in shown


def test_an_empty_arm_has_no_always_valid_interval(tables: list[pa.Table]) -> None:
    result = online(sequential=True).run(tables[0], tables[1].slice(0, 0))
    always = answer(result).always_valid
    assert (always["ci_lower"], always["rel_ci_upper"], always["verdict"]) == (None, None, "insufficient")
    validate(result.to_dict(), SCHEMA)
    assert result.to_html()


def test_replace_keeps_and_changes_the_online_settings() -> None:
    test = online(covariate="before", sequential=True, split=(0.2, 0.8))
    assert test.replace(seed=3).settings.online == test.settings.online
    assert test.replace(sequential=False).settings.online.covariate == "before"
    assert "covariate='before', sequential=True" in repr(test)


@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_welch_from_sums_is_welch_from_rows(scale: float) -> None:
    g = np.random.default_rng(8)
    samples = [scale * g.gamma(2.0, 1.0, 40), scale * g.gamma(2.0, 1.3, 55)]
    logs = [
        pa.table({"user": first + np.arange(len(r)), "click": r}) for first, r in zip((0, 99), samples, strict=True)
    ]
    estimate = answer(online(interval="delta").run(*logs))
    welch = stats.ttest_ind(samples[1], samples[0], equal_var=False)
    limits = welch.confidence_interval(0.9)
    assert estimate.p_value == pytest.approx(welch.pvalue, rel=1e-12)
    assert estimate.std_error == pytest.approx(np.sqrt(sum(r.var(ddof=1) / len(r) for r in samples)), rel=1e-12)
    half = (limits.high - limits.low) / 2.0
    assert (estimate.effect_size_ci_lower, estimate.effect_size_ci_upper) == pytest.approx(
        (limits.low, limits.high), abs=1e-12 * half
    )


@pytest.mark.parametrize("units", [(20, 400), (400, 400)])
def test_p_is_by_the_reference_of_the_interval(units: tuple[int, int]) -> None:
    """p < 10 % exactly where the 90 % interval leaves out 0: with Student's quantiles below 30 units, else normal."""
    g = np.random.default_rng(3)
    outcomes = set()
    for _ in range(40):
        logs = []
        for first, count in zip((0, 1000), units, strict=True):
            user = np.repeat(np.arange(count), 2)
            logs.append(pa.table({"user": first + user, "click": g.gamma(2.0, 1.0, count)[user] * g.random(2 * count)}))
        estimate = answer(online(interval="delta").run(*logs, threads=1))
        outside = estimate.effect_size_ci_lower > 0 or estimate.effect_size_ci_upper < 0
        assert outside == (estimate.p_value < 0.1)
        outcomes.add(outside)
    assert outcomes == {True, False}


def test_no_variance_no_p() -> None:
    logs = [pa.table({"user": first + np.arange(50), "click": np.ones(50)}) for first in (0, 1000)]
    result = online(interval="delta").run(*logs)
    assert answer(result).p_value is None
    assert result.to_dict()["metrics"]["click"]["estimates"]["online"]["p_value"] is None
    validate(result.to_dict(), SCHEMA)


def test_the_bootstrap_has_the_p_of_the_delta_method(tables: list[pa.Table]) -> None:
    estimates = [answer(online(interval=name).run(*tables)) for name in ("bootstrap", "delta")]
    assert estimates[0].p_value == estimates[1].p_value
    z = estimates[1].effect_size / estimates[1].std_error
    assert estimates[1].p_value == pytest.approx(2.0 * stats.norm.sf(abs(z)), rel=1e-12)
