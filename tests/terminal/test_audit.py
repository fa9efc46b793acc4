"""The audit as text: how many tests could be run, and what each found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foretest.results.audit import Audit, Finding, not_made
from foretest.results.result import Control, Metric
from foretest.results.slot_model import SlotModel, SlotTest
from foretest.terminal.audit import audit_row, findings_table, slot_model_rows
from foretest.terminal.parts import plain_text

PASSES = Finding("balance", "pass", 0.25, 0.1, "weights leave the contexts as they are (0.1 standard errors)", None)
FAILS = Finding("log-likelihood", "fail", 3e-7, 5.1, "what was shown is less likely", "Look at [control].")
UNMADE = not_made("repeated rows", "the log has no id")


@pytest.mark.parametrize(
    ("findings", "ignore", "outcome", "note"),
    [
        ((PASSES, UNMADE), False, "passed", "1 of 2 tests could be run"),
        ((PASSES, FAILS), False, "FAILED", "2 of 2 tests could be run"),
        ((FAILS,), True, "FAILED", "1 of 1 tests could be run; ignore_audit = true lets verdicts stand"),
        ((UNMADE,), False, "not verified", "0 of 1 tests could be run"),
    ],
)
def test_the_audit_in_one_row(findings: tuple[Finding, ...], ignore: bool, outcome: str, note: str) -> None:
    name, text, remark = audit_row(Audit.of(list(findings), ignore=ignore))
    assert (name, text.plain, remark) == ("propensity audit", outcome, note)


def test_only_a_test_that_passes_is_in_brief() -> None:
    audit = Audit.of([PASSES, FAILS, UNMADE], ignore=False)
    [_, table] = findings_table(audit, in_full=False)
    assert [line.rstrip() for line in plain_text(table).splitlines()] == [
        "pass     balance         weighting leaves contexts unchanged; p = 0.25",
        "fail     log-likelihood  what was shown is less likely; p < 0.0001. Look at",
        "                         [control].",
        "not run  repeated rows   the log has no id",
    ]
    [_, table] = findings_table(audit, in_full=True)
    assert PASSES.meaning in " ".join(plain_text(table).split())


def test_without_an_audit_there_is_no_table() -> None:
    assert findings_table(None, in_full=True) == []


def test_tests_of_the_curve_are_rows_where_they_speak_against_it() -> None:
    passed = SlotTest("pass", None, 0.4, 1200, "as far as the log tells, yes")
    failed = SlotTest("fail", None, 0.0002, 900, "no one curve")
    metric = Metric(
        Control(0.02, 0.001, 0.018, 0.022), {}, None, "neutral", slot_model=SlotModel(passed, passed, failed)
    )
    rows = [(title, outcome.plain, text) for title, outcome, text in slot_model_rows({"click": metric})]
    assert rows == [
        ("company of slots", "passed", "as far as the log tells, yes; p = 0.4"),
        ("curve by chain", "FAILED", "no one curve; p = 0.0002"),
    ]
    both = slot_model_rows({"click": metric, "sale": replace(metric, slot_model=None)})
    assert both[1][2] == "click: no one curve; p = 0.0002"
