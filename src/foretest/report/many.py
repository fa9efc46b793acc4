"""What a page shows where more was asked than one question: treatments in their order, segments side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from foretest.offline.treatments import goal
from foretest.report.blocks import Table, chart_of
from foretest.report.charts.forest import Row, forest_chart
from foretest.report.digits import chance, level, pct
from foretest.report.words import things
from foretest.results.result import Estimate, Metric, Result, Treatment

TREATMENTS_DRAWN = 40


def in_order(result: Result) -> list[Treatment]:
    """Several treatments, the first by rank first; none where there is one."""
    return sorted(result.treatments, key=lambda treatment: treatment.rank or 0)


def leading(result: Result) -> Result:
    """The result whose answer stands on top: of several treatments that of the first by rank, its goal in front."""
    if not result.metrics:
        return result
    order = in_order(result)
    metrics = order[0].metrics if order else result.metrics
    name = goal(metrics)
    metrics = {name: metrics[name], **metrics}
    metrics = {key: _as_decided(metric) for key, metric in metrics.items()} if order else metrics
    return replace(result, metrics=metrics, health=order[0].health if order else result.health)


def _as_decided(metric: Metric) -> Metric:
    """A metric of one of several treatments, with what is left once all are asked together."""
    headline = metric.headline or ""
    e = decided(metric)
    return replace(metric, estimates={**metric.estimates, headline: e}, verdict=e.verdict)


def decided(metric: Metric) -> Estimate:
    """The headline's estimate with the adjusted verdict, and the interval that holds at once where there is one."""
    e = metric.estimates[metric.headline or ""]
    a = e.adjusted
    if a is None:
        return e
    if a.rel_simultaneous_ci_lower is None and a.simultaneous_ci_lower is None:
        return replace(e, verdict=a.verdict_adjusted)
    return replace(
        e,
        verdict=a.verdict_adjusted,
        effect_size_ci_lower=a.simultaneous_ci_lower,
        effect_size_ci_upper=a.simultaneous_ci_upper,
        rel_effect_size_ci_lower=a.rel_simultaneous_ci_lower,
        rel_effect_size_ci_upper=a.rel_simultaneous_ci_upper,
    )


def treatments_part(result: Result, most: int) -> dict[str, Any] | None:
    """The section of several treatments: for each metric a plot and a table, ranked."""
    order = in_order(result)
    if not order:
        return None
    confidence = result.settings["analysis"]["confidence_level"]
    by = goal(result.metrics)
    shown = [by, *(name for name in result.metrics if name != by)][:most]
    panels = []
    for name in shown:
        estimates = [decided(t.metrics[name]) for t in order]
        rows = [Row(t.name, e) for t, e in zip(order[:TREATMENTS_DRAWN], estimates, strict=False)]
        chart = forest_chart(f"Uplift in {things(name)}, by treatment", rows, confidence)
        table = Table(
            f"Treatments by rank ({name}).",
            ["rank", "treatment", "uplift", f"{level(confidence)} interval, all at once", "p (Holm)", "verdict"],
            [
                [str(t.rank), t.name, pct(e.rel_effect_size, sign=True), _interval(e), _chance(e), e.verdict]
                for t, e in zip(order, estimates, strict=True)
            ],
        )
        panels.append({"name": name, "chart": chart_of(chart), "table": table})
    lead = (
        f"{len(order)} treatments were asked about together, and are ranked by their uplift in {things(by)}. With"
        f" {level(confidence)} probability all of the intervals here hold at once; verdicts are Holm's: the chance that"
        f" any of them is wrong by chance alone is {pct(1.0 - confidence)} or less."
    )
    first = result.treatments[0].name
    return {"panels": panels, "lead": lead, "first": first}


def segments_part(result: Result, most: int) -> dict[str, Any] | None:
    """The section of segments: for each column and metric a plot and a table."""
    columns = list(dict.fromkeys(segment.column for segment in result.segments))
    if not columns:
        return None
    confidence = result.settings["analysis"]["confidence_level"]
    panels = []
    for name in result.metrics:
        for column in columns:
            held = [segment for segment in result.segments if segment.column == column]
            labels = [f"all others of {column}" if segment.rest else segment.value for segment in held]
            estimates = [decided(segment.metrics[name]) for segment in held]
            rows = [Row(label, e) for label, e in zip(labels, estimates, strict=True)]
            chart = forest_chart(f"Uplift in {things(name)}, by {column}", rows, confidence)
            table = Table(
                f"Segments of {column} ({name}).",
                [column, "displays", "uplift", f"{level(confidence)} interval", "verdict", "why"],
                [
                    [label, f"{s.rows:,}", pct(e.rel_effect_size, sign=True), _interval(e), e.verdict,
                     "; ".join(e.reasons)]
                    for label, s, e in zip(labels, held, estimates, strict=True)
                ],
                sortable=True,
            )  # fmt: skip
            panels.append({"name": f"{name} by {column}", "chart": chart_of(chart), "table": table})
    whose = f" of the treatment {result.treatments[0].name}" if result.treatments else ""
    lead = (
        f"The same answers{whose} for the displays of each value. Intervals are of each segment alone; verdicts are"
        " adjusted for the number of segments (Holm), as among twenty one or two look decided by chance."
    )
    return {"panels": panels[:most], "lead": lead, "left_out": max(0, len(panels) - most)}


def role_words(metric: Metric) -> str:
    """A metric's role in a word or two, for the row of a table.

    >>> role_words(Metric(None, {}, None, "neutral", role={"role": "guardrail", "direction": "decrease",
    ...                                                    "guardrail": "pass"}))
    'guardrail: pass, lower is better'
    """
    if metric.role is None:
        return ""
    said = metric.role["role"] + (f": {metric.role['guardrail']}" if "guardrail" in metric.role else "")
    return f"{said}, lower is better" if metric.role["direction"] == "decrease" else str(said)


def _interval(e: Estimate) -> str:
    if e.rel_effect_size_ci_lower is None:
        return "no interval"
    return f"{pct(e.rel_effect_size_ci_lower, sign=True)} to {pct(e.rel_effect_size_ci_upper, sign=True)}"


def _chance(e: Estimate) -> str:
    return "–" if e.adjusted is None or e.adjusted.p_adjusted is None else chance(e.adjusted.p_adjusted)
