"""Several uplifts side by side: those of several treatments, and those by segment."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from foretest.formatting import p_value_column, percent, plural, round_percent, span
from foretest.settings.metric_roles import DECREASE
from foretest.terminal.parts import (
    WIDTH,
    add_number_columns,
    guardrail_text,
    headed_table,
    verdict_text,
    wrapped_lines,
)

if TYPE_CHECKING:
    from foretest.results.result import Metric, Result, Segment, Treatment


def choice_lines(result: Result) -> list[RenderableType]:
    """Which treatment to take and why, above all else; nothing for one treatment without roles."""
    from foretest.offline.winner import choice_of

    choice = choice_of(result)
    if choice is None:
        return []
    style = "bold yellow" if choice.winner is None else "bold green"
    details = [line for detail in choice.details for line in wrap(detail, WIDTH)]
    return [*(Text(line, style=style) for line in wrap(choice.sentence, WIDTH)), *map(Text, details), Text()]


def treatments_tables(result: Result) -> list[RenderableType]:
    """All treatments by rank, one table per metric: uplifts of their headlines, joint intervals, Holm's verdicts."""
    from foretest.offline.treatments import goal

    order = sorted(result.treatments, key=lambda treatment: treatment.rank or 0)
    ranked_by = goal(result.metrics)
    title = Text.assemble((f"{len(order)} treatments", "bold"), f", ranked by their uplift in {ranked_by}")
    if result.metrics[ranked_by].direction == DECREASE:
        title.append(", the lowest first")
    lines: list[RenderableType] = [title]
    for name, metric in result.metrics.items():
        by_headline = _by_headline(name, order)
        named = f", {next(iter(by_headline))}" if len(by_headline) == 1 else ""
        lines += [Text.assemble((name, "bold"), _role_text(metric), named), _treatments_table(name, order, result)]
        if len(by_headline) > 1:
            lines += wrapped_lines(f"by {label}: {', '.join(names)}" for label, names in by_headline.items())
        lines.append(Text())
    first = result.treatments[0].name
    lines[-1] = Text(f"  the health above and the tables below are those of the first treatment, {first}", style="dim")
    return lines


def _by_headline(name: str, order: list[Treatment]) -> dict[str, list[str]]:
    """The treatments by the estimator that answers for them in a metric."""
    treatments: dict[str, list[str]] = {}
    for treatment in order:
        treatments.setdefault(treatment.metrics[name].headline or "", []).append(treatment.name)
    return treatments


def _role_text(metric: Metric) -> str:
    """A metric's role, and where lower is better that it is."""
    if metric.role is None:
        return ""
    words = [metric.role["role"], *(["lower is better"] if metric.direction == DECREASE else [])]
    if "margin" in metric.role:
        words.append(f"margin {percent(metric.role['margin'])}")
    return f" ({', '.join(words)})"


def _treatments_table(name: str, order: list[Treatment], result: Result) -> Table:
    level = round_percent(result.settings["analysis"]["confidence_level"])
    table = headed_table()
    add_number_columns(table, "")
    table.add_column("treatment", overflow="fold")
    add_number_columns(table, "uplift", f"{level}, all at once", "p (Holm)")
    table.add_column("verdict", no_wrap=True)
    guarded = "guardrail" in (result.metrics[name].role or {})
    if guarded:
        table.add_column("guardrail", no_wrap=True)
    for treatment in order:
        metric = treatment.metrics[name]
        estimate = metric.estimates[metric.headline or ""]
        adjusted = estimate.adjusted
        if adjusted is not None:
            table.add_row(
                f"{treatment.rank}.",
                Text(treatment.name),
                percent(estimate.rel_effect_size, sign=True),
                span(adjusted.rel_simultaneous_ci_lower, adjusted.rel_simultaneous_ci_upper),
                p_value_column(adjusted.p_adjusted),
                verdict_text(adjusted.verdict_adjusted, metric.direction),
                *([guardrail_text(metric.role["guardrail"])] if guarded and metric.role is not None else []),
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
            verdict_text(metric.verdicts[-1], metric.direction),
        )
    return table
