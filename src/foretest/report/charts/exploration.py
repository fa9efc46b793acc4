"""Cost against benefit of exploration: what each way to explore costs, and the smallest uplift that its log shows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from foretest.formatting import percent, plural, round_percent
from foretest.report.charts.parts import Spec, corner, frame, percent_axis, quantitative, tooltip
from foretest.report.digits import interval_text, pct
from foretest.report.theme import BLUE, GREEN, GREY, HEIGHT, ORANGE, RED, WIDTH, Sign
from foretest.terminal.policy_tables import way_to_explore

#: each way with what a legend calls it
WAYS = {
    "uniform": ("random rankings", Sign(BLUE, [1, 0], "circle")),
    "swap-neighbours": ("neighbours swapped", Sign(ORANGE, [8, 4], "square")),
    "plackett-luce": ("plackett-luce", Sign(RED, [2, 3], "triangle-up")),
    "epsilon-greedy": ("epsilon-greedy", Sign(GREEN, [8, 3, 2, 3], "diamond")),
}
_HIGHEST = 4.0  # times the uplift asked, or the present one: what shows less than that is left out of the picture
_SPOKEN = 12


def exploration_chart(explore: Mapping[str, Any], level: str) -> Spec:
    """From `explore` of plan.json: a line for each way, a rule at the uplift asked, and the cheapest one marked."""
    rows = _rows(explore, level)
    x = quantitative("cost", scale=_domain(rows), axis=percent_axis("expected reward lost", grid=False, tickCount=8))
    y = quantitative("uplift", scale={"domain": [0.0, _top(explore, rows)], "nice": False, "clamp": False},
                     axis=percent_axis("smallest uplift"))  # fmt: skip
    signs = _signs(rows)
    hover = tooltip({"words": "control", "lost": "expected cost", "limits": "its interval", "most": "at most",
                     "shows": "smallest uplift"})  # fmt: skip
    shape = {**signs["color"], "legend": None, "scale": {"range": [WAYS[kind][1].shape for kind in _kinds(rows)]}}
    layers = [
        *_asked(explore, y),
        {"name": "ways", "data": {"values": rows},
         "mark": {"type": "line", "strokeWidth": 2.5, "clip": True},
         "encoding": {"x": x, "y": y, "order": {"field": "place", "type": "quantitative"}, **signs}},
        {"name": "settings", "data": {"values": rows},
         "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1, "clip": True},
         "encoding": {"x": x, "y": y, **signs, "shape": shape, "tooltip": hover}},
        *_marked(explore, level, x, y),
        corner(explore["metric"]),
    ]  # fmt: skip
    time = "as much log as this" if explore["days"] is None else f"{plural(explore['days'], 'day')} of log"
    sentences = [
        f"Each line is a way to explore, from little to much: what it costs, and the smallest uplift that {time} would"
        f" show by {level}. Dashed: the {round_percent(explore['uplift'])} asked for."
        f" {'None reaches it.' if explore['levels'][level]['cheapest'] is None else 'Ringed: the cheapest there.'}"
    ]
    return frame(
        f"What exploration costs and shows, by {level}", sentences, _description(explore, level, rows), width=WIDTH,
        height=HEIGHT, layer=layers,
    )  # fmt: skip


def _rows(explore: Mapping[str, Any], level: str) -> list[Spec]:
    """The settings that show anything, way by way; where costs are not known, by the most that they could be."""
    rows, limit = [], _limit(explore, level)
    for place, row in enumerate(explore["frontier"]):
        total, cost = row["levels"][level]["smallest_uplift"]["total"], _cost(row)
        if total is None or total > limit or row["kind"] not in WAYS:
            continue
        rows.append({
            "way": WAYS[row["kind"]][0], "kind": row["kind"], "place": place, "cost": cost, "uplift": total,
            "words": way_to_explore(row), "lost": pct(row["cost"]), "most": pct(row["cost_at_most"]),
            "limits": interval_text(row["cost_ci_lower"], row["cost_ci_upper"]), "shows": pct(total),
        })  # fmt: skip
    return rows


def _cost(row: Mapping[str, Any]) -> float:
    return float(row["cost_at_most"] if row["cost"] is None else row["cost"])


def _limit(explore: Mapping[str, Any], level: str) -> float:
    """The largest uplift that is drawn."""
    present = explore["frontier"][0]["levels"][level]["smallest_uplift"]["total"]
    best = min(
        (t for row in explore["frontier"] if (t := row["levels"][level]["smallest_uplift"]["total"]) is not None),
        default=explore["uplift"],
    )
    return float(max(_HIGHEST * explore["uplift"], 1.15 * (present or 0.0), 1.5 * best))


def _top(explore: Mapping[str, Any], rows: list[Spec]) -> float:
    """The top of the axis."""
    highest = max([1.2 * explore["uplift"], *(row["uplift"] for row in rows)])
    step = 10.0 ** math.floor(math.log10(highest))
    return float(math.ceil(1.05 * highest / (step / 2.0)) * (step / 2.0))


def _domain(rows: list[Spec]) -> Spec:
    """From the least cost to the largest, 0 among them."""
    costs = [0.0, *(row["cost"] for row in rows)]
    lowest, highest = min(costs), max(costs)
    room = 0.04 * ((highest - lowest) or 1.0)
    return {"domain": [lowest - room, highest + room], "nice": False, "zero": False}


def _kinds(rows: list[Spec]) -> list[str]:
    """The ways that are drawn, in the order of the data."""
    return list(dict.fromkeys(row["kind"] for row in rows))


def _signs(rows: list[Spec]) -> Spec:
    """Colour and dash of each way, with one legend."""
    legend = {"title": None, "orient": "bottom", "direction": "horizontal", "columns": 4, "symbolType": "stroke",
              "symbolSize": 500, "symbolOpacity": 1.0}  # fmt: skip
    kinds = _kinds(rows)
    ranges: dict[str, list[Any]] = {
        "color": [WAYS[kind][1].colour for kind in kinds],
        "strokeDash": [WAYS[kind][1].dash for kind in kinds],
    }
    return {
        channel: {"field": "way", "type": "nominal", "sort": None, "legend": legend, "scale": {"range": values}}
        for channel, values in ranges.items()
    }


def _asked(explore: Mapping[str, Any], y: Spec) -> list[Spec]:
    """A rule at the uplift asked, with its name."""
    data = {"values": [{"uplift": explore["uplift"], "name": f"{round_percent(explore['uplift'])} asked for"}]}
    mark = {"type": "text", "style": "guide-text", "align": "right", "dy": -7, "dx": -2}
    return [
        {"name": "asked", "data": data, "mark": {"type": "rule", "style": "guide", "strokeDash": [4, 3]},
         "encoding": {"y": y}},
        {"data": data, "mark": mark, "encoding": {"x": {"value": "width"}, "y": y, "text": {"field": "name"}}},
    ]  # fmt: skip


def _marked(explore: Mapping[str, Any], level: str, x: Spec, y: Spec) -> list[Spec]:
    """The control as it is, and a ring around the cheapest that reaches the uplift."""
    layers = []
    present, cheapest = explore["frontier"][0], explore["levels"][level]["cheapest"]
    for name, row, size in (("present", present, 90), ("cheapest", cheapest, 320)):
        if row is None or row["levels"][level]["smallest_uplift"]["total"] is None:
            continue
        words = way_to_explore(row)
        data = {"values": [{"cost": _cost(row), "uplift": row["levels"][level]["smallest_uplift"]["total"],
                            "name": words}]}  # fmt: skip
        look: Spec = {"filled": True, "color": GREY} if name == "present" else {"filled": False, "style": "strong"}
        layers.append({"name": name, "data": data,
                       "mark": {"type": "point", "shape": "circle", "size": size, "opacity": 1, **look},
                       "encoding": {"x": x, "y": y}})  # fmt: skip
        # most lines fall to the right: above them at the right, and below at the left, there is room
        place: Spec = {"align": "left", "dx": 12, "dy": -12} if name == "present" else {"align": "center", "dy": 28}
        layers.append({"data": data,
                       "mark": {"type": "text", "style": "guide-text", **place},
                       "encoding": {"x": x, "y": y, "text": {"field": "name"}}})  # fmt: skip
    return layers


def _description(explore: Mapping[str, Any], level: str, rows: list[Spec]) -> str:
    cheapest = explore["levels"][level]["cheapest"]
    answer = "none reaches it" if cheapest is None else f"the cheapest that reaches it is {way_to_explore(cheapest)}"
    numbers = "; ".join(f"{row['words']}: cost {row['lost']}, shows {row['shows']}" for row in rows[:_SPOKEN])
    more = f"; and {len(rows) - _SPOKEN} more" if len(rows) > _SPOKEN else ""
    return (
        f"Cost and smallest uplift of ways to explore, by {level}, for the metric {explore['metric']}. Asked for:"
        f" {percent(explore['uplift'])}; {answer}. {numbers}{more}."
    )
