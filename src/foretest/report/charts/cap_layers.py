"""Layers that the charts of a cap and of a bound on the weights share."""

from __future__ import annotations

from collections.abc import Callable
from math import log10
from typing import Any, NamedTuple

from foretest.inference.verdict import FEWEST_POSITIVES
from foretest.report.charts.parts import Spec, power, tooltip
from foretest.report.theme import Sign

STEP = 0.25  # decades between caps

Number = Callable[[Any], str]  # a formatter


class Curve(NamedTuple):
    """A line of a chart: its field in a cap path, and its colour and dash."""

    field: str
    sign: Sign


def line_signs(field: str, curves: dict[str, Curve]) -> Spec:
    """Colour and dash of lines by the same field, with one legend above the plot."""
    scale = {"domain": list(curves)}
    legend = {"title": None, "orient": "top", "direction": "horizontal", "symbolType": "stroke", "symbolSize": 500,
              "symbolOpacity": 1.0}  # fmt: skip
    signs = [curve.sign for curve in curves.values()]
    return {
        "color": {"field": field, "type": "nominal", "legend": legend,
                  "scale": {**scale, "range": [sign.colour for sign in signs]}},
        "strokeDash": {"field": field, "type": "nominal", "legend": legend,
                       "scale": {**scale, "range": [sign.dash for sign in signs]}},
    }  # fmt: skip


def cap_marker(cap_path: dict[str, Any], x: Spec) -> list[Spec]:
    """A line at the cap of the run; nothing if the axis ends before it."""
    cap, (first, last) = log10(cap_path["cap"]), x["scale"]["domain"]
    return marker("cap", cap, f"cap {power(cap_path['cap'])}", x) if first <= cap <= last else []


def marker(field: str, value: float, label: str, x: Spec) -> list[Spec]:
    """A dashed vertical line with a label."""
    data = {"values": [{field: value, "label": label}]}
    words = {"type": "text", "align": "left", "baseline": "top", "dx": 5, "dy": 2, "y": 0, "style": "guide-text"}
    return [
        {"data": data, "mark": {"type": "rule", "style": "guide", "strokeDash": [3, 3]}, "encoding": {"x": x}},
        {"data": data, "mark": words, "encoding": {"x": x, "text": {"field": "label"}}},
    ]


def few_rewards_shade(cap_path: dict[str, Any], caps: list[float], x: Spec, end: float) -> list[Spec]:
    """A shade over the caps whose weights leave too few rewarded rows for an interval."""
    counts = cap_path["effective_positives"]
    few = [cap for cap, count in zip(caps, counts, strict=True) if (count or 0.0) < FEWEST_POSITIVES and cap <= end]
    if not few:
        return []
    data = {"values": [{"cap": max(0.0, min(few) - STEP / 2), "to": end, "label": "too few rewards to tell"}]}
    words = {"type": "text", "align": "right", "baseline": "bottom", "dx": -6, "dy": -6, "style": "guide-text"}
    return [
        {"name": "too_few", "data": data, "mark": {"type": "rect", "style": "shade"},
         "encoding": {"x": x, "x2": {"field": "to"}}},
        {"data": data, "mark": words,
         "encoding": {"x": {"value": "width"}, "y": {"value": "height"}, "text": {"field": "label"}}},
    ]  # fmt: skip


def cap_strips(caps: list[float], columns: dict[str, list[str]], x: Spec) -> Spec:
    """One strip per cap, invisible until pointed at, whose tooltip has every number."""
    end = x["scale"]["domain"][1]
    fields = {f"f{k}": column for k, column in enumerate(columns.values())}
    rows = [
        {"cap": max(0.0, cap - STEP / 2), "to": min(end, cap + STEP / 2), "words": power(10.0**cap)}
        | {field: column[k] for field, column in fields.items()}
        for k, cap in enumerate(caps)
        if cap <= end
    ]
    titles = {"words": "cap"} | dict(zip(fields, columns, strict=True))
    return {
        "name": "strips",
        "data": {"values": rows},
        "params": [{"name": "pointed", "select": {"type": "point", "on": "pointerover", "clear": "pointerout"}}],
        "mark": {"type": "rect", "style": "shade", "aria": False},
        "encoding": {
            "x": x,
            "x2": {"field": "to"},
            "opacity": {"condition": {"param": "pointed", "empty": False, "value": 0.15}, "value": 0.0},
            "tooltip": tooltip(titles),
        },
    }


def tooltip_columns(cap_path: dict[str, Any], wanted: dict[str, tuple[str, Number]]) -> dict[str, list[str]]:
    """Columns of a cap path as text, by title; `wanted` has the field and the formatter of each."""
    return {title: [form(value) for value in cap_path[field]] for title, (field, form) in wanted.items()}
