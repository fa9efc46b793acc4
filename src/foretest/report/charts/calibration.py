"""What a history says of unsupported recommendations: the line of the calibration, and Γ0 after each test."""

from __future__ import annotations

from typing import Any

from foretest.formatting import percent, plural
from foretest.report.charts.parts import Spec, corner, frame, percent_axis, quantitative, tooltip
from foretest.report.theme import BLUE, HEIGHT, VERMILION, WIDTH

_TWO_SIDED = 1.645  # a test's bar is a 90 % interval of online − offline


def calibration_chart(calibration: dict[str, Any], estimator: str, most: int = 500) -> Spec:
    """From `agreement.json`'s `calibration` of one estimator: online − offline against the unsupported term."""
    rows = [_point(point) for point in calibration["points"] if _is_known(point)][:most]
    furthest = max((abs(row["t"]) for row in rows), default=0.1) * 1.06
    starts = min(0.0, min((row["t"] for row in rows), default=0.0)) * 1.06
    x_axis = percent_axis("unsupported term T, share of the control's reward", tickCount=7)
    y_axis = percent_axis("online − offline uplift", sign=True, tickCount=7)

    def x(field: str) -> Spec:
        return quantitative(field, scale={"domain": [starts, furthest], "nice": False}, axis=x_axis)

    def y(field: str) -> Spec:
        return quantitative(field, axis=y_axis)

    hover = tooltip(
        {
            "name": "test",
            "date": "day",
            "part": "unsupported",
            "beyond": "online − offline",
            "share": "weight in the fit",
        }
    )
    layers: list[Spec] = [
        {"data": {"values": [{"d": 0.0}]}, "mark": {"type": "rule", "style": "guide"}, "encoding": {"y": y("d")}},
        *_line(calibration, starts, furthest, x, y),
        {"name": "bars", "data": {"values": rows}, "mark": {"type": "rule", "color": BLUE, "opacity": 0.45},
         "encoding": {"x": x("t"), "y": y("low"), "y2": {"field": "high"}, "tooltip": hover}},
        {"name": "tests", "data": {"values": rows}, "mark": {"type": "point", "filled": True, "color": BLUE,
                                                           "opacity": 1.0},
         "encoding": {"x": x("t"), "y": y("d"), "tooltip": hover,
                      "size": quantitative("weight", scale={"range": [25, 400], "zero": True}, legend=None)}},
        corner(estimator),
    ]  # fmt: skip
    sentences = [_sentence(calibration), "Each point is a test, larger if it weighs more; its bar is a 90 % interval."]
    return frame(
        "What online showed beyond offline",
        sentences,
        f"Points of {plural(len(rows), 'test')} for the estimator {estimator}: online minus offline uplift against the"
        f" unsupported term. {_sentence(calibration)}",
        width=WIDTH,
        height=HEIGHT,
        layer=layers,
    )


def gamma_chart(calibration: dict[str, Any], estimator: str, most: int = 500) -> Spec:
    """How Γ0 moved as tests came in: the fit of all tests so far, with its 95 % interval."""
    path = [row for row in calibration["over_time"] if row["gamma"] is not None]
    rows = [_step(i, row) for i, row in enumerate(path, start=1)][-most:]
    bounded = [row for row in rows if row["low"] is not None]
    order = "by day" if calibration["by_date"] else "in the order of the manifest"
    # the first few tests say little, and their wide intervals would flatten the rest
    settled = [row for row in bounded if row["tests"] >= 5] or bounded or rows
    ends = [1.0, *(row[end] for row in settled for end in ("low", "high", "gamma") if row[end] is not None)]
    margin = 0.05 * (max(ends) - min(ends)) or 0.05
    scale = {"domain": [min(ends) - margin, max(ends) + margin], "nice": True, "zero": False}

    def y(field: str) -> Spec:
        return quantitative(field, scale=scale, axis={"title": "Γ0 of the tests so far", "tickCount": 6})

    step = {"title": f"test, {order}", "tickMinStep": 1, "format": "d", "grid": False}
    x = quantitative("number", scale={"nice": False, "zero": False}, axis=step)
    hover = tooltip({"name": "up to test", "date": "day", "words": "Γ0", "tests": "tests"})
    marks = {"clip": True, "color": BLUE}
    layers = [
        {"data": {"values": [{"gamma": 1.0}]}, "mark": {"type": "rule", "style": "guide", "strokeDash": [4, 4]},
         "encoding": {"y": y("gamma")}},
        {"name": "interval", "data": {"values": bounded}, "mark": {"type": "area", "opacity": 0.2, **marks},
         "encoding": {"x": x, "y": y("low"), "y2": {"field": "high"}}},
        {"name": "gamma", "data": {"values": rows}, "mark": {"type": "line", "strokeWidth": 2, **marks},
         "encoding": {"x": x, "y": y("gamma")}},
        {"name": "steps", "data": {"values": rows}, "mark": {"type": "point", "filled": True, "size": 30,
                                                           "opacity": 1.0, **marks},
         "encoding": {"x": x, "y": y("gamma"), "tooltip": hover}},
        corner(estimator),
    ]  # fmt: skip
    last = rows[-1]["words"] if rows else "-"
    return frame(
        "How Γ0 moved over time",
        [f"The fit of all tests up to each one, {order}, with its 95 % interval. Dashed: 1, nothing to correct."],
        f"Γ0 of the estimator {estimator} after each of {plural(len(rows), 'test')}; after the last {last}.",
        width=WIDTH,
        height=HEIGHT - 80,
        layer=layers,
    )


def _line(calibration: dict[str, Any], starts: float, ends: float, x: Any, y: Any) -> list[Spec]:
    """The fitted line through the origin, with the interval of its slope."""
    gamma, lower, upper = (calibration[name] for name in ("gamma", "gamma_ci_lower", "gamma_ci_upper"))
    if gamma is None:
        return []
    slopes = {"d": gamma - 1.0, "low": (gamma if lower is None else lower) - 1.0,
              "high": (gamma if upper is None else upper) - 1.0}  # fmt: skip
    values = [{"t": t, **{name: slope * t for name, slope in slopes.items()}} for t in (starts, 0.0, ends)]
    return [
        {"name": "slopes", "data": {"values": values}, "mark": {"type": "area", "color": VERMILION, "opacity": 0.15},
         "encoding": {"x": x("t"), "y": y("low"), "y2": {"field": "high"}}},
        {"name": "line", "data": {"values": values}, "mark": {"type": "line", "color": VERMILION, "strokeWidth": 2},
         "encoding": {"x": x("t"), "y": y("d")}},
    ]  # fmt: skip


def _sentence(calibration: dict[str, Any]) -> str:
    if calibration["gamma"] is None:
        return "No test has an unsupported part: there is no line."
    between = ""
    if calibration["gamma_ci_lower"] is not None:
        between = f" (95 % interval {calibration['gamma_ci_lower']:.2f} to {calibration['gamma_ci_upper']:.2f})"
    return f"The line's slope is Γ0 − 1, with Γ0 = {calibration['gamma']:.2f}{between}."


def _is_known(point: dict[str, Any]) -> bool:
    return all(point[name] is not None for name in ("unsupported", "difference", "error"))


def _point(point: dict[str, Any]) -> dict[str, Any]:
    d, half = point["difference"], _TWO_SIDED * point["error"]
    return {
        "name": point["name"], "date": point["date"] or "-", "t": point["unsupported"], "d": d, "low": d - half,
        "high": d + half, "weight": point["weight"], "part": percent(point["unsupported"]),
        "beyond": percent(d, sign=True), "share": percent(point["weight"]),
    }  # fmt: skip


def _step(number: int, row: dict[str, Any]) -> dict[str, Any]:
    low, high = row["gamma_ci_lower"], row["gamma_ci_upper"]
    words = f"{row['gamma']:.2f}" + ("" if low is None else f" ({low:.2f} to {high:.2f})")
    return {"number": number, "name": row["name"], "date": row["date"] or "-", "tests": row["tests"],
            "gamma": row["gamma"], "low": low, "high": high, "words": words}  # fmt: skip
