"""The estimates of one metric as columns of a table: for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text

from foretest.formatting import format_number, p_value_column, percent, round_percent, short_span
from foretest.results.range_text import shown_noise, shown_range
from foretest.results.robustness_text import is_fragile
from foretest.terminal.fitting import Column
from foretest.terminal.parts import verdict_text

if TYPE_CHECKING:
    from foretest.results.result import Estimate, Metric

_NO_TEXT = Text("")


def estimate_columns(
    metric: Metric, confidence_level: float, truth: float | None = None, *, online: bool = False
) -> list[Column]:
    """One row per estimator: uplift, range and word, then noise and verdict; an online test has no range of its own.

    A row with the true uplift follows where it is known.
    """
    rows = list(metric.estimates.values())
    level = round_percent(confidence_level)
    known = truth is not None
    treatment = _numbers("treatment", (format_number(e.treatment) for e in rows), known, optional=0 if online else 3)
    uplift = uplift_column(rows, [truth] if known else [])
    words = [verdict_text(e.word, metric.direction) for e in rows]
    # online they differ only where the arms have other numbers of displays per unit, and noise is not the answer there
    verdicts = (
        words if online else [verdict_text(e.verdict, metric.direction, " ~" if is_fragile(e) else "") for e in rows]
    )
    verdict = Column("verdict", [*verdicts, *[_NO_TEXT] * known], optional=0 if online else 2)
    if online:
        interval = _numbers(f"{level} interval", map(interval_text, rows), known)
        p = _numbers("p", (p_value_column(e.p_value) for e in rows), known, optional=1)
        return _with_always_valid(metric, [_names(metric, known), treatment, uplift, interval, p, verdict])
    return [
        _names(metric, known),
        uplift,
        _numbers("range", map(range_text, rows), known),
        Column("word", [*words, *[Text("simulated", style="cyan")] * known]),
        _numbers(f"noise, {level}", map(interval_text, rows), known, optional=1),
        verdict,
        treatment,
    ]


def _with_always_valid(metric: Metric, columns: list[Column]) -> list[Column]:
    """The columns of an online test with one more row, of the headline's always-valid interval, below it."""
    always = metric.estimates[metric.headline or ""].always_valid
    if always is None:
        return columns
    limits = short_span(always["rel_ci_lower"], always["rel_ci_upper"])
    row: list[str | Text] = ["  always valid", "", "", limits, "", verdict_text(always["verdict"], metric.direction)]
    return [
        replace(column, cells=[*column.cells[:1], cell, *column.cells[1:]])
        for column, cell in zip(columns, row, strict=True)
    ]


def _names(metric: Metric, known: bool) -> Column:
    """The estimators, the headline marked; `known` adds the row of the truth."""
    names = [
        Text(f"{'>' if label == metric.headline else ' '} {label}", style="bold" if label == metric.headline else "")
        for label in metric.estimates
    ]
    return Column("  estimator", [*names, *[Text("  the truth", style="cyan")] * known])


def _numbers(title: str, cells: Iterable[str], known: bool, optional: int = 0) -> Column:
    return Column(title, [*cells, *[""] * known], number=True, optional=optional)


def uplift_column(estimates: Sequence[Estimate], more: Sequence[float | None] = ()) -> Column:
    """The relative uplifts of estimates, and more of them below."""
    values = [*(estimate.rel_effect_size for estimate in estimates), *more]
    return Column("uplift", [percent(value, sign=True) for value in values], number=True)


def range_text(estimate: Estimate) -> str:
    """The relative range of an estimate in few characters."""
    limits = shown_range(estimate)
    return short_span(limits.rel_ci_lower, limits.rel_ci_upper)


def interval_text(estimate: Estimate) -> str:
    """The relative interval of an estimate, which is about noise alone, in few characters."""
    return short_span(*shown_noise(estimate))
