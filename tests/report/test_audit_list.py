"""The audit in the words of the page: a checklist, and an alarm where it failed."""

from __future__ import annotations

from dataclasses import replace

import pytest

import foretest as ft
from foretest.report.audit_list import alarm, checklist
from foretest.report.result_page import result_page
from foretest.results.audit import Audit, Finding, not_made
from tests.support import SmallLog, build_test

HOSTILE = "<img src=x onerror=alert(1)>"
PASSES = Finding("exploration", "pass", None, 0.0, "the control explores", None)
FAILS = Finding("log-likelihood", "fail", 3e-7, 5.1, f"what was shown is less likely {HOSTILE}", "Look at [control].")
WARNS = Finding("balance", "warn", 0.0042, 3.0, "weights move the contexts", "Look at the feature.")
UNMADE = not_made("repeated rows", "without an id equal rows cannot be told from copies")


@pytest.fixture(scope="module")
def result() -> ft.Result:
    return build_test(["cis", "point-ncis-adaptive"]).run(SmallLog().table())


def audited(result: ft.Result, *findings: Finding, ignore: bool = False) -> ft.Result:
    return replace(result, audit=Audit.of(list(findings), ignore=ignore))


def test_one_line_per_test(result: ft.Result) -> None:
    shown = checklist(audited(result, PASSES, FAILS, WARNS, UNMADE))
    assert shown is not None
    assert [(line.kind, line.word, line.p) for line in shown.lines] == [
        ("passed", "passed", None),
        ("failed", "failed", "below 0.0001"),
        ("warned", "worth a look", "0.0042"),
        ("unmade", "not run", None),
    ]
    assert shown.lines[3].meaning == "Without an id equal rows cannot be told from copies."
    assert shown.lines[1].remedy == "Look at [control]."
    assert shown.lead.startswith("No, not from the control that the settings describe: log-likelihood failed. 3 of 4")


@pytest.mark.parametrize(
    ("findings", "begin"),
    [
        ((PASSES,), "Nothing speaks against it. 1 of 1 tests could be run"),
        ((PASSES, WARNS), "Probably, but look at this: balance."),
        ((UNMADE,), "This is not verified: too little could be checked. 0 of 1 tests could be run"),
    ],
)
def test_the_lead_says_the_outcome(result: ft.Result, findings: tuple[Finding, ...], begin: str) -> None:
    shown = checklist(audited(result, *findings))
    assert shown is not None
    assert shown.lead.startswith(begin)
    assert alarm(audited(result, *findings)) is None


def test_the_alarm_says_whether_verdicts_stand(result: ft.Result) -> None:
    failed, ignored = (alarm(audited(result, FAILS, ignore=ignore)) or "" for ignore in (False, True))
    assert failed == (
        "The propensity audit failed (log-likelihood). The numbers are shown as they are; no verdict can rest on them."
    )
    assert ignored.startswith("The propensity audit failed (log-likelihood): this log was not drawn from the control")
    assert "ignore_audit = true, so verdicts are given all the same" in ignored


def test_an_online_test_has_no_audit(result: ft.Result) -> None:
    bare = replace(result, audit=None)
    assert checklist(bare) is None
    page = result_page(bare)
    assert 'id="audit"' not in page
    assert 'href="#audit"' not in page


def test_the_page_shows_it_as_text(result: ft.Result) -> None:
    page = result_page(audited(result, PASSES, FAILS))
    assert '<p class="alarm" role="alert">The propensity audit failed (log-likelihood)' in page
    assert 'href="#audit"' in page
    assert "What was shown is less likely &lt;img" in page
    assert "p below 0.0001" in page


def test_the_headline_is_one_sentence_and_the_box_names_the_tests(result: ft.Result) -> None:
    failed = audited(result, PASSES, FAILS)
    name, metric = next(iter(failed.metrics.items()))
    reason = "the propensity audit failed (log-likelihood): these numbers cannot be relied on"
    estimates = {
        label: replace(estimate, verdict="insufficient", word="insufficient", reasons=[reason])
        for label, estimate in metric.estimates.items()
    }
    page = result_page(replace(failed, metrics={name: replace(metric, estimates=estimates, verdict="insufficient")}))
    answer = page[page.index('<section class="answer') : page.index("</section>")]
    assert "This log cannot answer: it was not produced by the control as the settings describe it.</h1>" in answer
    assert answer.count("propensity audit failed") == 1
    assert "Do not decide by this page." in answer
