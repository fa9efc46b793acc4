"""The audit's study in small: the same worlds, faults and seeds, fewer logs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import audit_power as study

pytestmark = pytest.mark.slow


def test_right_logs_seldom_fail() -> None:
    """48 logs, of which 2 % would be one; 4 or more have a probability of 1.6 % even at that rate."""
    found = study.right_logs(6, (study.SHORT,))
    assert sum(count.logs for count in found.values()) == 48
    assert sum(count.fails for count in found.values()) <= 3


@pytest.mark.parametrize("fault", study.FAULTS, ids=lambda fault: fault.name)
def test_broken_logs_fail(fault: study.Fault) -> None:
    place = study.FAULTS.index(fault)
    count = study.counted(fault.log, fault.rows, 2, study.SEED + 500_000 + 10_000 * place)
    assert count.fails == 2
