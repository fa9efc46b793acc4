"""How long rewards take: the share of reward that has come by each age of a display."""

from __future__ import annotations

from collections.abc import Mapping
from math import log10
from typing import Any

from foretest.displays.durations import SECOND, duration_of, duration_text
from foretest.formatting import round_percent
from foretest.report.charts.parts import Spec, corner, frame, percent_axis, quantitative, tooltip
from foretest.report.digits import count, pct
from foretest.report.theme import BLUE, HEIGHT, WIDTH

TITLE = "How long rewards take"
_POINTS = 120  # of the line
_SPOKEN = 8  # ages in the description
#: ages on the axis, in seconds, and what they are called
_TICKS = {
    1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 21_600: "6 h", 86_400: "1 day", 259_200: "3 days",
    604_800: "7 days", 2_592_000: "30 days", 31_536_000: "1 year",
}  # fmt: skip


def reward_ages_chart(curve: Mapping[str, Any], metric: str) -> Spec:
    """From `late_rewards.ages` of a metric: the share of the reward within the horizon, by age, and the window by which
    most of it has come."""
    rows = [
        {"age": age, "share": share, "words": age_text(age), "percent": pct(share), "displays": count(displays)}
        for age, share, displays in _thinned(curve)
    ]
    lowest, highest = curve["age"][0], curve["age"][-1]
    ticks = [age for age in _TICKS if lowest <= age <= highest]
    names = " : ".join([*(f"datum.value == {age} ? '{_TICKS[age]}'" for age in ticks), "''"])
    x = quantitative(
        "age",
        scale={"type": "log", "domain": [lowest, highest], "nice": False},
        axis={
            "title": "age of the display",
            "values": ticks,
            "labelExpr": names,
            "grid": False,
        },
    )
    y = quantitative("share", scale={"domain": [0, 1]}, axis=percent_axis("reward that has come"))
    hover = tooltip({"words": "age", "percent": "reward that has come", "displays": "displays observed that long"})
    line = {"name": "curve", "data": {"values": rows},
            "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2.5, "color": BLUE},
            "encoding": {"x": x, "y": y}}  # fmt: skip
    points = {"name": "ages", "data": {"values": rows},
              "mark": {"type": "point", "filled": True, "size": 40, "opacity": 0, "color": BLUE},
              "encoding": {"x": x, "y": y, "tooltip": hover}}  # fmt: skip
    return frame(
        TITLE,
        _sentences(curve),
        _description(curve, rows, metric),
        width=WIDTH,
        height=HEIGHT - 60,
        layer=[*_window(curve, x), line, points, corner(metric)],
    )


def age_text(seconds: float) -> str:
    """An age in two digits and one unit.

    >>> age_text(0.5), age_text(90.0), age_text(5_000.0), age_text(700_000.0)
    ('0.5 s', '90 s', '83 min', '8.1 days')
    """
    name, size = next(
        (pair for pair in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)) if seconds >= 2 * pair[1]), ("s", 1.0)
    )
    return f"{float(f'{seconds / size:.2g}'):g} {name}"


def _thinned(curve: Mapping[str, Any]) -> list[tuple[float, float, float]]:
    """The points of the line, not more than are drawn; the last is always among them."""
    points = list(zip(curve["age"], curve["share"], curve["displays"], strict=True))
    step = -(-len(points) // _POINTS)
    return points[::-1][::step][::-1]


def _window(curve: Mapping[str, Any], x: Spec) -> list[Spec]:
    """A rule at the window by which most has come, with its name where the curve is not."""
    if curve["window"] is None:
        return []
    age = duration_of("window", curve["window"]) / SECOND
    lowest, highest = curve["age"][0], curve["age"][-1]
    data = {"values": [{"age": max(age, lowest), "name": f"window = {curve['window']}"}]}
    at_left = log10(max(age, lowest) / lowest) < 0.3 * log10(highest / lowest)
    place = {"align": "left", "dx": 6} if at_left else {"align": "right", "dx": -6}
    mark = {"type": "text", "style": "guide-text", "dy": -10, **place}
    return [
        {"name": "window", "data": data, "mark": {"type": "rule", "style": "guide", "strokeDash": [4, 3]},
         "encoding": {"x": x}},
        {"data": data, "mark": mark, "encoding": {"x": x, "y": {"value": "height"}, "text": {"field": "name"}}},
    ]  # fmt: skip


def _sentences(curve: Mapping[str, Any]) -> list[str]:
    horizon = age_text(curve["horizon"])
    sentences = [
        f"Of the reward that comes within {horizon} of a display, the share that has come by each age (Kaplan-Meier:"
        " displays without a reward count until the log was read).",
        f"About {pct(curve['still_to_come'])} of the reward of these displays is still to come.",
    ]
    if curve["window"] is not None:
        sentences.append(f"Dashed: an age by which {round_percent(0.95)} has come, {_words(curve['window'])}.")
    return sentences


def _words(window: str) -> str:
    return duration_text(duration_of("window", window))


def _description(curve: Mapping[str, Any], rows: list[Spec], metric: str) -> str:
    """The share at some ages, evenly spaced on the axis."""
    first, last = log10(rows[0]["age"]), log10(rows[-1]["age"])
    wanted = [10.0 ** (first + (last - first) * k / (_SPOKEN - 1)) for k in range(_SPOKEN)]
    nearest = dict.fromkeys(min(range(len(rows)), key=lambda i: abs(log10(rows[i]["age"] / age))) for age in wanted)
    numbers = "; ".join(f"by {rows[i]['words']} {rows[i]['percent']}" for i in nearest)
    return (
        f"{TITLE}, for the metric {metric}: share of the reward that comes within {age_text(curve['horizon'])}:"
        f" {numbers}. Still to come of these displays: {pct(curve['still_to_come'])}."
    )
