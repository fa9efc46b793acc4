"""Estimates against the cap, and against the bound on the weights."""

from __future__ import annotations

from math import ceil, log10
from typing import Any

from foretest.formatting import format_number, percent, span
from foretest.report.charts.cap_layers import (
    Curve,
    cap_marker,
    cap_strips,
    few_rewards_shade,
    line_signs,
    marker,
    tooltip_columns,
)
from foretest.report.charts.cap_words import LIMITS, POINT, bound_sentences, estimate_sentences, level_text
from foretest.report.charts.parts import (
    Spec,
    corner,
    frame,
    percent_axis,
    power,
    powers_of_ten,
    quantitative,
    tooltip,
)
from foretest.report.theme import BLUE, GREEN, HEIGHT, VERMILION, WIDTH, Sign

ESTIMATORS = {
    "CIS": Curve("cis", Sign(VERMILION, [8, 4], "circle")),
    "NCIS": Curve("ncis", Sign(BLUE, [1, 0], "circle")),
}
_POINT_CURVE = Curve("point-ncis", Sign(GREEN, [2, 3], "circle"))
_UPLIFT = {"axis": percent_axis("uplift over the control", sign=True), "scale": {"zero": True, "nice": True}}


def cap_estimates_chart(cap_path: dict[str, Any]) -> Spec:
    """From a metric's `cap_path`: relative uplift of CIS and NCIS with intervals, and of PointNCIS where it runs."""
    caps = [log10(cap) for cap in cap_path["caps"]]
    largest = cap_path["max_log10_weight"]
    end = min(caps[-1], max(3.0, log10(cap_path["cap"]) + 1.0, 0.0 if largest is None else ceil(largest + 0.5)))
    x, labels = powers_of_ten("cap", "cap on the weights", 0.0, end)
    curves = ESTIMATORS | ({POINT: _POINT_CURVE} if cap_path.get("point-ncis") else {})
    rows = [row for name, curve in curves.items() for row in _curve_rows(cap_path, name, curve) if row["cap"] <= end]
    signs = line_signs("estimator", curves)
    spread = {
        "name": "intervals",
        "data": {"values": [row for row in rows if row["lower"] is not None]},
        "mark": {"type": "area", "opacity": 0.16},
        "encoding": {
            "x": x,
            "y": quantitative("lower", **_UPLIFT),
            "y2": {"field": "upper"},
            "color": signs["color"],
        },
    }
    lines = {
        "name": "estimates",
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 2.5},
        "encoding": {"x": x, "y": quantitative("value", **_UPLIFT), **signs},
    }
    numbers = estimate_sentences(cap_path)
    return frame(
        "Uplift against the cap",
        numbers,
        " ".join([f"Estimates over caps from 1 to {power(10.0**end)}, for the metric {cap_path['metric']}.", *numbers]),
        width=WIDTH,
        height=HEIGHT - 20,
        layer=[*few_rewards_shade(cap_path, caps, x, end), spread, _zero(), lines, *cap_marker(cap_path, x),
               cap_strips(caps, _tooltips(cap_path, caps), x), *labels, corner(cap_path["metric"])],
    )  # fmt: skip


def _curve_rows(cap_path: dict[str, Any], name: str, curve: Curve) -> list[dict[str, Any]]:
    """The points of one estimator that exist, as data of the chart."""
    path = cap_path[curve.field]
    caps = path["caps"] if name == POINT else cap_path["caps"]
    columns = [path[f"rel_effect_size{part}"] for part in LIMITS]
    return [
        {"cap": log10(cap), "estimator": name, "value": value, "lower": lower, "upper": upper}
        for cap, value, lower, upper in zip(caps, *columns, strict=True)
        if value is not None
    ]


def _tooltips(cap_path: dict[str, Any], caps: list[float]) -> dict[str, list[str]]:
    """Every number at every cap, as text, by title."""
    interval = f"{level_text(cap_path)} interval"
    columns = tooltip_columns(cap_path, {"effective positives": ("effective_positives", format_number)})
    for name, curve in ESTIMATORS.items():
        path = cap_path[curve.field]
        columns[name] = [percent(value, sign=True) for value in path["rel_effect_size"]]
        limits = zip(path["rel_effect_size_ci_lower"], path["rel_effect_size_ci_upper"], strict=True)
        columns[f"{name}, {interval}"] = [span(*pair) for pair in limits]
    path = cap_path.get("point-ncis")
    if path:
        # its caps are every other one of the path
        values, lowers, uppers = (path[f"rel_effect_size{part}"] for part in LIMITS)
        index = {round(log10(cap), 6): k for k, cap in enumerate(path["caps"])}
        places = [index.get(round(cap, 6)) for cap in caps]
        columns[POINT] = ["-" if k is None else percent(values[k], sign=True) for k in places]
        columns[f"{POINT}, {interval}"] = ["-" if k is None else span(lowers[k], uppers[k]) for k in places]
    return columns


def bound_chart(cap_path: dict[str, Any]) -> Spec:
    """From a metric's `cap_path`: relative uplift of the adaptive PointNCIS against the bound on its weights."""
    path = cap_path["point-ncis-adaptive"]
    rows = _bound_rows(path, _admissible(cap_path))
    x = quantitative(
        "bound",
        scale={"type": "log", "nice": False},
        axis={"title": "bound on the weights", "values": [2, 5, 10, 20, 50, 100, 200, 500, 1000], "grid": False},
    )
    interval = f"{level_text(cap_path)} interval"
    hover = tooltip(
        {
            "words": "bound",
            "uplift": "uplift",
            "interval": interval,
            "effective": "effective positives",
            "carried": "the log can carry it",
        }
    )
    spread = {
        "name": "intervals",
        "data": {"values": [row for row in rows if row["lower"] is not None]},
        "mark": {"type": "area", "opacity": 0.16, "color": BLUE},
        "encoding": {"x": x, "y": quantitative("lower", **_UPLIFT), "y2": {"field": "upper"}},
    }
    line = {
        "name": "estimates",
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 2.5, "color": BLUE},
        "encoding": {"x": x, "y": quantitative("value", **_UPLIFT)},
    }
    points = {
        "name": "points",
        "data": {"values": rows},
        "mark": {"type": "point", "color": BLUE, "size": 60, "filled": True, "stroke": BLUE},
        "encoding": {
            "x": x,
            "y": quantitative("value", **_UPLIFT),
            "fillOpacity": {"field": "fill", "type": "quantitative", "scale": None},
            "tooltip": hover,
        },
    }
    bound, numbers = cap_path["weight_bound"], bound_sentences(cap_path)
    lowest, highest = power(path["bounds"][0]), power(path["bounds"][-1])
    about = (
        f"Estimates of point-ncis-adaptive at bounds from {lowest} to {highest}, for the metric {cap_path['metric']}."
    )
    return frame(
        "Uplift against the bound on the weights",
        numbers,
        " ".join([about, *numbers]),
        width=WIDTH,
        height=HEIGHT - 60,
        layer=[
            spread,
            _zero(),
            line,
            points,
            *marker("bound", bound, f"bound {power(bound)}", x),
            corner(cap_path["metric"]),
        ],
    )


def _admissible(cap_path: dict[str, Any]) -> set[float] | None:
    """The bounds that the log can carry, those below all that are chosen from included; None where a number was given
    and none was looked at."""
    choice, bounds = cap_path.get("bound_choice"), cap_path["point-ncis-adaptive"]["bounds"]
    if choice is None:
        return None
    least = min(row["bound"] for row in choice["bounds"])
    carried = {row["bound"] for row in choice["bounds"] if row["admissible"]}
    return carried | {bound for bound in bounds if bound < least}


def _bound_rows(path: dict[str, Any], admissible: set[float] | None) -> list[dict[str, Any]]:
    """The points along the bound that exist, as data of the chart."""
    columns = [path[f"rel_effect_size{part}"] for part in LIMITS]
    return [
        {"bound": bound, "value": value, "lower": lower, "upper": upper, "words": power(bound),
         "uplift": percent(value, sign=True), "interval": span(lower, upper), "effective": format_number(effective),
         "carried": "not looked at" if admissible is None else "yes" if bound in admissible else "no",
         "fill": 1.0 if admissible is None or bound in admissible else 0.0}
        for bound, effective, value, lower, upper in zip(
            path["bounds"], path["effective_positives"], *columns, strict=True
        )
        if value is not None
    ]  # fmt: skip


def _zero() -> Spec:
    """A line at no uplift."""
    return {"data": {"values": [{"value": 0.0}]}, "mark": {"type": "rule", "style": "guide"},
            "encoding": {"y": quantitative("value", **_UPLIFT)}}  # fmt: skip
