"""The audit's study in small: the same logs, mistakes, faults and seeds, fewer of each."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import audit_power as study
from audit_faults import FAULTS, Fault
from audit_mistakes import MISTAKES, Mistake

pytestmark = pytest.mark.slow


def test_right_logs_seldom_fail_and_are_seldom_questioned() -> None:
    """63 logs: at a rate of 2 % more than 4 fail with a probability of .9 %, at 4 % more than 7 are questioned with
    one of .3 %."""
    logs = []
    for place, (_, make) in enumerate(study.RIGHT_LOGS.items()):
        if make is not study.thurstone:  # 6 s a log
            logs += study.Study().row(make, (study.OF_RIGHT, place), study.SHORT, 3).signs
    assert len(logs) == 63
    assert sum(map(study.fails, logs)) <= 4
    assert sum(map(study.is_questioned, logs)) <= 7


# the others are in tests/test_natural_mistakes.py
LOGGED = [mistake for mistake in MISTAKES if mistake.name.startswith("logged")]


@pytest.mark.parametrize("mistake", LOGGED, ids=lambda mistake: mistake.name)
def test_mistakes_are_told(mistake: Mistake) -> None:
    row = study.Study().row(mistake.make, (study.OF_MISTAKE, MISTAKES.index(mistake)), mistake.sizes[-1], 1)
    assert study.is_caught(mistake, row.signs[0])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_broken_logs_fail(fault: Fault) -> None:
    row = study.Study().row(fault.make, (study.OF_FAULT, FAULTS.index(fault)), fault.rows, 2)
    assert row.share(study.fails) == 2
