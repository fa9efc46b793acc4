"""A plan as text, in 80 columns."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from foretest.formatting import format_number, percent, plural


def plan_table(document: dict[str, Any]) -> Group:
    """A table a metric: the smallest uplift and its parts, what would halve it, online, and exploration."""
    log, unit = document["log"], document["unit"]
    units = f", {plural(log['units'], 'unit')} ({unit})" if unit else ""
    days = "" if log["days"] is None else f", {plural(log['days'], 'day')}"
    parts: list[Any] = [
        Text.assemble(("Foretest plan ", "bold"), f"{plural(log['rows'], 'display')}{units}{days}"),
        Text(
            f"of {document['headline']}, at {percent_of(document['confidence_level'])} confidence and"
            f" {percent_of(document['power'])} power",
            style="dim",
        ),
    ]
    for name, metric in document["metrics"].items():
        parts += [Text(), *_metric(name, metric, document)]
    if document["notes"]:
        parts += [Text(), *(Text(f"Note: {note}", style="dim") for note in document["notes"])]
    return Group(*parts)


def render_plan(document: dict[str, Any], width: int = 80) -> str:
    """The tables as plain text."""
    out = StringIO()
    Console(file=out, width=width, color_system=None, legacy_windows=False).print(plan_table(document))
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip("\n").splitlines())


def percent_of(share: float) -> str:
    """A round share.

    >>> percent_of(0.9), percent_of(0.975)
    ('90 %', '97.5 %')
    """
    return f"{100.0 * share:g} %"


def _metric(name: str, metric: dict[str, Any], document: dict[str, Any]) -> list[Any]:
    head = Text.assemble((name, "bold"), f": control {format_number(metric['control'])} a display")
    parts = metric["smallest_uplift"]
    if parts["total"] is None:
        said = "; ".join(metric["reasons"]) or "there is no standard error"
        return [head, Text(f"  nothing can be planned: {said}")]
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    lower, upper = document["gamma"]
    table.add_row("  smallest uplift it could show", percent(parts["total"]), "of the control's value")
    table.add_row("    sampling", percent(parts["sampling"]), "shrinks with more log")
    table.add_row("    identification", percent(parts["identification"]), f"does not; gamma {lower:g} and {upper:g}")
    table.add_row("  to halve it", *_halved(metric["to_halve"]))
    if metric["online_units"] is not None:
        unit = document["unit"] or "display"
        split = " : ".join(f"{100.0 * share:g}" for share in document["split"])
        table.add_row("  online, for the same uplift", f"{metric['online_units']:,}", f"{unit}s in all, split {split}")
    lines: list[Any] = [head, table]
    if metric["exploration"]:
        lines += [Text("  if the control had shown random rankings in a share of displays:", style="dim"),
                  _exploration(metric["exploration"])]  # fmt: skip
    lines += [Text(f"  {reason}", style="dim") for reason in metric["reasons"]]
    return lines


def _halved(needed: dict[str, Any]) -> tuple[str, str]:
    if needed["times"] is None:
        return "never", "no amount of such log would"
    times = f"{needed['times']:,.1f} x"
    if needed["more_days"] is None:
        return times, "the log, of other users"
    return f"{needed['more_days']:,} days", f"more, {times} the log, of other users"


def _exploration(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    for title in ("    share", "cost at most", "mass kept", "sampling", "identification", "smallest uplift"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        parts = row["smallest_uplift"]
        cells = (row["cost_at_most"], row["treatment_mass_kept"], *parts.values())
        first = "as it is" if row["epsilon"] == 0.0 else percent_of(row["epsilon"])
        table.add_row(first, *(percent(value) for value in cells))
    return table
