"""The examination curve in a line, and what a range over several curves is said to allow for."""

from __future__ import annotations

from dataclasses import replace

import foretest as ft
from foretest.results.examination_text import curve_text, examination_line
from foretest.results.range_text import range_meaning
from foretest.results.uplift_range import Range
from tests.results.support import UP


def test_a_long_curve_is_shortened() -> None:
    assert curve_text([1.0] * 15).endswith("1 and 3 more")
    many = {"kind": "given", "column": "c", "curves": {f"v{k}": [1.0, 0.5] for k in range(6)}}
    assert examination_line(many) == "examination by c: v0 1, 0.5; v1 1, 0.5; v2 1, 0.5; v3 1, 0.5 and 2 more (given)"


def test_errors_set_the_digits() -> None:
    assert curve_text([1.0, 0.61234, 0.41], [0.0, 0.0021, 0.2]) == "1, 0.612 ± 0.002, 0.41 ± 0.20"
    assert curve_text([1.0, 0.5, 0.25], [0.0, float("nan"), None]) == "1, 0.5, 0.25"
    assert curve_text([1.0, 0.5], [0.0, 1e-9]) == "1, 0.500000 ± 0.000000"


def test_the_range_says_that_it_is_over_curves() -> None:
    curves = [{"curve": "θ^0.8", "effect_size": 0.0, "rel_effect_size": 0.0, "rel_ci_lower": 0.0, "rel_ci_upper": 0.1}]
    words = "; and for examination curves steeper and flatter than the one given"
    assert words not in range_meaning(UP)
    assert range_meaning(replace(UP, curves=curves)) == range_meaning(UP) + words
    calibrated = replace(UP, range=Range("calibrated", 0.0, 1.0, 0.0, 1.0), curves=curves)
    assert range_meaning(calibrated).endswith(f"earned in past tests{words}")


def test_an_uncapped_estimate_claims_no_curves() -> None:
    noise: ft.Estimate = replace(UP, range=None, sensitivity=None)
    assert range_meaning(noise) == "noise alone"
