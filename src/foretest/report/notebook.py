"""Results in notebooks: tables that need neither a script nor a stylesheet, in the notebook's own colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foretest.report.digits import level
from foretest.report.history_page import agreement_parts
from foretest.report.page import environment
from foretest.report.rows import estimator_rows, metric_rows
from foretest.report.words import sentence

if TYPE_CHECKING:
    from foretest.history.agreement_result import Agreement
    from foretest.results.result import Result

COLOURS = {"positive": "#16896c", "negative": "#cc3d4a", "neutral": "#74808e", "insufficient": "#8a66c4"}
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
    details: list[dict[str, Any]] = [] if online else [
        {"name": name, "rows": estimator_rows(result, metric)} for name, metric in shown
    ]  # fmt: skip
    return environment().get_template("notebook.html").render(
        sentence=sentence(name, metric, confidence, online=online), level=level(confidence),
        rows=metric_rows(result)[:ROWS], details=details, left_out=len(result.metrics) - len(shown), colours=COLOURS,
        notes=result.notes, tables=None, page="result",
    )  # fmt: skip


def agreement_html(agreement: Agreement) -> str:
    """A history in a sentence and its tables of agreement."""
    parts = agreement_parts(agreement.to_dict())
    return environment().get_template("notebook.html").render(
        sentence=parts[0]["sentence"], tables=[table for part in parts for table in part["tables"] if table],
        notes=[f"{failure['name']} failed: {failure['error']}" for failure in agreement.to_dict()["failures"]],
        page="agreement",
    )  # fmt: skip
