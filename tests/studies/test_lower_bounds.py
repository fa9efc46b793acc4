"""The published benchmark of lower bounds in small: the same cells, fewer logs."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import lower_bounds as study

pytestmark = pytest.mark.slow

REPEATS = 3


@pytest.mark.parametrize("name", study.DATA)
def test_published_radii_come_out_again(name: str) -> None:
    found = study.study(name, REPEATS)
    for bound, published in study.DATA[name].published.items():
        assert found[bound].mean == pytest.approx(published, abs=study.TOLERANCE)
        assert found[bound].violations <= 0.05
    logs = REPEATS * len(study.CELLS)
    assert found[study.BETTING].violations <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / logs)
    # of means over the same logs, so that a hair is enough
    assert found[study.BETTING].mean <= found[study.SMOOTHING].mean + 0.005


def test_the_value_is_the_mean_of_weighted_rewards() -> None:
    """Over 200 logs of each, within 4 standard errors: policies, flips and weights fit each other."""
    rng = np.random.default_rng(0)
    for cell in (study.CELLS[0], study.CELLS[22], study.CELLS[44]):
        logs = [study.log_of(study.DATA["satimage"], *cell, rng) for _ in range(200)]
        means = np.array([(log.treatment / log.control * log.reward).mean() for log in logs])
        assert means.mean() == pytest.approx(logs[0].value, abs=4 * means.std(ddof=1) / np.sqrt(len(logs)))
