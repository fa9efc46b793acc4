"""The page of a plan whose exploration was searched: the cheapest one, and cost against benefit at each level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foretest.formatting import plural, round_percent
from foretest.report.blocks import Block, Choice, Document, Section, Table, Words, chart_of, typeset
from foretest.report.charts.exploration import exploration_chart
from foretest.report.digits import interval_text, num, pct
from foretest.report.page import render
from foretest.terminal.policy_tables import toml_lines, way_to_explore


def plan_page(document: Mapping[str, Any]) -> str:
    """The page as HTML text, from the content of plan.json with `explore`."""
    explore = document["explore"]
    time = "as much log as this" if explore["days"] is None else plural(explore["days"], "day")
    asked = f"{round_percent(explore['uplift'])} of {explore['metric']} in {time}"
    answer, _, rest = explore["sentence"].partition(". ")
    charts = {level: chart_of(exploration_chart(explore, level)) for level in _drawn(explore)}
    pictures: list[Block] = [Choice("Level", charts)] if charts else []
    sections = [
        Section("What to serve", _what_to_serve(explore)),
        Section("Cost against benefit", [*pictures, *_ways_table(explore)]),
    ]
    return render(
        Document(
            kind="Plan",
            title=f"The cheapest exploration for {asked} – Foretest",
            sentence=typeset(f"{answer.removesuffix('.')}."),
            remarks=[
                *([typeset(rest)] if rest else []),
                f"Asked for: {typeset(asked)}, {explore['displays']:,.0f} displays.",
                *document["notes"],
            ],
            sections=sections,
            files={"plan.json": dict(document)},
        )
    )


def _drawn(explore: Mapping[str, Any]) -> list[str]:
    """The levels at which anything shows, the recommended one first."""
    shows = [level for level, answer in explore["levels"].items() if answer["best"] is not None]
    first = (explore["recommended"] or {}).get("level")
    return sorted(shows, key=lambda level: level != first)


def _what_to_serve(explore: Mapping[str, Any]) -> list[Block]:
    """The settings and the line of the service, or why there is nothing to change."""
    choice = explore["recommended"]
    if choice is None:
        return [
            f"By {level}: {typeset(answer['sentence'])}." for level, answer in explore["levels"].items()
        ]  # fmt: skip
    if choice["value"] is None or not choice["settings"]:
        return ["The control stays as it is."]
    sampler = choice["sampler"]
    served: Block = sampler["reason"] or Words(
        f"from foretest.serving import Sampler\n\nsampler = {sampler['line']}", "In the service, with a seed of its own"
    )
    return [
        Words("\n".join(toml_lines("control", choice["settings"])), "In the settings, once production serves so"),
        served,
    ]


def _ways_table(explore: Mapping[str, Any]) -> list[Block]:
    """The least of each way that reaches the uplift, by level."""
    choice = explore["recommended"] or {}
    rows: list[list[str]] = []
    strong: list[int] = []
    for level, answer in explore["levels"].items():
        for row in answer["ways"]:
            if level == choice.get("level") and row["settings"] == choice.get("settings"):
                strong.append(len(rows))
            rows.append([
                way_to_explore(row), level, pct(row["cost"]), interval_text(row["cost_ci_lower"], row["cost_ci_upper"]),
                pct(row["cost_at_most"]), num(row["lost_per_display"]), num(row["lost"]),
                pct(row["levels"][level]["smallest_uplift"]["total"]),
            ])  # fmt: skip
    reasons: list[Block] = [
        f"By {level}: {typeset(answer['sentence'])}." for level, answer in explore["levels"].items()
        if answer["sentence"] and explore["recommended"] is not None
    ]  # fmt: skip
    if not rows:
        return reasons
    table = Table(
        "The least of each way that reaches the uplift.",
        ["control", "level", "cost", "its interval", "at most", "lost per display", "lost in all", "smallest uplift"],
        rows,
        note="Cost is the reward lost, as a share of the control's; at most is a bound whatever the items are worth.",
        strong=strong,
    )
    return [table, *reasons]
