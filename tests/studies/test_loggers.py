"""The study of three loggers against one, in small: the same world and seeds, fewer and shorter logs."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import loggers as study

pytestmark = pytest.mark.slow

LOGS, ROWS = 50, 2500
ADAPTIVE, FIXED = "point-ncis-adaptive", "point-ncis 100"
WORLD = study.make_world()


@pytest.fixture(scope="module")
def found() -> dict:
    studies = enumerate((study.ONE, study.THREE, study.BY_USER), start=1)
    with study.costs_spared():
        return {name: study.run_study(WORLD, name, LOGS, ROWS, number) for number, name in studies}


def test_three_loggers_come_closer_to_the_truth(found: dict) -> None:
    """On as many rows, at a fixed cap of 100."""
    limits = study.limits(WORLD, study.ONE)
    truth = limits["truth"] / limits["control"] - 1.0
    one, three = (study.rmse(found[name][FIXED], truth) for name in (study.ONE, study.THREE))
    assert three < 0.6 * one


@pytest.mark.parametrize("name", [study.THREE, study.BY_USER])
def test_estimates_are_around_their_limits(found: dict, name: str) -> None:
    limits = study.limits(WORLD, name)
    for label in ("cis 100", ADAPTIVE):
        uplift = found[name][label].uplift
        error = uplift.std(ddof=1) / np.sqrt(LOGS)
        assert uplift.mean() == pytest.approx(limits[label] / limits["control"] - 1.0, abs=4.0 * error)


@pytest.mark.parametrize("name", [study.THREE, study.BY_USER])
def test_intervals_hold_their_limits(found: dict, name: str) -> None:
    """Of 50 logs at most 12 miss by chance if nine in ten hold (P < 0.002)."""
    of = found[name][ADAPTIVE]
    for held in (of.held, of.rel_held, of.delta_held):
        assert held.sum() >= LOGS - 12


def test_the_truth_is_the_same_whoever_logged() -> None:
    one, three = (study.limits(WORLD, name) for name in (study.ONE, study.THREE))
    for name in ("truth", "control"):
        assert one[name] == pytest.approx(three[name], rel=1e-12)


def test_the_page_has_a_row_for_each(found: dict) -> None:
    said = study.report(found, WORLD, LOGS, ROWS, 1.0)
    assert said.count("| three loggers, by user |") == len(study.ESTIMATORS)
