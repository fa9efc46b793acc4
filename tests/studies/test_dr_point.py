"""The study of a reward model on normalised weights, in small."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import dr_point as study

import foretest as ft
from foretest.simulate import WORLDS, simulate_log

pytestmark = pytest.mark.slow


def test_without_the_model_it_is_the_estimate_of_a_run() -> None:
    table = pa.Table.from_batches(simulate_log(WORLDS["rewards"], 3000, seed=3))
    point, dr = study.terms(table, 0).uplifts()
    result = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="display_id"),
        control=study.CONTROL, treatment=study.TREATMENT, estimators=["point-ncis-adaptive"],
        weight_bound=20.0,
    ).run(table)  # fmt: skip
    assert point == pytest.approx(result.metrics["click"].estimates["point-ncis-adaptive"].rel_effect_size, abs=1e-9)
    assert dr != point


def test_the_expectation_of_the_model_is_that_under_the_treatment() -> None:
    """Where both policies are the same, w̃ = 1: what is left is mean(E_t r̂ − r̂), which is 0 but for noise."""
    world = replace(WORLDS["rewards"], change=replace(WORLDS["rewards"].change, touched=()))
    table = pa.Table.from_batches(simulate_log(world, 3000, seed=4))
    np.testing.assert_array_equal(*(table[f"{name}_scores"].to_pylist() for name in ("control", "treatment")))
    found = study.terms(table, 0)
    np.testing.assert_allclose(found.weight, 1.0, rtol=1e-12)
    left = found.expected - found.predicted
    assert left.std() > 0.0
    assert abs(left.mean()) < 4.0 * left.std() / np.sqrt(len(left))
