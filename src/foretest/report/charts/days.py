"""The uplift day by day, with intervals."""

from __future__ import annotations

from collections.abc import Sequence

from foretest.formatting import round_percent
from foretest.report.charts.parts import Spec, corner, frame, percent_axis, quantitative, tooltip
from foretest.report.digits import interval_text, pct
from foretest.report.theme import HEIGHT, VERDICTS, WIDTH
from foretest.results.days import Day
from foretest.settings.metric_roles import INCREASE, toward_good

TITLE = "Uplift by day"
_SPOKEN = 31  # days in the description


def days_chart(
    days: Sequence[Day], metric: str, confidence_level: float, overall: float | None, direction: str = INCREASE
) -> Spec:
    """Relative uplifts of the days that have one, with intervals for noise; dashed, the uplift of all days.
    Colours say good or bad, by the direction that is better, shapes up or down.

    The axis fits the days with enough evidence: intervals of others may go beyond the frame.
    """
    drawn = [day for day in days if day.rel_effect_size is not None]
    rows = [
        {"day": day.day, "value": day.rel_effect_size, "lower": day.rel_effect_size_ci_lower,
         "upper": day.rel_effect_size_ci_upper, "uplift": pct(day.rel_effect_size, sign=True),
         "interval": interval_text(day.rel_effect_size_ci_lower, day.rel_effect_size_ci_upper),
         "verdict": day.verdict, "displays": f"{day.rows:,}",
         "colour": VERDICTS[toward_good(day.verdict, direction)].colour, "shape": VERDICTS[day.verdict].shape}
        for day in drawn
    ]  # fmt: skip
    level = round_percent(confidence_level)
    y_scale = {"domain": list(_domain(drawn, overall)), "nice": True, "zero": False}
    y = quantitative("value", scale=y_scale, axis=percent_axis("uplift", sign=True))
    x = {"field": "day", "type": "nominal", "sort": None,
         "axis": {"title": None, "labelAngle": -40, "labelLimit": 110, "grid": False}}  # fmt: skip
    colour, shape = ({"field": name, "type": "nominal", "scale": None} for name in ("colour", "shape"))
    hover = tooltip({"day": "day", "uplift": "uplift", "interval": f"{level} interval", "verdict": "verdict",
                     "displays": "displays"})  # fmt: skip
    spread = {"name": "intervals", "data": {"values": [row for row in rows if row["lower"] is not None]},
              "mark": {"type": "rule", "strokeWidth": 2, "clip": True},
              "encoding": {"x": x, "y": {**y, "field": "lower"}, "y2": {"field": "upper"}, "color": colour,
                           "tooltip": hover}}  # fmt: skip
    points = {"name": "days", "data": {"values": rows},
              "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1, "clip": True},
              "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": hover}}  # fmt: skip
    numbers = [f"{row['day']}: {row['uplift']} ({row['interval']}), {row['verdict']}" for row in rows[:_SPOKEN]]
    more = f"; and {len(rows) - _SPOKEN} more days" if len(rows) > _SPOKEN else ""
    of_all = "" if overall is None else f" All days: {pct(overall, sign=True)}."
    key = f"Bars: {level} intervals, noise only."
    key += "" if overall is None else f" Dashed: the uplift of all days, {pct(overall, sign=True)}."
    sentences = [key, "Triangles: positive or negative. Circles: neutral. Diamonds: too little evidence for a verdict."]
    return frame(
        TITLE,
        sentences,
        f"{TITLE} in the metric {metric}, with {level} intervals. {'; '.join(numbers)}{more}.{of_all}",
        width=WIDTH,
        height=HEIGHT - 60,
        layer=[*_guides(y, overall), spread, points, corner(metric)],
    )


def _guides(y: Spec, overall: float | None) -> list[Spec]:
    """No change, and the uplift of all days."""
    zero = {"data": {"values": [{"value": 0.0}]}, "mark": {"type": "rule", "style": "guide"}, "encoding": {"y": y}}
    if overall is None:
        return [zero]
    mark = {"type": "rule", "style": "strong", "strokeDash": [6, 4], "clip": True}
    return [zero, {"name": "overall", "data": {"values": [{"value": overall}]}, "mark": mark, "encoding": {"y": y}}]


def _domain(days: Sequence[Day], overall: float | None) -> tuple[float, float]:
    """The least and the largest limit of days with enough evidence, 0 and the uplift of all days."""
    known = [day for day in days if day.verdict != "insufficient"] or list(days)
    limits = [
        limit
        for day in known
        for limit in (day.rel_effect_size_ci_lower, day.rel_effect_size, day.rel_effect_size_ci_upper)
        if limit is not None
    ]
    ends = [0.0, *limits, *([] if overall is None else [overall])]
    return min(ends), max(ends)
