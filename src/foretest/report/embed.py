"""Data within a page: JSON that cannot end its script element, lean charts, hashes of scripts."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from foretest.report.theme import DARK, LIGHT

# what could end a script element, begin a comment in it, or end a line of a script
_ESCAPES = {ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}"}


def script_json(document: Any, *, indent: int | None = None) -> str:
    r"""JSON for a script element: nothing in it can end the element or begin a comment, and it parses to the same.

    >>> script_json({"name": "</script><!--"})
    '{"name":"\\u003c/script\\u003e\\u003c!--"}'
    """
    separators = (",", ":") if indent is None else None
    text = json.dumps(document, indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)
    return text.translate(_ESCAPES)


def packed_json(document: Any) -> str:
    """JSON as gzip in base64, for a document that would make the page too large."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def policy_hash(script: str) -> str:
    """A script's source expression in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def lean(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A chart for the page: as wide as its container unless it is square, in the page's own theme, with six significant
    digits, with data that layers share in it once, and without any address.

    It has no title: the page has it in HTML, where it can be searched, read aloud and wrapped.
    """
    chart = {key: value for key, value in spec.items() if key not in ("$schema", "config", "title", "background")}
    if isinstance(chart.get("width"), int | float) and chart["width"] != chart.get("height"):
        chart |= {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
    names: dict[str, str] = {}
    datasets: dict[str, Any] = {}
    short: dict[str, Any] = _shared(_rounded(chart), names, datasets)
    return {**short, "datasets": datasets} if datasets else short


def _shared(value: Any, names: dict[str, str], datasets: dict[str, Any]) -> Any:
    """A chart in which layers refer to sets of rows by name; `datasets` has each set once."""
    if isinstance(value, list):
        return [_shared(item, names, datasets) for item in value]
    if not isinstance(value, dict):
        return value
    rows = value.get("data", {}).get("values") if isinstance(value.get("data"), dict) else None
    if rows:
        name = names.setdefault(json.dumps(rows), f"d{len(names)}")
        datasets[name] = rows
        value = {**value, "data": {"name": name}}
    return {key: item if key == "data" else _shared(item, names, datasets) for key, item in value.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value


def chart_colours() -> list[tuple[str, str]]:
    """The colours in which the light and the dark theme differ, as pairs, in order of appearance."""
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
    """The theme in CSS variables: charts follow the page from light to dark, and in print, without being redrawn."""
    names = {pair: f"var(--chart-{number})" for number, pair in enumerate(chart_colours())}

    def walk(light: Any, dark: Any) -> Any:
        if isinstance(light, Mapping):
            return {key: walk(light[key], dark[key]) for key in light}
        return light if light == dark else names[light, dark]

    config = walk(LIGHT, DARK)
    halo = {"stroke": "var(--card)", "strokeWidth": 7, "strokeJoin": "round"}
    return {**config, "background": "transparent", "style": {**config["style"], "halo": halo}}
