"""How charts look: fonts, colours, each with a dash or shape that says the same, and the themes LIGHT and DARK.

Every colour of a mark stands out from both backgrounds (contrast of 3 or more), so that a specification is the same in
light and in dark; text takes its colour from the configuration (contrast of 4.5 or more). Hues can be told apart with
any kind of colour vision, and a dash or a shape says the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"
WIDTH, HEIGHT = 600, 300  # of a plot: with its axes it fits a page of 720 px

BLUE, VERMILION, GREEN, ORANGE, RED, PURPLE, GREY = (
    "#2f7cc0", "#cf5b14", "#16896c", "#b97a00", "#cc3d4a", "#8a66c4", "#74808e",
)  # fmt: skip


class Sign(NamedTuple):
    """A colour, and the dash (of a line) and the shape (of a point) that say the same."""

    colour: str
    dash: list[int]
    shape: str


#: the three outcomes of Figure 4: dotted, dashed and solid, as in the paper
OUTCOMES = {
    "right": Sign(GREEN, [1, 3], "circle"),
    "false positive": Sign(ORANGE, [6, 4], "triangle-up"),
    "false negative": Sign(RED, [1, 0], "triangle-down"),
}

VERDICTS = {
    "positive": Sign(GREEN, [1, 0], "triangle-up"),
    "neutral": Sign(GREY, [6, 4], "circle"),
    "negative": Sign(RED, [1, 0], "triangle-down"),
    "insufficient": Sign(PURPLE, [1, 3], "diamond"),
}
#: words have the sign of their verdict; what leans is drawn paler, with a hollow point
WORDS = VERDICTS | {f"leans {verdict}": VERDICTS[verdict] for verdict in ("positive", "negative")}


def _config(background: str, text: str, quiet: str, line: str, grid: str) -> dict[str, Any]:
    return {
        "background": background,
        "font": FONT,
        "padding": {"left": 8, "top": 8, "right": 16, "bottom": 8},
        "view": {"stroke": None},
        "title": {
            "anchor": "start", "color": text, "fontSize": 15, "fontWeight": 600, "offset": 14,
            "subtitleColor": quiet, "subtitleFontSize": 12, "subtitlePadding": 6, "subtitleLineHeight": 16,
        },
        "axis": {
            "labelColor": quiet, "titleColor": text, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": 500,
            "titlePadding": 8, "labelPadding": 5, "domainColor": line, "tickColor": line, "gridColor": grid,
            "tickSize": 4, "labelOverlap": "greedy",
        },
        "axisY": {"domain": False, "ticks": False},
        "legend": {
            "labelColor": text, "titleColor": text, "labelFontSize": 12, "titleFontSize": 12, "symbolSize": 110,
            "symbolStrokeWidth": 2, "labelLimit": 320,
        },
        "text": {"color": text, "fontSize": 12},
        "style": {
            "guide": {"color": quiet, "strokeWidth": 1},
            "guide-text": {"color": quiet, "fontSize": 12},
            "shade": {"color": quiet, "opacity": 0.12},
            "strong": {"color": text, "strokeWidth": 2},
        },
    }  # fmt: skip


LIGHT = _config("#ffffff", "#1d2733", "#4c5967", "#9aa5b1", "#e6eaee")
DARK = _config("#14181d", "#e8ecf1", "#b3bdc8", "#5d6975", "#2a3139")
