"""Results in notebooks: tables that need neither a script nor a stylesheet, in the notebook's own colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foretest.offline.winner import choice_of
from foretest.report.blocks import typeset
from foretest.report.digits import level
from foretest.report.history_page import metric_parts
from foretest.report.page import environment
from foretest.report.rows import estimator_rows, metric_rows
from foretest.report.words import verdict_sentence
from foretest.results.examination_text import examination_line
from foretest.results.range_text import legend

if TYPE_CHECKING:
    from foretest.history.agreement_result import Agreement
    from foretest.results.result import Result

COLOURS = {
    "positive": "#16896c", "leans positive": "#5aa893", "neutral": "#74808e", "leans negative": "#d97f88",
    "negative": "#cc3d4a", "insufficient": "#8a66c4",
}  # fmt: skip
ROWS = 50  # metrics shown


def result_html(result: Result) -> str:
    """The verdict, one row per metric, and all estimators below; for a check, the health of the log."""
    if not result.metrics:
        from html import escape

        return f"<pre>{escape(str(result))}</pre>"
    online = "sample_ratio" in result.health
    confidence = result.settings["analysis"]["confidence_level"]
    name, metric = next(iter(result.metrics.items()))
    shown = list(result.metrics.items())[:ROWS]
    details = {} if online else {name: estimator_rows(result, metric) for name, metric in shown}
    choice = choice_of(result)
    sentence = verdict_sentence(name, metric, confidence, online=online)
    if result.treatments:
        sentence = f"The first treatment, {result.treatments[0].name}: {sentence}"
    return environment().get_template("notebook.html").render(
        choice=None if choice is None else typeset(choice.reason), sentence=sentence, level=level(confidence),
        rows=metric_rows(result)[:ROWS], details=details, left_out=len(result.metrics) - len(shown), colours=COLOURS,
        curves={name: examination_line(metric.examination) for name, metric in shown if metric.examination is not None},
        notes=result.notes, tables=None, page="result", online=online,
        legend=None if online else typeset(". ".join(_sentence(text) for text in legend(metric)) + "."),
    )  # fmt: skip


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def agreement_html(agreement: Agreement) -> str:
    """A history in a sentence and its tables of agreement."""
    document = agreement.to_dict()
    parts = metric_parts(document)
    return environment().get_template("notebook.html").render(
        choice=None, sentence=parts[0].sentence, tables=[table for part in parts for table in part.tables if table],
        notes=[f"{failure['name']} failed: {failure['error']}" for failure in document["failures"]],
        page="agreement", legend=None,
    )  # fmt: skip
