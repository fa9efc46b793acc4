"""The study of treatments trained on their log, in small."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import leaks as study

pytestmark = pytest.mark.slow


def test_leaks_are_found() -> None:
    """Of 6,000 rows; the strong ones have z beyond 8 at 20,000, more than 4 here."""
    answers = study.study_leaks(1, rows=6000)
    found = {name for name, [one] in answers.items() if one.fails}
    assert found >= set(study.DEMANDED)
    assert not answers["click rate of an item, beside a change"][0].fails


def test_right_treatments_are_left_alone() -> None:
    """24 values of z: their mean square is beyond 2.2 by chance in 1 of 2,000."""
    answers = study.study_right(1, rows=3000)
    assert len(answers) == 12
    assert not any(one.fails for [one] in answers.values())
    z = np.array([one.z for [one] in answers.values()])
    assert 0.3 < np.square(z).mean() < 2.2


def test_the_page_has_a_row_for_each() -> None:
    one = study.Tested(np.array([1.0, -2.0]), True, False)
    text = study.report({"a leak": [one]}, {("a world", "a model"): [one, one]}, 1.0)
    assert "| a leak | 1 of 1 | none | +1.0, -2.0 | 0 of 1 |" in text
    assert "| a world | a model | 2 | 2 | 0.00 | 0.00 |" in text
