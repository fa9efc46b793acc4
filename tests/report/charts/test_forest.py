"""The plot of estimates: order, ends, arrows, words; drawn by the real library."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import vl_convert

from foretest.report.charts.forest import Row, forest_chart, ticks
from foretest.report.charts.strata import MOST, strata_chart
from foretest.results.result import Estimate
from foretest.results.uplift_range import Range

EVIL = "'] || alert(1) || ['"
UP = Estimate(0.0206, 0.1, 0.0006, 0.0002, 0.001, 0.05, 0.02, 0.08, "positive", [], 99.0, word="positive")


def at(value: float, lower: float | None, upper: float | None, verdict: str = "neutral") -> Estimate:
    return replace(
        UP, rel_effect_size=value, rel_effect_size_ci_lower=lower, rel_effect_size_ci_upper=upper, verdict=verdict,
        word=verdict,
    )  # fmt: skip


ROWS = [
    Row("is", at(2.0, -9.0, 12.0)),
    Row("cis", at(-0.1, -0.15, -0.05, "negative")),
    Row(EVIL, at(0.01, -0.06, 0.08)),
    Row("best", UP, leads=True),
]


def layers(spec: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [layer for layer in spec["layer"] if layer["mark"]["type"] == kind]


def test_rows_keep_their_order_and_a_wide_interval_does_not_squeeze_the_rest() -> None:
    spec = forest_chart("title", ROWS, 0.9)
    [lines] = [layer for layer in layers(spec, "rule") if "x2" in layer["encoding"]]
    assert lines["encoding"]["y"]["scale"]["domain"] == ["is", "cis", EVIL, "best"]
    lowest, highest = lines["encoding"]["x"]["scale"]["domain"]
    assert lowest == pytest.approx(-0.15 - 0.06 * 0.23)
    assert highest == pytest.approx(0.08 + 0.06 * 0.23)
    drawn = {row["label"]: row for row in lines["data"]["values"]}
    assert (drawn["is"]["from"], drawn["is"]["to"]) == (lowest, highest)
    assert drawn["is"]["beyond"] == "leftright"
    assert (drawn["cis"]["from"], drawn["cis"]["to"]) == (-0.15, -0.05)
    points = [layer for layer in layers(spec, "point") if layer["mark"].get("angle") is None]
    assert [row["label"] for row in points[0]["data"]["values"]] == ["cis", EVIL, "best"]  # is's own is out of sight
    assert [layer["mark"]["angle"] for layer in layers(spec, "point") if "angle" in layer["mark"]] == [-90, 90]


def test_the_truth_is_on_the_axis_and_in_the_words() -> None:
    spec = forest_chart("title", ROWS[1:], 0.9, truth=0.3)
    [lines] = [layer for layer in layers(spec, "rule") if "x2" in layer["encoding"]]
    assert lines["encoding"]["x"]["scale"]["domain"][1] > 0.3
    assert "The true uplift is +30.0\N{NO-BREAK SPACE}%." in spec["description"]
    assert (
        "best: +5.0\N{NO-BREAK SPACE}% (+2.0\N{NO-BREAK SPACE}% to +8.0\N{NO-BREAK SPACE}%), positive."
        in spec["description"]
    )


def test_names_are_data_and_never_code() -> None:
    """No expression of the compiled chart holds a name."""
    spec = forest_chart("title", ROWS, 0.9, truth=0.1)
    compiled = vl_convert.vegalite_to_vega(spec)

    def expressions(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value[key] for key in ("signal", "expr", "test", "update") if isinstance(value.get(key), str)]
            return own + [text for item in value.values() for text in expressions(item)]
        return [text for item in value for text in expressions(item)] if isinstance(value, list) else []

    found = expressions({key: part for key, part in compiled.items() if key != "data"})
    assert found
    assert not any("alert" in text for text in found)


def test_it_is_drawn() -> None:
    svg = vl_convert.vegalite_to_svg(forest_chart("title", ROWS, 0.9, truth=0.1))
    for text in ("best", "truth +10.0", "uplift over the control"):
        assert text in svg


def test_an_estimate_without_interval_or_uplift() -> None:
    rows = [Row("a", at(0.1, None, None)), Row("b", replace(UP, rel_effect_size=None)), Row("c", UP)]
    spec = forest_chart("title", rows, 0.9)
    assert "a: +10.0\N{NO-BREAK SPACE}% (no interval), neutral." in spec["description"]
    assert "b:" not in spec["description"]
    assert vl_convert.vegalite_to_svg(spec)
    assert vl_convert.vegalite_to_svg(forest_chart("title", rows[1:2], 0.9))


@pytest.mark.parametrize(("lowest", "highest"), [(-0.28, 0.31), (-1e-5, 2e-5), (-3.0, 40.0), (0.0, 1e6)])
def test_ticks_are_few_and_hold_zero(lowest: float, highest: float) -> None:
    found = ticks(lowest, highest)
    assert 2 <= len(found) <= 7
    assert 0.0 in found
    assert all(lowest <= tick <= highest for tick in found)


def test_strata_beyond_thirty_are_left_to_the_table() -> None:
    strata = [
        {"label": f"s{k}", "share": 1 / (k + 1), "mean_weight": 0.5 + k / 100, "value": 0.1, "contribution": 0.1}
        for k in range(40)
    ]
    spec = strata_chart(strata)
    [rules] = [layer for layer in layers(spec, "rule") if "x2" in layer["encoding"]]
    assert [row["stratum"] for row in rules["data"]["values"]] == [f"s{k}" for k in range(MOST)]
    assert "The 30 largest of 40 strata." in " ".join(spec["title"]["subtitle"])
    assert "s0: 0.5000 (100\N{NO-BREAK SPACE}% of rows)." in spec["description"]
    assert "s0" in vl_convert.vegalite_to_svg(spec)
    assert json.dumps(spec)


def test_the_range_is_drawn_around_noise() -> None:
    """The axis reaches to the headline's ends; what has no range of its own has one line."""
    ranged = replace(UP, range=Range("band", -0.001, 0.004, -0.05, 0.2), word="leans positive")
    far = replace(UP, range=Range("band", -0.02, 0.02, -1.0, 1.0))
    spec = forest_chart("title", [*ROWS[1:3], Row("far", far), Row("ranged", ranged, leads=True)], 0.9)
    ranges, lines = (layer for layer in layers(spec, "rule") if "x2" in layer["encoding"])
    assert lines["mark"]["strokeWidth"] < ranges["mark"]["strokeWidth"]
    lowest, highest = lines["encoding"]["x"]["scale"]["domain"]
    assert (lowest, highest) == (pytest.approx(-0.15 - 0.06 * 0.35), pytest.approx(0.20 + 0.06 * 0.35))
    drawn = {row["label"]: (row["range_from"], row["range_to"]) for row in ranges["data"]["values"]}
    assert drawn["ranged"] == (-0.05, 0.2)
    assert drawn["far"] == (lowest, highest)
    assert set(drawn) == {"far", "ranged"}
    by_label = {row["label"]: row for row in ranges["data"]["values"]}
    assert by_label["ranged"]["colour"] == by_label["far"]["colour"]  # leans: the same colour, paler and hollow
    assert by_label["ranged"]["pale"] < by_label["far"]["pale"]
    assert by_label["ranged"]["solid"] < by_label["far"]["solid"] == 1.0
    words = spec["description"].replace("\N{NO-BREAK SPACE}", " ")
    assert "ranged: +5.0 % (−5.0 % to +20.0 %), leans positive, noise only +2.0 % to +8.0 %." in words
    assert "Broad and pale: the range." in " ".join(spec["title"]["subtitle"])
    assert "<svg" in vl_convert.vegalite_to_svg(spec)
    assert "subtitle" not in forest_chart("title", ROWS, 0.9)["title"]  # nothing to tell apart
