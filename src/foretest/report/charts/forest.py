"""Uplifts side by side: one row per estimate, its range a pale line, noise a thin one, its word colour and shape."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Any, NamedTuple

import numpy as np

from foretest.formatting import round_percent
from foretest.inference.quantiles import median
from foretest.records import dataclass
from foretest.report.charts.parts import Spec, frame, percent_axis, tooltip
from foretest.report.digits import interval_text, num, pct
from foretest.report.theme import WIDTH, WORDS
from foretest.results.range_text import is_wider_than_noise, shown_noise, shown_range
from foretest.results.result import Estimate
from foretest.settings.metric_roles import INCREASE, toward_good

_STEP = 46  # pixels of a row
_WIDE = 6.0  # times the usual width: an interval beyond it is cut at the frame
_COLOUR = {"color": {"field": "colour", "type": "nominal", "scale": None}}
_POINT = dict.fromkeys(("fill", "stroke"), _COLOUR["color"])
_HOVER = tooltip({
    "label": "estimate of", "uplift": "uplift", "range": "range", "word": "word", "interval": "noise only",
    "verdict": "verdict by noise", "treatment": "treatment", "positives": "effective positives",
})  # fmt: skip


class Row(NamedTuple):
    """A row of the plot: an estimator of one metric, or a metric of one test."""

    label: str
    estimate: Estimate
    leads: bool = False
    direction: str = INCREASE  # the way that is better: the colour says good or bad, the shape up or down


def forest_chart(title: str, rows: Sequence[Row], confidence_level: float, truth: float | None = None) -> Spec:
    """Relative uplifts with their ranges, outside, and their intervals for noise alone, inside.

    An interval much wider than the rest goes beyond the frame, with an arrow. Labels come from users: they are values
    in the data, never part of an expression.
    """
    drawn = [row for row in rows if row.estimate.rel_effect_size is not None]
    axes = _Axes(*_domain(drawn, truth), [row.label for row in drawn])
    values = [_values(row, confidence_level, axes) for row in drawn]
    numbers = [
        f"{row.label}: {pct(row.estimate.rel_effect_size, sign=True)}"
        f" ({_range(row.estimate)}), {row.estimate.word}{_aside(row.estimate)}."
        for row in drawn
    ]
    known = [] if truth is None else [f"The true uplift is {pct(truth, sign=True)}."]
    level = round_percent(confidence_level)
    has_ranges = any(is_wider_than_noise(row.estimate) for row in drawn)
    intervals = f"Relative uplifts with {'their ranges' if has_ranges else f'{level} intervals'}."
    key = [f"Broad and pale: the range. Thin: noise only ({level} interval)."] if has_ranges else []
    return frame(
        title,
        key,
        " ".join([intervals, *numbers, *known]),
        width=WIDTH,
        height=_STEP * max(1, len(drawn)),
        layer=[
            *_lead(drawn, axes),
            _zero(axes),
            *_truth(truth, axes),
            *_ranges(values, axes),
            _intervals(values, axes),
            *_arrows(values, axes),
            _points(values, axes),
            *_texts(values, axes),
        ],
    )


@dataclass(frozen=True)
class _Axes:
    """The ends of the axis of uplifts, and the labels of the rows."""

    lowest: float
    highest: float
    labels: list[str]

    def x(self, field: str) -> Spec:
        """The channel of uplifts."""
        axis = percent_axis("uplift over the control", sign=True, values=ticks(self.lowest, self.highest))
        scale = {"domain": [self.lowest, self.highest], "nice": False}
        return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}

    @property
    def y(self) -> Spec:
        """The channel of rows."""
        return {"field": "label", "type": "nominal", "sort": None, "scale": {"domain": self.labels},
                "axis": {"title": None, "labelLimit": 220, "domain": False}}  # fmt: skip

    def cut(self, value: float) -> float:
        """A value, or the end of the axis that it is beyond."""
        return min(max(value, self.lowest), self.highest)


def _domain(rows: Sequence[Row], truth: float | None) -> tuple[float, float]:
    """The ends of the axis: around 0, the truth, the headline's range, and all intervals that are not very wide."""
    spans = [(row, *_limits(row.estimate)) for row in rows]
    usual = median(np.array([upper - lower for _, lower, upper in spans])) if spans else 0.0
    chosen = [(lo, up) for row, lo, up in spans if row.leads or up - lo <= _WIDE * usual] or [(-0.1, 0.1)]
    leading = [limits for row in rows if row.leads and (limits := _outer(row.estimate)) is not None]
    ends = [0.0, *(v for pair in [*chosen, *leading] for v in pair), *([] if truth is None else [truth])]
    lowest, highest = min(ends), max(ends)
    margin = 0.06 * (highest - lowest) or 0.01
    return lowest - margin, highest + margin


def ticks(lowest: float, highest: float, most: int = 7) -> list[float]:
    """Round values between two ends, at most that many.

    >>> ticks(-0.28, 0.31)
    [-0.2, -0.1, 0.0, 0.1, 0.2, 0.3]
    """
    power = 10.0 ** floor(log10(highest - lowest))
    step = next(s for s in (power * m for m in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0)) if (highest - lowest) / s < most)
    return [float(f"{k * step:.12g}") for k in range(ceil(lowest / step), floor(highest / step) + 1)]


def _limits(estimate: Estimate) -> tuple[float, float]:
    middle = estimate.rel_effect_size or 0.0
    lower, upper = shown_noise(estimate)
    return middle if lower is None else lower, middle if upper is None else upper


def _outer(estimate: Estimate) -> tuple[float, float] | None:
    """The relative limits of the range, where it is wider than noise alone."""
    limits = shown_range(estimate)
    if not is_wider_than_noise(estimate) or limits.rel_ci_lower is None or limits.rel_ci_upper is None:
        return None
    return limits.rel_ci_lower, limits.rel_ci_upper


def _range(estimate: Estimate) -> str:
    limits = shown_range(estimate)
    return interval_text(limits.rel_ci_lower, limits.rel_ci_upper)


def _aside(estimate: Estimate) -> str:
    """Noise alone in words, where the range is wider."""
    return "" if _outer(estimate) is None else f", noise only {_interval(estimate)}"


def _values(row: Row, confidence_level: float, axes: _Axes) -> dict[str, Any]:
    """A row's numbers and words, as data of the chart."""
    e, (lower, upper) = row.estimate, _limits(row.estimate)
    good_or_bad, up_or_down = WORDS[toward_good(e.word, row.direction)], WORDS[e.word]
    leans = e.word.startswith("leans")
    has = shown_noise(e).lower is not None
    middle = e.rel_effect_size or 0.0
    outer = _outer(e)
    return {
        "label": row.label, "value": middle, "at": axes.cut(middle),
        "from": max(lower, axes.lowest) if has and lower < axes.highest else None,
        "to": min(upper, axes.highest) if has and upper > axes.lowest else None,
        "beyond": ("left" if lower < axes.lowest else "") + ("right" if upper > axes.highest else ""),
        "colour": good_or_bad.colour, "shape": up_or_down.shape,
        "solid": 0.25 if leans else 1.0, "pale": 0.14 if leans else 0.26,
        "uplift": pct(middle, sign=True), "interval": f"{round_percent(confidence_level)}: {_interval(e)}",
        "treatment": num(e.treatment), "positives": num(e.effective_positives), "verdict": e.verdict,
        "range": _range(e), "word": e.word,
        "range_from": None if outer is None else axes.cut(outer[0]),
        "range_to": None if outer is None else axes.cut(outer[1]),
    }  # fmt: skip


def _interval(estimate: Estimate) -> str:
    return interval_text(*shown_noise(estimate))


def _lead(rows: Sequence[Row], axes: _Axes) -> list[Spec]:
    """A shade behind the headline's row."""
    leading = [{"label": row.label} for row in rows if row.leads]
    if not leading or len(rows) == 1:
        return []
    mark = {"type": "rect", "style": "shade", "aria": False}
    encoding = {"y": axes.y, "x": {"value": 0}, "x2": {"value": "width"}}
    return [{"data": {"values": leading}, "mark": mark, "encoding": encoding}]


def _zero(axes: _Axes) -> Spec:
    """A line at no uplift."""
    mark = {"type": "rule", "style": "guide"}
    return {"data": {"values": [{"value": 0.0}]}, "mark": mark, "encoding": {"x": axes.x("value")}}


def _truth(truth: float | None, axes: _Axes) -> list[Spec]:
    """A labelled line at the true uplift, where it is known."""
    if truth is None:
        return []
    data = {"values": [{"value": truth, "text": f"truth {pct(truth, sign=True)}"}]}
    where = {"x": axes.x("value")}
    text = {"type": "text", "align": "left", "dx": 5, "dy": -2, "baseline": "bottom", "fontWeight": 600, "aria": False}
    return [
        {"data": data, "mark": {"type": "rule", "style": "strong", "strokeDash": [2, 3]}, "encoding": where},
        {"data": data, "mark": text, "encoding": {**where, "y": {"value": 0}, "text": {"field": "text"}}},
    ]


def _ranges(values: list[dict[str, Any]], axes: _Axes) -> list[Spec]:
    """The ranges: broad, pale lines around the intervals; paler where the word leans."""
    some = [value for value in values if value["range_from"] is not None]
    if not some:
        return []
    mark = {"type": "rule", "strokeWidth": 11, "aria": False}
    pale = {"field": "pale", "type": "quantitative", "scale": None}
    encoding = {"x": axes.x("range_from"), "x2": {"field": "range_to"}, "y": axes.y, **_COLOUR, "opacity": pale}
    return [{"data": {"values": some}, "mark": mark, "encoding": encoding}]


def _intervals(values: list[dict[str, Any]], axes: _Axes) -> Spec:
    """The intervals as lines."""
    return {
        "data": {"values": [value for value in values if value["from"] is not None]},
        "mark": {"type": "rule", "strokeWidth": 3, "strokeCap": "round"},
        "encoding": {"x": axes.x("from"), "x2": {"field": "to"}, "y": axes.y, **_COLOUR, "tooltip": _HOVER},
    }


def _points(values: list[dict[str, Any]], axes: _Axes) -> Spec:
    """The uplifts as points, those that the axis has; hollow where the word leans."""
    shape = {"field": "shape", "type": "nominal", "scale": None}
    fill = {"fillOpacity": {"field": "solid", "type": "quantitative", "scale": None}}
    return {
        "data": {"values": [value for value in values if axes.lowest <= value["value"] <= axes.highest]},
        "mark": {"type": "point", "filled": True, "size": 140, "opacity": 1},
        "encoding": {"x": axes.x("value"), "y": axes.y, **_POINT, **fill, "shape": shape, "tooltip": _HOVER},
    }


def _texts(values: list[dict[str, Any]], axes: _Axes) -> list[Spec]:
    """The uplifts as text above the points."""
    return [
        {
            "data": {"values": values},
            "mark": {"type": "text", "dy": -15, "fontSize": 12, "aria": False, **look},
            "encoding": {"x": axes.x("at"), "y": axes.y, "text": {"field": "uplift", "type": "nominal"}},
        }
        for look in ({"style": "halo"}, {})  # the first is wider, in the background colour, where the theme has one
    ]


def _arrows(values: list[dict[str, Any]], axes: _Axes) -> list[Spec]:
    """Arrows where an interval goes beyond the frame."""
    layers = []
    for side, field, angle in (("left", "from", -90), ("right", "to", 90)):
        cut = [value for value in values if side in value["beyond"] and value[field] is not None]
        if cut:
            mark = {"type": "point", "shape": "triangle-up", "angle": angle, "filled": True, "size": 90, "opacity": 1}
            encoding = {"x": axes.x(field), "y": axes.y, **_COLOUR}
            layers.append({"data": {"values": cut}, "mark": mark, "encoding": encoding})
    return layers
