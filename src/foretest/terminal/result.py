"""A result as text: the health of the log, then one table per metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from foretest.formatting import format_number, percent
from foretest.results.examination_text import examination_line
from foretest.results.online_text import adjusted_control, covariate_sentence, peeking_sentences
from foretest.results.range_text import legend
from foretest.results.robustness_text import fragile_sentence, is_fragile, robustness_sentence
from foretest.terminal.audit import audit_row, findings_table, slot_model_rows
from foretest.terminal.comparisons import choice_lines, segments_tables, treatments_tables
from foretest.terminal.estimates import estimate_columns
from foretest.terminal.fitting import FittedTable
from foretest.terminal.log import log_text, loggers_text
from foretest.terminal.online import arms_table, detectable_effect, warning_lines
from foretest.terminal.parts import (
    RESULT_WIDTH,
    guardrail_text,
    list_table,
    note_lines,
    plain_text,
    wrapped_lines,
)

if TYPE_CHECKING:
    from foretest.results.result import Estimate, Metric, Result


def result_table(result: Result, truth: dict[str, float] | None = None) -> Group:
    """The health of the log, one table per metric, notes; `truth` is the known relative uplift of simulated metrics."""
    online = "sample_ratio" in result.health
    parts = choice_lines(result)
    parts += [*warning_lines(result), arms_table(result)] if online else _log_health(result)
    if len(result.treatments) > 1 and result.metrics:
        parts += [Text(), *treatments_tables(result)]
    for name, metric in result.metrics.items():
        parts += [Text(), *_metric_table(name, metric, result, (truth or {}).get(name))]
    parts += _looks(result) if online else _legend(result)
    for column in dict.fromkeys(segment.column for segment in result.segments):
        parts += [Text(), *segments_tables(column, result)]
    return Group(*parts, *note_lines(result.notes))


def render(result: Result, width: int = RESULT_WIDTH) -> str:
    """A result's tables as plain text."""
    return plain_text(result_table(result), width)


def _log_health(result: Result) -> list[RenderableType]:
    title = Text.assemble(("Foretest ", "bold"), log_text(result.log, result.settings["log"].get("unit")))
    loggers = loggers_text(result)
    if loggers is not None:
        title.append(f"\n{loggers}")
    is_check = not result.metrics
    return [title, _health_table(result), *findings_table(result.audit, in_full=is_check)]


def _health_table(result: Result) -> Table:
    health, rows = result.health, result.log["rows"] or 1
    table = list_table()
    table.add_column(style="dim", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    if result.audit is not None:
        table.add_row(*audit_row(result.audit))
    for row in slot_model_rows(result.metrics):
        table.add_row(*row)
    if health["treatment_mass_kept"] is None and result.log["rows"]:  # of slots alone
        table.add_row("unsupported rows", _unsupported(result), "rankings have no known weight")
        return table
    if health.get("control_deterministic"):
        for cells in _without_exploration(result):
            table.add_row(*cells)
        return table
    size = health["effective_sample_size"]
    share = percent((size or 0.0) / rows)
    table.add_row("effective sample size", format_number(size), f"{share} of rows, at cap {result.cap:g}")
    for name, count in health["effective_positives"].items():
        table.add_row(f"effective {name}", format_number(count), f"rewards of equal weight, at cap {result.cap:g}")
        for cells in _effective_by_headline(result.metrics.get(name)):
            table.add_row(*cells)
    mass = percent(health["treatment_mass_kept"])
    table.add_row("treatment mass kept", mass, "mean capped weight; about 100 % if nothing is cut")
    headline = next((metric.headline for metric in result.metrics.values()), None)
    kept_by_headline = health.get("mass_kept", {}).get(headline)
    if kept_by_headline is not None:
        table.add_row("", percent(kept_by_headline), f"kept by {headline}, at its own cap or bound")
    agreement = _agreement(health.get("treatment"))
    if agreement is not None:
        table.add_row("rank correlation", *agreement)
    table.add_row("rows above the cap", percent(health["capped_share"]), "")
    table.add_row("largest weight", _largest_weight(health), f"{percent(health['max_weight_share'])} of all weight")
    table.add_row("unsupported rows", _unsupported(result), "" if result.metrics else "counted by run")
    if health["support"] is not None:
        below_half, never = (health["support"][key] for key in ("share_q_below_half", "treatment_mass_unshowable"))
        who = "no logger ever shows it" if result.log.get("loggers") else "the control never shows it"
        table.add_row("displays with q < 0.5", percent(below_half), "the cap cuts off over half of the treatment there")
        table.add_row("mass never shown", percent(never), f"of the treatment: {who}")
    for cells in _outside_candidates(health):
        table.add_row(*cells)
    return table


def _unsupported(result: Result) -> str:
    """The number of rewarded rows without support, which a check does not count."""
    return f"{result.health['unsupported_rows']:,}" if result.metrics else "-"


def _effective_by_headline(metric: Metric | None) -> list[tuple[str, str, str]]:
    """The number of equal rewards by the weights of the headline, which are not those at the cap."""
    estimate = None if metric is None else metric.estimates.get(metric.headline or "")
    if metric is None or estimate is None or estimate.effective_positives is None:
        return []
    return [("", format_number(estimate.effective_positives), f"by the weights of {metric.headline}")]


def _without_exploration(result: Result) -> list[tuple[str, str, str]]:
    """The rows of a control that never varies: what the headline makes of it, and nothing of weights of rankings, which
    are those of one ranking a display."""
    health, agreement = result.health, result.health.get("treatment") or {}
    rows = [("weights of rankings", "none", "the control always shows one ranking: others were never tried")]
    for name, metric in result.metrics.items():
        estimate = metric.estimates[metric.headline or ""]
        if estimate.verdict != "insufficient":
            by = f"by {metric.headline}"
            rows.append((f"effective {name}", format_number(estimate.effective_positives), by))
            rows.append((f"unsupported {name}", f"{estimate.unsupported_rows or 0:,}", f"rewarded rows, {by}"))
    headline = next((metric.headline for metric in result.metrics.values()), None)
    mass = health.get("mass_kept", {}).get(headline)
    if mass is not None:
        rows.append(("treatment mass kept", percent(mass), f"by {headline}"))
    if agreement.get("rank_correlation") is not None:
        rows.append(("rank correlation", f"{agreement['rank_correlation']:.2f}", "of both scores"))
    return rows + _outside_candidates(health)


def _outside_candidates(health: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What the control could not show, where the policies have lists of their own."""
    share = health.get("outside_candidates")
    note = "of the treatment: items that the control could not show"
    return [] if share is None else [("outside candidates", percent(share), note)]


def _agreement(treatment: dict[str, Any] | None) -> tuple[str, str] | None:
    """How far the treatment's scores agree with the control's, and how random both are."""
    if treatment is None or treatment["rank_correlation"] is None:
        return None
    entropies = [treatment[f"entropy_{policy}"] for policy in ("treatment", "control")]
    note = "of both scores"
    if None not in entropies:
        note += f"; entropy {entropies[0]:.1f}, control {entropies[1]:.1f}"
    return f"{treatment['rank_correlation']:.2f}", note


def _largest_weight(health: dict[str, Any]) -> str:
    if health["max_weight"] is not None:
        return format_number(health["max_weight"])
    return f"10^{health['max_log10_weight'] or 0:.0f}"  # too large for a float


def _metric_table(name: str, metric: Metric, result: Result, truth: float | None) -> list[RenderableType]:
    """The control's value, one line per estimator, and what follows from the headline's."""
    title = Text.assemble((name, "bold"), metric_title(metric, result))
    level, online = result.settings["analysis"]["confidence_level"], "sample_ratio" in result.health
    table = FittedTable(estimate_columns(metric, level, truth, online=online))
    below = [*_role(metric), *detectable_effect(name, result), *_robustness(metric), *_reasons(metric.estimates)]
    covariate = covariate_sentence(metric, result)
    return [title, table, *wrapped_lines([covariate] if covariate else []), *below, *_examination(metric)]


def metric_title(metric: Metric, result: Result) -> str:
    """What follows the name of a metric: its role, and the control's value with its interval."""
    control = metric.control
    loggers, baseline = result.log.get("loggers"), result.settings["analysis"].get("baseline")
    whose = f"control ({baseline})" if loggers else "control"
    interval = f"[{format_number(control.ci_lower)}, {format_number(control.ci_upper)}]"
    role = "" if metric.role is None else f" ({metric.role['role']})"
    value = f"{format_number(control.value)} {interval} per {metric.per or 'display'}"
    return f"{role}: {whose} {value}{adjusted_control(metric)}"


def _legend(result: Result) -> list[RenderableType]:
    """What range and word mean, once below the metrics; nothing for a check."""
    if not result.metrics:
        return []
    metric = next(iter(result.metrics.values()))
    return [*wrapped_lines(legend(metric))]


def _looks(result: Result) -> list[RenderableType]:
    """What looking at an online test while it runs does, once below the metrics, where it was asked for."""
    sentences = peeking_sentences(result)
    return [Text(), *wrapped_lines(sentences)] if sentences else []


def _role(metric: Metric) -> list[Text]:
    """What the verdict means for the metric's role."""
    if metric.role is None:
        return []
    way = "higher is better" if metric.role["direction"] == "increase" else "lower is better"
    lines = [Text(f"  {way}: {metric.role['outcome']}", style="dim")]
    if "guardrail" in metric.role:
        state = guardrail_text(metric.role["guardrail"])
        margin = percent(metric.role["margin"])
        lines.append(Text.assemble("  guardrail: ", state, f" (it may get worse by less than {margin})"))
    return lines


def _robustness(metric: Metric) -> list[Text]:
    """What would undo the headline's verdict, and what the mark `~` means where another estimator has it."""
    fragile = [label for label, estimate in metric.estimates.items() if is_fragile(estimate)]
    headline = metric.estimates.get(metric.headline or "")
    sentence = None if headline is None else robustness_sentence(headline)
    lines = [] if sentence is None else [sentence]
    if fragile and fragile != [metric.headline]:
        lines.append(fragile_sentence(fragile))
    return wrapped_lines(lines)


def _examination(metric: Metric) -> list[Text]:
    """How likely users look at each slot, where an estimator used it."""
    return [] if metric.examination is None else wrapped_lines([examination_line(metric.examination)])


def _reasons(estimates: dict[str, Estimate]) -> list[Text]:
    """Each reason once, with the estimators that share it."""
    labels_by_reason: dict[str, list[str]] = {}
    for label, estimate in estimates.items():
        for reason in estimate.reasons:
            labels_by_reason.setdefault(reason, []).append(label)
    return wrapped_lines(f"{', '.join(labels)}: {reason}" for reason, labels in labels_by_reason.items())
