"""Several uplifts side by side: those of several treatments, and those by segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from foretest.formatting import p_value_column, percent, plural, round_percent, span
from foretest.terminal.parts import add_number_columns, headed_table, verdict_text

if TYPE_CHECKING:
    from foretest.results.result import Result, Segment, Treatment


def treatments_tables(result: Result) -> list[RenderableType]:
    """All treatments by rank, one table per metric: uplifts of the headline, joint intervals, Holm's verdicts."""
    from foretest.offline.treatments import goal

    order = sorted(result.treatments, key=lambda treatment: treatment.rank or 0)
    title = Text.assemble((f"{len(order)} treatments", "bold"), f", ranked by their uplift in {goal(result.metrics)}")
    lines: list[RenderableType] = [title]
    for name, metric in result.metrics.items():
        lines += [Text(f"{name}, {metric.headline}", style="bold"), _treatments_table(name, order, result), Text()]
    first = result.treatments[0].name
    lines[-1] = Text(f"  the health above and the tables below are those of the first treatment, {first}", style="dim")
    return lines


def _treatments_table(name: str, order: list[Treatment], result: Result) -> Table:
    level = round_percent(result.settings["analysis"]["confidence_level"])
    table = headed_table()
    add_number_columns(table, "")
    table.add_column("treatment", overflow="fold")
    add_number_columns(table, "uplift", f"{level}, all at once", "p (Holm)")
    table.add_column("verdict", no_wrap=True)
    for treatment in order:
        metric = treatment.metrics[name]
        estimate = metric.estimates[metric.headline or ""]
        adjusted = estimate.adjusted
        if adjusted is not None:
            table.add_row(
                f"{treatment.rank}.",
                treatment.name,
                percent(estimate.rel_effect_size, sign=True),
                span(adjusted.rel_simultaneous_ci_lower, adjusted.rel_simultaneous_ci_upper),
                p_value_column(adjusted.p_adjusted),
                verdict_text(adjusted.verdict_adjusted),
            )
    return table


def segments_tables(column: str, result: Result) -> list[RenderableType]:
    """Uplifts of the headline by value of a column, one table per metric; verdicts are Holm's over the values."""
    segments = [segment for segment in result.segments if segment.column == column]
    of_treatment = f", of the treatment {result.treatments[0].name}" if result.treatments else ""
    lines: list[RenderableType] = []
    for name in result.metrics:
        headline = segments[0].metrics[name].headline
        title = Text.assemble((f"{name} by {column}", "bold"), f", {headline}{of_treatment}")
        lines += [title, _segments_table(name, column, segments, result)]
    return [*lines, Text(f"  verdicts are adjusted for {plural(len(segments), 'segment')} (Holm)", style="dim")]


def _segments_table(name: str, column: str, segments: list[Segment], result: Result) -> Table:
    level = round_percent(result.settings["analysis"]["confidence_level"])
    table = headed_table()
    table.add_column(column, overflow="fold", max_width=24)
    add_number_columns(table, "displays", "uplift", f"{level} interval")
    table.add_column("verdict", no_wrap=True)
    for segment in segments:
        metric = segment.metrics[name]
        estimate = metric.estimates[metric.headline or ""]
        table.add_row(
            Text(segment.value),
            f"{segment.rows:,}",
            percent(estimate.rel_effect_size, sign=True),
            span(estimate.rel_effect_size_ci_lower, estimate.rel_effect_size_ci_upper),
            verdict_text(estimate.verdict if estimate.adjusted is None else estimate.adjusted.verdict_adjusted),
        )
    return table
