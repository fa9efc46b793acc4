"""The propensity audit as text: one line for all of it, one line per test."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from foretest.formatting import p_value
from foretest.results.audit import FAIL, NOT_MADE, PASS, UNVERIFIED, WARN, Audit, Finding
from foretest.results.result import Metric
from foretest.terminal.parts import list_table

_STYLES = {PASS: "green", WARN: "yellow", FAIL: "bold red", NOT_MADE: "dim", UNVERIFIED: "yellow"}
_OUTCOMES = {PASS: "passed", WARN: "warns", FAIL: "FAILED", UNVERIFIED: "not verified", NOT_MADE: "not run"}
_TEST_OUTCOMES = {PASS: "pass", WARN: "warn", FAIL: "fail", NOT_MADE: "not run"}

#: what the rows of the tests of slots are called
_SLOT_TESTS = {
    "company of slots": "company", "pairs of items": "pairs", "items below": "below", "curve by score": "trust",
    "curve by chain": "chain",
}  # fmt: skip

#: what a test that passes shows, in few words
_PASSES = {
    "exploration": "other rankings could have been shown",
    "replayed": "every row follows from its seed and id",
    "as served": "displays show what the control gives",
    "logged probabilities": "they follow from the scores",
    "log-likelihood": "the log is as likely as expected",
    "rank among draws": "what was shown looks like a draw",
    "likelihood by day": "the control is the same on all days",
    "items by slot": "items appear as often as expected",
    "capped moment": "the mean weight is as expected",
    "knows the draw": "the treatment does not know what was shown",
    "possible weights": "no mean weight is above 1",
    "balance": "weighting leaves contexts unchanged",
    "repeated rows": "no display appears twice",
    "own policy": "its probabilities sum to 1",
}


def audit_row(audit: Audit) -> tuple[str, Text, str]:
    """The audit in one row: its name, its outcome, and how many of its tests could be run."""
    run = sum(finding.outcome != NOT_MADE for finding in audit.findings)
    note = f"{run} of {len(audit.findings)} tests could be run"
    if audit.ignored:
        note += "; ignore_audit = true lets verdicts stand"
    return "propensity audit", Text(_OUTCOMES[audit.outcome], style=_STYLES[audit.outcome]), note


def slot_model_rows(metrics: Mapping[str, Metric]) -> list[tuple[str, Text, str]]:
    """What the log says of the models behind slots and exposure: a row for each metric and test, as for the audit.

    Tests other than that of the company are there only where they warn or fail.
    """
    return [
        (
            title,
            Text(_OUTCOMES[test.status], style=_STYLES[test.status]),
            test.text if len(metrics) == 1 else f"{name}: {test.text}",
        )
        for title, which in _SLOT_TESTS.items()
        for name, metric in metrics.items()
        if metric.slot_model is not None
        and (test := getattr(metric.slot_model, which)) is not None
        and (which == "company" or test.warns)
    ]


def findings_table(audit: Audit | None, *, in_full: bool) -> list[RenderableType]:
    """One line per test, after an empty line. A test that passes is in full only where `in_full` asks for it."""
    if audit is None:
        return []
    table = list_table()
    for no_wrap in (True, True, False):
        table.add_column(no_wrap=no_wrap)
    for finding in audit.findings:
        _add_finding(table, finding, in_brief=finding.outcome == PASS and not in_full)
    return [Text(), table]


def _add_finding(table: Table, finding: Finding, *, in_brief: bool) -> None:
    text = _PASSES.get(finding.name, finding.meaning) if in_brief else finding.meaning.removeprefix("not made: ")
    meaning = Text(text, style="dim" if in_brief or finding.outcome == NOT_MADE else "")
    if finding.p_value is not None:
        meaning.append(f"; {p_value(finding.p_value)}")
    if finding.remedy is not None:
        meaning.append(f". {finding.remedy}", style="dim")
    outcome = Text(_TEST_OUTCOMES[finding.outcome], style=_STYLES[finding.outcome])
    table.add_row(outcome, finding.name, meaning)
