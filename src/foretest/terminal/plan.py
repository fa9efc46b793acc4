"""A plan as text: the smallest uplift that a log could show, and what would halve it."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from foretest.formatting import format_number, percent, plural, round_percent, units_text
from foretest.terminal.parts import WIDTH, add_number_columns, headed_table, list_table, note_lines, plain_text


def plan_table(document: dict[str, Any]) -> Group:
    """From plan.json, one table per metric: smallest uplift and its parts, what would halve it, exploration."""
    log, unit = document["log"], document["unit"]
    units = f", {units_text(log)} ({unit})" if unit else ""
    days = "" if log["days"] is None else f", {plural(log['days'], 'day')}"
    confidence, power = round_percent(document["confidence_level"]), round_percent(document["power"])
    parts: list[RenderableType] = [
        Text.assemble(("Foretest plan ", "bold"), f"{plural(log['rows'], 'display')}{units}{days}"),
        Text(f"of {document['headline']}, at {confidence} confidence and {power} power", style="dim"),
    ]
    for name, metric in document["metrics"].items():
        parts += [Text(), *_metric_table(name, metric, document)]
    return Group(*parts, *note_lines(document["notes"]))


def render_plan(document: dict[str, Any], width: int = WIDTH) -> str:
    """A plan's tables as plain text."""
    return plain_text(plan_table(document), width)


def _metric_table(name: str, metric: dict[str, Any], document: dict[str, Any]) -> list[RenderableType]:
    title = Text.assemble((name, "bold"), f": control {format_number(metric['control'])} per display")
    if metric["smallest_uplift"]["total"] is None:
        reason = "; ".join(metric["reasons"]) or "there is no standard error"
        return [title, Text(f"  nothing can be planned: {reason}")]
    lines: list[RenderableType] = [title, _smallest_uplift_table(metric, document)]
    if metric["exploration"]:
        lines += [
            Text("  if the control had shown random rankings in a share of displays:", style="dim"),
            _exploration_table(metric["exploration"]),
        ]
    return [*lines, *(Text(f"  {reason}", style="dim") for reason in metric["reasons"])]


def _smallest_uplift_table(metric: dict[str, Any], document: dict[str, Any]) -> Table:
    table = list_table()
    table.add_column(no_wrap=True)
    add_number_columns(table, "")
    table.add_column(style="dim")
    parts, (lower, upper) = metric["smallest_uplift"], document["gamma"]
    table.add_row("  smallest uplift it could show", percent(parts["total"]), "of the control's value")
    table.add_row("    sampling", percent(parts["sampling"]), "shrinks with more log")
    table.add_row("    identification", percent(parts["identification"]), f"does not; gamma {lower:g} and {upper:g}")
    table.add_row("  to halve it", *_needed_to_halve(metric["to_halve"]))
    if metric["online_units"] is not None:
        unit = document["unit"] or "display"
        split = " : ".join(f"{100.0 * share:g}" for share in document["split"])
        table.add_row("  online, for the same uplift", f"{metric['online_units']:,}", f"{unit}s in all, split {split}")
    return table


def _needed_to_halve(needed: dict[str, Any]) -> tuple[str, str]:
    """How much more log would halve the smallest uplift, and a remark."""
    if needed["times"] is None:
        return "never", "no amount of such log would"
    times = f"{needed['times']:,.1f} x"
    if needed["more_days"] is None:
        return times, "the log, of other users"
    return f"{needed['more_days']:,} days", f"more, {times} the log, of other users"


def _exploration_table(rows: list[dict[str, Any]]) -> Table:
    table = headed_table()
    add_number_columns(table, "    share", "cost at most", "mass kept", "sampling", "identification", "smallest uplift")
    for row in rows:
        cells = (row["cost_at_most"], row["treatment_mass_kept"], *row["smallest_uplift"].values())
        share = "as it is" if row["epsilon"] == 0.0 else round_percent(row["epsilon"])
        table.add_row(share, *(percent(value) for value in cells))
    return table
