"""Small versions of the studies of the sensitivity band, by their own code: enough to fail if the band were wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from foretest.offline import analysis

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import band_coverage
import null_verdicts

pytestmark = pytest.mark.slow


def test_the_band_holds_the_truth() -> None:
    """Ten tests of 30 000 displays: at most four miss by chance if nine in ten hold (P < 0.002)."""
    study = band_coverage
    found = [study.one_test(11, number, 30_000, None) for number in range(1, 11)]
    at = study.GAMMAS.index(study.DEFAULT)
    ends = np.array([(test["bands"][at]["ci_lower"], test["bands"][at]["ci_upper"]) for test in found])
    truth = np.array([test["uplift"] for test in found])
    held = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    assert held.sum() >= 6
    plain = np.array([test["interval"] for test in found])
    assert ((ends[:, 0] <= plain[:, 0]) & (plain[:, 1] <= ends[:, 1])).all()
    assert np.diff(ends).sum() > 1.2 * np.diff(plain).sum()  # and it is more than the interval
    said = study.report(found, (11,))
    assert f"{len(found)} tests of" in said
    assert "(default)" in said


def test_verdicts_where_there_is_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty null logs: more than 14 verdicts have a chance of 0.1 % at 10 % each."""
    monkeypatch.setattr(analysis, "resample_counts", analysis.resample_counts)  # put back what the study replaces
    found = null_verdicts.verdicts(60, 3000)
    said = [log["point-ncis-adaptive"][0] for log in found]
    assert sum(verdict in ("positive", "negative") for verdict in said) <= 14
    assert said.count("insufficient") <= 6
    # rewards do not depend on the ranking, so that the slice earns what the assumption has it earn
    # (a log with no reward in the slice says nothing of it)
    slices = np.array([log["point-ncis-adaptive"][2] for log in found], np.float64)
    slices = slices[np.isfinite(slices)]
    assert len(slices) > 50
    assert slices.mean() == pytest.approx(1.0, abs=4 * slices.std(ddof=1) / np.sqrt(len(slices)))
