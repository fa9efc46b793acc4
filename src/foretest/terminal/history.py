"""A history of A/B tests as text: how each estimator agreed with the online tests."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from foretest.formatting import percent, plural
from foretest.history.agreement import correlation_text
from foretest.terminal.parts import WIDTH, add_number_columns, plain_text

if TYPE_CHECKING:
    from foretest.history.agreement_result import Agreement

_FIGURES = {
    "correlation": "corr.",
    "precision": "right",
    "fnr": "FN",
    "miss_rate": "miss rate",
    "ppv": "PPV",
    "ci_size": "CI size",
}

_SHARES = (
    "FN, FP: false negatives and false positives, share of all tests; miss rate: of the tests that online calls"
    " positive, the share that offline does not"
)

_SEEN = {
    "range_held": "range held",
    "precision_word": "right",
    "fnr_word": "FN",
    "fpr_word": "FP",
    "precision_leans": "right*",
    "fnr_leans": "FN*",
    "fpr_leans": "FP*",
}

_LEANS = "* a word that leans counts as its side, not as neutral"

_UNKNOWN = "in brackets: at both ends of the covariances of noise that are not known"

Figures = dict[str, float | None]  # of one estimator, by name


def agreement_table(agreement: Agreement) -> Group:
    """One table per metric: how each estimator agreed with the online tests, with 10 % and 90 % quantiles below."""
    parts: list[RenderableType] = [Text(f"Foretest history: {plural(len(agreement.tests), 'test')}", style="bold")]
    for metric, figures in agreement.tables.items():
        parts += [Text(), _figures_table(metric, figures), *(Text(line, style="dim") for line in wrap(_SHARES, WIDTH))]
        parts += [Text(), _seen_table(figures), Text(_LEANS, style="dim"), Text()]
        parts += [Text(line, style="dim") for line in _lines_below(figures)]
        parts += [Text(line) for line in _calibration_lines(agreement, metric)]
    parts += [Text(f"Note: {note}", style="dim") for note in agreement.notes]
    parts += [Text(f"propensity audit FAILED: {name}", style="bold red") for name in agreement.failed_audits]
    parts += [
        Text(f"propensity audit FAILED: {name}, the treatment's log", style="bold red")
        for name in agreement.failed_treatment_audits
    ]
    parts += [Text(f"failed: {failure['name']}: {failure['error']}", style="red") for failure in agreement.failures]
    return Group(*parts)


def render_agreement(agreement: Agreement, width: int = WIDTH) -> str:
    """The tables of a history as plain text."""
    return plain_text(agreement_table(agreement), width)


def _figures_table(metric: str, figures: dict[str, Figures]) -> Table:
    table = _table(metric, _FIGURES)
    for label, row in figures.items():
        table.add_row(label, *(_figure(row[name]) for name in _FIGURES))
        quantiles = [f"{_figure(row[f'{name}_q10'])}:{_figure(row[f'{name}_q90'])}" for name in _FIGURES]
        table.add_row("", *(Text(pair, style="dim") for pair in quantiles))
    return table


def _seen_table(figures: dict[str, Figures]) -> Table:
    """What people look at first: how often the range held the online result, and decisions by word."""
    table = _table("by range and word", _SEEN)
    for label, row in figures.items():
        table.add_row(label, *(_figure(row.get(name)) for name in _SEEN))
    return table


def _table(title: str, columns: dict[str, str]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", title=title, title_justify="left")
    table.add_column("estimator", no_wrap=True)
    add_number_columns(table, *columns.values())
    return table


def _lines_below(figures: dict[str, Figures]) -> list[str]:
    """The noise ceiling by estimator and, where the truth is known, the errors against it."""
    lines = []
    if any(row["noise_ceiling"] is not None for row in figures.values()):
        lines.append("correlation of a perfect estimator, and ours with the noise removed:")
        for label, row in figures.items():
            ceiling, removed = _figure(row["noise_ceiling"]), correlation_text(row, "deconvolved_correlation", _figure)
            lines.append(f"  {label}: {ceiling}, {removed}{_at_ends(row)}")
        if any("deconvolved_correlation_low" in row for row in figures.values()):
            lines.append(_UNKNOWN)
    if any("rmse" in row for row in figures.values()):
        lines.append("against the truth: bias, root mean square error, held by interval, by range")
        for label, row in ((label, row) for label, row in figures.items() if "rmse" in row):
            shares = percent(row["coverage"]), percent(row.get("range_coverage"))
            errors = percent(row["bias"], sign=True), percent(row["rmse"]), *shares
            lines.append(f"  {label}: {', '.join(errors)}")
    return lines


def _at_ends(row: Figures) -> str:
    """The correlation with the noise removed at both ends of covariances that are not known; empty where all are."""
    if "deconvolved_correlation_low" not in row:
        return ""
    ends = (correlation_text(row, f"deconvolved_correlation_{end}", _figure) for end in ("low", "high"))
    return f" ({' to '.join(ends)})"


def _calibration_lines(agreement: Agreement, metric: str) -> list[str]:
    """What the tests say of the unsupported part, and which estimator came closest."""
    from foretest.history.recommendation import learned_sentence, sentence

    calibrations = agreement.calibration_details.get(metric, {})
    lines = [learned_sentence(label, calibration) for label, calibration in calibrations.items()]
    recommendation = agreement.recommendation(metric)
    return lines + ([] if recommendation is None else [sentence(recommendation)])


def _figure(value: float | None) -> str:
    """A share or a correlation in two digits.

    >>> _figure(0.333), _figure(-0.5), _figure(1.0), _figure(None)
    ('.33', '-.50', '1.00', '-')
    """
    return "-" if value is None else f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 0.995 else f"{value:.2f}"
