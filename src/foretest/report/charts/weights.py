"""Figure 1: the distribution of log10 w under the treatment, with its 80 % band."""

from __future__ import annotations

from math import log10
from typing import Any

from foretest.formatting import percent
from foretest.report.charts.parts import (
    Spec,
    frame,
    percent_axis,
    power,
    power_of,
    powers_of_ten,
    quantitative,
    tooltip,
)
from foretest.report.theme import BLUE, HEIGHT, VERMILION, WIDTH

_TICKS = [0.0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0]


def weights_chart(weights: dict[str, Any]) -> Spec:
    """From `result.json`'s `weights`: bars on a square-root scale, on which the tail, which matters, is visible."""
    width, cap = weights["bin_width"], log10(weights["cap"])
    edges = [*weights["log10_lower"], *(lower + width for lower in weights["log10_lower"]), 0.0, cap]
    lowest, highest = min(edges) - width, max(edges) + width
    x, labels = powers_of_ten("from", "importance weight w of a ranking that the treatment shows", lowest, highest)
    numbers = [_band(weights), _above(weights), *_apart(weights)]
    return frame(
        "The treatment's weights",
        numbers,
        " ".join(["Histogram of the importance weights of the treatment's rankings.", *numbers]),
        width=WIDTH,
        height=HEIGHT - 40,
        layer=[
            *_eighty_percent(weights, x, highest),
            _bars(weights, x),
            *_median(weights, x),
            *_cap(weights, x),
            *labels,
        ],
    )


def _bars(weights: dict[str, Any], x: Spec) -> Spec:
    width = weights["bin_width"]
    values = [
        {
            "from": lower,
            "to": lower + width,
            "share": share,
            "range": f"{power(10.0**lower)} to {power(10.0 ** (lower + width))}",
            "words": percent(share),
        }
        for lower, share in zip(weights["log10_lower"], weights["share"], strict=True)
        if share > 0.0
    ]
    top = max((row["share"] for row in values), default=1.0)
    axis = percent_axis("share of rankings (square-root scale)", values=_TICKS)
    return {
        "name": "bars",
        "data": {"values": values},
        "mark": {"type": "rect", "color": BLUE, "xOffset": 0.5, "x2Offset": -0.5},
        "encoding": {
            "x": x,
            "x2": {"field": "to"},
            "y2": {"datum": 0.0},
            "y": quantitative("share", axis=axis, scale={"type": "sqrt", "domain": [0.0, 1.05 * top], "nice": False}),
            "tooltip": tooltip({"range": "weight", "words": "share of the treatment"}),
        },
    }


def _eighty_percent(weights: dict[str, Any], x: Spec, right: float) -> list[Spec]:
    """The band from the 10 % to the 90 % quantile."""
    low, high = weights["log10_quantiles"]["0.1"], weights["log10_quantiles"]["0.9"]
    if low is None:
        return []
    data = {"values": [{"from": low, "to": right if high is None else high, "words": _band(weights)}]}
    encoding = {"x": x, "x2": {"field": "to"}, "tooltip": tooltip({"words": "80 % band"})}
    return [
        {"name": "band", "data": data, "mark": {"type": "rect", "style": "shade", "clip": True}, "encoding": encoding}
    ]


def _median(weights: dict[str, Any], x: Spec) -> list[Spec]:
    middle = weights["log10_quantiles"]["0.5"]
    if middle is None:
        return []
    mark = {"type": "rule", "style": "strong", "strokeWidth": 1.5, "strokeDash": [2, 3], "clip": True}
    return [{"name": "median", "data": {"values": [{"from": middle}]}, "mark": mark, "encoding": {"x": x}}]


def _cap(weights: dict[str, Any], x: Spec) -> list[Spec]:
    data = {"values": [{"from": log10(weights["cap"]), "label": f"cap {power(weights['cap'])}"}]}
    at = {"x": x}
    words = {"type": "text", "align": "left", "baseline": "top", "dx": 5, "fontWeight": 600}
    return [
        {
            "data": data,
            "mark": {"type": "rule", "color": VERMILION, "strokeWidth": 2, "strokeDash": [6, 4]},
            "encoding": at,
        },
        {"data": data, "mark": {**words, "y": 0}, "encoding": {**at, "text": {"field": "label"}}},
    ]


def _band(weights: dict[str, Any]) -> str:
    low, middle, high = (weights["log10_quantiles"][level] for level in ("0.1", "0.5", "0.9"))
    unseen = "more than the log shows" if weights["source"] == "log" else "infinity"
    words = [unseen if q is None else power_of(q) for q in (low, middle, high)]
    return f"80 % of its rankings weigh from {words[0]} to {words[2]} (shaded); the median is {words[1]}."


def _above(weights: dict[str, Any]) -> str:
    return f"{percent(weights['share_above_cap'])} weigh more than the cap of {power(weights['cap'])}."


def _apart(weights: dict[str, Any]) -> list[str]:
    """What is beyond the axis, and where the numbers come from."""
    off = [
        (weights["share_infinite"], "are never shown by the control (infinite weight)"),
        (weights["share_beyond"], "weigh more than the axis shows"),
        (weights["share_zero"] + weights["share_below"], "weigh less than the axis shows"),
    ]
    sentences = [f"{percent(share)} {words}." for share, words in off if share >= 5e-6]
    if weights["source"] == "draws":
        return [
            *sentences,
            f"From {weights['draws']:,} rankings drawn for {weights['displays']:,} displays.",
        ]
    return [
        *sentences,
        f"From the {weights['displays']:,} rows of the log, weighted; {percent(weights['share_unseen'])}"
        " of the treatment was never seen in it.",
    ]
