"""What a page shows of several treatments and of segments: treatments by rank, segments side by side."""

from __future__ import annotations

from dataclasses import replace

from foretest.inference.guardrails import outcome
from foretest.offline.treatments import goal
from foretest.records import dataclass
from foretest.report.blocks import Chart, Table, chart_of
from foretest.report.charts.forest import Row, forest_chart
from foretest.report.digits import interval_text, level, p_text, pct
from foretest.report.words import things
from foretest.results.range_text import shown_noise, shown_range
from foretest.results.result import Estimate, Metric, Result, Segment, Treatment
from foretest.settings.metric_roles import DECREASE

TREATMENTS_DRAWN = 40


@dataclass(frozen=True)
class Panel:
    """A chart and a table of the same uplifts."""

    name: str
    chart: Chart
    table: Table


@dataclass(frozen=True)
class TreatmentsSection:
    """All treatments by rank, one panel per metric; `first` is the treatment that the rest of the page is about."""

    lead: str
    panels: list[Panel]
    first: str
    first_wins: bool


@dataclass(frozen=True)
class SegmentsSection:
    """Uplifts by segment, one panel per metric and column; `left_out` counts the panels that are not shown."""

    lead: str
    panels: list[Panel]
    left_out: int


def in_order(result: Result) -> list[Treatment]:
    """The treatments by rank, where there are several; else none."""
    return sorted(result.treatments, key=lambda treatment: treatment.rank or 0)


def leading(result: Result) -> Result:
    """The result whose answer is on top of the page: of the winner, or where none passes of the treatment that ranks
    first, with its goal in front."""
    if not result.metrics:
        return result
    order = sorted(in_order(result), key=lambda treatment: treatment.name != result.winner)
    metrics = order[0].metrics if order else result.metrics
    name = goal(metrics)
    metrics = {name: metrics[name], **metrics}
    metrics = {key: _as_decided(metric) for key, metric in metrics.items()} if order else metrics
    return replace(result, metrics=metrics, health=order[0].health if order else result.health)


def _as_decided(metric: Metric) -> Metric:
    """A metric of one of several treatments, its headline adjusted for the number of treatments."""
    estimate = decided(metric)
    return replace(metric, estimates={**metric.estimates, metric.headline or "": estimate}, verdict=estimate.verdict)


def decided(metric: Metric) -> Estimate:
    """The headline's estimate with its adjusted verdict and, where there is one, its joint interval."""
    estimate = metric.estimates[metric.headline or ""]
    adjusted = estimate.adjusted
    if adjusted is None:
        return estimate
    if adjusted.rel_simultaneous_ci_lower is None and adjusted.simultaneous_ci_lower is None:
        return replace(estimate, verdict=adjusted.verdict_adjusted)
    return replace(
        estimate,
        verdict=adjusted.verdict_adjusted,
        effect_size_ci_lower=adjusted.simultaneous_ci_lower,
        effect_size_ci_upper=adjusted.simultaneous_ci_upper,
        rel_effect_size_ci_lower=adjusted.rel_simultaneous_ci_lower,
        rel_effect_size_ci_upper=adjusted.rel_simultaneous_ci_upper,
    )


def treatments_section(result: Result, most: int) -> TreatmentsSection | None:
    """Several treatments by rank, for at most that many metrics; None where there is one treatment."""
    order = in_order(result)
    if not order:
        return None
    confidence = result.settings["analysis"]["confidence_level"]
    ranked_by = goal(result.metrics)
    names = [ranked_by, *(name for name in result.metrics if name != ranked_by)][:most]
    lead = (
        f"{len(order)} treatments were tested together, and are ranked by their uplift in {things(ranked_by)}. With"
        f" {level(confidence)} probability, all intervals of the column “all at once” contain what they estimate;"
        " ranges, and noise in the chart, are for each treatment alone. Verdicts are Holm's:"
        f" the probability that any of them is positive or negative by chance alone is at most {pct(1.0 - confidence)}."
    )
    panels = [_treatments_panel(name, order, confidence) for name in names]
    first = result.treatments[0].name
    return TreatmentsSection(lead, panels, first, first == result.winner)


def _treatments_panel(name: str, order: list[Treatment], confidence: float) -> Panel:
    metrics = [treatment.metrics[name] for treatment in order]
    estimates = [decided(metric) for metric in metrics]
    rows = [
        Row(treatment.name, metric.estimates[metric.headline or ""], direction=metric.direction)
        for treatment, metric in zip(order[:TREATMENTS_DRAWN], metrics, strict=False)
    ]
    chart = forest_chart(f"Uplift in {things(name)}, by treatment", rows, confidence)
    columns = [
        "rank", "treatment", "uplift", "range", "word", f"{level(confidence)} interval, all at once", "p (Holm)",
        "verdict",
    ]  # fmt: skip
    cells = [
        [
            str(t.rank),
            t.name,
            pct(e.rel_effect_size, sign=True),
            _range(e),
            e.word,
            _interval(e),
            _adjusted_p(e),
            _verdict(m, e),
        ]
        for t, m, e in zip(order, metrics, estimates, strict=True)
    ]
    more = _columns_if_needed(metrics)
    table = Table(
        f"Treatments by rank ({name}{_way(metrics[0])}).",
        [*columns, *more],
        [[*row, *(column[k] for column in more.values())] for k, row in enumerate(cells)],
    )
    return Panel(name, chart_of(chart), table)


def _columns_if_needed(metrics: list[Metric]) -> dict[str, list[str]]:
    """Whether the guardrail is kept, and which estimator answers, where treatments differ in that."""
    columns: dict[str, list[str]] = {}
    roles = [metric.role or {} for metric in metrics]
    if all("guardrail" in role for role in roles):
        columns["guardrail"] = [role["guardrail"] for role in roles]
    if len({metric.headline for metric in metrics}) > 1:
        columns["estimator"] = [metric.headline or "" for metric in metrics]
    return columns


def _way(metric: Metric) -> str:
    return ", lower is better" if metric.direction == DECREASE else ""


def _verdict(metric: Metric, estimate: Estimate) -> str:
    """The verdict, and where lower is better what it means."""
    meaning = outcome(estimate.verdict, metric.direction)
    is_plain = metric.direction != DECREASE or meaning == estimate.verdict
    return estimate.verdict if is_plain else f"{estimate.verdict}: {meaning}"


def segments_section(result: Result, most: int) -> SegmentsSection | None:
    """Uplifts by segment, in at most that many panels; None where no column of segments is named."""
    columns = list(dict.fromkeys(segment.column for segment in result.segments))
    if not columns:
        return None
    confidence = result.settings["analysis"]["confidence_level"]
    pairs = [(name, column) for name in result.metrics for column in columns]
    panels = [
        _segments_panel(name, column, [s for s in result.segments if s.column == column], confidence)
        for name, column in pairs[:most]
    ]
    of_treatment = f" of the treatment {result.treatments[0].name}" if result.treatments else ""
    lead = (
        f"The uplifts{of_treatment} by value of a column. Each range is for its segment alone and covers noise only, so"
        " that its word leans at most; verdicts are adjusted for the number of segments (Holm), because among twenty"
        " segments one or two look decided by chance."
    )
    return SegmentsSection(lead, panels, max(0, len(pairs) - most))


def _segments_panel(name: str, column: str, segments: list[Segment], confidence: float) -> Panel:
    labels = [f"all others of {column}" if segment.rest else segment.value for segment in segments]
    estimates = [decided(segment.metrics[name]) for segment in segments]
    direction = segments[0].metrics[name].direction
    rows = [Row(label, estimate, direction=direction) for label, estimate in zip(labels, estimates, strict=True)]
    chart = forest_chart(f"Uplift in {things(name)}, by {column}", rows, confidence)
    table = Table(
        f"Segments of {column} ({name}).",
        [column, "displays", "uplift", f"range ({level(confidence)} noise)", "word", "verdict", "why"],
        [
            [label, f"{s.rows:,}", pct(e.rel_effect_size, sign=True), _range(e), e.word, _verdict(s.metrics[name], e),
             "; ".join(e.reasons)]
            for label, s, e in zip(labels, segments, estimates, strict=True)
        ],
        sortable=True,
    )  # fmt: skip
    return Panel(f"{name} by {column}", chart_of(chart), table)


def role_words(metric: Metric) -> str:
    """A metric's role in a word or two, for the row of a table.

    >>> role_words(Metric(None, {}, None, "neutral", role={"role": "guardrail", "direction": "decrease",
    ...                                                    "guardrail": "pass"}))
    'guardrail: pass, lower is better'
    """
    if metric.role is None:
        return ""
    words = metric.role["role"] + (f": {metric.role['guardrail']}" if "guardrail" in metric.role else "")
    return f"{words}, lower is better" if metric.role["direction"] == "decrease" else str(words)


def _range(estimate: Estimate) -> str:
    limits = shown_range(estimate)
    return interval_text(limits.rel_ci_lower, limits.rel_ci_upper)


def _interval(estimate: Estimate) -> str:
    return interval_text(*shown_noise(estimate))


def _adjusted_p(estimate: Estimate) -> str:
    return p_text(None if estimate.adjusted is None else estimate.adjusted.p_adjusted)
