"""Figure 4: a box for each A/B test, as wide as its offline interval and as high as its online interval."""

from __future__ import annotations

from typing import Any

import numpy as np

from foretest.formatting import percent, plural, round_percent, span
from foretest.history.agreement import DECISIONS
from foretest.report.charts.parts import Spec, corner, frame, percent_axis, quantitative, tooltip
from foretest.report.theme import OUTCOMES

SIDE = 480  # both axes have the same scale: the plot is square

_WIDEST = 2.0  # of the frame, against the largest online limit
_LIMITS = ("offline_lower", "offline_upper", "online_lower", "online_upper")


def decisions_chart(tests: list[dict[str, Any]], estimator: str, confidence_level: float | None = None) -> Spec:
    """From `agreement.json`'s `tests`, for one estimator: relative uplifts.

    Boxes are green and dotted where offline decided as online did, orange and dashed where it decided higher, red and
    solid where it decided lower.
    """
    rows = [row for row in (_row(test, estimator) for test in tests) if row is not None]
    domain, outside = _domain(rows)
    interval = "interval" if confidence_level is None else f"{round_percent(confidence_level)} interval"

    def channel(field: str, side: str) -> Spec:
        axis = percent_axis(f"{side} uplift, {interval}", sign=True, tickCount=7)
        return quantitative(field, scale={"domain": domain, "nice": False, "zero": False}, axis=axis)

    def x(field: str) -> Spec:
        return channel(field, "offline")

    def y(field: str) -> Spec:
        return channel(field, "online")

    hover = tooltip({"name": "test", "outcome": "decision", "offline": "offline", "online": "online"})
    boxes = [
        {
            "name": f"boxes_{outcome.replace(' ', '_')}",
            "data": {"values": [row for row in rows if row["outcome"] == outcome]},
            "mark": {"type": "rect", "clip": True, "fill": sign.colour, "fillOpacity": 0.07, "stroke": sign.colour,
                     "strokeDash": sign.dash, "strokeWidth": 2, "strokeCap": "round"},
            "encoding": {"x": x("offline_lower"), "x2": {"field": "offline_upper"},
                         "y": y("online_lower"), "y2": {"field": "online_upper"}, "tooltip": hover},
        }
        for outcome, sign in OUTCOMES.items()
    ]  # fmt: skip
    centres = [
        {
            "name": f"centres_{outcome.replace(' ', '_')}",
            "data": {"values": [row for row in rows if row["outcome"] == outcome]},
            "mark": {"type": "point", "clip": True, "filled": True, "size": 45, "opacity": 1.0, "color": sign.colour,
                     "shape": sign.shape},
            "encoding": {"x": x("x"), "y": y("y"), "tooltip": hover},
        }
        for outcome, sign in OUTCOMES.items()
    ]  # fmt: skip
    sentences = _sentences(rows, outside)
    return frame(
        "Offline against online decisions",
        sentences,
        " ".join([f"Boxes of offline against online uplifts for the estimator {estimator}.", *sentences]),
        width=SIDE,
        height=SIDE,
        layer=[*_guides(domain, x, y), *boxes, *centres, _legend(), corner(estimator)],
    )


def _row(test: dict[str, Any], estimator: str) -> dict[str, Any] | None:
    online, offline = test["online"], test["offline"].get(estimator)
    if online is None or offline is None:
        return None
    limits = {
        f"{side}_{end}": estimate[f"rel_effect_size_ci_{end}"]
        for side, estimate in (("offline", offline), ("online", online))
        for end in ("lower", "upper")
    }
    limits |= {"x": offline["rel_effect_size"], "y": online["rel_effect_size"]}
    if any(value is None for value in limits.values()):
        return None
    decided = DECISIONS[offline["verdict"]], DECISIONS[online["verdict"]]
    outcome = ("right", "false positive", "false negative")[(decided[0] > decided[1]) - (decided[0] < decided[1])]
    return {
        "name": test["name"],
        "outcome": outcome,
        **limits,
        "offline": _words(offline),
        "online": _words(online),
    }


def _words(estimate: dict[str, Any]) -> str:
    limits = span(estimate["rel_effect_size_ci_lower"], estimate["rel_effect_size_ci_upper"])
    return f"{percent(estimate['rel_effect_size'], sign=True)} ({limits}), {estimate['verdict']}"


def _domain(rows: list[dict[str, Any]]) -> tuple[list[float], int]:
    """One range for both axes, and how many boxes go beyond it: one very wide interval must not flatten the rest."""
    if not rows:
        return [-0.1, 0.1], 0
    ends = np.array([[row[name] for name in _LIMITS] for row in rows])
    online = min(0.0, float(ends[:, 2].min())), max(0.0, float(ends[:, 3].max()))
    most = _WIDEST * max(-online[0], online[1])
    low = min(online[0], max(-most, float(np.quantile(ends[:, 0], 0.1))))
    high = max(online[1], min(most, float(np.quantile(ends[:, 1], 0.9))))
    margin = 0.04 * (high - low) or 0.01
    low, high = low - margin, high + margin
    return [low, high], int(((ends < low) | (ends > high)).any(axis=1).sum())


def _legend() -> Spec:
    """A layer without marks, for its legend: rectangles have no legend of dashes."""
    legend = {"title": None, "orient": "top", "direction": "horizontal", "symbolType": "square", "symbolSize": 220,
              "symbolStrokeWidth": 2}  # fmt: skip
    channels = {
        channel: {"field": "outcome", "type": "nominal", "legend": legend,
                  "scale": {"domain": list(OUTCOMES), "range": values}}
        for channel, values in (
            ("stroke", [sign.colour for sign in OUTCOMES.values()]),
            ("strokeDash", [sign.dash for sign in OUTCOMES.values()]),
        )
    }  # fmt: skip
    return {"data": {"values": []}, "mark": {"type": "line"}, "encoding": channels}


def _guides(domain: list[float], x: Any, y: Any) -> list[Spec]:
    """The zero lines, and the diagonal on which offline equals online."""
    zero, ends = {"values": [{"x": 0.0, "y": 0.0}]}, {"values": [{"x": end, "y": end} for end in domain]}
    return [
        {"data": zero, "mark": {"type": "rule", "style": "guide"}, "encoding": {"x": x("x")}},
        {"data": zero, "mark": {"type": "rule", "style": "guide"}, "encoding": {"y": y("y")}},
        {"data": ends, "mark": {"type": "line", "style": "guide", "strokeDash": [2, 4]},
         "encoding": {"x": x("x"), "y": y("y")}},
    ]  # fmt: skip


def _sentences(rows: list[dict[str, Any]], outside: int) -> list[str]:
    counts = {name: sum(row["outcome"] == name for row in rows) for name in OUTCOMES}
    sentences = [f"{plural(len(rows), 'test')}: {', '.join(f'{count} {name}' for name, count in counts.items())}."]
    if outside:
        sentences[0] += f" {outside} {'box reaches' if outside == 1 else 'boxes reach'} beyond the frame."
    return sentences
