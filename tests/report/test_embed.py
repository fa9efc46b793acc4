"""Data for the page: JSON that cannot leave its element, charts made lean."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from foretest.report.embed import chart_colours, chart_config, lean, packed_json, script_json
from foretest.report.theme import DARK, LIGHT

texts = st.text(max_size=8) | st.sampled_from(["</script>", "<!--", "&amp;", "\u2028", "\u2029", "]]>"])
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


@given(documents)
def test_json_in_a_script_element_parses_to_the_same_and_holds_no_mark(document: Any) -> None:
    text = script_json(document)
    assert json.loads(text) == document
    assert not set("<>&\u2028\u2029") & set(text)


@given(documents)
def test_packed_json_is_the_same(document: Any) -> None:
    assert json.loads(gzip.decompress(base64.b64decode(packed_json(document)))) == document


def test_a_lean_chart_shares_its_data_and_keeps_its_meaning() -> None:
    rows = [{"x": 1 / 3, "name": "a"}, {"x": float("inf"), "name": "b"}]
    layers = [{"data": {"values": rows}, "mark": "rule"}, {"data": {"values": list(rows)}, "mark": "point"}]
    spec = {"$schema": "https://…", "title": {"text": "t"}, "width": 620, "height": 300, "layer": layers}
    chart = lean(spec)
    assert chart == {
        "width": "container", "autosize": {"type": "fit-x", "contains": "padding"}, "height": 300,
        "layer": [{"data": {"name": "d0"}, "mark": "rule"}, {"data": {"name": "d0"}, "mark": "point"}],
        "datasets": {"d0": [{"x": 0.333333, "name": "a"}, {"x": None, "name": "b"}]},
    }  # fmt: skip
    assert spec["layer"] is layers  # the specification itself is left as it was


def test_a_square_chart_stays_square() -> None:
    assert lean({"width": 480, "height": 480})["width"] == 480


def test_the_theme_in_variables_says_what_both_themes_say() -> None:
    """Putting light's colours for the variables gives LIGHT, dark's give DARK."""
    pairs = chart_colours()
    text = json.dumps({**chart_config(), "background": None})
    for k, theme in ((0, LIGHT), (1, DARK)):
        filled = text
        for number, pair in reversed(list(enumerate(pairs))):
            filled = filled.replace(f"var(--chart-{number})", pair[k])
        found = json.loads(filled)
        found["style"].pop("halo")
        assert found == {**json.loads(json.dumps(theme)), "background": None}
