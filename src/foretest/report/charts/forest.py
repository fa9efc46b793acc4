"""Uplifts side by side: one row per estimate, its interval a line, its verdict a colour and a shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from statistics import median
from typing import Any, NamedTuple

from foretest.formatting import round_percent
from foretest.report.charts.parts import Spec, frame, percent_axis, tooltip
from foretest.report.digits import interval_text, num, pct
from foretest.report.theme import VERDICTS, WIDTH
from foretest.results.result import Estimate
from foretest.settings.metric_roles import INCREASE, toward_good

_STEP = 46  # pixels of a row
_WIDE = 6.0  # times the usual width: an interval beyond it is cut at the frame
_COLOUR = {"color": {"field": "colour", "type": "nominal", "scale": None}}
_HOVER = tooltip({
    "label": "estimate of", "uplift": "uplift", "interval": "interval", "treatment": "treatment",
    "positives": "effective positives", "verdict": "verdict", "band": "sensitivity band",
})  # fmt: skip


class Row(NamedTuple):
    """A row of the plot: an estimator of one metric, or a metric of one test."""

    label: str
    estimate: Estimate
    leads: bool = False
    direction: str = INCREASE  # the way that is better: the colour says good or bad, the shape up or down


def forest_chart(title: str, rows: Sequence[Row], confidence_level: float, truth: float | None = None) -> Spec:
    """Relative uplifts with their intervals, and for point estimators with the sensitivity band around them.

    An interval much wider than the rest goes beyond the frame, with an arrow. Labels come from users: they are values
    in the data, never part of an expression.
    """
    drawn = [row for row in rows if row.estimate.rel_effect_size is not None]
    axes = _Axes(*_domain(drawn, truth), [row.label for row in drawn])
    values = [_values(row, confidence_level, axes) for row in drawn]
    numbers = [
        f"{row.label}: {pct(row.estimate.rel_effect_size, sign=True)}"
        f" ({_interval(row.estimate)}), {row.estimate.verdict}{_aside(row.estimate)}."
        for row in drawn
    ]
    known = [] if truth is None else [f"The true uplift is {pct(truth, sign=True)}."]
    intervals = f"Relative uplifts with {round_percent(confidence_level)} intervals."
    return frame(
        title,
        [],
        " ".join([intervals, *numbers, *known]),
        width=WIDTH,
        height=_STEP * max(1, len(drawn)),
        layer=[
            *_lead(drawn, axes),
            _zero(axes),
            *_truth(truth, axes),
            *_bands(values, axes),
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
    """The ends of the axis: around 0, the truth, the headline's band, and all intervals that are not very wide."""
    spans = [(row, *_limits(row.estimate)) for row in rows]
    usual = median([upper - lower for _, lower, upper in spans]) if spans else 0.0
    chosen = [(lo, up) for row, lo, up in spans if row.leads or up - lo <= _WIDE * usual] or [(-0.1, 0.1)]
    leading = [band for row in rows if row.leads and (band := _band(row.estimate)) is not None]
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
    lower, upper = estimate.rel_effect_size_ci_lower, estimate.rel_effect_size_ci_upper
    return middle if lower is None else lower, middle if upper is None else upper


def _band(estimate: Estimate) -> tuple[float, float] | None:
    """The sensitivity band with its noise, relative to the control; None where there is none."""
    band, treatment, effect = estimate.sensitivity, estimate.treatment, estimate.effect_size
    if band is None or band["ci_lower"] is None or band["ci_upper"] is None or treatment is None or effect is None:
        return None
    control = treatment - effect
    return (band["ci_lower"] / control, band["ci_upper"] / control) if control else None


def _aside(estimate: Estimate) -> str:
    """The band in words, for those who cannot see it."""
    band = _band(estimate)
    return "" if band is None else f", sensitivity band {' to '.join(pct(end, sign=True) for end in band)}"


def _values(row: Row, confidence_level: float, axes: _Axes) -> dict[str, Any]:
    """A row's numbers and words, as data of the chart."""
    e, (lower, upper) = row.estimate, _limits(row.estimate)
    good_or_bad, up_or_down = VERDICTS[toward_good(e.verdict, row.direction)], VERDICTS[e.verdict]
    has = e.rel_effect_size_ci_lower is not None
    middle = e.rel_effect_size or 0.0
    band = _band(e)
    return {
        "label": row.label, "value": middle, "at": axes.cut(middle),
        "from": max(lower, axes.lowest) if has and lower < axes.highest else None,
        "to": min(upper, axes.highest) if has and upper > axes.lowest else None,
        "beyond": ("left" if lower < axes.lowest else "") + ("right" if upper > axes.highest else ""),
        "colour": good_or_bad.colour, "shape": up_or_down.shape,
        "uplift": pct(middle, sign=True), "interval": f"{round_percent(confidence_level)}: {_interval(e)}",
        "treatment": num(e.treatment), "positives": num(e.effective_positives), "verdict": e.verdict,
        "band": "none" if band is None else " to ".join(pct(end, sign=True) for end in band),
        "band_from": None if band is None else axes.cut(band[0]),
        "band_to": None if band is None else axes.cut(band[1]),
    }  # fmt: skip


def _interval(estimate: Estimate) -> str:
    return interval_text(estimate.rel_effect_size_ci_lower, estimate.rel_effect_size_ci_upper)


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


def _bands(values: list[dict[str, Any]], axes: _Axes) -> list[Spec]:
    """The sensitivity bands: broad, pale lines around the intervals."""
    some = [value for value in values if value["band_from"] is not None]
    if not some:
        return []
    mark = {"type": "rule", "strokeWidth": 11, "opacity": 0.22, "aria": False}
    encoding = {"x": axes.x("band_from"), "x2": {"field": "band_to"}, "y": axes.y, **_COLOUR}
    return [{"data": {"values": some}, "mark": mark, "encoding": encoding}]


def _intervals(values: list[dict[str, Any]], axes: _Axes) -> Spec:
    """The intervals as lines."""
    return {
        "data": {"values": [value for value in values if value["from"] is not None]},
        "mark": {"type": "rule", "strokeWidth": 3, "strokeCap": "round"},
        "encoding": {"x": axes.x("from"), "x2": {"field": "to"}, "y": axes.y, **_COLOUR, "tooltip": _HOVER},
    }


def _points(values: list[dict[str, Any]], axes: _Axes) -> Spec:
    """The uplifts as points, those that the axis has."""
    shape = {"field": "shape", "type": "nominal", "scale": None}
    return {
        "data": {"values": [value for value in values if axes.lowest <= value["value"] <= axes.highest]},
        "mark": {"type": "point", "filled": True, "size": 140, "opacity": 1},
        "encoding": {"x": axes.x("value"), "y": axes.y, **_COLOUR, "shape": shape, "tooltip": _HOVER},
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
