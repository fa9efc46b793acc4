"""Figure 2: noise, bias bound and sensitivity of CIS against the cap; and the estimates against the cap."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import Any

from foretest.formatting import format_number, percent, span
from foretest.inference.verdict import FEWEST_POSITIVES
from foretest.report.charts.parts import (
    Spec,
    corner,
    frame,
    percent_axis,
    plain_percent,
    power,
    powers_of_ten,
    quantitative,
    said,
)
from foretest.report.theme import BLUE, GREEN, GREY, HEIGHT, VERMILION, WIDTH, Sign

CURVES = {
    "noise": ("noise", Sign(BLUE, [1, 0], "circle")),
    "bias bound": ("bias_bound", Sign(VERMILION, [8, 4], "circle")),
    "smallest uplift it could show": ("sensitivity", Sign(GREY, [2, 3], "circle")),
}
ESTIMATORS = {"CIS": ("cis", Sign(VERMILION, [8, 4], "circle")), "NCIS": ("ncis", Sign(BLUE, [1, 0], "circle"))}
POINT = "PointNCIS"  # on a grid of caps of its own, where it runs
_LIMITS = ("", "_ci_lower", "_ci_upper")
_STEP = 0.25  # decades between caps
_LABEL = 0.3  # the share of the axis that a label takes


def cap_chart(cap_path: dict[str, Any]) -> Spec:
    """From a metric's `cap_path`: noise, bias bound and sensitivity, the uplift sought, the bands below it."""
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
        "encoding": {"x": x, "y": y, **_signs("curve", {name: CURVES[name] for name in CURVES if name in drawn})},
    }
    numbers = [*_criteria(cap_path), *_at_the_cap(cap_path)]
    tooltips = _columns(cap_path, {
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
        layer=[*_bands(cap_path, x, y), *_sought(cap_path, rows, x, y), lines, *_this_cap(cap_path, x),
               _hover(caps, tooltips, x), *labels, corner(cap_path["metric"])],
    )  # fmt: skip


def cap_charts(cap_path: dict[str, Any]) -> list[Spec]:
    """All of a metric's charts against a cap or a bound, in reading order."""
    bound = [bound_chart(cap_path)] if cap_path.get("point-ncis-adaptive") else []
    return [cap_estimates_chart(cap_path), *bound, cap_chart(cap_path)]


def cap_estimates_chart(cap_path: dict[str, Any]) -> Spec:
    """From a metric's `cap_path`: relative uplift of CIS and NCIS with intervals, and of PointNCIS where it runs."""
    caps = [log10(cap) for cap in cap_path["caps"]]
    largest = cap_path["max_log10_weight"]
    end = min(caps[-1], max(3.0, log10(cap_path["cap"]) + 1.0, 0.0 if largest is None else ceil(largest + 0.5)))
    x, labels = powers_of_ten("cap", "cap on the weights", 0.0, end)
    named = ESTIMATORS | ({POINT: ("point-ncis", Sign(GREEN, [2, 3], "circle"))} if cap_path.get("point-ncis") else {})
    rows = [
        {"cap": cap, "estimator": name, "value": value, "lower": lower, "upper": upper}
        for name, (field, _) in named.items()
        for cap, value, lower, upper in zip(
            [log10(own) for own in cap_path[field]["caps"]] if name == POINT else caps,
            *(cap_path[field][f"rel_effect_size{part}"] for part in _LIMITS),
            strict=True,
        )
        if value is not None and cap <= end
    ]
    y = {"axis": percent_axis("uplift over the control", sign=True), "scale": {"zero": True, "nice": True}}
    signs = _signs("estimator", named)
    spread = {
        "name": "intervals",
        "data": {"values": [row for row in rows if row["lower"] is not None]},
        "mark": {"type": "area", "opacity": 0.16},
        "encoding": {
            "x": x,
            "y": quantitative("lower", **y),
            "y2": {"field": "upper"},
            "color": signs["color"],
        },
    }
    lines = {
        "name": "estimates",
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 2.5},
        "encoding": {"x": x, "y": quantitative("value", **y), **signs},
    }
    zero = {"data": {"values": [{"value": 0.0}]}, "mark": {"type": "rule", "style": "guide"},
            "encoding": {"y": quantitative("value", **y)}}  # fmt: skip
    tooltips = _columns(cap_path, {"effective positives": ("effective_positives", format_number)})
    for name, (field, _) in ESTIMATORS.items():
        columns = cap_path[field]
        tooltips[name] = [percent(value, sign=True) for value in columns["rel_effect_size"]]
        limits = zip(columns["rel_effect_size_ci_lower"], columns["rel_effect_size_ci_upper"], strict=True)
        tooltips[f"{name}, {_level(cap_path)} interval"] = [span(*pair) for pair in limits]
    if POINT in named:
        tooltips |= _at_its_caps(cap_path, caps)
    numbers = _estimate_sentences(cap_path)
    return frame(
        "Uplift against the cap",
        numbers,
        " ".join([f"Estimates over caps from 1 to {power(10.0**end)}, for the metric {cap_path['metric']}.", *numbers]),
        width=WIDTH,
        height=HEIGHT - 20,
        layer=[*_too_few(cap_path, caps, x, end), spread, zero, lines, *_this_cap(cap_path, x),
               _hover(caps, tooltips, x), *labels, corner(cap_path["metric"])],
    )  # fmt: skip


def bound_chart(cap_path: dict[str, Any]) -> Spec:
    """From a metric's `cap_path`: relative uplift of the adaptive PointNCIS against the bound on its weights."""
    path = cap_path["point-ncis-adaptive"]
    columns = [path[f"rel_effect_size{part}"] for part in _LIMITS]
    rows = [
        {"bound": bound, "value": value, "lower": lower, "upper": upper, "words": power(bound),
         "said": percent(value, sign=True), "interval": span(lower, upper), "effective": format_number(effective)}
        for bound, effective, value, lower, upper in zip(
            path["bounds"], path["effective_positives"], *columns, strict=True
        )
        if value is not None
    ]  # fmt: skip
    x = quantitative(
        "bound",
        scale={"type": "log", "nice": False},
        axis={"title": "bound on the weights", "values": [2, 5, 10, 20, 50, 100, 200, 500, 1000], "grid": False},
    )
    y = {"axis": percent_axis("uplift over the control", sign=True), "scale": {"zero": True, "nice": True}}
    tooltip = [said("words", "bound"), said("said", "uplift"), said("interval", f"{_level(cap_path)} interval"),
               said("effective", "effective positives")]  # fmt: skip
    zero = {"data": {"values": [{"value": 0.0}]}, "mark": {"type": "rule", "style": "guide"},
            "encoding": {"y": quantitative("value", **y)}}  # fmt: skip
    spread = {
        "name": "intervals",
        "data": {"values": [row for row in rows if row["lower"] is not None]},
        "mark": {"type": "area", "opacity": 0.16, "color": BLUE},
        "encoding": {"x": x, "y": quantitative("lower", **y), "y2": {"field": "upper"}},
    }
    line = {
        "name": "estimates",
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 2.5, "color": BLUE, "point": {"color": BLUE, "size": 60}},
        "encoding": {"x": x, "y": quantitative("value", **y), "tooltip": tooltip},
    }
    numbers = _bound_sentences(cap_path)
    return frame(
        "Uplift against the bound on the weights",
        numbers,
        " ".join(
            [
                f"Estimates of point-ncis-adaptive at bounds from {power(path['bounds'][0])} to"
                f" {power(path['bounds'][-1])}, for the metric {cap_path['metric']}.",
                *numbers,
            ]
        ),
        width=WIDTH,
        height=HEIGHT - 60,
        layer=[spread, zero, line, *_this_bound(cap_path, x), corner(cap_path["metric"])],
    )


# -- layers ------------------------------------------------------------------------------------------------------------


def _signs(field: str, names: dict[str, tuple[str, Sign]]) -> Spec:
    """Colour and dash of a line by the same field: one legend above the plot."""
    scale = {"domain": list(names)}
    legend = {"title": None, "orient": "top", "direction": "horizontal", "symbolType": "stroke", "symbolSize": 500,
              "symbolOpacity": 1.0}  # fmt: skip
    signs = [sign for _, sign in names.values()]
    return {
        "color": {"field": field, "type": "nominal", "legend": legend,
                  "scale": {**scale, "range": [sign.colour for sign in signs]}},
        "strokeDash": {"field": field, "type": "nominal", "legend": legend,
                       "scale": {**scale, "range": [sign.dash for sign in signs]}},
    }  # fmt: skip


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
    """Below the uplift sought: the caps where noise, bias bound or both are."""
    words = plain_percent(cap_path["sought"])
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
        low, high = max(0.0, log10(band[0]) - _STEP / 2), min(end, log10(band[1]) + _STEP / 2)
        place, dx = {"left": (low, 6), "right": (high, -6), "center": ((low + high) / 2, 0)}[align]
        if align != "center" and high - low < end * _LABEL:  # too narrow for its label, which then stands beside it
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
    """The line of the uplift sought, its label where neither curves nor the run's cap are near."""
    end, sought, half = x["scale"]["domain"][1], cap_path["sought"], x["scale"]["domain"][1] * _LABEL / 2

    def clearance(place: float) -> float:
        """Decades to the nearest curve."""
        if abs(log10(cap_path["cap"]) - place) < half:
            return 0.0
        return min((abs(log10(row["value"] / sought)) for row in rows if abs(row["cap"] - place) < half), default=9.0)

    places = {"right": end - half, "center": end / 2, "left": half}
    clear = (name for name in places if clearance(places[name]) > 0.4)
    align = next(clear, max(places, key=lambda name: clearance(places[name])))
    at = {"right": end, "center": end / 2, "left": 0.0}[align]
    data = {"values": [{"value": sought, "cap": at, "label": f"{plain_percent(sought)} uplift sought"}]}
    look = {"align": align, "baseline": "bottom", "dx": 6 if align == "left" else 0, "dy": -4, "fontWeight": 600}
    return [
        {"name": "sought", "data": data, "mark": {"type": "rule", "style": "strong"}, "encoding": {"y": y}},
        {"data": data, "mark": {"type": "text", **look}, "encoding": {"x": x, "y": y, "text": {"field": "label"}}},
    ]


def _this_cap(cap_path: dict[str, Any], x: Spec) -> list[Spec]:
    cap = log10(cap_path["cap"])
    if not x["scale"]["domain"][0] <= cap <= x["scale"]["domain"][1]:
        return []
    data = {"values": [{"cap": cap, "label": f"cap {power(cap_path['cap'])}"}]}
    words = {"type": "text", "align": "left", "baseline": "top", "dx": 5, "dy": 2, "y": 0, "style": "guide-text"}
    return [
        {"data": data, "mark": {"type": "rule", "style": "guide", "strokeDash": [3, 3]}, "encoding": {"x": x}},
        {"data": data, "mark": words, "encoding": {"x": x, "text": {"field": "label"}}},
    ]


def _this_bound(cap_path: dict[str, Any], x: Spec) -> list[Spec]:
    bound = cap_path["weight_bound"]
    data = {"values": [{"bound": bound, "label": f"bound {power(bound)}"}]}
    words = {"type": "text", "align": "left", "baseline": "top", "dx": 5, "dy": 2, "y": 0, "style": "guide-text"}
    return [
        {"data": data, "mark": {"type": "rule", "style": "guide", "strokeDash": [3, 3]}, "encoding": {"x": x}},
        {"data": data, "mark": words, "encoding": {"x": x, "text": {"field": "label"}}},
    ]


def _too_few(cap_path: dict[str, Any], caps: list[float], x: Spec, end: float) -> list[Spec]:
    """The caps whose weights leave too few rewarded rows to carry an interval."""
    counts = cap_path["effective_positives"]
    few = [cap for cap, count in zip(caps, counts, strict=True) if (count or 0.0) < FEWEST_POSITIVES and cap <= end]
    if not few:
        return []
    data = {"values": [{"cap": max(0.0, min(few) - _STEP / 2), "to": end, "label": "too few rewards to tell"}]}
    words = {"type": "text", "align": "right", "baseline": "bottom", "dx": -6, "dy": -6, "style": "guide-text"}
    return [
        {"name": "too_few", "data": data, "mark": {"type": "rect", "style": "shade"},
         "encoding": {"x": x, "x2": {"field": "to"}}},
        {"data": data, "mark": words,
         "encoding": {"x": {"value": "width"}, "y": {"value": "height"}, "text": {"field": "label"}}},
    ]  # fmt: skip


def _hover(caps: list[float], columns: dict[str, list[str]], x: Spec) -> Spec:
    """A strip a cap, unseen until pointed at, whose tooltip has every number."""
    end = x["scale"]["domain"][1]
    fields = {f"f{k}": column for k, column in enumerate(columns.values())}
    rows = [
        {"cap": max(0.0, cap - _STEP / 2), "to": min(end, cap + _STEP / 2), "words": power(10.0**cap)}
        | {field: column[k] for field, column in fields.items()}
        for k, cap in enumerate(caps)
        if cap <= end
    ]
    tooltip = [said("words", "cap"), *(said(field, name) for field, name in zip(fields, columns, strict=True))]
    return {
        "name": "strips",
        "data": {"values": rows},
        "params": [{"name": "pointed", "select": {"type": "point", "on": "pointerover", "clear": "pointerout"}}],
        "mark": {"type": "rect", "style": "shade", "aria": False},
        "encoding": {
            "x": x,
            "x2": {"field": "to"},
            "opacity": {"condition": {"param": "pointed", "empty": False, "value": 0.15}, "value": 0.0},
            "tooltip": tooltip,
        },
    }


# -- words -------------------------------------------------------------------------------------------------------------


def _columns(cap_path: dict[str, Any], wanted: dict[str, tuple[str, Any]]) -> dict[str, list[str]]:
    return {title: [form(value) for value in cap_path[field]] for title, (field, form) in wanted.items()}


def _level(cap_path: dict[str, Any]) -> str:
    return plain_percent(cap_path["confidence_level"])


def _criteria(cap_path: dict[str, Any]) -> list[str]:
    sought = plain_percent(cap_path["sought"])
    noise = f"Noise (half the {_level(cap_path)} interval) is below {sought} {_where(cap_path, 'noise_band')}"
    if cap_path["satisfies_both"] is None:
        return [f"{noise}.", *(note[0].upper() + note[1:] for note in cap_path["notes"])]
    both = (
        "No cap keeps both below it."
        if not cap_path["satisfies_both"]
        else f"Both are {_where(cap_path, 'both_band')}."
    )
    return [f"{noise}, the bound on bias {_where(cap_path, 'bias_band')}.", both]


def _where(cap_path: dict[str, Any], field: str) -> str:
    band = cap_path[field]
    if band is None:
        return "at no cap"
    first, last = band[0] <= cap_path["caps"][0], band[1] >= cap_path["caps"][-1]
    if first and last:
        return "at every cap"
    if last:
        return f"at caps of {power(band[0])} and more"
    return f"at caps up to {power(band[1])}" if first else f"at caps from {power(band[0])} to {power(band[1])}"


def _nearest(cap_path: dict[str, Any]) -> int:
    """The cap of the path that is nearest to the run's."""
    return min(range(len(cap_path["caps"])), key=lambda k: abs(log10(cap_path["caps"][k] / cap_path["cap"])))


def _at_the_cap(cap_path: dict[str, Any]) -> list[str]:
    k = _nearest(cap_path)
    noise, bias, least = (cap_path[field][k] for field in ("noise", "bias_bound", "sensitivity"))
    if noise is None:
        return []
    at = f"At a cap of {power(cap_path['caps'][k])}: noise ±{percent(noise)}"
    if bias is None:
        return [f"{at}."]
    return [f"{at}, bias at most {percent(bias)}: the smallest uplift that CIS is sure to show is {percent(least)}."]


def _estimate_sentences(cap_path: dict[str, Any]) -> list[str]:
    k = _nearest(cap_path)
    said_of = []
    for name, (field, _) in ESTIMATORS.items():
        value, lower, upper = (cap_path[field][f"rel_effect_size{part}"][k] for part in _LIMITS)
        if value is not None:
            said_of.append(f"{name} {percent(value, sign=True)} ({span(lower, upper)})")
    if not said_of:
        return ["There is no reward, so there is no uplift to show."]
    sentences = [f"At a cap of {power(cap_path['caps'][k])}: {', '.join(said_of)}; {_level(cap_path)} intervals."]
    path = cap_path.get("point-ncis")
    return sentences + ([] if path is None else [*_ends(path, POINT, "caps", "a cap"), *_remarks(path)])


def _bound_sentences(cap_path: dict[str, Any]) -> list[str]:
    path = cap_path["point-ncis-adaptive"]
    if all(value is None for value in path["rel_effect_size"]):
        return ["There is no reward, so there is no uplift to show."]
    k = path["bounds"].index(min(path["bounds"], key=lambda bound: abs(log10(bound / cap_path["weight_bound"]))))
    value, lower, upper = (path[f"rel_effect_size{part}"][k] for part in _LIMITS)
    at = f"At a bound of {power(path['bounds'][k])}: {percent(value, sign=True)} ({span(lower, upper)};"
    return [f"{at} {_level(cap_path)} interval).", *_ends(path, "The estimate", "bounds", "a bound"), *_remarks(path)]


def _ends(path: dict[str, Any], name: str, grid: str, a_place: str) -> list[str]:
    """How far an estimate moves along its grid."""
    first, last = path["rel_effect_size"][0], path["rel_effect_size"][-1]
    if first is None or last is None:
        return []
    low, high = power(path[grid][0]), power(path[grid][-1])
    return [f"{name} goes from {percent(first, sign=True)} at {a_place} of {low} to {percent(last, sign=True)} at"
            f" {a_place} of {high}."]  # fmt: skip


def _remarks(path: dict[str, Any]) -> list[str]:
    return [f"{note[0].upper()}{note[1:]}." for note in path["notes"]]


def _at_its_caps(cap_path: dict[str, Any], caps: list[float]) -> dict[str, list[str]]:
    """What tooltips say of PointNCIS: something at its own caps, which are every other of the path."""
    path = cap_path["point-ncis"]
    columns = zip(*(path[f"rel_effect_size{part}"] for part in _LIMITS), strict=True)
    known = {round(log10(cap), 6): numbers for cap, numbers in zip(path["caps"], columns, strict=True)}
    found = [known.get(round(cap, 6)) for cap in caps]
    return {
        POINT: ["-" if one is None else percent(one[0], sign=True) for one in found],
        f"{POINT}, {_level(cap_path)} interval": ["-" if one is None else span(*one[1:]) for one in found],
    }


def _end(cap_path: dict[str, Any], caps: list[float]) -> float:
    """Where the axis ends: a decade after the last cap at which anything changes."""
    columns = [cap_path[field] for field, _ in CURVES.values()]
    last = next((k for k in reversed(range(1, len(caps))) if any(c[k] != c[k - 1] for c in columns)), 0)
    return min(caps[-1], max(4.0, ceil(caps[last] + 0.5), log10(cap_path["cap"]) + 1.0))
