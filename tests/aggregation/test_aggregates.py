"""The fold and the merge: how a log is cut changes nothing, and memory is bounded."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation import fold_start
from foretest.aggregation.choose_estimators import choose_estimators
from foretest.aggregation.fold import fold
from foretest.offline.prepare_and_fold import offline_reader
from foretest.sources import ArrowTable
from tests.support import SmallLog, build_test
from tests.test_old_files import differences

LOG = SmallLog(rows=500, units=150, seed=11)


def cut(test: ft.OfflineTest, table: pa.Table, size: int) -> list[Any]:
    """The table's batches as checked rows, with the plan that folds them."""
    plan, _ = choose_estimators(test.settings)
    reader = offline_reader(plan)
    [part] = ArrowTable(table).parts(reader.columns, size)
    return [(plan, reader.read(chunk)) for chunk in part()]


def test_small_limits_keep_the_smallest_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold_start, "MOST_REWARDED", 40)
    monkeypatch.setattr(fold_start, "SAMPLED_DISPLAYS", 30)
    test = build_test(["cis", "point-ncis-adaptive"])
    samples = []
    for size, order in ((10_000, None), (7, None), (13, np.random.default_rng(0).permutation(LOG.rows))):
        state = fold([rows for _, rows in cut(test, LOG.table(order), size)], choose_estimators(test.settings)[0])
        rewarded, sample = state.rewarded.columns(), state.sample.columns()
        assert len(rewarded["unit"]) == 40
        assert len(sample["unit"]) == 30
        assert state.rewarded.seen == int(LOG.click.sum())
        assert not state.rewarded.complete
        samples.append((rewarded, sample))
    for rewarded, sample in samples[1:]:
        for name, column in samples[0][0].items():
            np.testing.assert_array_equal(rewarded[name], column)
        for name, column in samples[0][1].items():
            np.testing.assert_array_equal(sample[name], column)
    assert np.array_equal(np.sort(samples[0][0]["unit"]), samples[0][0]["unit"])


def test_rewarded_rows_hold_what_later_analyses_need() -> None:
    test = build_test(["point-ncis", "point-ncis-adaptive"])
    state = fold([rows for _, rows in cut(test, LOG.table(), 10_000)], choose_estimators(test.settings)[0])
    columns, points = state.rewarded.columns(), state.plan.point_weightings
    order = np.argsort(columns["log_w"])
    rewarded = np.flatnonzero(LOG.click)
    mine = rewarded[np.argsort(LOG.log_w[rewarded])]
    np.testing.assert_allclose(columns["log_w"][order], LOG.log_w[mine], rtol=1e-10, atol=1e-12)
    for point, weights in zip(points, (LOG.weights("point-ncis", 2.0, 3.0), LOG.adaptive(3.0)), strict=True):
        np.testing.assert_allclose(np.exp(columns["log_h", point][order]), weights[mine], rtol=1e-9)
    np.testing.assert_allclose(columns["q", points[0]][order], LOG.q(2.0)[mine], rtol=1e-9)
    p, w = np.exp(LOG.log_p), np.exp(LOG.log_t - LOG.log_p)
    second = (p * np.minimum(w, 2.0) ** 2).sum(axis=1) / LOG.q(2.0) ** 2
    np.testing.assert_allclose(columns["second", points[0]][order], second[mine], rtol=1e-9)


def test_one_pass_serves_all_metrics_and_estimators() -> None:
    together = build_test(metrics=("click", "revenue")).run(LOG.table())
    for metric in ("click", "revenue"):
        for key in ("is", "ncis", "piece-ncis", "point-ncis-adaptive"):
            alone = build_test([key], metrics=(metric,)).run(LOG.table()).metrics[metric].estimates[key]
            assert not differences(
                dataclasses.asdict(alone), dataclasses.asdict(together.metrics[metric].estimates[key])
            )


def test_adding_a_treatment_column_changes_no_draw() -> None:
    """The display key is made of unit, ranking and control columns."""
    plain = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking")
    test = ft.OfflineTest(
        log=plain, control=ft.PlackettLuce(scores="control_scores"),
        treatment=ft.PlackettLuce(scores="treatment_scores"),
        estimators=["point-ncis"], normaliser="lahiri", draws=4, cap=2.0,
    )  # fmt: skip
    other = LOG.table().append_column("b", LOG.table()["treatment_scores"])
    twin = ft.OfflineTest(
        log=plain, control=ft.PlackettLuce(scores="control_scores"), treatment=ft.PlackettLuce(scores="b"),
        estimators=["point-ncis"], normaliser="lahiri", draws=4, cap=2.0,
    )  # fmt: skip
    left, right = (t.run(other).metrics["click"].estimates["point-ncis"] for t in (test, twin))
    assert left == right


def test_aggregates_serve_other_levels_and_intervals() -> None:
    """What can still change after the fold is read from the test that analyses, not from the one that folded."""
    test = build_test(["cis", "point-ncis-adaptive"], interval="delta", r_max=1.0)
    folded = test.aggregate(LOG.table())
    for change in ({"confidence_level": 0.5}, {"interval": "bernstein"}, {"interval": "bootstrap", "n_resamples": 50}):
        other = test.replace(**change)
        assert other.analyse(*folded).to_dict() == other.run(LOG.table()).to_dict()
    assert test.replace(headline="cis").analyse(*folded).metrics["click"].headline == "cis"
    for change in ({"cap": 3.0}, {"estimators": ["ncis"]}):
        with pytest.raises(ft.BadInput, match="fold the log again"):
            test.replace(**change).analyse(*folded)
