"""Figure 3: the correlation of offline with online uplifts, one box per estimator."""

from __future__ import annotations

from typing import Any

from foretest.report.charts.parts import Spec, frame, quantitative, tooltip
from foretest.report.theme import BLUE, VERMILION, WIDTH

_QUANTILES = ("q10", "q25", "q50", "q75", "q90")
_HOVER = tooltip({
    "estimator": "estimator", "words": "correlation", "box": "quartiles", "whiskers": "10 % and 90 %",
    "most": "noise ceiling", "tests": "tests",
})  # fmt: skip


def correlation_chart(table: dict[str, dict[str, Any]]) -> Spec:
    """From `agreement.json`'s `table`: quartiles as boxes, 10 % and 90 % as whiskers, the noise ceiling as a tick."""
    rows = [_row(name, figures) for name, figures in table.items() if figures["correlation"] is not None]
    drawn = [row for row in rows if row["q10"] is not None]
    ceilings = [row for row in rows if row["ceiling"] is not None]
    layers = [
        _zero(),
        _layer("whiskers", drawn, "q10", "q90", type="rule", color=BLUE, strokeWidth=2),
        _layer("boxes", drawn, "q25", "q75", type="bar", color=BLUE, size=20),
        _layer("medians", drawn, "q50", type="tick", color="white", thickness=2, size=20, opacity=1.0),
        _layer("correlations", rows, "correlation", type="point", shape="diamond", size=90, filled=True, style="strong",
               opacity=1.0),
        _layer("ceilings", ceilings, "ceiling", type="tick", color=VERMILION, thickness=3, size=30, opacity=1.0),
    ]  # fmt: skip
    numbers = "; ".join(f"{row['estimator']} {row['words']} ({row['whiskers']})" for row in rows)
    sentences = [
        "Diamond: the correlation. Box: quartiles over resampled tests, line: median. Whiskers: 10 % and 90 %."
    ]
    if ceilings:
        sentences.append("Orange tick: the noise ceiling, what a perfect estimator would show under the noise of both.")
    return frame(
        "Correlation of offline with online uplifts",
        sentences,
        f"Boxes of the correlation with online tests, 10 % and 90 % quantiles in brackets: {numbers}.",
        width=WIDTH - 100,
        height=38 * max(1, len(rows)),  # in pixels: a step cannot be fitted to the width of a page
        layer=layers,
    )


def _x(field: str) -> Spec:
    title, ticks = "correlation of offline with online uplifts", [-1.0, -0.5, 0.0, 0.5, 1.0]
    axis = {"title": title, "values": ticks, "grid": True, "format": ".1f", "labelFlush": False}
    return quantitative(field, scale={"domain": [-1.0, 1.0], "nice": False}, axis=axis)


def _zero() -> Spec:
    """A line at no correlation."""
    mark = {"type": "rule", "style": "guide"}
    return {"data": {"values": [{"q10": 0.0}]}, "mark": mark, "encoding": {"x": _x("q10")}}


def _layer(name: str, values: list[dict[str, Any]], field: str, to: str | None = None, **mark: Any) -> Spec:
    """Marks at a field, or from one field to another, by estimator."""
    ends = {"x": _x(field)} if to is None else {"x": _x(field), "x2": {"field": to}}
    # sorted by data order, not by a list of names, which are the user's
    y = {"field": "estimator", "type": "nominal", "sort": None, "axis": {"title": None, "labelLimit": 170}}
    return {"name": name, "data": {"values": values}, "mark": mark, "encoding": {"y": y, **ends, "tooltip": _HOVER}}


def _row(name: str, figures: dict[str, Any]) -> dict[str, Any]:
    quantiles = {q: figures[f"correlation_{q}"] for q in _QUANTILES}
    return {
        "estimator": name,
        "correlation": figures["correlation"],
        "ceiling": figures["noise_ceiling"],
        **quantiles,
        "words": _two(figures["correlation"]),
        "box": f"{_two(quantiles['q25'])} to {_two(quantiles['q75'])}",
        "whiskers": f"{_two(quantiles['q10'])} to {_two(quantiles['q90'])}",
        "most": _two(figures["noise_ceiling"]),
        "tests": f"{figures['tests']:.0f}" if figures.get("tests") is not None else "-",
    }


def _two(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
