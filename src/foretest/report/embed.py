"""What goes into the page as data: JSON that cannot leave its script element, lean charts, hashes of scripts."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from foretest.report.theme import DARK, LIGHT

_ESCAPES = str.maketrans({
    "<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\N{LINE SEPARATOR}": "\\u2028", "\N{PARAGRAPH SEPARATOR}": "\\u2029",
})  # fmt: skip


def script_json(document: Any, *, indent: int | None = None) -> str:
    r"""JSON for a script element: nothing in it can end the element or begin a comment, and it parses to the same.

    >>> script_json({"name": "</script><!--"})
    '{"name":"\\u003c/script\\u003e\\u003c!--"}'
    """
    separators = (",", ":") if indent is None else None
    text = json.dumps(document, indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)
    return text.translate(_ESCAPES)


def packed_json(document: Any) -> str:
    """The same as gzip in base64, for a document that would make the page heavy."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def policy_hash(script: str) -> str:
    """A script's source expression in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def lean(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A chart for the page: as wide as its place, the page's own theme, six significant digits, no outside address.

    The page names the chart in HTML, so that its title can be found, read aloud and wrapped.
    """
    chart = {key: value for key, value in spec.items() if key not in ("$schema", "config", "title", "background")}
    if "width" in chart and isinstance(chart["width"], int | float):
        chart["width"] = "container"
    short: dict[str, Any] = _rounded(chart)
    return short


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value


def chart_colours() -> list[tuple[str, str]]:
    """The colours in which the light theme and the dark differ, in order of appearance."""
    pairs: dict[tuple[str, str], None] = {}

    def walk(light: Any, dark: Any) -> None:
        if isinstance(light, Mapping):
            for key in light:
                walk(light[key], dark[key])
        elif light != dark:
            pairs[light, dark] = None

    walk(LIGHT, DARK)
    return list(pairs)


def chart_config() -> dict[str, Any]:
    """The theme in CSS variables: charts follow the page from light to dark, and to paper, without being drawn anew."""
    names = {pair: f"var(--chart-{number})" for number, pair in enumerate(chart_colours())}

    def walk(light: Any, dark: Any) -> Any:
        if isinstance(light, Mapping):
            return {key: walk(light[key], dark[key]) for key in light}
        return light if light == dark else names[light, dark]

    return {**walk(LIGHT, DARK), "background": "transparent"}
