"""Several treatments in one pass: each as if it were alone, then all as one family."""

from __future__ import annotations

import dataclasses
import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest import cli
from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.quantities import WEIGHTED_REWARDS
from foretest.diagnostics.audit import audit
from foretest.history.manifest import Entry
from foretest.history.run import settings_of_test
from foretest.inference.bootstrap import resample_counts
from foretest.offline.analysis import by_treatment
from foretest.offline.estimates import estimate_metrics
from foretest.offline.treatments import adjusted_verdict, compare
from foretest.weights.weightings import Capped
from tests.schemas import validate
from tests.support import SCORES, SmallLog

SCHEMA = json.loads(files("foretest").joinpath("schema/result-1.json").read_text(encoding="utf-8"))
LOG = SmallLog(rows=1200, units=300, seed=5)
CANDIDATES = {"a": SCORES["treatment"], "b": ft.PlackettLuce(scores="b_scores"), "same": SCORES["control"]}


def table() -> pa.Table:
    g = np.random.default_rng(1)
    other = LOG.control + 0.7 * g.normal(size=LOG.control.shape)
    return LOG.table(b_scores=pa.array(other.tolist(), pa.list_(pa.float64())))


def several(treatment: Any = CANDIDATES, **analysis: Any) -> ft.OfflineTest:
    settings = {"cap": 2.0, "weight_bound": 3.0, "strata": "stratum", "value": "v", "n_resamples": 200, **analysis}
    columns = ft.LogColumns(rewards=["click", "revenue"], unit="user", ranking="ranking", id="id")
    return ft.OfflineTest(log=columns, control=SCORES["control"], treatment=treatment, **settings)


@pytest.fixture(scope="module")
def result() -> ft.Result:
    return several().run(table())


def test_json_validates_and_names_them_all(result: ft.Result) -> None:
    document = json.loads(result.to_json())
    validate(document, SCHEMA)
    assert [t["name"] for t in document["treatments"]] == ["a", "b", "same"]
    assert sorted(t["rank"] for t in document["treatments"]) == [1, 2, 3]
    for name, metric in document["metrics"].items():
        first = document["treatments"][0]["metrics"][name]
        assert first == {**metric, "cap_path": None}
    assert [t["name"] for t in document["settings"]["treatment"]] == ["a", "b", "same"]
    validate(json.loads(several().run(table().slice(0, 0)).to_json()), SCHEMA)
    rows = result.to_dicts()
    assert len(rows) == 3 * 2 * 8
    assert {row["treatment_name"] for row in rows} == set(CANDIDATES)
    assert "treatments" not in several(CANDIDATES["a"]).run(table()).to_dict()


def test_ranks_follow_the_headline_of_the_first_metric(result: ft.Result) -> None:
    uplifts = {t.name: t.metrics["click"].estimates["point-ncis-adaptive"].effect_size for t in result.treatments}
    assert [t.name for t in sorted(result.treatments, key=lambda t: t.rank)] == sorted(
        uplifts, key=lambda name: -uplifts[name]
    )


def bootstrap_by_hand(aggregates: Aggregates, metric: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Uplifts of CIS, their standard errors, and |Δ* − Δ| of every resample, in plain NumPy from bucket sums."""
    counts = resample_counts(1024, 200, 0)
    found = []
    for held in (aggregates, *aggregates.treatments.values()):
        account = held.weighted(Capped(2.0), metric)
        d = account.get(WEIGHTED_REWARDS) * 2.0 ** (account.exponent or 0) - held.r[metric]
        delta = d.sum() / held.n.sum()
        terms = d - delta * held.n
        units = min(1024, held.n_units)
        error = np.sqrt(units / (units - 1) * (terms**2).sum()) / held.n.sum()
        found.append((delta, error, np.abs((counts @ d) / (counts @ held.n) - delta)))
    deltas, errors, deviations = zip(*found, strict=True)
    return np.array(deltas), np.array(errors), np.column_stack(deviations)


def test_simultaneous_limits_against_numpy(result: ft.Result) -> None:
    aggregates, _, _ = several().aggregate(table())
    for m, metric in enumerate(("click", "revenue")):
        deltas, errors, deviations = bootstrap_by_hand(aggregates, m)
        q = np.quantile((deviations[:, :2] / errors[:2]).max(axis=1), 0.9)
        for i, treatment in enumerate(result.treatments[:2]):
            adjusted = treatment.metrics[metric].estimates["cis"].adjusted
            assert adjusted is not None
            assert adjusted.simultaneous_ci_lower == pytest.approx(deltas[i] - q * errors[i], rel=1e-9)
            assert adjusted.simultaneous_ci_upper == pytest.approx(deltas[i] + q * errors[i], rel=1e-9)


def test_the_control_itself_as_a_treatment(result: ft.Result) -> None:
    for metric in result.treatments[2].metrics.values():
        control = metric.control.value
        assert control is not None
        for e in metric.estimates.values():
            assert e.adjusted is not None
            assert e.adjusted.p_adjusted == 1.0
            assert abs(e.adjusted.simultaneous_ci_upper or 0.0) <= 1e-12 * control


def test_identical_treatments_have_the_width_of_one() -> None:
    """Two names for one policy ask one question: the largest of both deviations is that of either."""
    twice = several({"a": CANDIDATES["a"], "again": ft.PlackettLuce(scores="treatment_scores")})
    aggregates, notes, r_max = twice.aggregate(table())
    found = twice.analyse(aggregates, notes, r_max)
    deltas, errors, deviations = bootstrap_by_hand(aggregates, 0)
    width = 2.0 * np.quantile(deviations[:, 0], 0.9)
    for treatment in found.treatments:
        adjusted = treatment.metrics["click"].estimates["cis"].adjusted
        assert adjusted is not None
        assert adjusted.simultaneous_ci_lower is not None
        assert adjusted.simultaneous_ci_upper is not None
        assert adjusted.simultaneous_ci_upper - adjusted.simultaneous_ci_lower == pytest.approx(width, rel=1e-9)
    assert deltas[0] == deltas[1]
    assert errors[0] == errors[1]


@pytest.mark.parametrize("interval", ["delta", "betting", "bernstein"])
def test_other_intervals(interval: str) -> None:
    asked: dict[str, Any] = {"interval": interval, "r_max": {"click": 1.0, "revenue": 100.0}}
    test = several(estimators=["cis", "point-ncis-adaptive"], **asked)
    found = test.run(table())
    validate(found.to_dict(), SCHEMA)
    # at the level that Bonferroni's bound asks for, or for the largest of several: wider, never narrower
    for treatment in found.treatments:
        for metric in treatment.metrics.values():
            for e in metric.estimates.values():
                a = e.adjusted
                assert a is not None
                assert (a.p_value is None) == (interval != "delta")
                if e.std_error and e.std_error > 1e-12:
                    assert a.simultaneous_ci_lower < e.effect_size_ci_lower  # type: ignore[operator]
                    assert a.simultaneous_ci_upper > e.effect_size_ci_upper  # type: ignore[operator]
    if interval == "betting":
        strict = several(estimators=["cis", "point-ncis-adaptive"], confidence_level=1 - 0.1 / 3, **asked).run(table())
        for mine, alone in zip(found.treatments, strict.treatments, strict=True):
            held, wanted = (t.metrics["click"].estimates["point-ncis-adaptive"] for t in (mine, alone))
            assert held.adjusted is not None
            assert held.adjusted.simultaneous_ci_lower == pytest.approx(wanted.effect_size_ci_lower, rel=1e-9)


def null_log(seed: int, rows: int = 400) -> pa.Table:
    """Four actions shown alike, rewards that no action changes: every treatment's true uplift is 0."""
    g = np.random.default_rng(seed)
    action = g.integers(0, 4, rows)
    policies = np.array([[0.55, 0.15, 0.15, 0.15], [0.1, 0.2, 0.3, 0.4], [0.4, 0.4, 0.1, 0.1], [0.5, 0.2, 0.2, 0.1]])
    logged = {name: policies[j, action] for j, name in enumerate("abcd")}
    return pa.table({"click": (g.random(rows) < 0.3).astype(float), "p": np.full(rows, 0.25), **logged})


@pytest.mark.slow
@pytest.mark.parametrize("interval", ["bootstrap", "delta"])
def test_the_family_is_covered_on_null_logs(interval: str) -> None:
    """With 200 logs the standard error of a coverage of 90 % is 2.1 %, with 100 it is 3 %."""
    logs = 200 if interval == "bootstrap" else 100
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="p"),
        treatment={name: ft.Logged(prob=name) for name in "abcd"}, estimators=["cis"],
        interval=interval, n_resamples=300, buckets=200,
    )  # fmt: skip
    counts = resample_counts(200, 300, 0) if interval == "bootstrap" else None
    covered = wrong = loose = 0
    for seed in range(logs):
        each = by_treatment(test.aggregate(null_log(seed), threads=1)[0])
        alone = {
            name: estimate_metrics(held, held.plan.estimators, counts, {}, audit(held), None)[0]
            for name, held in each.items()
        }
        leads = [metrics["click"].estimates["cis"] for metrics in compare(each, alone, counts, {}).values()]
        families = [e.adjusted for e in leads if e.adjusted is not None]
        covered += all(a.simultaneous_ci_lower <= 0.0 <= a.simultaneous_ci_upper for a in families)  # type: ignore[operator]
        wrong += any(a.verdict_adjusted in ("positive", "negative") for a in families)
        loose += any(e.verdict in ("positive", "negative") for e in leads)
    error = np.sqrt(0.9 * 0.1 / logs)
    assert covered / logs >= 0.9 - 2.0 * error
    assert wrong / logs <= 0.1 + 2.0 * error
    assert loose > 1.5 * wrong  # what asking four times without adjustment costs


def test_holm_takes_verdicts_away_and_gives_none() -> None:
    for verdict in ("positive", "negative", "neutral", "insufficient"):
        for p in (0.0, 0.05, 0.2, float("nan")):
            said = adjusted_verdict(verdict, p, 0.1)
            assert said == verdict or (said == "neutral" and not p <= 0.1)


# -- every way the sums travel ----------------------------------------------------------------------------------------


def test_saved_aggregates_are_of_the_treatments_that_they_name(tmp_path: Path) -> None:
    keys = ["cis", "ncis", "point-ncis-adaptive"]
    several(estimators=keys).save_aggregates(table(), tmp_path / "a.parquet")
    with pytest.raises(ft.BadInput, match=r"was made with \[treatment a\] policy"):
        several(CANDIDATES["a"], estimators=keys).run(str(tmp_path / "a.parquet"))


# -- what may go wrong ------------------------------------------------------------------------------------------------

SETTINGS = """\
[log]
rewards = ["click"]
unit = "user"
[control]
policy = "logged"
prob = "p"
[[treatment]]
{first}
policy = "logged"
prob = "t"
[[treatment]]
{second}
policy = "logged"
prob = "u"
"""


def test_a_settings_file_names_its_treatments(tmp_path: Path) -> None:
    path = tmp_path / "test.toml"
    path.write_text(SETTINGS.format(first='name = "old"', second='name = "new"'))
    settings = ft.OfflineTest.from_toml(path).settings
    assert list(settings.treatments) == ["old", "new"]
    assert settings.treatment is settings.treatments["old"]
    one = SETTINGS.format(first='name = "old"', second="").rpartition("[[treatment]]")[0]
    path.write_text(one.replace("[[treatment]]", "[treatment]"))
    assert list(ft.OfflineTest.from_toml(path).settings.treatments) == ["old"]
    path.write_text(one.replace("[[treatment]]", "[treatment]").replace('name = "old"', ""))
    assert list(ft.OfflineTest.from_toml(path).settings.treatments) == ["treatment"]


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ('name = "old"', "", r"\[\[treatment\]\] number 2 has no name"),
        ('name = "old"', 'name = "old"', "two .* are named 'old'"),
        ('name = "old"', "name = 3", "name = 3: expected text"),
        (
            'name = "old"',
            'name = "new"\nscore = "x"',
            r"\[\[treatment\]\] 'new' policy = \"logged\" has an unknown key",
        ),
    ],
)
def test_bad_tables_are_told_in_a_sentence(tmp_path: Path, first: str, second: str, said: str) -> None:
    path = tmp_path / "test.toml"
    path.write_text(SETTINGS.format(first=first, second=second))
    with pytest.raises(ft.BadInput, match=said):
        ft.OfflineTest.from_toml(path)


def test_faults_name_the_treatment() -> None:
    with pytest.raises(ft.BadInput, match=r"no column 'b_scores'.*scores of the treatment 'b'"):
        several().run(LOG.table())
    bad = table().to_pydict()
    bad["b_scores"][7][0] = float("nan")
    with pytest.raises(ft.BadInput, match=r"column 'b_scores', row 7 .*a score is NaN \(the treatment 'b'\); no other"):
        several().run(pa.table(bad))
    with pytest.raises(
        ft.BadInput, match="point-ncis cannot run: with the treatment 'logged', the treatment is a logged"
    ):
        several({"a": CANDIDATES["a"], "logged": ft.Logged(prob="v")}, estimators=["point-ncis"]).run(table())
    with pytest.raises(ft.BadInput, match="treatment is empty"):
        several({})
    with pytest.raises(ft.BadInput, match="the treatment 'b' is the class PlackettLuce"):
        several({"a": CANDIDATES["a"], "b": ft.PlackettLuce})


def test_estimators_run_for_all_treatments_or_for_none() -> None:
    log = table().append_column("prob", pa.array(np.full(LOG.rows, 0.05)))
    found = several({"a": CANDIDATES["a"], "logged": ft.Logged(prob="prob")}).run(log)
    assert [set(t.metrics["click"].estimates) for t in found.treatments] == [
        {"is", "nis", "cis", "ncis", "piece-ncis", "dr"}
    ] * 2
    assert any("point-ncis was left out: with the treatment 'logged'" in note for note in found.notes)


def test_the_table_ranks_them_in_100_columns(result: ft.Result) -> None:
    text = str(result)
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "3 treatments, ranked by their uplift in click" in text
    first = next(t.name for t in result.treatments if t.rank == 1)
    assert f"1.  {first}" in text


def test_fail_on_looks_at_every_treatment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    g = np.random.default_rng(0)
    click = (g.random(4000) < 0.5).astype(float)
    log = pa.table({"click": click, "user": np.arange(4000), "p": np.full(4000, 0.5),
                    "t": np.where(click > 0, 0.7, 0.3), "u": np.where(click > 0, 0.3, 0.7)})  # fmt: skip
    path, settings = tmp_path / "log.parquet", tmp_path / "test.toml"
    pq.write_table(log, path)
    settings.write_text(SETTINGS.format(first='name = "good"', second='name = "bad"'))
    for verdict, wanted in (("negative", 3), ("neutral", 0)):  # the second's is negative
        monkeypatch.setattr(sys, "argv", ["foretest", "run", str(path), "-c", str(settings), "--fail-on", verdict])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert stop.value.code == wanted
    assert "1.  good" in capsys.readouterr().out
    with pytest.raises(ft.BadInput, match="a test of a history has one"):
        settings_of_test(Entry("x", path, path, settings), {})


def test_calibrated_estimates_are_left_as_they_are() -> None:
    """They stand beside the plain ones, with an error that is not of this log alone."""
    test = several(estimators=["point-ncis-adaptive"])
    aggregates, _, _ = test.aggregate(table())
    each = by_treatment(aggregates)
    counts = resample_counts(1024, 50, 0)
    alone = {
        name: estimate_metrics(held, held.plan.estimators, counts, {}, audit(held), None)[0]
        for name, held in each.items()
    }
    for metrics in alone.values():
        for name, metric in metrics.items():
            plain = metric.estimates["point-ncis-adaptive"]
            more = {**metric.estimates, "point-ncis-calibrated": plain}
            metrics[name] = dataclasses.replace(metric, estimates=more, headline="point-ncis-adaptive")
    for name, metrics in compare(each, alone, counts, {}).items():
        for metric, found in metrics.items():
            assert found.estimates["point-ncis-calibrated"] is alone[name][metric].estimates["point-ncis-adaptive"]
            assert found.estimates["point-ncis-adaptive"].adjusted is not None
