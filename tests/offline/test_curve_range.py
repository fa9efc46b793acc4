"""The range over steeper and flatter examination curves than the one given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foretest.offline.curve_range import calibrated_over_curves, hull
from foretest.results.uplift_range import Range
from tests.results.support import UP


def test_a_hull_keeps_what_the_first_range_says_of_itself() -> None:
    first = Range("band", 0.1, 0.2, 0.01, 0.02, factor_lower=0.8, factor_upper=2.5)
    assert hull([first]) == first
    assert hull([first, Range("band", 0.0, 0.15, 0.0, 0.03)]) == Range("band", 0.0, 0.2, 0.0, 0.03, 0.8, 2.5)


def test_a_calibrated_uplift_moves_as_far_as_the_plain_one() -> None:
    flatter = {
        "curve": "θ^0.8",
        "effect_size": 0.0002,
        "rel_effect_size": 0.01,
        "rel_ci_lower": 0.0,
        "rel_ci_upper": 0.1,
    }
    plain = replace(UP, effect_size=0.0006, rel_effect_size=0.03, curves=[flatter])
    own = Range("calibrated", 0.0005, 0.0015, 0.025, 0.075)
    calibrated = replace(UP, effect_size=0.001, rel_effect_size=0.05, range=own, sensitivity=None)
    moved = calibrated_over_curves(calibrated, plain)
    [curve] = moved.curves or []
    assert curve["curve"] == "θ^0.8"
    # the plain uplift falls by 0.0004, or 2 points
    assert (curve["effect_size"], curve["rel_effect_size"]) == pytest.approx((0.0006, 0.03))
    assert (curve["rel_ci_lower"], curve["rel_ci_upper"]) == pytest.approx((0.005, 0.055))
    assert moved.range is not None
    assert (moved.range.ci_lower, moved.range.rel_ci_lower) == pytest.approx((0.0001, 0.005))
    assert (moved.range.ci_upper, moved.range.rel_ci_upper) == pytest.approx((0.0015, 0.075))


def test_without_other_curves_a_calibrated_estimate_stays() -> None:
    calibrated = replace(UP, range=Range("calibrated", 0.0005, 0.0015, 0.025, 0.075))
    assert calibrated_over_curves(calibrated, replace(UP, curves=None)) is calibrated
