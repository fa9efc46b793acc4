"""Several uplifts side by side: those of several treatments, and those by segment."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from foretest.formatting import p_value_column, percent, plural, round_percent, short_span
from foretest.settings.metric_roles import DECREASE
from foretest.terminal.estimates import range_text, uplift_column
from foretest.terminal.fitting import Column, FittedTable
from foretest.terminal.parts import WIDTH, guardrail_text, verdict_text, wrapped_lines

if TYPE_CHECKING:
    from foretest.results.result import Estimate, Metric, Result, Segment, Treatment


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
    """All treatments by rank, one table per metric: uplifts of their headlines, ranges, joint intervals, verdicts."""
    from foretest.offline.treatments import goal

    order = by_rank(result)
    ranked_by = goal(result.metrics)
    title = Text.assemble((f"{len(order)} treatments", "bold"), f", ranked by their uplift in {ranked_by}")
    if result.metrics[ranked_by].direction == DECREASE:
        title.append(", the lowest first")
    lines: list[RenderableType] = [title]
    for name, metric in result.metrics.items():
        by_headline = _by_headline(name, order)
        named = f", {next(iter(by_headline))}" if len(by_headline) == 1 else ""
        lines += [
            Text.assemble((name, "bold"), _role_text(metric), named),
            FittedTable(treatments_columns(name, order, result)),
        ]
        if len(by_headline) > 1:
            lines += wrapped_lines(f"by {label}: {', '.join(names)}" for label, names in by_headline.items())
        lines.append(Text())
    first = result.treatments[0].name
    lines[-1] = Text(f"  the health above and the tables below are those of the first treatment, {first}", style="dim")
    return lines


def by_rank(result: Result) -> list[Treatment]:
    """The treatments by rank."""
    return sorted(result.treatments, key=lambda treatment: treatment.rank or 0)


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


def treatments_columns(name: str, order: list[Treatment], result: Result) -> list[Column]:
    """One row per treatment: uplift, range and word of its headline, then what is left when all are asked at once."""
    level = round_percent(result.settings["analysis"]["confidence_level"])
    metrics = [treatment.metrics[name] for treatment in order]
    estimates = [metric.estimates[metric.headline or ""] for metric in metrics]
    direction = result.metrics[name].direction
    columns = [
        Column("", [f"{treatment.rank}." for treatment in order], number=True),
        Column("treatment", [Text(treatment.name) for treatment in order], folds=True),
        uplift_column(estimates),
        Column("range", [range_text(estimate) for estimate in estimates], number=True),
        Column("word", [verdict_text(estimate.word, direction) for estimate in estimates]),
        Column(
            f"{level}, all at once",
            [_all_at_once(estimate) for estimate in estimates],
            number=True,
            optional=2,
        ),
        Column("p (Holm)", [_adjusted_p(estimate) for estimate in estimates], number=True, optional=3),
        Column("verdict", [verdict_text(metric.verdicts[-1], direction) for metric in metrics], optional=1),
    ]
    if "guardrail" in (result.metrics[name].role or {}):
        columns.append(Column("guardrail", [guardrail_text((metric.role or {})["guardrail"]) for metric in metrics]))
    return columns


def _all_at_once(estimate: Estimate) -> str:
    """The interval that holds for all treatments at once."""
    adjusted = estimate.adjusted
    return "-" if adjusted is None else short_span(
        adjusted.rel_simultaneous_ci_lower, adjusted.rel_simultaneous_ci_upper
    )  # fmt: skip


def _adjusted_p(estimate: Estimate) -> str:
    return p_value_column(None if estimate.adjusted is None else estimate.adjusted.p_adjusted)


def segments_tables(column: str, result: Result) -> list[RenderableType]:
    """Uplifts of the headline by value of a column, one table per metric; verdicts are Holm's over the values."""
    segments = [segment for segment in result.segments if segment.column == column]
    of_treatment = f", of the treatment {result.treatments[0].name}" if result.treatments else ""
    lines: list[RenderableType] = []
    for name in result.metrics:
        headline = segments[0].metrics[name].headline
        title = Text.assemble((f"{name} by {column}", "bold"), f", {headline}{of_treatment}")
        lines += [title, FittedTable(segments_columns(name, column, segments, result))]
    return [*lines, Text(f"  {segments_note(segments)}", style="dim")]


def segments_note(segments: list[Segment]) -> str:
    """What the verdicts of segments allow for."""
    return f"verdicts are adjusted for {plural(len(segments), 'segment')} (Holm)"


def segments_columns(name: str, column: str, segments: list[Segment], result: Result) -> list[Column]:
    """One row per value of a column. A segment's range is its interval: noise alone."""
    level = round_percent(result.settings["analysis"]["confidence_level"])
    metrics = [segment.metrics[name] for segment in segments]
    estimates = [metric.estimates[metric.headline or ""] for metric in metrics]
    direction = metrics[0].direction
    return [
        Column(column, [Text(segment.value) for segment in segments], folds=True),
        Column("displays", [f"{segment.rows:,}" for segment in segments], number=True),
        uplift_column(estimates),
        Column(f"range ({level} noise)", [range_text(estimate) for estimate in estimates], number=True),
        Column("word", [verdict_text(estimate.word, direction) for estimate in estimates]),
        Column("verdict", [verdict_text(metric.verdicts[-1], direction) for metric in metrics], optional=1),
    ]
