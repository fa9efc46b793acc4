"""Figure 2: noise, bias bound and sensitivity of CIS against the cap."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import Any

from foretest.formatting import percent, round_percent
from foretest.report.charts.cap_estimates import bound_chart, cap_estimates_chart
from foretest.report.charts.cap_layers import STEP, Curve, cap_marker, cap_strips, line_signs, tooltip_columns
from foretest.report.charts.cap_words import cap_sentences, criteria_sentences
from foretest.report.charts.parts import Spec, corner, frame, percent_axis, powers_of_ten, quantitative
from foretest.report.theme import BLUE, GREEN, GREY, HEIGHT, VERMILION, WIDTH, Sign

CURVES = {
    "noise": Curve("noise", Sign(BLUE, [1, 0], "circle")),
    "bias bound": Curve("bias_bound", Sign(VERMILION, [8, 4], "circle")),
    "smallest uplift it could show": Curve("sensitivity", Sign(GREY, [2, 3], "circle")),
}
_LABEL = 0.3  # the share of the axis that a label takes


def cap_charts(cap_path: dict[str, Any]) -> list[Spec]:
    """All of a metric's charts against the cap or the bound, in reading order."""
    bound = [bound_chart(cap_path)] if cap_path.get("point-ncis-adaptive") else []
    return [cap_estimates_chart(cap_path), *bound, cap_chart(cap_path)]


def cap_chart(cap_path: dict[str, Any]) -> Spec:
    """From a metric's `cap_path`: noise, bias bound and sensitivity, the uplift sought, and the bands below it."""
    caps = [log10(cap) for cap in cap_path["caps"]]
    x, labels = powers_of_ten("cap", "cap on the weights", 0.0, _end(cap_path, caps))
    rows = [
        {"cap": cap, "curve": name, "value": value}
        for name, (field, _) in CURVES.items()
        for cap, value in zip(caps, cap_path[field], strict=True)
        if value is not None and value > 0.0
    ]
    drawn = {row["curve"] for row in rows}
    y = _log_percent([row["value"] for row in rows], cap_path["sought"])
    lines = {
        "name": "curves",
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 2.5, "clip": True},
        "encoding": {"x": x, "y": y, **line_signs("curve", {name: CURVES[name] for name in CURVES if name in drawn})},
    }
    numbers = [*criteria_sentences(cap_path), *cap_sentences(cap_path)]
    tooltips = tooltip_columns(cap_path, {
        "noise": ("noise", percent),
        "noise in this log": ("noise_seen", percent),
        "noise to expect": ("noise_expected", percent),
        "bias bound": ("bias_bound", percent),
        "smallest uplift": ("sensitivity", percent),
        "treatment mass kept": ("treatment_mass_kept", percent),
    })  # fmt: skip
    return frame(
        "Noise and bias of CIS against the cap",
        numbers,
        " ".join([f"Curves over caps from 1 to 1e25, for the metric {cap_path['metric']}.", *numbers]),
        width=WIDTH,
        height=HEIGHT,
        layer=[*_bands(cap_path, x, y), *_sought(cap_path, rows, x, y), lines, *cap_marker(cap_path, x),
               cap_strips(caps, tooltips, x), *labels, corner(cap_path["metric"])],
    )  # fmt: skip


def _log_percent(values: list[float], sought: float) -> Spec:
    """A log axis around the uplift sought: at most six decades, and nothing above 10 000 %."""
    top = min(100.0, 10.0 ** ceil(log10(max([*values, 10.0 * sought]))))
    bottom = max(top * 1e-6, min(10.0 ** floor(log10(min([*values, sought]))), sought / 10.0))
    ticks = [10.0**k for k in range(round(log10(bottom)), round(log10(top)) + 1)]
    return quantitative(
        "value",
        scale={"type": "log", "domain": [bottom, top], "nice": False},
        axis=percent_axis("relative to the control's value", values=ticks),
    )


def _bands(cap_path: dict[str, Any], x: Spec, y: Spec) -> list[Spec]:
    """The caps at which the noise, the bound on the bias, or both are below the uplift sought."""
    words = round_percent(cap_path["sought"])
    kinds = {
        "noise_band": (f"noise below {words}", BLUE, "left"),
        "bias_band": (f"bias bound below {words}", VERMILION, "right"),
        "both_band": (f"both below {words}", GREEN, "center"),
    }
    end, bottom = x["scale"]["domain"][1], y["scale"]["domain"][0]
    layers: list[Spec] = []
    for field, (label, colour, align) in kinds.items():
        band = cap_path[field]
        if band is None or log10(band[0]) > end:
            continue
        low, high = max(0.0, log10(band[0]) - STEP / 2), min(end, log10(band[1]) + STEP / 2)
        place, dx = {"left": (low, 6), "right": (high, -6), "center": ((low + high) / 2, 0)}[align]
        if align != "center" and high - low < end * _LABEL:  # too narrow for its label, which is then beside it
            place, align = (high, "left") if align == "left" else (low, "right")
        rect = {"values": [{"cap": low, "to": high, "value": cap_path["sought"], "bottom": bottom}]}
        text = {"values": [{"cap": place, "value": cap_path["sought"], "label": label}]}
        look = {"align": align, "baseline": "top", "dx": dx, "dy": 26 if align == "center" else 7}
        layers += [
            {"name": field, "data": rect, "mark": {"type": "rect", "color": colour, "opacity": 0.16},
             "encoding": {"x": x, "x2": {"field": "to"}, "y": y, "y2": {"field": "bottom"}}},
            {"data": text, "mark": {"type": "text", **look}, "encoding": {"x": x, "y": y, "text": {"field": "label"}}},
        ]  # fmt: skip
    return layers


def _sought(cap_path: dict[str, Any], rows: list[dict[str, Any]], x: Spec, y: Spec) -> list[Spec]:
    """The line of the uplift sought, with its label away from the curves and from the cap of the run."""
    end, sought, half = x["scale"]["domain"][1], cap_path["sought"], x["scale"]["domain"][1] * _LABEL / 2

    def clearance(place: float) -> float:
        """Decades from a place of the label to the nearest curve."""
        if abs(log10(cap_path["cap"]) - place) < half:
            return 0.0
        return min((abs(log10(row["value"] / sought)) for row in rows if abs(row["cap"] - place) < half), default=9.0)

    places = {"right": end - half, "center": end / 2, "left": half}
    clear = (name for name in places if clearance(places[name]) > 0.4)
    align = next(clear, max(places, key=lambda name: clearance(places[name])))
    at = {"right": end, "center": end / 2, "left": 0.0}[align]
    data = {"values": [{"value": sought, "cap": at, "label": f"{round_percent(sought)} uplift sought"}]}
    look = {"align": align, "baseline": "bottom", "dx": 6 if align == "left" else 0, "dy": -4, "fontWeight": 600}
    return [
        {"name": "sought", "data": data, "mark": {"type": "rule", "style": "strong"}, "encoding": {"y": y}},
        {"data": data, "mark": {"type": "text", **look}, "encoding": {"x": x, "y": y, "text": {"field": "label"}}},
    ]


def _end(cap_path: dict[str, Any], caps: list[float]) -> float:
    """Where the axis ends: about a decade after the last cap at which anything changes."""
    columns = [cap_path[field] for field, _ in CURVES.values()]
    last = next((k for k in reversed(range(1, len(caps))) if any(c[k] != c[k - 1] for c in columns)), 0)
    return min(caps[-1], max(4.0, ceil(caps[last] + 0.5), log10(cap_path["cap"]) + 1.0))
