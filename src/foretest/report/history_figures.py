"""The figures of a history's page: how each estimator agreed with the online tests, in tables and in tiles."""

from __future__ import annotations

from typing import Any, NamedTuple

from foretest.history.agreement import correlation_text
from foretest.records import dataclass
from foretest.report.blocks import Fact
from foretest.report.digits import NONE, decimal, pct

Figures = dict[str, Any]  # an estimator's row in the table of agreement.json


class Column(NamedTuple):
    """A column of a table of figures: its heading and what it means."""

    title: str
    meaning: str


@dataclass(frozen=True)
class Cell:
    """A figure as text, as a value to sort by, and its 10 % and 90 % quantiles."""

    text: str
    value: float | None
    span: str


@dataclass(frozen=True)
class FigureRow:
    """The figures of one estimator; `leads` marks the headline."""

    label: str
    leads: bool
    cells: list[Cell]


@dataclass(frozen=True)
class FigureTable:
    """Figures by estimator."""

    caption: str
    columns: list[Column]
    rows: list[FigureRow]


AGREEMENT = {
    "correlation": Column("correlation", "of offline and online uplifts, over tests"),
    "precision": Column("right", "share of tests in which offline decided as online did"),
    "fnr": Column(
        "false negatives, share of all tests", "those in which offline decided lower than online: improvements missed"
    ),
    "miss_rate": Column("miss rate", "of the tests that online calls positive, the share that offline does not"),
    "fpr": Column("false positives, share of all tests", "those in which offline decided higher than online"),
    "ppv": Column("positives confirmed", "of the tests that offline calls positive, the share that online does too"),
    "ci_size": Column("interval size", "mean width of the interval, relative to that of cis"),
}
_LEANS = "; a word that leans counts as"
RANGE_AND_WORD = {
    "range_held": Column("range held", "share of ranges that held the online result, allowing for its noise"),
    "precision_word": Column("right", f"share of tests whose word decided as online did{_LEANS} neutral"),
    "fnr_word": Column("false negatives", f"share of tests whose word is lower than online{_LEANS} neutral"),
    "fpr_word": Column("false positives", f"share of tests whose word is higher than online{_LEANS} neutral"),
    "precision_leans": Column("right, with leans", f"share of tests whose word decided as online did{_LEANS} its side"),
    "fnr_leans": Column(
        "false negatives, with leans", f"share of tests whose word is lower than online{_LEANS} its side"
    ),
    "fpr_leans": Column(
        "false positives, with leans", f"share of tests whose word is higher than online{_LEANS} its side"
    ),
}
NOISE_AND_TRUTH = {
    "noise_ceiling": Column("noise ceiling", "the correlation that a perfect estimator would show with this noise"),
    "deconvolved_correlation": Column("noise removed", "the correlation with the noise of both axes removed"),
    "deconvolved_correlation_low": Column(
        "at both ends", "the same with every covariance of noise that is not known at its upper, and at its lower bound"
    ),
    "bias": Column("bias", "mean of estimate minus truth"),
    "rmse": Column("error", "root mean square of estimate minus truth"),
    "coverage": Column("interval holds truth", "share of noise intervals that contain the truth"),
    "range_coverage": Column("range holds truth", "share of ranges that contain the truth"),
}
_PERCENT = (
    "precision", "fnr", "fpr", "ppv", "miss_rate", "bias", "rmse", "coverage", "range_coverage", *RANGE_AND_WORD,
)  # fmt: skip

#: figures that are correlations with the noise taken out, which may come out beyond 1
_CORRELATIONS = ("deconvolved_correlation", "deconvolved_correlation_low", "deconvolved_correlation_high")

_TILES = {
    "range_held": Column("range held online", "The share of tests whose range, from the control's log alone, held what"
                         " the online test then said, allowing for the online test's noise."),
    "precision": Column("right decisions", "The share of tests in which offline decided (positive, neutral, negative)"
                        " as online did."),
    "fnr": Column("false negatives, share of all tests", "Those in which offline decided lower than online:"
                  " improvements that would never have been tried. These cost most."),
    "miss_rate": Column("miss rate", "Of the tests that online calls positive, the share that offline does not."),
    "fpr": Column("false positives, share of all tests", "Those in which offline decided higher than online: online"
                  " tests run in vain."),
    "correlation": Column("correlation", "Of offline and online uplifts over tests; 1 is perfect, 0 is none."),
    "noise_ceiling": Column("noise ceiling", "The correlation that a perfect estimator would show, since both uplifts"
                            " are noisy. It is missing if the noise exceeds the differences between tests."),
}  # fmt: skip


def figure_table(
    caption: str, figures: dict[str, Figures], headline: str, columns: dict[str, Column]
) -> FigureTable | None:
    """A table of the columns in which any estimator has a figure; None if there are none."""
    names = [name for name in columns if any(row.get(name) is not None for row in figures.values())]
    if not names:
        return None
    rows = [
        FigureRow(
            label,
            label == headline,
            [Cell(_text(name, row), row.get(name), _span(name, row)) for name in names],
        )
        for label, row in figures.items()
    ]
    return FigureTable(caption, [columns[name] for name in names], rows)


def history_facts(tests: list[dict[str, Any]], figures: Figures) -> list[Fact]:
    """The tiles: the number of tests, and the headline's figures."""
    positive = [test["online"]["verdict"] for test in tests].count("positive")
    meaning = "A/B tests with an offline and an online answer. With fewer than ten, every figure is rough."
    state = "watch" if len(tests) < 10 else "fine"
    facts = [Fact("tests", f"{len(tests):,}", meaning, state, f"{positive} positive online")]
    for name, (title, meaning) in _TILES.items():
        value = figures.get(name)
        state = "watch" if name == "fnr" and (value or 0.0) > 0.25 else "fine"
        facts.append(Fact(title, _text(name, figures), meaning, state, _span(name, figures)))
    return facts


def _text(name: str, row: Figures) -> str:
    if name in _CORRELATIONS:
        return correlation_text(row, name, decimal)
    return _number(name, row.get(name))


def _number(name: str, value: float | None) -> str:
    if value is None:
        return NONE
    if name not in _PERCENT:
        return decimal(value)
    if abs(value) < 0.1:
        return pct(value, sign=name == "bias")
    sign = "+" if name == "bias" and value > 0 else ""
    return f"{sign}{decimal(100 * value, 0)}\N{NO-BREAK SPACE}%"


def _span(name: str, row: Figures) -> str:
    if name == "deconvolved_correlation_low":  # its other end
        return f"to {_text('deconvolved_correlation_high', row)}"
    lower, upper = row.get(f"{name}_q10"), row.get(f"{name}_q90")
    if row.get(name) is None or lower is None or upper is None:
        return ""
    if name in _CORRELATIONS and max(map(abs, (row[name], lower, upper))) > 1.0:
        return ""  # no quantiles of a number that is not known
    return f"{_number(name, lower)} to {_number(name, upper)}"
