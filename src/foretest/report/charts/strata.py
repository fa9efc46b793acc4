"""Where the cap cuts: the mean weight of each stratum of PieceNCIS."""

from __future__ import annotations

from typing import Any

from foretest.report.charts.parts import Spec, frame, quantitative, tooltip
from foretest.report.digits import num, pct
from foretest.report.theme import BLUE, VERMILION, WIDTH

MOST = 30  # strata drawn, those of the largest share


def strata_chart(strata: list[dict[str, Any]]) -> Spec:
    """From an estimate's `strata`: the mean capped weight, which is 1 where nothing of the treatment is cut off.

    NCIS assumes that the cap cuts all displays alike: the more the strata differ, the larger its error can be.
    """
    largest = {id(s) for s in sorted(strata, key=lambda s: -s["share"])[:MOST]}
    shown = [s for s in strata if id(s) in largest]
    rows = [
        {"stratum": s["label"], "weight": s["mean_weight"], "one": 1.0, "share": pct(s["share"]),
         "weight_text": num(s["mean_weight"]), "value": num(s["value"]), "contribution": num(s["contribution"]),
         "colour": VERMILION if (s["mean_weight"] or 0.0) < 1.0 else BLUE}
        for s in shown
    ]  # fmt: skip
    y = {"field": "stratum", "type": "nominal", "sort": None, "axis": {"title": None, "labelLimit": 200}}
    x = quantitative(
        "weight", axis={"title": "mean capped weight", "tickCount": 6, "format": "~g"}, scale={"zero": True}
    )
    hover = tooltip(
        {
            "stratum": "stratum",
            "share": "share of rows",
            "weight_text": "mean weight",
            "value": "value",
            "contribution": "contribution",
        }
    )
    colour = {"field": "colour", "type": "nominal", "scale": None}
    data = {"values": rows}
    left_out = len(strata) - len(shown)
    sentences = [
        "A mean weight of 1 means that nothing of the treatment is cut off in a stratum; 0.6 that two fifths are."
        " NCIS assumes that the cap cuts all strata alike; PieceNCIS does not.",
        *([f"The {MOST} largest of {len(strata)} strata."] if left_out else []),
    ]
    numbers = [f"{s['label']}: {num(s['mean_weight'])} ({pct(s['share'])} of rows)." for s in shown]
    return frame(
        "Where the cap cuts",
        sentences,
        " ".join(["Mean capped weight by stratum.", *numbers]),
        width=WIDTH,
        height=26 * len(shown),
        layer=[
            {"data": {"values": [{"weight": 1.0}]}, "mark": {"type": "rule", "style": "guide"}, "encoding": {"x": x}},
            {"data": data, "mark": {"type": "rule", "strokeWidth": 3},
             "encoding": {"x": x, "x2": {"field": "one"}, "y": y, "color": colour, "tooltip": hover}},
            {"data": data, "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
             "encoding": {"x": x, "y": y, "color": colour, "tooltip": hover}},
        ],
    )  # fmt: skip
