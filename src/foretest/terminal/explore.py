"""The cheapest exploration as text: what each way needs at each level, the answer, and the settings that make it."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from foretest.formatting import percent, plural, round_percent, short_span
from foretest.terminal.parts import add_number_columns, headed_table, wrapped_lines
from foretest.terminal.policy_tables import toml_lines, way_to_explore


def explore_lines(explore: dict[str, Any] | None) -> list[RenderableType]:
    """From `explore` of plan.json; nothing where no exploration was searched."""
    if explore is None:
        return []
    time = "as much log as this" if explore["days"] is None else plural(explore["days"], "day")
    heading = (
        f"The cheapest exploration that shows {round_percent(explore['uplift'])} of {explore['metric']} in {time}"
        f" ({explore['displays']:,.0f} displays):"
    )
    levels = explore["levels"]
    reasons = [f"by {name}: {level['sentence']}." for name, level in levels.items() if level["sentence"]]
    table = [_ways_table(explore)] if any(level["ways"] for level in levels.values()) else []
    answer = Text.assemble(("Cheapest", "bold"), f" (by {explore['metric']}): {explore['sentence']}")
    return [Text(), Text(heading), *table, *wrapped_lines(reasons), Text(), answer, *_settings(explore["recommended"])]


def _ways_table(explore: dict[str, Any]) -> Table:
    """The least of each way that shows the uplift, by level; a star marks the one that is recommended."""
    choice = explore["recommended"] or {}
    table = headed_table()
    table.add_column(no_wrap=True)
    add_number_columns(table, "cost", "its interval", "at most", "shows")
    for name, level in explore["levels"].items():
        if level["ways"]:
            table.add_row(f"  by {name}")
        for row in level["ways"]:
            chosen = name == choice.get("level") and row["settings"] == choice.get("settings")
            table.add_row(
                f"{'*' if chosen else ' '}   {way_to_explore(row)}", percent(row["cost"]),
                short_span(row["cost_ci_lower"], row["cost_ci_upper"]), percent(row["cost_at_most"]),
                percent(row["levels"][name]["smallest_uplift"]["total"]),
            )  # fmt: skip
    return table


def _settings(choice: dict[str, Any] | None) -> list[RenderableType]:
    """The table of the settings file and the line of the service, where there is anything to change."""
    if choice is None or choice["value"] is None or not choice["settings"]:
        return []
    sampler = choice["sampler"]
    lines = toml_lines("control", choice["settings"])
    served = [sampler["reason"]] if sampler["line"] is None else ["In the service (foretest.serving):"]
    line = [] if sampler["line"] is None else [Text(f"  {sampler['line']}", style="dim", overflow="fold")]
    return [*(Text(f"  {line}", style="dim") for line in lines), Text(), *wrapped_lines(served), *line]
