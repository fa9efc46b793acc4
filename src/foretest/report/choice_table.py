"""The choice among treatments at a glance: one row per treatment, one column per goal and guardrail, and who passes."""

from __future__ import annotations

from foretest.offline.winner import shortfalls_of
from foretest.records import dataclass
from foretest.report.digits import interval_text, pct
from foretest.report.many import decided, in_order, role_words
from foretest.results.range_text import range_of
from foretest.results.result import Metric, Result, Treatment
from foretest.settings.metric_roles import SECONDARY, toward_good

METRICS_SHOWN = 5  # columns
TREATMENTS_SHOWN = 40  # rows


@dataclass(frozen=True)
class ChoiceCell:
    """A treatment's uplift in one metric, as it is decided among all treatments."""

    metric: str
    uplift: str
    range: str
    interval: str  # of all treatments at once
    word: str
    tone: str  # the word whose colour says good or bad
    guardrail: str | None  # pass, fail or unclear


@dataclass(frozen=True)
class ChoiceRow:
    """A treatment: its rank, its uplifts, and whether it passes or why not."""

    rank: str
    name: str
    cells: list[ChoiceCell]
    wins: bool
    shortfalls: list[str]


@dataclass(frozen=True)
class ChoiceTable:
    """All treatments by rank, with the goals and guardrails that decide."""

    columns: list[tuple[str, str]]  # names of metrics and their roles
    rows: list[ChoiceRow]
    metrics_left_out: int
    treatments_left_out: int


def choice_table(result: Result, part: int = 1) -> ChoiceTable | None:
    """The table, with a part of the rows where the page would be too large; None for one treatment."""
    order = in_order(result)
    if not order or result.winner_reason is None:
        return None
    deciding = [name for name, m in result.metrics.items() if m.role is None or m.role["role"] != SECONDARY]
    names, most = deciding[:METRICS_SHOWN], max(1, TREATMENTS_SHOWN // part)
    return ChoiceTable(
        [(name, _role(result.metrics[name])) for name in names],
        [_row(treatment, names, result.winner) for treatment in order[:most]],
        len(deciding) - len(names),
        max(0, len(order) - most),
    )


def _role(metric: Metric) -> str:
    """Goal or guardrail, with its margin; its states are in the rows."""
    if metric.role is None:
        return ""
    words = role_words(metric).replace(f": {metric.role.get('guardrail')}", "")
    return words + (f", margin {pct(metric.role['margin'])}" if "margin" in metric.role else "")


def _row(treatment: Treatment, names: list[str], winner: str | None) -> ChoiceRow:
    cells = []
    for name in names:
        metric = treatment.metrics[name]
        estimate = decided(metric)
        limits = range_of(estimate)
        cells.append(
            ChoiceCell(
                name,
                pct(estimate.rel_effect_size, sign=True),
                interval_text(limits.rel_ci_lower, limits.rel_ci_upper),
                interval_text(estimate.rel_effect_size_ci_lower, estimate.rel_effect_size_ci_upper),
                estimate.word,
                toward_good(estimate.word, metric.direction),
                None if metric.role is None else metric.role.get("guardrail"),
            )
        )
    name = treatment.name
    return ChoiceRow(str(treatment.rank), name, cells, name == winner, shortfalls_of(treatment.metrics))
