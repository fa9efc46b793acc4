"""The calibrated estimate of a log against plain NumPy on its rows, and what it takes to be given."""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

import foretest as ft
from foretest.calibration.estimate import Unsupported
from foretest.calibration.file import Calibration, Learned, settings_of
from foretest.calibration.fit import Fit
from foretest.cli import main
from foretest.errors import BadInput
from tests.schemas import validate
from tests.support import SmallLog, apart, build_test

LABEL, CALIBRATED = "point-ncis-adaptive", "point-ncis-calibrated"
BOUND = 3.0
TEST = build_test(["ncis", LABEL], metrics=("click", "revenue"), interval="delta", n_resamples=2)
FIT = Fit(1.25, 0.002, 0.01, 25)


@pytest.fixture(scope="module")
def log() -> SmallLog:
    """Each unit has a bucket of its own."""
    log = SmallLog(rows=1500, units=150, spread=2.0, seed=3)
    log.unit = apart(150)[log.unit]
    return log


def calibration(fit: Fit = FIT, reason: str | None = None, settings: Any = None, **more: Any) -> Calibration:
    learned = Learned(fit, BOUND, reason, "2026-01-05", "2026-08-02")
    return Calibration(settings_of(settings or TEST.settings), {"click": {LABEL: learned}, **more}, name="c.json")


def rows_of(log: SmallLog, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """d = (w̃ − 1) r and t = (w̃ − w̄) r of every row: the cap that belongs to w̃ is estimate again by bisection."""
    t, p = np.exp(log.log_t), np.exp(log.log_p)
    low, high = np.full(log.rows, -60.0), np.full(log.rows, np.log(BOUND) + 1e-12)
    for _ in range(200):
        middle = (low + high) / 2
        fits = np.exp(middle) <= BOUND * np.minimum(t, np.exp(middle)[:, None] * p).sum(axis=1)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return (log.adaptive(BOUND) - 1.0) * r, (log.adaptive(BOUND) - np.minimum(np.exp(log.log_w), np.exp(low))) * r


def by_unit(log: SmallLog, terms: np.ndarray) -> np.ndarray:
    return np.array([terms[log.unit == unit].sum() for unit in np.unique(log.unit)])


def test_the_unsupported_term_and_its_variance_are_those_of_the_rows(log: SmallLog) -> None:
    aggregates, _, _ = TEST.aggregate(log.table())
    for metric, r in enumerate((log.click, log.revenue)):
        d, t = rows_of(log, r)
        term = Unsupported.of(aggregates, aggregates.plan.estimators[1], metric)
        assert term.unsupported == pytest.approx(t.mean() / r.mean(), rel=1e-9)
        assert t.mean() / r.mean() > 0.05
        assert term.control == pytest.approx(r.mean())
        x = d.mean() / r.mean()
        for gamma in (1.0, 1.3, 0.6):
            moved = x + (gamma - 1.0) * term.unsupported
            sums = by_unit(log, (d + (gamma - 1.0) * t - moved * r) / r.mean())
            count = len(sums)
            expected = count / (count - 1) * (sums @ sums) / log.rows**2
            assert term.variance_at(gamma) == pytest.approx(expected, rel=1e-9)


def test_the_estimate_is_the_printed_formula(log: SmallLog) -> None:
    result = TEST.run(log.table(), calibration=calibration())
    metric = result.metrics["click"]
    plain, estimate = metric.estimates[LABEL], metric.estimates[CALIBRATED]
    assert list(metric.estimates) == ["ncis", LABEL, CALIBRATED]
    assert metric.headline == LABEL
    d, t = rows_of(log, log.click)
    r = log.click
    x, share = d.mean() / r.mean(), t.mean() / r.mean()
    moved = x + 0.25 * share
    sums = by_unit(log, (d + 0.25 * t - moved * r) / r.mean())
    assert plain.predicted_std_error is not None
    assert plain.std_error is not None
    of_rows = len(sums) / (len(sums) - 1) * (sums @ sums) / log.rows**2
    of_rows *= max(1.0, plain.predicted_std_error / plain.std_error) ** 2
    variance = of_rows + share**2 * (FIT.variance + FIT.tau2)
    half = stats.norm.ppf(0.95) * np.sqrt(variance)
    assert estimate.rel_effect_size == pytest.approx(moved, rel=1e-9)
    limits = estimate.rel_effect_size_ci_lower, estimate.rel_effect_size_ci_upper
    assert limits == pytest.approx((moved - half, moved + half), rel=1e-9)
    absolute = estimate.effect_size, estimate.effect_size_ci_lower, estimate.effect_size_ci_upper, estimate.std_error
    scaled = r.mean() * np.array([moved, moved - half, moved + half, np.sqrt(variance)])
    assert absolute == pytest.approx(tuple(scaled), rel=1e-9)
    assert estimate.treatment == pytest.approx(r.mean() * (1.0 + moved))
    assert estimate.verdict == ("positive" if moved - half > 0 else "negative" if moved + half < 0 else "neutral")
    assert estimate.effective_positives == plain.effective_positives
    [reason] = estimate.reasons
    assert reason.startswith("calibrated on 25 A/B tests from 2026-01-05 to 2026-08-02: ")
    assert "worth 1.25 times" in reason
    assert estimate.calibration is not None
    assert estimate.calibration["unsupported"] == pytest.approx(share)
    # nothing else moves
    alone = TEST.run(log.table())
    assert metric.estimates[LABEL] == alone.metrics["click"].estimates[LABEL]
    assert result.metrics["revenue"] == alone.metrics["revenue"]
    assert "point-ncis-calibrated is left out for revenue: the history has no fit of it." in result.notes


def test_it_stands_in_every_form_of_the_result(log: SmallLog) -> None:
    result = TEST.run(log.table(), calibration=calibration())
    document = result.to_dict()
    validate(document, json.loads((files("foretest") / "schema" / "result-1.json").read_text()))
    shown = document["metrics"]["click"]["estimates"]
    assert shown[CALIBRATED]["calibration"]["gamma"] == 1.25
    assert "calibration" not in shown[LABEL]
    assert [row["estimator"] for row in result.to_dicts()][:3] == ["ncis", LABEL, CALIBRATED]
    assert CALIBRATED in str(result)
    assert CALIBRATED in result.to_html()


def test_a_log_that_cannot_carry_normal_limits_decides_nothing(log: SmallLog) -> None:
    """Few rewards: the betting interval decides for the plain estimate, which the calibrated one does not have."""
    some = log.table().slice(0, 60)
    estimate = TEST.replace(r_max=100.0).run(some, calibration=calibration()).metrics["click"].estimates[CALIBRATED]
    assert estimate.verdict == "insufficient"
    assert "at least 30 are needed" in estimate.reasons[0]
    assert estimate.rel_effect_size is not None
    empty = TEST.run(log.table().slice(0, 0), calibration=calibration()).metrics["click"].estimates[CALIBRATED]
    assert (empty.verdict, empty.rel_effect_size, empty.std_error) == ("insufficient", None, None)


def test_a_fit_that_is_not_used_is_said(log: SmallLog) -> None:
    result = TEST.run(log.table(), calibration=calibration(Fit(1.1, 0.02, 0.0, 9), "only 9 tests"))
    assert CALIBRATED not in result.metrics["click"].estimates
    assert "point-ncis-calibrated is left out for click: only 9 tests." in result.notes


def test_what_the_calibration_is_not_for_is_refused_before_the_log_is_read(log: SmallLog, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere.parquet")
    for test, made, message in (
        (TEST.replace(weight_bound=20.0), calibration(), r"c\.json: .*analysis.weight_bound was 3 and is 20 here"),
        (TEST.replace(draws=64), calibration(), r"c\.json: .*analysis.draws was 256 and is 64 here"),
        (TEST.replace(estimators=["ncis"]), calibration(), "calibrates point-ncis-adaptive, which does not run here"),
        (build_test([LABEL], metrics=("revenue",)), calibration(), "for the metric click, and this test has revenue"),
    ):
        with pytest.raises(BadInput, match=message):
            test.run(nowhere, calibration=made)
    own = TEST.replace(estimators=[ft.AdaptivePointNCIS(weight_bound=7.0)])
    with pytest.raises(BadInput, match="weight_bound was 3 and is 7 here"):
        own.run(nowhere, calibration=calibration())


SETTINGS = """
[log]
rewards = ["click"]
unit = "user"
ranking = "ranking"
id = "id"
[control]
policy = "plackett-luce"
scores = "control_scores"
[treatment]
policy = "plackett-luce"
scores = "treatment_scores"
[analysis]
estimators = ["ncis", "point-ncis-adaptive"]
weight_bound = 3.0
n_resamples = 50
"""


def test_the_command(
    log: SmallLog, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def exit_code(*words: str) -> Any:
        monkeypatch.setattr(sys, "argv", ["foretest", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code

    pq.write_table(log.table(), tmp_path / "log.parquet")
    (tmp_path / "t.toml").write_text(SETTINGS)
    path = tmp_path / "calibration.json"
    calibration().to_json(path)
    words = ["run", str(tmp_path / "log.parquet"), "-c", str(tmp_path / "t.toml"), "--calibration", str(path)]
    assert exit_code(*words, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    expected = TEST.run(log.table(), calibration=calibration()).metrics["click"].estimates[CALIBRATED]
    estimate = document["metrics"]["click"]["estimates"][CALIBRATED]
    assert estimate["rel_effect_size"] == pytest.approx(expected.rel_effect_size, rel=1e-9)
    assert document["provenance"]["inputs"]["calibration"]["files"][0]["name"] == "calibration.json"
    assert "--calibration" in document["provenance"]["command"]
    # what cannot be used: one sentence, exit code 2, nothing written
    text = path.read_text(encoding="utf-8")
    other = json.loads(text) | {"schema": 7}
    for content, message in (
        (text[: len(text) // 2], "cut short or damaged"),
        (json.dumps(other), "written in version 7 of the format"),
        (text.replace('"analysis.draws": 256', '"analysis.draws": 64'), "analysis.draws was 64 and is 256 here"),
        ("", "cut short or damaged"),
    ):
        path.write_text(content, encoding="utf-8")
        assert exit_code(*words, "-o", str(tmp_path / "out")) == 2
        error = capsys.readouterr().err
        assert message in error
        assert "calibration.json" in error
        assert len(error.strip().splitlines()) == 1
        assert not (tmp_path / "out").exists()


def test_more_than_one_fit(log: SmallLog) -> None:
    """Each metric has its own."""
    both = calibration(revenue={LABEL: Learned(FIT._replace(gamma=0.8), BOUND, None)})
    result = TEST.run(log.table(), calibration=both)
    for name, sign in (("click", 1.0), ("revenue", -1.0)):
        estimates = result.metrics[name].estimates
        moved = estimates[CALIBRATED].rel_effect_size - estimates[LABEL].rel_effect_size  # type: ignore[operator]
        assert moved * sign > 0.0
    assert "calibrated on 25 A/B tests: " in result.metrics["revenue"].estimates[CALIBRATED].reasons[0]
