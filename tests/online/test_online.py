"""The online A/B test: formulas against plain NumPy, a jackknife and SciPy; every bad input."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from io import StringIO
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from scipy import stats

import foretest as ft
from foretest import cli
from foretest.inference.bootstrap import resample_counts
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derive
from foretest.online import arms as arms_module
from foretest.online.arms import Arms, UnitDays
from foretest.online.test import OnlineTest, control_counts, replicates, sample_ratio, split_p_value, treatment_counts
from foretest.results.result import Estimate, Result
from foretest.terminal.result import result_table

SCHEMA = json.loads((Path(ft.__file__).parent / "schema" / "result-1.json").read_text(encoding="utf-8"))
MANY = 1 << 20  # buckets enough that every unit has its own
Z = stats.norm.ppf


def arm(units: int, rate: float, seed: int, first: int = 0, repeats: bool = True) -> dict[str, Any]:
    """Displays of users of unequal size, whose own rates differ and grow with their size."""
    g = np.random.default_rng(seed)
    size = 1 + g.poisson(4.0 * g.gamma(1.0, size=units)) if repeats else np.ones(units, np.int64)
    own = np.clip(rate * g.gamma(2.0, 0.5, units) * (0.6 + 0.1 * size if repeats else 1.0), 0.0, 1.0)
    user = np.repeat(np.arange(units), size)
    click = (g.random(len(user)) < own[user]).astype(float)
    return {"user": user + first, "click": click, "revenue": click * np.exp(g.normal(size=len(user)))}


def online(unit: str | None = "user", rewards: tuple[str, ...] = ("click",), **keywords: Any) -> OnlineTest:
    log = {name: keywords.pop(name) for name in ("id", "date") if name in keywords}
    return OnlineTest(log=ft.LogColumns(rewards=rewards, unit=unit, **log), **keywords)


def answer(result: Result, metric: str = "click") -> Estimate:
    return result.metrics[metric].estimates["online"]


def by_unit(rows: dict[str, Any], metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Σr and rows of each unit."""
    _, unit = np.unique(rows["user"], return_inverse=True)
    return np.bincount(unit, weights=rows[metric]), np.bincount(unit).astype(float)


def buckets_of(user: np.ndarray, buckets: int) -> np.ndarray:
    return np.asarray(derive(hash_integers(user.astype(np.int64)), 1) % np.uint64(buckets)).astype(np.int64)


@pytest.fixture(scope="module")
def two() -> tuple[dict[str, Any], dict[str, Any]]:
    return arm(300, 0.2, 1, first=500), arm(340, 0.25, 2, first=10_000)


# -- formulas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["click", "revenue"])
def test_delta_method_by_unit(two: Any, metric: str) -> None:
    """Against the definition in plain NumPy: se² = C/(C−1)·Σ_u (Σ_{i∈u}(r − R))²/n² an arm."""
    rows = [pa.table(part) for part in two]
    e = answer(online(rewards=(metric,), interval="delta", buckets=MANY).run(*rows), metric)
    (s_c, n_c), (s_t, n_t) = (by_unit(part, metric) for part in two)
    control, treatment = s_c.sum() / n_c.sum(), s_t.sum() / n_t.sum()

    def variance(s: np.ndarray, n: np.ndarray) -> float:
        return float(len(s) / (len(s) - 1) * ((s - s.sum() / n.sum() * n) ** 2).sum() / n.sum() ** 2)

    delta, se = treatment - control, np.sqrt(variance(s_c, n_c) + variance(s_t, n_t))
    relative = treatment / control - 1
    rel_se = np.sqrt(variance(s_t, n_t) + (1 + relative) ** 2 * variance(s_c, n_c)) / control
    z = Z(0.95)
    expected = [treatment, se, delta, delta - z * se, delta + z * se,
                relative, relative - z * rel_se, relative + z * rel_se]  # fmt: skip
    found = [e.treatment, e.std_error, e.effect_size, e.effect_size_ci_lower, e.effect_size_ci_upper,
             e.rel_effect_size, e.rel_effect_size_ci_lower, e.rel_effect_size_ci_upper]  # fmt: skip
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("metric", ["click", "revenue"])
def test_standard_errors_are_those_of_a_jackknife_over_units(metric: str) -> None:
    two = arm(3000, 0.2, 3), arm(3400, 0.25, 4, first=10_000)
    (s_c, n_c), (s_t, n_t) = (by_unit(part, metric) for part in two)
    without = {
        "c": (np.array([s_c.sum() - s_c, n_c.sum() - n_c]), np.array([s_t.sum(), n_t.sum()])[:, None]),
        "t": (np.array([s_c.sum(), n_c.sum()])[:, None], np.array([s_t.sum() - s_t, n_t.sum() - n_t])),
    }
    variance, rel_variance = 0.0, 0.0
    for control, treatment in without.values():
        absolute = treatment[0] / treatment[1] - control[0] / control[1]
        relative = (treatment[0] / treatment[1]) / (control[0] / control[1]) - 1
        count = len(absolute)
        variance += (count - 1) / count * ((absolute - absolute.mean()) ** 2).sum()
        rel_variance += (count - 1) / count * ((relative - relative.mean()) ** 2).sum()
    test = online(rewards=(metric,), interval="delta", buckets=MANY, confidence_level=2 * stats.norm.cdf(1.0) - 1)
    e = answer(test.run(*(pa.table(part) for part in two)), metric)
    assert e.std_error == pytest.approx(np.sqrt(variance), rel=0.02)
    assert e.rel_effect_size_ci_upper - e.rel_effect_size == pytest.approx(np.sqrt(rel_variance), rel=0.02)


@pytest.mark.parametrize("metric", ["click", "revenue"])
@pytest.mark.parametrize("unit", ["user", None])
@pytest.mark.parametrize("sizes", [(40, 90), (9, 12)])
def test_welch_where_every_unit_has_one_row(metric: str, unit: str | None, sizes: tuple[int, int]) -> None:
    rows = [arm(n, 0.3, 5 + n, first=1000 * n, repeats=False) for n in sizes]
    test = online(unit, rewards=(metric,), interval="delta", confidence_level=0.95)
    e = answer(test.run(*(pa.table(part) for part in rows)), metric)
    theirs = stats.ttest_ind(rows[1][metric], rows[0][metric], equal_var=False)
    interval = theirs.confidence_interval(0.95)
    found = [e.effect_size_ci_lower, e.effect_size_ci_upper, e.effect_size / e.std_error]
    assert found == pytest.approx([interval.low, interval.high, theirs.statistic], rel=1e-9)


def test_few_units_have_student_limits() -> None:
    rows = [arm(8, 0.5, 5), arm(9, 0.5, 6, first=100)]
    e = answer(online(interval="delta", buckets=MANY).run(*(pa.table(part) for part in rows)))
    half = (e.effect_size_ci_upper - e.effect_size_ci_lower) / 2 / e.std_error
    assert stats.t.ppf(0.95, 15) <= half <= stats.t.ppf(0.95, 7)


def test_bootstrap_limits_from_the_rows(two: Any) -> None:
    """Each resample rebuilt from rows, each row as often as its bucket was drawn."""
    test = online(buckets=64, n_resamples=200, seed=9, confidence_level=0.8)
    counts = control_counts(test.settings.analysis), treatment_counts(test.settings.analysis)
    np.testing.assert_array_equal(counts[0], resample_counts(64, 200, 9))
    assert not np.array_equal(*counts)
    means = []
    for part, drawn in zip(two, counts, strict=True):
        bucket = buckets_of(part["user"], 64)
        means.append([np.repeat(part["click"], drawn[b][bucket].astype(int)).mean() for b in range(200)])
    control, treatment = np.array(means)
    e = answer(test.run(*(pa.table(part) for part in two)))
    limits = np.quantile(treatment - control, [0.1, 0.9])
    relative = np.quantile(treatment / control - 1, [0.1, 0.9])
    found = [e.effect_size_ci_lower, e.effect_size_ci_upper, e.rel_effect_size_ci_lower, e.rel_effect_size_ci_upper]
    assert found == pytest.approx([*limits, *relative], rel=1e-9)


def test_resamples_without_rows_or_reward_are_left_out() -> None:
    rows = {"user": np.arange(4), "click": np.array([1.0, 0.0, 0.0, 1.0])}
    test = online(buckets=8)
    arms = test.arms(pa.table(rows), pa.table({**rows, "user": rows["user"] + 100}))
    bucket = buckets_of(rows["user"], 8)
    nothing, all_once = np.zeros((1, 8)), np.ones((1, 8))
    no_reward = all_once - np.isin(np.arange(8), bucket[[0, 3]])
    assert [np.isnan(x[0]) for x in replicates(arms, 0, nothing, all_once)] == [True, True]
    assert [np.isnan(x[0]) for x in replicates(arms, 0, all_once, nothing)] == [True, True]
    if (no_reward @ arms.control.n)[0]:
        assert [np.isnan(x[0]) for x in replicates(arms, 0, no_reward, all_once)] == [False, True]
    assert [x[0] for x in replicates(arms, 0, all_once, all_once)] == [0.0, 0.0]


@pytest.mark.parametrize("unit", ["user", None])
def test_the_control_is_the_offline_test_s(two: Any, unit: str | None) -> None:
    """Bucket by bucket, and so resample by resample: offline and online can be paired."""
    control = {**two[0], "p": np.full(len(two[0]["user"]), 0.5)}
    logged = ft.Logged(prob="p")
    columns = ft.LogColumns(rewards=["click"], unit=unit)
    offline = ft.OfflineTest(log=columns, control=logged, treatment=logged, estimators=["ncis"], n_resamples=100)
    aggregates, _, _ = offline.aggregate(pa.table(control))
    test = OnlineTest.from_settings(offline.settings)
    arms = test.arms(pa.table(control), pa.table(two[1]))
    np.testing.assert_array_equal(arms.control.n, aggregates.n)
    np.testing.assert_allclose(arms.control.r, aggregates.r, rtol=1e-12)
    mine, theirs = test.analyse(arms).metrics["click"].control, offline.run(pa.table(control)).metrics["click"].control
    assert vars(mine) == pytest.approx(vars(theirs), rel=1e-12)


def test_minimum_detectable_effect(two: Any) -> None:
    result = online(interval="delta", confidence_level=0.95).run(*(pa.table(part) for part in two))
    effect, e = result.health["minimum_detectable_effect"]["click"], answer(result)
    z = Z(0.975)
    rel_se = (e.rel_effect_size_ci_upper - e.rel_effect_size) / z
    assert effect["absolute"] == pytest.approx((z + Z(0.8)) * e.std_error, rel=1e-9)
    assert effect["relative"] == pytest.approx((z + Z(0.8)) * rel_se, rel=1e-9)
    assert effect["power"] == 0.8


def test_ten_copies_of_every_row_change_no_error(two: Any) -> None:
    tables = [pa.table(part) for part in two]
    test = online(interval="delta")
    once, ten = (answer(test.run(*(pa.concat_tables([t] * copies) for t in tables))) for copies in (1, 10))
    assert ten.std_error == pytest.approx(once.std_error, rel=1e-9)


# -- nothing depends on how a log is cut ------------------------------------------------------------------------------


def numbers_of(result: Result) -> list[float]:
    flat: list[float] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, float | int) and not isinstance(value, bool):
            flat.append(value)

    document = result.to_dict()
    walk([document["log"], document["metrics"], document["health"]])
    return flat


@pytest.mark.parametrize("limit", [None, 150], ids=["exact", "sampled"])
def test_order_batches_and_threads_change_no_digit(
    two: Any, limit: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if limit is not None:
        monkeypatch.setattr(arms_module, "LIMIT", limit)
    g = np.random.default_rng(0)
    tables = []
    for part in two:
        days = [f"2026-05-{1 + d:02d}" for d in g.integers(0, 6, len(part["user"]))]
        tables.append(pa.table({**part, "day": days}))
    test = online(rewards=("click", "revenue"), date="day", n_resamples=100)
    base = test.run(*tables)
    shuffled = [table.take(g.permutation(len(table))) for table in tables]
    for name, table in zip("ct", shuffled, strict=True):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=97)
    others = [
        test.run(*shuffled, batch_rows=50),
        *(test.run(tmp_path / "c.parquet", tmp_path / "t.parquet", threads=k, batch_rows=31) for k in (1, 4)),
        test.run(*(pa.RecordBatchReader.from_batches(t.schema, t.to_batches(max_chunksize=13)) for t in shuffled)),
    ]
    for other in others:
        assert numbers_of(other) == pytest.approx(numbers_of(base), rel=1e-9, abs=1e-15)
        assert other.notes == base.notes
    assert (base.health["sample_ratio"]["sampled_share"] < 1.0) == (limit is not None)


def test_arms_add_up(two: Any) -> None:
    test = online()
    table, other = (pa.table(part) for part in two)
    whole = test.arms(table, other).control
    halves = test.arms(table.slice(0, 500), other).control + test.arms(table.slice(500), other).control
    np.testing.assert_array_equal(halves.n, whole.n)
    np.testing.assert_allclose(halves.r, whole.r, rtol=1e-12)
    assert (halves.rows, halves.n_units, halves.rows_by_day) == (whole.rows, whole.n_units, whole.rows_by_day)


# -- the split --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "split"), [((5000, 5300), (0.5, 0.5)), ((900, 90), (0.9, 0.1)), ((7, 7), (0.5, 0.5))]
)
def test_sample_ratio_p_value(counts: tuple[int, int], split: tuple[float, float]) -> None:
    expected = stats.chisquare(counts, [sum(counts) * share for share in split]).pvalue
    assert split_p_value(*counts, split) == pytest.approx(expected, rel=1e-10)


def units_over_days(days: dict[Any, tuple[int, int]], rows_each: int = 2) -> list[pa.Table]:
    """Arms whose days have these numbers of units, each with some rows; units return on all days."""
    tables = []
    for side in (0, 1):
        user = np.concatenate([np.repeat(np.arange(counts[side]), rows_each) for counts in days.values()])
        day = [day for day, counts in days.items() for _ in range(counts[side] * rows_each)]
        tables.append(pa.table({"user": user + side * 10**6, "day": day, "click": np.arange(len(user)) % 5 == 0}))
    return tables


@pytest.mark.parametrize("unit", ["user", None])
def test_sample_ratio_in_all_and_by_day(unit: str | None) -> None:
    days = {"2026-01-01": (1000, 1010), "2026-01-02": (500, 800), "2026-01-03": (990, 1000)}
    result = online(unit, date="day").run(*units_over_days(days))
    check = result.health["sample_ratio"]
    rows = 1 if unit else 2
    units = (1000, 1010) if unit else (4980, 5620)
    assert check["units"] == list(units)
    assert check["observed"] == pytest.approx(np.array(units) / sum(units))
    assert check["p_value"] == pytest.approx(stats.chisquare(units).pvalue)
    assert check["alert"] == (unit is None)
    [found] = check["days"]
    assert (found["day"], found["units"], check["days_checked"]) == ("2026-01-02", [500 * rows, 800 * rows], 3)
    assert found["p_value"] == pytest.approx(stats.chisquare(found["units"]).pvalue)
    assert "1 of 3 days (2026-01-02)" in " ".join(result.notes)
    assert "That many days are looked at" in " ".join(result.notes)
    assert any("not split as designed" in r for r in answer(result).reasons) == (unit is None)
    console = Console(file=StringIO(), width=80, force_terminal=True, color_system="standard", legacy_windows=False)
    console.print(result_table(result))
    assert ("\x1b[1;31mMISMATCH" in console.file.getvalue()) == (unit is None)


def test_the_designed_split_is_what_counts() -> None:
    tables = units_over_days({"d": (9000, 1000)})
    assert online(split=(0.9, 0.1)).run(*tables).health["sample_ratio"]["p_value"] == 1.0
    assert online().run(*tables).health["sample_ratio"]["alert"]


@pytest.mark.parametrize(
    "written",
    [
        [date(2026, 1, 1), date(2026, 1, 2)],
        [datetime(2026, 1, 1, 23, 59), datetime(2026, 1, 2, 0, 1)],
        # 23:00 at -01:00 is midnight in UTC
        [datetime(2026, 1, 1, 5, tzinfo=UTC), datetime(2026, 1, 1, 23, tzinfo=timezone(timedelta(hours=-1)))],
        ["2026-01-01T10:00:00", "2026-01-02 11:00:00"],
    ],
    ids=["date", "timestamp", "time zone", "text"],
)
def test_days_of_every_type(written: list[Any]) -> None:
    table = pa.table({"click": [1, 0], "day": written})
    arms = online(None, date="day").arms(table, table.slice(0, 1))
    assert arms.control.rows_by_day == {"2026-01-01": 1, "2026-01-02": 1}


def test_other_days_are_read_as_written() -> None:
    table = pa.table({"click": [1, 0], "day": [20260101, 20260102]})
    assert list(online(None, date="day").arms(table, table.slice(1)).control.rows_by_day) == ["20260101", "20260102"]


def test_sampled_split_is_of_units_below_one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arms_module, "LIMIT", 1000)
    tables = units_over_days({"a": (8000, 5000), "b": (4000, 4000)})
    result = online(date="day").run(*tables)
    check = result.health["sample_ratio"]
    assert max(check["units"]) == 1000
    assert check["sampled_share"] == pytest.approx(1000 / 8000, rel=0.15)
    assert check["observed"][0] == pytest.approx(8 / 13, abs=4 * np.sqrt(8 * 5 / 13**2 / 1600))
    assert check["alert"]
    assert [found["day"] for found in check["days"]] == ["a"]
    assert "those of smallest hash" in result.notes[0]


def test_unit_days_keep_within_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arms_module, "LIMIT", 100)
    monkeypatch.setattr(arms_module, "MOST_UNIT_DAYS", 50)
    g = np.random.default_rng(0)
    hashes = g.integers(0, 2**63, 60).astype(np.uint64) * np.uint64(2)
    pairs = np.repeat(hashes, 3), np.tile(np.arange(3), 60)
    whole, parts = UnitDays(["a", "b", "c"]), UnitDays(["a", "b", "c"])
    whole.add(*pairs)
    for k in range(3):
        part = UnitDays(["a", "b", "c"])
        part.add(pairs[0][k::3], pairs[1][k::3])
        parts += part
    for counted in (whole, parts):
        assert len(counted.pairs()[0]) == 48  # 16 whole units of 3 days
        assert counted.highest == np.sort(hashes)[16] - 1
        assert counted.units_by_day(counted.highest) == {"a": 16, "b": 16, "c": 16}


# -- verdicts ---------------------------------------------------------------------------------------------------------


def flat(rows: int, positives: int, first: int = 0, reward: float = 1.0, units: int | None = None) -> pa.Table:
    click = np.zeros(rows)
    click[:positives] = reward
    return pa.table({"user": first + np.arange(rows) % (units or rows), "click": click})


@pytest.mark.parametrize(
    ("control", "treatment", "verdict", "reason"),
    [
        (flat(1000, 100), flat(1000, 200, 5000), "positive", None),
        (flat(1000, 200), flat(1000, 100, 5000), "negative", None),
        (flat(1000, 100), flat(1000, 101, 5000), "neutral", None),
        (flat(1000, 100), flat(1000, 29, 5000), "insufficient", "only 29.0 effective positives in the treatment"),
        (flat(1000, 0), flat(1000, 200, 5000), "insufficient", "only 0.0 effective positives in the control"),
        (flat(1000, 0), flat(1000, 0, 5000), "insufficient", "no row has a reward"),
        (flat(1000, 100), flat(1000, 200, 5000, units=4), "insufficient", "only 4 units in the treatment"),
        (flat(1000, 100, units=1), flat(1000, 200, 5000), "insufficient", "only 1 unit in the control"),
        (flat(0, 0), flat(1000, 200, 5000), "insufficient", "the control's log is empty"),
        (flat(1000, 100), flat(0, 0, 5000), "insufficient", "the treatment's log is empty"),
        (flat(0, 0), flat(0, 0), "insufficient", "the control's log is empty"),
    ],
)
@pytest.mark.parametrize("interval", ["bootstrap", "delta"])
def test_verdicts(control: pa.Table, treatment: pa.Table, verdict: str, reason: str | None, interval: str) -> None:
    result = online(interval=interval, n_resamples=200).run(control, treatment)
    e = answer(result)
    assert e.verdict == result.metrics["click"].verdict == verdict
    assert bool(reason is None or any(reason in r for r in e.reasons)), e.reasons
    jsonschema.validate(result.to_dict(), SCHEMA)
    json.loads(result.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert max(map(len, str(result).splitlines())) <= 80


def test_result_has_the_offline_shape(two: Any) -> None:
    document = online(rewards=("click", "revenue"), split=(0.4, 0.6)).run(*(pa.table(part) for part in two)).to_dict()
    jsonschema.validate(document, SCHEMA)
    assert document["log"]["units"] == 300
    assert document["log"]["treatment"]["units"] == 340
    assert document["log"]["treatment"]["positives"]["click"] == int(two[1]["click"].sum())
    assert document["settings"]["online"] == {"split": [0.4, 0.6]}
    assert list(document["metrics"]) == ["click", "revenue"]
    assert list(document["metrics"]["click"]["estimates"]) == ["online"]
    assert document["metrics"]["click"]["headline"] == "online"


def test_an_offline_result_has_no_online_lines() -> None:
    table = pa.table({"click": [1, 0] * 20, "p": [0.5] * 40})
    logged = ft.Logged(prob="p")
    offline = ft.OfflineTest(log=ft.LogColumns(rewards=["click"]), control=logged, treatment=logged, estimators=["cis"])
    assert "sample ratio" not in str(offline.run(table))


# -- the command line and its bad input -------------------------------------------------------------------------------

SETTINGS = """\
[log]
rewards = ["click"]
unit = "user"

[analysis]
n_resamples = 100
"""
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `foretest online` in this process, in a folder with settings and two logs."""
    monkeypatch.chdir(tmp_path)
    Path("test.toml").write_text(SETTINGS, encoding="utf-8")
    pq.write_table(flat(1000, 100), "control.parquet")
    pq.write_table(flat(1000, 200, 5000), "treatment.parquet")

    def run(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["foretest", "online", *args])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        said = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return stop.value.code, said.out, said.err

    return run


BOTH = ("control.parquet", "treatment.parquet", "-c", "test.toml")


def test_command(command: Command) -> None:
    code, out, err = command(*BOTH, "-o", "out")
    assert (code, err) == (0, "")
    assert "sample ratio" in out
    assert "positive" in out
    assert "50.0 : 50.0 % of units, designed 50 : 50 (p = 1) as designed" in out
    assert out.rstrip().endswith("Written: out/result.json, out/report.html")
    jsonschema.validate(json.loads(Path("out/result.json").read_text(encoding="utf-8")), SCHEMA)
    assert max(map(len, out.splitlines())) <= 80


def test_command_json_options_and_exit_codes(command: Command) -> None:
    code, out, _ = command(*BOTH, "--json", "--interval", "delta", "--confidence-level", "0.99", "--seed", "3")
    analysis = json.loads(out)["settings"]["analysis"]
    assert code == 0
    assert (analysis["interval"], analysis["confidence_level"], analysis["seed"]) == ("delta", 0.99, 3)
    assert analysis["n_resamples"] == 100
    swapped = ("treatment.parquet", "control.parquet", "-c", "test.toml", "--fail-on", "negative")
    assert command(*swapped)[0] == 3
    assert command(*BOTH, "--fail-on", "negative")[0] == 0


def test_arms_may_be_folders_and_globs(command: Command) -> None:
    Path("t").mkdir()
    table = pq.read_table("treatment.parquet")
    pq.write_table(table.slice(0, 300), "t/1.parquet")
    pq.write_table(table.slice(300), "t/2.parquet")
    whole = json.loads(command(*BOTH, "--json")[1])
    for treatment in ("t", "t/*.parquet"):
        parts = json.loads(command("control.parquet", treatment, "-c", "test.toml", "--json")[1])
        assert parts["log"] == whole["log"]
        assert parts["metrics"]["click"]["estimates"]["online"]["effect_size_ci_lower"] == pytest.approx(
            whole["metrics"]["click"]["estimates"]["online"]["effect_size_ci_lower"], rel=1e-9
        )


def test_policies_in_the_settings_are_not_asked(command: Command) -> None:
    """The file of an offline test serves: its policies, estimators and features are left aside."""
    more = (
        SETTINGS.replace('unit = "user"', 'unit = "user"\nranking = "shown"\nid = "key"\nfeatures = ["age"]')
        + 'interval = "bernstein"\nestimators = ["cis"]\nr_max = 1.0\nvalue = "v"\n'
        '[control]\npolicy = "nowhere:Nothing"\n[treatment]\npolicy = "plackett-luce"\nscores = "s"\n'
        "[online]\nsplit = [0.5, 0.5]\n"
    )
    Path("test.toml").write_text(more, encoding="utf-8")
    code, out, err = command(*BOTH, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["settings"]["analysis"]["interval"] == "delta"
    assert 'interval = "bernstein" is for offline tests' in json.loads(out)["notes"][0]


def broken(**columns: Any) -> pa.Table:
    table = {"user": np.arange(5000, 6000), "click": np.arange(1000) % 5 == 0, **columns}
    return pa.table({name: column for name, column in table.items() if column is not None})


def with_values(*places: tuple[int, Any]) -> list[Any]:
    values: list[Any] = [0.0] * 1000
    for place, value in places:
        values[place] = value
    return values


BAD_LOGS: dict[str, tuple[pa.Table, str]] = {
    "no reward column": (
        broken(click=None),
        "the treatment's log: treatment.parquet: no column 'click'. Expected a number or bool column (a reward); the"
        " log has: user.",
    ),
    "no unit column": (
        broken(user=None, uses=np.arange(1000)),
        "the treatment's log: treatment.parquet: no column 'user'. Did you mean 'uses'? Expected an integer or string"
        " column (the unit); the log has: click, uses.",
    ),
    "rewards are text": (
        broken(click=["1"] * 1000),
        "the treatment's log: treatment.parquet: column 'click' is string, expected a number or bool column (a"
        " reward). Convert it, or name another column.",
    ),
    "units are floats": (
        broken(user=np.arange(1000.0)),
        "the treatment's log: treatment.parquet: column 'user' is double, expected an integer or string column (the"
        " unit). Convert it, or name another column.",
    ),
    "units of another type": (
        broken(user=[str(k) for k in range(1000)]),
        "the treatment's log: treatment.parquet: column 'user' is string, but int64 in the control's,"
        " control.parquet: it must be of one type in both. Convert one of them.",
    ),
    "null rewards": (
        broken(click=with_values((7, None), (9, None))),
        "the treatment's log: treatment.parquet: column 'click', row 7 (the first row is 0): the value is null; 2 rows"
        " have this fault. Every row needs one: fill it, or leave the row out.",
    ),
    "negative reward": (
        broken(click=with_values((12, -2.5))),
        "the treatment's log: treatment.parquet: column 'click', row 12 (the first row is 0): the reward is negative"
        " (-2.5); no other row has this fault. Rewards must be 0 or more: split gains and losses into two metrics.",
    ),
    "NaN reward": (
        broken(click=with_values((3, float("nan")))),
        "the treatment's log: treatment.parquet: column 'click', row 3 (the first row is 0): the reward is NaN; no"
        " other row has this fault. Every row needs a finite number: mend it, or leave the row out.",
    ),
    "units in both arms": (
        broken(user=np.arange(880, 1880)),
        "120 units are in both arms (column 'user'; the control has 1,000, the treatment 1,000): a unit must see one"
        " policy only. Leave such units out of both logs.",
    ),
    "one unit in both arms": (
        broken(user=np.arange(999, 1999)),
        "1 unit is in both arms (column 'user'; the control has 1,000, the treatment 1,000): a unit must see one"
        " policy only. Leave such units out of both logs.",
    ),
}  # fmt: skip


def refused(said: tuple[int, str, str], message: str) -> None:
    code, out, err = said
    assert err == f"foretest: {message}\n"
    assert (code, out) == (2, "")
    assert not Path("out").exists()


@pytest.mark.parametrize("kind", BAD_LOGS)
def test_bad_logs(kind: str, command: Command) -> None:
    table, message = BAD_LOGS[kind]
    pq.write_table(table, "treatment.parquet", row_group_size=300)
    refused(command(*BOTH, "-o", "out"), message)


def test_the_control_s_faults_are_named_too(command: Command) -> None:
    pq.write_table(broken(click=with_values((7, None))), "control.parquet")
    refused(
        command(*BOTH, "-o", "out"),
        "the control's log: control.parquet: column 'click', row 7 (the first row is 0): the value is null; no"
        " other row has this fault. Every row needs one: fill it, or leave the row out.",
    )


def test_faults_of_a_stream_are_told_too() -> None:
    """A stream passes once: its first fault is found in the batches at hand and those to come."""
    table = broken(click=with_values((412, -1.0), (700, -3.0)))
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=100))
    expected = r"^the treatment's log: the stream: column 'click', row 412 .* negative \(-1\); 2 rows have this fault"
    with pytest.raises(ft.BadInput, match=expected):
        online().run(flat(100, 10), stream)


def test_progress_counts_the_rows_of_both_arms(two: Any) -> None:
    seen: dict[str, int] = {}

    def progress(stage: str, total: int | None, rows: int) -> None:
        assert total == len(two[stage == "treatment"]["user"])
        seen[stage] = seen.get(stage, 0) + rows

    online().run(*(pa.table(part) for part in two), progress=progress, batch_rows=100)
    assert seen == {"control": len(two[0]["user"]), "treatment": len(two[1]["user"])}


def test_names_are_text_and_no_markup() -> None:
    tables = [flat(100, 40).rename_columns(["[red]user", "[b]click"]), flat(100, 50, 500)]
    tables[1] = tables[1].rename_columns(["[red]user", "[b]click"])
    shown = str(online("[red]user", ("[b]click",)).run(*tables))
    assert "100 units ([red]user), 40 with [b]click" in shown


def test_the_same_log_twice(command: Command) -> None:
    refused(
        command("control.parquet", "./control.parquet", "-c", "test.toml", "-o", "out"),
        "control.parquet: this file is in the control's log and in the treatment's. Leave one out.",
    )
    table = flat(100, 10)
    with pytest.raises(ft.BadInput, match="the same log is given as control and as treatment"):
        online(None).run(table, table)


def test_a_missing_log(command: Command) -> None:
    refused(
        command("control.parquet", "treatments.parquet", "-c", "test.toml", "-o", "out"),
        "the treatment's log: treatments.parquet: no such file or folder. Did you mean 'treatment.parquet'?",
    )


def test_only_some_logs_given(command: Command) -> None:
    assert command("control.parquet", "-c", "test.toml")[0] == 2
    code, _, err = command("control.parquet", "treatment.parquet", "more.parquet", "-c", "test.toml")
    assert (code, "unexpected argument 'more.parquet'" in err) == (2, True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("[log]\nunit = 'user'\n", "[log] rewards is missing: name the reward columns, as in rewards = [\"click\"]."),
        (SETTINGS + "[online]\nsplit = [0.5, 0.6]\n",
         "[online] split = [0.5, 0.6]: expected two shares that sum to 1, as in [0.5, 0.5]."),
        (SETTINGS + "[online]\nshare = 1\n", "[online] has an unknown key 'share'. Known: split."),
        (SETTINGS + "[offline]\n", "the settings file has an unknown key 'offline'. Did you mean 'online'?"
                                   " Known: log, control, treatment, metrics, analysis, online."),
        ("", "the table [log] is missing: it names the columns of the log, as in rewards = [\"click\"]."),
    ],
)  # fmt: skip
def test_bad_settings(settings: str, message: str, command: Command) -> None:
    Path("test.toml").write_text(settings, encoding="utf-8")
    refused(command(*BOTH, "-o", "out"), f"test.toml: {message}")


def test_bad_options(command: Command) -> None:
    refused(
        command(*BOTH, "-o", "out", "--interval", "bernstein"),
        'on the command line: interval = "bernstein" is not for online tests. Known: bootstrap, delta.',
    )
    refused(
        command(*BOTH, "-o", "out", "--confidence-level", "95"),
        "on the command line: confidence_level = 95.0: expected a number above 0 and below 1. For 95.0 % write 0.95.",
    )


def test_bad_dates(command: Command) -> None:
    Path("test.toml").write_text(SETTINGS.replace("[log]", '[log]\ndate = "day"'), encoding="utf-8")
    code, _, err = command(*BOTH)
    assert (code, "control.parquet: no column 'day'" in err) == (2, True)
    day = pa.array(["2026-01-01"] * 1000)
    pq.write_table(pq.read_table("control.parquet").append_column("day", day), "control.parquet")
    pq.write_table(broken(day=with_values()), "treatment.parquet")
    code, _, err = command(*BOTH)
    expected = "column 'day' is double, expected a date, timestamp, string or integer column (the day)"
    assert (code, expected in err) == (2, True)
    pq.write_table(broken(day=["2026-01-01", None] * 500), "treatment.parquet")
    code, _, err = command(*BOTH)
    assert (code, "column 'day', row 1 (the first row is 0): the value is null; 500 rows" in err) == (2, True)
    pq.write_table(broken(day=np.arange(1000) + 10**9), "treatment.parquet")
    assert command(*BOTH)[0] == 0
    pq.write_table(pa.concat_tables([broken(day=np.arange(1000) + k) for k in (0, 10**9)]), "treatment.parquet")
    code, _, err = command(*BOTH)
    assert (code, "the treatment's log: the date column holds more than 1,000 days" in err) == (2, True)


def test_contamination_beyond_the_limit_is_of_the_smallest_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arms_module, "LIMIT", 1000)
    with pytest.raises(
        ft.BadInput, match=r"^\d+ units are in both arms \(column 'user'\), of the .* units of smallest"
    ):
        online().run(flat(8000, 100), flat(8000, 100, 4000))
    online().run(flat(8000, 100), flat(8000, 100, 8000))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"cap": 3.0}, "the online test has no setting 'cap'."),
        ({"buckts": 3}, "the online test has no setting 'buckts'. Did you mean 'buckets'?"),
        ({"interval": "bernstein"}, "is not for online tests. Known: bootstrap, delta."),
        ({"split": (1, 1)}, r"\[online\] split = \(1, 1\): expected two shares"),
        ({"seed": -1}, "seed = -1: expected a whole number of at least 0."),
    ],
)
def test_bad_keywords(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ft.BadInput, match=message):
        online(**keywords)


def test_positions_are_no_units_to_share() -> None:
    """Without a unit column the rows of both arms have the same positions, and that is no contamination."""
    test = online(None)
    arms = test.arms(flat(100, 10), flat(100, 12))
    assert isinstance(arms, Arms)
    assert sample_ratio(arms, (0.5, 0.5))["units"] == [100, 100]


def test_the_public_name() -> None:
    assert ft.OnlineTest is OnlineTest
