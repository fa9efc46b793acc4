"""The table of a stratified estimator's strata."""

from __future__ import annotations

from typing import Any

from foretest.records import dataclass
from foretest.report.blocks import Chart, chart_of
from foretest.report.charts.strata import strata_chart
from foretest.report.digits import aligned, num, pct
from foretest.results.result import Metric


@dataclass(frozen=True)
class NumberCell:
    """A number as text, and as a value to sort by; `bar` is its share of the largest, in CSS."""

    text: str
    value: float | None
    bar: str = ""


@dataclass(frozen=True)
class StratumRow:
    """One stratum."""

    label: str
    share: NumberCell
    weight: NumberCell
    value: NumberCell
    contribution: NumberCell
    bias: NumberCell


@dataclass(frozen=True)
class StrataTable:
    """The strata of one estimator, with a chart."""

    estimator: str
    rows: list[StratumRow]
    note: str
    chart: Chart
    with_bias: bool


def strata_table(metric: Metric, most: int) -> StrataTable | None:
    """The strata of the first stratified estimator; at most that many, those with the largest share of rows."""
    label, strata = next(((k, e.strata) for k, e in metric.estimates.items() if e.strata), ("", None))
    if not strata:
        return None
    largest = {id(stratum) for stratum in sorted(strata, key=lambda stratum: -stratum["share"])[:most]}
    shown = [stratum for stratum in strata if id(stratum) in largest]
    rest = [stratum for stratum in strata if id(stratum) not in largest]
    share = pct(sum(stratum["share"] for stratum in rest))
    return StrataTable(
        label,
        _rows(strata, shown),
        f"{len(rest):,} smaller strata, {share} of the rows, are in result.json." if rest else "",
        chart_of(strata_chart(strata)),
        any(stratum.get("bias_contribution") is not None for stratum in strata),
    )


def _rows(strata: list[dict[str, Any]], shown: list[dict[str, Any]]) -> list[StratumRow]:
    """Rows of the strata that are shown; bars are relative to the largest of all."""
    largest_share = max(stratum["share"] for stratum in strata)
    largest_contribution = max(stratum["contribution"] or 0.0 for stratum in strata)
    values = aligned([stratum["value"] for stratum in shown])
    contributions = aligned([stratum["contribution"] for stratum in shown])
    biases = aligned([stratum.get("bias_contribution") for stratum in shown], sign=True)
    return [
        StratumRow(
            s["label"],
            NumberCell(pct(s["share"]), s["share"], _bar(s["share"], largest_share)),
            NumberCell(num(s["mean_weight"]), s["mean_weight"]),
            NumberCell(value, s["value"]),
            NumberCell(contribution, s["contribution"], _bar(s["contribution"], largest_contribution)),
            NumberCell(bias, s.get("bias_contribution")),
        )
        for s, value, contribution, bias in zip(shown, values, contributions, biases, strict=True)
    ]


def _bar(value: float | None, whole: float) -> str:
    return f"--share:{100.0 * (value or 0.0) / whole:.1f}%" if whole > 0 else ""
