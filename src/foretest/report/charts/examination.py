"""How likely users look at each slot: the examination curve, with its interval or with the curves around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from foretest.files import finite_or_none
from foretest.formatting import round_percent, some_of
from foretest.report.charts.parts import Spec, corner, frame, quantitative, tooltip
from foretest.report.digits import count
from foretest.report.theme import BLUE, GREEN, GREY, HEIGHT, ORANGE, RED, WIDTH, Sign
from foretest.results.examination_text import FITTED
from foretest.special import ndtri
from foretest.weights.examination import VARIANT_NAMES, varied

TITLE = "How likely users look at each slot"
#: the curves of a column that are drawn, first ones first: all colours that every eye can tell apart
SIGNS = (
    Sign(BLUE, [1, 0], "circle"), Sign(ORANGE, [8, 4], "square"), Sign(RED, [2, 3], "triangle-up"),
    Sign(GREEN, [8, 3, 2, 3], "diamond"), Sign(GREY, [4, 2], "triangle-down"),
)  # fmt: skip
_TICKS = 12  # slots with a label
_SPOKEN = 20  # slots in the description
_OTHERS = 6  # slots that a tooltip compares a slot with


class Limits(NamedTuple):
    """An interval of θ."""

    lower: float
    upper: float


def examination_chart(examination: Mapping[str, Any], metric: str, confidence_level: float) -> Spec:
    """From a metric's `examination`: θ by slot, relative to the first slot. A fitted curve has intervals at the
    confidence level; around a given one are the steeper and flatter ones that the range covers; of a column's values
    each has its line."""
    if "curves" in examination:
        return _by_column(examination, metric)
    return (
        _fitted(examination, metric, confidence_level) if examination["kind"] == FITTED else _given(examination, metric)
    )


def _fitted(examination: Mapping[str, Any], metric: str, confidence_level: float) -> Spec:
    theta, level = examination["theta"], round_percent(confidence_level)
    limits = theta_limits(theta, examination["std_error"], confidence_level)
    rewards = _rewards_by_slot(examination.get("pairs", ()), len(theta))
    rows = [
        {"slot": slot, "theta": value, "words": f"{value:.3g}", "rewards": rewards[slot - 1] or "-",
         "lower": None if ends is None else ends.lower, "upper": None if ends is None else ends.upper,
         "interval": _span(ends)}
        for slot, (value, ends) in enumerate(zip(theta, limits, strict=True), start=1)
    ]  # fmt: skip
    titles = {"slot": "slot", "words": "θ", "interval": f"{level} interval", "rewards": "effective rewards"}
    x, y = _axes(len(theta))
    spread = {
        "name": "intervals",
        "data": {"values": [row for row in rows if row["lower"] is not None]},
        "mark": {"type": "rule", "strokeWidth": 2, "color": BLUE},
        "encoding": {"x": x, "y": {**y, "field": "lower"}, "y2": {"field": "upper"}},
    }
    numbers = [
        f"slot {row['slot']} {row['words']}{'' if row['lower'] is None else ' (' + row['interval'] + ')'}"
        for row in rows
    ]
    return _frame(
        [
            "Fitted from the log: items that the control shows now in one slot, now in another, tell how much less each"
            f" slot is looked at. Bars: {level} intervals. The curve's error is in every interval by exposure."
        ],
        _description(metric, numbers),
        [spread, *_curve(rows, titles, x, y), corner(metric)],
    )


def _given(examination: Mapping[str, Any], metric: str) -> Spec:
    given = tuple(examination["theta"])
    rows = _rows(given, "as given")
    around = [
        row for variant, name in enumerate(VARIANT_NAMES) if variant for row in _rows(varied(given, variant), name)
    ]
    titles = {"slot": "slot", "words": "θ", "curve": "curve"}
    x, y = _axes(len(given))
    faint: Spec = {"color": GREY, "opacity": 0.6}
    variants = [
        {"name": "variants", "data": {"values": around},
         "mark": {"type": "line", "strokeWidth": 1.5, "strokeDash": [4, 3], **faint},
         "encoding": {"x": x, "y": y, "detail": {"field": "curve", "type": "nominal"}}},
        {"name": "variant_slots", "data": {"values": around},
         "mark": {"type": "point", "filled": True, "size": 22, **faint},
         "encoding": {"x": x, "y": y, "tooltip": tooltip(titles)}},
    ]  # fmt: skip
    return _frame(
        [
            "Given in the settings, not fitted from the log. Grey: steeper and flatter curves, which the range covers"
            " too."
        ],
        _description(metric, [f"slot {row['slot']} {row['words']}" for row in rows]),
        [*variants, *_curve(rows, titles, x, y), corner(metric)],
    )


def _by_column(examination: Mapping[str, Any], metric: str) -> Spec:
    curves, column = examination["curves"], examination["column"]
    drawn = list(curves.items())[: len(SIGNS)]
    rows = [row for label, curve in drawn for row in _rows(tuple(curve), label)]
    x, y = _axes(max(len(curve) for _, curve in drawn))
    signs = _signs()
    hover = tooltip({"curve": "value", "slot": "slot", "words": "θ"})
    shape = {**signs["color"], "legend": None, "scale": {"range": [sign.shape for sign in SIGNS]}}
    layers = [
        {"name": "curve", "data": {"values": rows}, "mark": {"type": "line", "strokeWidth": 2.5},
         "encoding": {"x": x, "y": y, **signs}},
        {"name": "slots", "data": {"values": rows}, "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
         "encoding": {"x": x, "y": y, **signs, "shape": shape, "tooltip": hover}},
    ]  # fmt: skip
    left_out = len(curves) - len(drawn)
    sentences = [
        "Given in the settings for each value of a column, not fitted from the log. The range covers steeper and"
        " flatter curves too.",
        *([f"The first {len(drawn)} of {len(curves)} values."] if left_out else []),
    ]
    numbers = [f"{label}: {', '.join(f'{x / curve[0]:.3g}' for x in curve[:_SPOKEN])}" for label, curve in drawn]
    return _frame(sentences, _description(metric, numbers, f" by {column}"), [*layers, corner(metric)])


def _signs() -> Spec:
    """Colour and dash of each curve, with one legend. Their scales have no domain, which is then taken from the data:
    names of users are data and nothing else. All layers have both channels, or the legend would be two."""
    legend = {"title": None, "orient": "top", "direction": "horizontal", "columns": 4, "symbolType": "stroke",
              "symbolSize": 500, "symbolOpacity": 1.0}  # fmt: skip
    ranges = {"color": [sign.colour for sign in SIGNS], "strokeDash": [sign.dash for sign in SIGNS]}
    return {
        channel: {"field": "curve", "type": "nominal", "sort": None, "legend": legend, "scale": {"range": values}}
        for channel, values in ranges.items()
    }


def theta_limits(
    theta: Sequence[float], errors: Sequence[float | None], confidence_level: float
) -> list[Limits | None]:
    """θ ± z standard errors of each slot; None for the first slot, which is 1 by definition.

    >>> first, second = theta_limits([1.0, 0.5], [0.0, 0.1], 0.9)
    >>> first, round(second.lower, 4), round(second.upper, 4)
    (None, 0.3355, 0.6645)
    """
    z = float(ndtri(0.5 + confidence_level / 2.0))
    known = [None if error is None else finite_or_none(error) for error in errors]
    return [
        Limits(max(0.0, value - z * error), value + z * error) if error else None
        for value, error in zip(theta, known, strict=True)
    ]


def _rewards_by_slot(pairs: Sequence[Mapping[str, Any]], slots: int) -> list[str]:
    """The effective rewards that connect each slot with others, in words."""
    words: list[list[str]] = [[] for _ in range(slots)]
    for pair in pairs:
        first, second = pair["slots"]
        number = count(pair["effective_rewards"])
        words[first - 1].append(f"{number} with slot {second}")
        words[second - 1].append(f"{number} with slot {first}")
    return [some_of(texts, _OTHERS) for texts in words]


def _rows(curve: tuple[float, ...], name: str) -> list[Spec]:
    """A curve as data, relative to its first slot: only ratios matter."""
    return [
        {"slot": slot, "theta": value / curve[0], "words": f"{value / curve[0]:.3g}", "curve": name}
        for slot, value in enumerate(curve, start=1)
    ]


def _axes(slots: int) -> tuple[Spec, Spec]:
    step = -(-slots // _TICKS)
    x = quantitative(
        "slot",
        scale={"domain": [0.7, slots + 0.3], "nice": False, "zero": False},
        axis={"title": "slot", "values": list(range(1, slots + 1, step)), "format": "d", "grid": False},
    )
    y = quantitative("theta", scale={"zero": True}, axis={"title": "relative to the first slot", "format": "~g"})
    return x, y


def _curve(rows: list[Spec], titles: Mapping[str, str], x: Spec, y: Spec) -> list[Spec]:
    """A line through its points, each with a tooltip."""
    data = {"values": rows}
    return [
        {"name": "curve", "data": data, "mark": {"type": "line", "strokeWidth": 2.5, "color": BLUE},
         "encoding": {"x": x, "y": y}},
        {"name": "slots", "data": data,
         "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1, "color": BLUE},
         "encoding": {"x": x, "y": y, "tooltip": tooltip(titles)}},
    ]  # fmt: skip


def _span(limits: Limits | None) -> str:
    return "-" if limits is None else f"{limits.lower:.3g} to {limits.upper:.3g}"


def _description(metric: str, numbers: list[str], by: str = "") -> str:
    more = f"; and {len(numbers) - _SPOKEN} more" if len(numbers) > _SPOKEN else ""
    return f"{TITLE}{by}, relative to the first, for the metric {metric}: {'; '.join(numbers[:_SPOKEN])}{more}."


def _frame(sentences: list[str], description: str, layers: list[Spec]) -> Spec:
    return frame(TITLE, sentences, description, width=WIDTH, height=HEIGHT - 60, layer=layers)
