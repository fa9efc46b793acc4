"""The study of few rewards in small: the same world, the same seeds, fewer logs."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import small_samples as study

import foretest as ft

pytestmark = pytest.mark.slow

LOGS = 150


@pytest.mark.parametrize("cell", [study.Cell(3, 0.02), study.Cell(3, 0.30, 1.2), study.Cell(100, 0.02)], ids=str)
def test_all_intervals_hold_the_limit(cell: study.Cell) -> None:
    found = study.study(cell, LOGS)
    betting, delta = found.coverage["betting"], found.coverage["delta"]
    assert betting.held >= study.LEVEL - 2.0 * betting.std_error
    assert betting.width > delta.width
    if cell.positives >= 100:
        for name in ("bootstrap", "delta"):
            assert abs(found.coverage[name].held - study.LEVEL) <= 4.0 * delta.std_error
    else:  # heavy rows were not drawn, but noise is that of all that could have been
        assert delta.held >= study.LEVEL - 4.0 * delta.std_error
    band, plain = found.truth["band"], found.truth["bootstrap"]
    assert band.held >= study.LEVEL - 0.02 - 2.0 * band.std_error
    assert band.width > plain.width
    # what is predicted is what was asked for; of few rewards the log itself shows more
    assert found.predicted == pytest.approx(cell.positives, rel=0.25)
    if cell.positives < 100:
        assert found.own > found.predicted


@pytest.mark.parametrize("gamma", [0.9, 1.0, 1.2])
def test_the_unsupported_part_earns_as_said(gamma: float) -> None:
    world, found = study.make_world(), study.rewards(0.02, gamma)
    _, q = study.adaptive_cap(world.treatment, world.control, study.BOUND)
    np.testing.assert_allclose((world.control * found.weight).sum(axis=1), 1.0, rtol=1e-12)
    kept = world.control * found.kept
    binds = q < 1.0 - 1e-9
    beyond = ((world.treatment - kept) * found.click).sum(axis=1)[binds] / (1.0 - q[binds])
    inside = (kept * found.click).sum(axis=1)[binds] / q[binds]
    np.testing.assert_allclose(beyond, gamma * inside, rtol=1e-7)
    assert (world.share[:, None] * world.control * found.click).sum() == pytest.approx(0.02, rel=1e-12)
    if gamma == 1.0:
        assert found.limit == pytest.approx(found.truth, rel=1e-9)


def test_the_study_reports_what_run_gives() -> None:
    cell = study.Cell(30, 0.02)
    rng = np.random.default_rng(study.seeds(cell, 1)[0])
    log = study.log_of(cell, rng)
    found = study.answer(cell, log)
    table = study.table(log, rng)
    for interval, limits in found.intervals.items():
        estimate = ft.OfflineTest(
            log=ft.LogColumns(rewards=["click"], id="display", ranking="ranking"),
            control=ft.PlackettLuce("control"), treatment=ft.PlackettLuce("treatment"),
            estimators=[study.ESTIMATOR], interval=interval, confidence_level=study.LEVEL,
        ).run(table).metrics["click"].estimates["point-ncis-adaptive"]  # fmt: skip
        assert estimate.effect_size_ci_lower == pytest.approx(limits.lower, abs=1e-10)
        assert estimate.effect_size_ci_upper == pytest.approx(limits.upper, abs=1e-10)
        assert estimate.predicted_effective_positives == pytest.approx(found.predicted, rel=1e-9)
        assert estimate.effective_positives == pytest.approx(found.own, rel=1e-9)
        if interval == "bootstrap":
            assert estimate.sensitivity["ci_lower"] == pytest.approx(found.band.lower, abs=1e-10)
            assert estimate.sensitivity["ci_upper"] == pytest.approx(found.band.upper, abs=1e-10)
