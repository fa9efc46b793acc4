"""The chart of an examination curve: what is drawn of a fit, of a given curve, and of curves by a column's values."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from foretest.report.charts.examination import SIGNS, examination_chart, theta_limits
from tests.report.support import HOSTILE, Drawing, assert_sound

FIT = {
    "kind": "fit", "theta": [1.0, 0.6, 0.4], "std_error": [0.0, 0.02, 0.03],
    "pairs": [{"slots": [1, 2], "ratio": 0.61, "effective_rewards": 1234.4},
              {"slots": [1, 3], "ratio": 0.39, "effective_rewards": 321.0},
              {"slots": [2, 3], "ratio": 0.7, "effective_rewards": 567.0}],
}  # fmt: skip
GIVEN = {"kind": "given", "theta": [1.0, 0.5, 0.25]}
BY_DEVICE = {"kind": "given", "column": "device", "curves": {"phone": [2.0, 1.0], "desktop": [1.0, 0.8, 0.6]}}


def layer(spec: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The rows of the layer of that name."""
    [rows] = [part["data"]["values"] for part in spec["layer"] if part.get("name") == name]
    return list(rows)


def test_a_fit_has_intervals_at_the_confidence_level() -> None:
    spec = examination_chart(FIT, "click", 0.95)
    assert_sound(spec)
    drawing = Drawing(spec)
    assert (drawing.marks("curve"), drawing.marks("slots"), drawing.marks("intervals")) == (1, 3, 2)
    _, second, third = layer(spec, "slots")
    assert (second["lower"], second["upper"]) == pytest.approx((0.6 - 1.959964 * 0.02, 0.6 + 1.959964 * 0.02), abs=1e-6)
    assert (third["lower"], third["upper"]) == pytest.approx((0.4 - 1.959964 * 0.03, 0.4 + 1.959964 * 0.03), abs=1e-6)
    assert "Fitted from the log" in " ".join(spec["title"]["subtitle"])
    assert "95 % intervals" in " ".join(spec["title"]["subtitle"])
    assert "slot 1 1; slot 2 0.6 (0.561 to 0.639); slot 3 0.4 (0.341 to 0.459)" in spec["description"]


def test_a_slot_tells_the_rewards_of_its_pairs() -> None:
    first, _, third = layer(examination_chart(FIT, "click", 0.9), "slots")
    assert first["rewards"] == "1,234 with slot 2, 321 with slot 3"
    assert third["rewards"] == "321 with slot 1, 567 with slot 2"


def test_limits_end_at_0_and_an_unknown_error_has_none() -> None:
    assert theta_limits([1.0, 0.1, 0.2], [0.0, 0.2, float("nan")], 0.9)[2] is None
    limits = theta_limits([1.0, 0.1], [0.0, 0.2], 0.9)[1]
    assert limits is not None
    assert limits.lower == 0.0
    assert theta_limits([1.0, 0.5], [None, None], 0.9) == [None, None]


def test_around_a_given_curve_are_four_others() -> None:
    spec = examination_chart(GIVEN, "click", 0.9)
    assert_sound(spec)
    drawing = Drawing(spec)
    assert (drawing.marks("curve"), drawing.marks("variants"), drawing.marks("slots")) == (1, 4, 3)
    third = [row["theta"] for row in layer(spec, "variants") if row["slot"] == 3]
    assert third == pytest.approx([0.25**0.8, 0.25**1.25, 0.25 * 3**0.15, 0.25 * 3**-0.15])
    assert "Given in the settings" in " ".join(spec["title"]["subtitle"])


def test_only_ratios_are_drawn() -> None:
    scaled = {"kind": "given", "theta": [8.0, 4.0, 2.0]}
    points = layer(examination_chart(scaled, "click", 0.9), "slots")
    assert [row["theta"] for row in points] == [1.0, 0.5, 0.25]
    # a curve in another unit has other variants: (8/8)^0.8 and so on
    variants = layer(examination_chart(scaled, "click", 0.9), "variants")
    assert [row["theta"] for row in variants if row["slot"] == 1] == pytest.approx([1.0] * 4)


def test_one_line_for_each_value_with_one_legend() -> None:
    spec = examination_chart(BY_DEVICE, "click", 0.9)
    assert_sound(spec)
    drawing = Drawing(spec)
    assert (drawing.marks("curve"), drawing.marks("slots")) == (2, 5)
    assert len({line.get("stroke-dasharray") for line in drawing.shapes("curve")}) == 2
    assert [words for words in drawing.words() if words in ("phone", "desktop")] == ["phone", "desktop"]
    assert "by device" in spec["description"]
    assert "phone: 1, 0.5; desktop: 1, 0.8, 0.6" in spec["description"]


def test_of_many_values_the_first_are_drawn() -> None:
    curves = {f"v{k}": [1.0, 0.9 - 0.05 * k] for k in range(12)}
    spec = examination_chart({"kind": "given", "column": "device", "curves": curves}, "click", 0.9)
    assert Drawing(spec).marks("curve") == len(SIGNS) == 5
    assert "The first 5 of 12 values." in spec["title"]["subtitle"]


def test_signs_differ_in_colour_dash_and_shape() -> None:
    for values in zip(*((sign.colour, str(sign.dash), sign.shape) for sign in SIGNS), strict=True):
        assert len(set(values)) == len(SIGNS)


def test_one_slot_and_many_slots() -> None:
    alone = {"kind": "fit", "theta": [1.0], "std_error": [0.0], "pairs": []}
    assert Drawing(examination_chart(alone, "click", 0.9)).marks("slots") == 1
    long = {"kind": "given", "theta": [1.0 / k for k in range(1, 51)]}
    spec = examination_chart(long, "click", 0.9)
    ticks = spec["layer"][0]["encoding"]["x"]["axis"]["values"]
    assert len(ticks) <= 12
    assert len({b - a for a, b in pairwise(ticks)}) == 1
    assert "and 30 more" in spec["description"]


@pytest.mark.parametrize("examination", [FIT, GIVEN, BY_DEVICE | {"curves": {HOSTILE: [1.0, 0.5]}, "column": HOSTILE}])
def test_names_are_text(examination: dict[str, Any]) -> None:
    spec = examination_chart(examination, HOSTILE, 0.9)
    assert_sound(spec, HOSTILE)
    assert Drawing(spec).marks("slots") >= 2
