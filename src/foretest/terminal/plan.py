"""A plan as text: the smallest uplift that a log could show, what would halve it, and how to explore."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from foretest.formatting import displays_text, format_number, percent, plural, round_percent, units_text
from foretest.terminal.explore import explore_lines
from foretest.terminal.parts import (
    WIDTH,
    add_number_columns,
    headed_table,
    list_table,
    note_lines,
    plain_text,
    wrapped_lines,
)
from foretest.terminal.policy_tables import toml_lines, way_to_explore

_NONE = "-"


def plan_table(document: dict[str, Any]) -> Group:
    """From plan.json, one table per metric: smallest uplift and its parts, what would halve it, exploration."""
    log, unit = document["log"], document["unit"]
    units = f", {units_text(log)} ({unit})" if unit else ""
    days = "" if log["days"] is None else f", {plural(log['days'], 'day')}"
    confidence, power = round_percent(document["confidence_level"]), round_percent(document["power"])
    parts: list[RenderableType] = [
        Text.assemble(("Foretest plan ", "bold"), f"{displays_text(log)}{units}{days}"),
        Text(f"of {_estimators(document)}, at {confidence} confidence and {power} power", style="dim"),
    ]
    for name, metric in document["metrics"].items():
        parts += [Text(), *_metric_table(name, metric, document)]
    answers = [*_recommended(document.get("recommended")), *explore_lines(document.get("explore"))]
    return Group(*parts, *answers, *note_lines(document["notes"]))


def render_plan(document: dict[str, Any], width: int = WIDTH) -> str:
    """A plan's tables as plain text."""
    return plain_text(plan_table(document), width)


def _estimators(document: dict[str, Any]) -> str:
    """The estimators that are planned for: the headline, and those of further levels."""
    of_levels = [level["estimator"] for m in document["metrics"].values() for level in m.get("levels", {}).values()]
    return ", ".join(dict.fromkeys([document["headline"], *of_levels]))


def _metric_table(name: str, metric: dict[str, Any], document: dict[str, Any]) -> list[RenderableType]:
    title = Text.assemble((name, "bold"), f": control {format_number(metric['control'])} per display")
    if metric["smallest_uplift"]["total"] is None:
        reason = "; ".join(metric["reasons"]) or "there is no standard error"
        return [title, Text(f"  nothing can be planned: {reason}")]
    levels = metric.get("levels", {})
    lines: list[RenderableType] = [title]
    if len(levels) > 1:
        lines += [_levels_table(levels), *wrapped_lines(_remarks(levels, document))]
    else:
        lines += [_smallest_uplift_table(metric, document)]
    if metric["exploration"]:
        lines += [
            Text("  if the control explored, what it would cost and the smallest uplift:", style="dim"),
            _exploration_table(metric["exploration"], document.get("recommended") or {}),
        ]
    reasons = [] if len(levels) > 1 else metric["reasons"]
    return [*lines, *(Text(f"  {reason}", style="dim") for reason in reasons)]


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
        table.add_row("  online, for the same uplift", f"{metric['online_units']:,}", _online(document))
    return table


def _levels_table(levels: dict[str, Any]) -> Table:
    """A column per level."""
    table = headed_table()
    table.add_column(no_wrap=True)
    add_number_columns(table, *levels)
    for label, part in (
        ("  smallest uplift it could show", "total"),
        ("    sampling: shrinks with more log", "sampling"),
        ("    identification: does not", "identification"),
    ):
        table.add_row(label, *(_percent(level["smallest_uplift"][part]) for level in levels.values()))
    halving = [
        _NONE if level["to_halve"] is None else _needed_to_halve(level["to_halve"])[0] for level in levels.values()
    ]
    table.add_row("  more log to halve it", *halving)
    online = [level["online_units"] for level in levels.values()]
    table.add_row("  online, for the same uplift", *(_NONE if units is None else f"{units:,}" for units in online))
    return table


def _remarks(levels: dict[str, Any], document: dict[str, Any]) -> list[str]:
    """What the numbers of levels are, and why a level has none."""
    by_reason: dict[str, list[str]] = {}
    for name, level in levels.items():
        if level["reason"] is not None:
            by_reason.setdefault(level["reason"], []).append(name)
    whys = [f"by {' and '.join(names)}: {reason}." for reason, names in by_reason.items()]
    of_gamma = [("ranking", document["gamma"]), ("slot and exposure", document["gamma_slots"])]
    gamma = ", ".join(f"{lower:g} and {upper:g} by {name}" for name, (lower, upper) in of_gamma)
    given = any(level.get("examination") == "given" for level in levels.values())
    curve = " By exposure it covers curves steeper and flatter than the one that was given." if given else ""
    return [*whys, f"online: {_online(document)}. Identification: gamma {gamma}.{curve}"]


def _online(document: dict[str, Any]) -> str:
    split = " : ".join(f"{100.0 * share:g}" for share in document["split"])
    return f"{document['unit'] or 'display'}s in all, split {split}"


def _needed_to_halve(needed: dict[str, Any]) -> tuple[str, str]:
    """How much more log would halve the smallest uplift, and a remark."""
    if needed["times"] is None:
        return "never", "no amount of such log would"
    times = f"{needed['times']:,.1f} x"
    if needed["more_days"] is None:
        return times, "the log, of other users"
    return f"{needed['more_days']:,} days", f"more, {times} the log, of other users"


def _exploration_table(rows: list[dict[str, Any]], recommended: dict[str, Any]) -> Table:
    """A row per way to explore; a star marks the one that is recommended."""
    levels = list(dict.fromkeys(name for row in rows for name in row["levels"]))
    table = headed_table()
    table.add_column(no_wrap=True)
    add_number_columns(table, "cost", "at most", *levels)
    for row in rows:
        totals = [row["levels"][name]["smallest_uplift"]["total"] if name in row["levels"] else None for name in levels]
        mark = (
            "* " if (row["kind"], row["settings"]) == (recommended.get("kind"), recommended.get("settings")) else "  "
        )
        table.add_row(
            mark + way_to_explore(row), _percent(row["cost"]), percent(row["cost_at_most"]), *map(_percent, totals)
        )
    return table


def _percent(value: float | None) -> str:
    return _NONE if value is None else percent(value)


def _recommended(choice: dict[str, Any] | None) -> list[RenderableType]:
    """The recommended way to explore, with the table of settings that makes it."""
    if choice is None:
        return []
    heading = Text.assemble(("Recommended", "bold"), f" (by {choice['metric']}): {choice['sentence']}")
    settings = toml_lines("control", choice["settings"]) if choice["settings"] else []
    return [Text(), heading, *(Text(f"  {line}", style="dim") for line in settings)]
