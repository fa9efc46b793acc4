"""The propensity audit as a checklist, and as a warning beside the verdict where it failed."""

from __future__ import annotations

from foretest.records import dataclass
from foretest.report.blocks import typeset
from foretest.report.digits import p_text
from foretest.results.audit import FAIL, NOT_MADE, PASS, UNVERIFIED, WARN, Audit, Finding
from foretest.results.result import Metric, Result
from foretest.results.slot_model import SlotTest

#: outcome: its CSS class, and a sign and a word that say the same
SIGNS = {
    PASS: ("passed", "✓", "passed"),
    WARN: ("warned", "!", "worth a look"),
    FAIL: ("failed", "✗", "failed"),
    NOT_MADE: ("unmade", "–", "not run"),
}


@dataclass(frozen=True)
class AuditLine:
    """One test of the audit."""

    kind: str  # a CSS class
    sign: str
    word: str
    name: str
    p: str | None
    meaning: str
    remedy: str | None


@dataclass(frozen=True)
class Checklist:
    """The audit's tests, and a sentence on all of them."""

    anchor: str
    question: str
    lead: str
    lines: list[AuditLine]


def checklist(result: Result) -> Checklist | None:
    """One line per test; None for a result without an audit."""
    if result.audit is None:
        return None
    whose = "its loggers" if result.log.get("loggers") else "the control"
    return _checklist("audit", f"Was this log drawn from {whose}?", result.audit, "control")


def arm_checklists(result: Result) -> list[Checklist]:
    """The same of both arms of an online test, as far as they were audited."""
    return [
        _checklist(f"audit-{arm}", f"Was the {arm}'s log drawn from its policy?", audit, "policy")
        for arm, audit in result.audits.items()
    ]


def _checklist(anchor: str, question: str, audit: Audit, policy: str) -> Checklist:
    return Checklist(anchor, question, _lead(audit, policy), [_line(finding) for finding in audit.findings])


def _line(finding: Finding) -> AuditLine:
    kind, sign, word = SIGNS[finding.outcome]
    p = None if finding.p_value is None else p_text(finding.p_value)
    meaning = finding.meaning.removeprefix("not made: ")
    return AuditLine(kind, sign, word, finding.name, p, typeset(f"{meaning[:1].upper()}{meaning[1:]}."), finding.remedy)


def alarm(result: Result) -> str | None:
    """The warning in red beside the verdict; None unless the audit failed."""
    if result.audit is None or result.audit.outcome != FAIL:
        return None
    begin = f"The propensity audit failed ({', '.join(result.audit.named(FAIL))})"
    if result.audit.ignored:
        begin += ": this log was not drawn from the control as the settings describe it."
        return f"{begin} The settings say ignore_audit = true, so verdicts are given all the same. Do not trust them."
    return f"{begin}. The numbers are shown as they are; no verdict can rest on them."


def company_line(metric: Metric) -> str | None:
    """What the log says of slots and their company, in a line below the estimators; None without estimators by slot.

    Where rewards depend on it, it says whether they depend on what stands below.
    """
    model = metric.slot_model
    if model is None:
        return None
    line = _slot_line("Do slots depend on their company?", model.beside)
    if model.below is None or not model.beside.warns:
        return line
    return f"{line} {_slot_line('And on what stands below them?', model.below)}"


def curve_lines(metric: Metric) -> list[str]:
    """What the log says of a fitted examination curve: does it hold for all items, and between all slots?"""
    model = metric.slot_model
    if model is None:
        return []
    tests = {"Is it one curve for all items?": model.trust, "And between all slots?": model.chain}
    return [_slot_line(question, test) for question, test in tests.items() if test is not None]


def _slot_line(question: str, test: SlotTest) -> str:
    _, sign, word = SIGNS[test.status]
    rewards = f" ({test.rewards:,} rewards)" if test.p_value is not None else ""
    return typeset(f"{question} {sign} {word[:1].upper()}{word[1:]}: {test.text}{rewards}.")


def _lead(audit: Audit, policy: str) -> str:
    run = sum(finding.outcome != NOT_MADE for finding in audit.findings)
    answer = {
        FAIL: f"No, not from the {policy} that the settings describe: {', '.join(audit.named(FAIL))} failed.",
        WARN: f"Probably, but look at this: {', '.join(audit.named(WARN))}.",
        PASS: "Nothing speaks against it.",
        UNVERIFIED: "This is not verified: too little could be checked.",
    }[audit.outcome]
    count = f"{run} of {len(audit.findings)} tests could be run, on a sample of displays."
    return f"{answer} {count} A test with a p-value fails below 0.001, and is worth a look below 0.01."
