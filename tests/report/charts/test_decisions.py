"""Figure 4 as drawn."""

from __future__ import annotations

from typing import Any

import pytest

from foretest.history.agreement import DECISIONS
from foretest.report.charts.decisions import decisions_chart
from foretest.report.theme import OUTCOMES
from tests.report.support import HOSTILE, Drawing, assert_sound, simulated_tests


def counted(tests: list[dict[str, Any]], label: str = "cis") -> dict[str, int]:
    counts = dict.fromkeys(OUTCOMES, 0)
    for test in tests:
        offline, online = DECISIONS[test["offline"][label]["verdict"]], DECISIONS[test["online"]["verdict"]]
        counts["right" if offline == online else "false positive" if offline > online else "false negative"] += 1
    return counts


def test_each_test_is_a_box_in_its_colour_and_dash() -> None:
    tests = simulated_tests(30)
    counts = counted(tests)
    assert min(counts.values()) > 2
    spec = decisions_chart(tests, "cis", 0.9)
    assert_sound(spec)
    drawing = Drawing(spec)
    for outcome, count in counts.items():
        boxes = drawing.shapes(f"boxes_{outcome.replace(' ', '_')}")
        assert len(boxes) == drawing.marks(f"centres_{outcome.replace(' ', '_')}") == count
        assert {box.get("stroke") for box in boxes} == {OUTCOMES[outcome].colour}
        dash = ",".join(str(part) for part in OUTCOMES[outcome].dash)
        assert {box.get("stroke-dasharray") for box in boxes} == {dash}
    assert set(OUTCOMES) <= set(drawing.words())
    assert "cis" in drawing.words()
    assert "offline uplift, 90 % interval" in drawing.words()
    numbers = f"30 tests: {counts['right']} right, {counts['false positive']} false positive, "
    assert numbers + f"{counts['false negative']} false negative." in spec["description"]
    assert drawing.width() <= 720


def test_both_axes_have_one_scale() -> None:
    spec = decisions_chart(simulated_tests(12), "cis")
    assert spec["width"] == spec["height"]
    domains = {
        tuple(channel["scale"]["domain"])
        for layer in spec["layer"]
        for name, channel in layer["encoding"].items()
        if name in ("x", "y") and "scale" in channel
    }
    assert len(domains) == 1


def test_boxes_are_where_the_intervals_are() -> None:
    tests = simulated_tests(1)
    spec = decisions_chart(tests, "cis")
    low, high = next(layer for layer in spec["layer"] if "name" in layer)["encoding"]["x"]["scale"]["domain"]
    [box] = [shape for outcome in OUTCOMES for shape in Drawing(spec).shapes(f"boxes_{outcome.replace(' ', '_')}")]
    left, rest = box.get("d", "").lstrip("M").split(",", 1)
    top, width, height = rest.replace("h", " ").replace("v", " ").split()[:3]
    online, offline = tests[0]["online"], tests[0]["offline"]["cis"]
    side = spec["width"] / (high - low)
    lower, upper = offline["rel_effect_size_ci_lower"], offline["rel_effect_size_ci_upper"]
    assert float(left) == pytest.approx((lower - low) * side, abs=0.01)
    assert float(width) == pytest.approx((upper - lower) * side, abs=0.01)
    lower, upper = online["rel_effect_size_ci_lower"], online["rel_effect_size_ci_upper"]
    assert float(top) == pytest.approx((high - upper) * side, abs=0.01)
    assert float(height) == pytest.approx((upper - lower) * side, abs=0.01)


def test_a_very_wide_interval_does_not_flatten_the_others() -> None:
    tests = simulated_tests(20)
    tests[0]["offline"]["cis"] |= {"rel_effect_size_ci_lower": -50.0, "rel_effect_size_ci_upper": 90.0}
    spec = decisions_chart(tests, "cis")
    low, high = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert high - low < 1.0
    assert "1 box reaches beyond the frame." in spec["description"]


def test_insufficient_counts_as_neutral() -> None:
    [test] = simulated_tests(1)
    test["online"]["verdict"], test["offline"]["cis"]["verdict"] = "neutral", "insufficient"
    assert Drawing(decisions_chart([test], "cis")).marks("boxes_right") == 1


def test_tests_without_the_estimator_are_left_out() -> None:
    tests = simulated_tests(3)
    tests[0]["offline"] = {}
    tests[1]["offline"]["cis"]["rel_effect_size"] = None
    assert "1 test:" in decisions_chart(tests, "cis")["description"]
    empty = decisions_chart([], "cis")
    assert "0 tests" in empty["description"]
    assert "offline uplift, interval" in Drawing(empty).words()


def test_hostile_names_are_text() -> None:
    tests = simulated_tests(3, label=HOSTILE)
    for test in tests:
        test["name"] = HOSTILE + test["name"]
    spec = decisions_chart(tests, HOSTILE)
    assert_sound(spec, HOSTILE)
    drawing = Drawing(spec)
    assert any(word.startswith("a.b[c] </script>") for word in drawing.words())
    assert "<img" not in drawing.text
