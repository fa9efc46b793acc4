"""A result as Markdown: the tables of the terminal, for a pull request, an issue or a chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foretest.formatting import format_number
from foretest.results.examination_text import examination_line
from foretest.results.online_text import covariate_sentence, failed_arms, peeking_sentences, warnings
from foretest.results.range_text import legend
from foretest.results.robustness_text import fragile_sentence, is_fragile, robustness_sentence
from foretest.terminal.audit import audit_row
from foretest.terminal.comparisons import by_rank, segments_columns, segments_note, treatments_columns
from foretest.terminal.estimates import estimate_columns
from foretest.terminal.fitting import markdown_table, markdown_text
from foretest.terminal.log import log_text
from foretest.terminal.result import metric_title

if TYPE_CHECKING:
    from foretest.results.result import Metric, Result


def result_markdown(result: Result) -> str:
    """What the terminal shows of a result, without the details of its health: one table per metric, and all columns."""
    warned = [f"**{markdown_text(text)}**" for text in (*failed_arms(result), *warnings(result))]
    blocks = [*warned, *_choice(result), _evidence(result)]
    if len(result.treatments) > 1 and result.metrics:
        for name in result.metrics:
            table = markdown_table(treatments_columns(name, by_rank(result), result))
            blocks += [f"**{markdown_text(name)}**, treatments by rank", table]
        blocks.append(f"The tables below are those of the first treatment, {markdown_text(result.treatments[0].name)}.")
    for name, metric in result.metrics.items():
        blocks += _metric(name, metric, result)
    blocks += [*_legend(result), *_segments(result)]
    blocks += [f"Note: {markdown_text(note)}" for note in result.notes]
    return "\n\n".join(blocks) + "\n"


def _choice(result: Result) -> list[str]:
    """Which treatment to take and why; nothing for one treatment without roles."""
    from foretest.offline.winner import choice_of

    choice = choice_of(result)
    if choice is None:
        return []
    return [f"**{markdown_text(choice.sentence)}**", *(markdown_text(detail) for detail in choice.details)]


def _evidence(result: Result) -> str:
    """The log or the two arms, and for an offline test its audit and its effective sample size."""
    unit = result.settings["log"].get("unit")
    text = log_text(result.log, unit)
    if "treatment" in result.log:
        return markdown_text(f"Online: control {text}; treatment {log_text(result.log['treatment'], unit)}.")
    if result.audit is not None:
        _, outcome, note = audit_row(result.audit)
        text += f". Propensity audit {outcome.plain}: {note}"
    size = result.health["effective_sample_size"]
    known = (
        ""
        if size is None or result.health.get("control_deterministic")
        else f" Effective sample size {format_number(size)}."
    )
    return markdown_text(f"{text}.{known}")


def _metric(name: str, metric: Metric, result: Result) -> list[str]:
    """The table of a metric and what is said below it."""
    online = "sample_ratio" in result.health
    columns = estimate_columns(metric, result.settings["analysis"]["confidence_level"], online=online)
    headline = metric.estimates.get(metric.headline or "")
    robustness = None if headline is None else robustness_sentence(headline)
    lines = [] if robustness is None else [robustness]
    fragile = [label for label, estimate in metric.estimates.items() if is_fragile(estimate)]
    if fragile:
        lines.append(fragile_sentence(fragile))
    reasons = {
        reason: [label for label, estimate in metric.estimates.items() if reason in estimate.reasons]
        for estimate in metric.estimates.values()
        for reason in estimate.reasons
    }
    lines += [f"{', '.join(labels)}: {reason}" for reason, labels in reasons.items()]
    covariate = covariate_sentence(metric, result)
    lines += [] if covariate is None else [covariate]
    lines += [] if metric.examination is None else [examination_line(metric.examination)]
    title = f"**{markdown_text(name)}**{markdown_text(metric_title(metric, result))}"
    bullets = "\n".join(f"- {markdown_text(line)}" for line in lines)
    return [title, markdown_table(columns), *([bullets] if bullets else [])]


def _legend(result: Result) -> list[str]:
    """What range and word mean, or what looking at an online test does; nothing for a check."""
    if not result.metrics:
        return []
    metric = next(iter(result.metrics.values()))
    online = "sample_ratio" in result.health
    lines = peeking_sentences(result) if online else legend(metric)
    return [] if not lines else ["\n".join(f"- {markdown_text(line)}" for line in lines)]


def _segments(result: Result) -> list[str]:
    """One table per column of segments and metric."""
    blocks = []
    for column in dict.fromkeys(segment.column for segment in result.segments):
        segments = [segment for segment in result.segments if segment.column == column]
        for name in result.metrics:
            table = markdown_table(segments_columns(name, column, segments, result))
            blocks += [f"**{markdown_text(f'{name} by {column}')}**", table]
        blocks.append(markdown_text(segments_note(segments)).capitalize() + ".")
    return blocks
