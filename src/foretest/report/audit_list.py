"""The propensity audit as a checklist, and in words beside the verdict where it failed."""

from __future__ import annotations

from typing import Any

from foretest.report.blocks import typeset
from foretest.report.digits import chance
from foretest.results.audit import FAIL, NOT_MADE, PASS, WARN, Audit
from foretest.results.result import Result

#: outcome: the class of its colours, a sign and a word that say the same
SIGNS = {
    PASS: ("passed", "✓", "passed"),
    WARN: ("warned", "!", "worth a look"),
    FAIL: ("failed", "✗", "failed"),
    NOT_MADE: ("unmade", "–", "not made"),
}


def checklist(result: Result) -> dict[str, Any] | None:
    """A line a test; None for a result without an audit."""
    if result.audit is None:
        return None
    lines = []
    for finding in result.audit.findings:
        kind, sign, word = SIGNS[finding.outcome]
        lines.append({
            "kind": kind, "sign": sign, "word": word, "name": finding.name,
            "p": None if finding.p_value is None else chance(finding.p_value),
            "meaning": _sentence(finding.meaning.removeprefix("not made: ")), "remedy": finding.remedy,
        })  # fmt: skip
    return {"lines": lines, "lead": _lead(result.audit)}


def alarm(result: Result) -> str | None:
    """What stands in red words beside the verdict; None where the audit did not fail."""
    if result.audit is None or result.audit.outcome != FAIL:
        return None
    failed = ", ".join(result.audit.named(FAIL))
    begin = (
        f"The propensity audit failed ({failed}): this log was not drawn from the control as the settings describe it."
    )
    if result.audit.ignored:
        return f"{begin} The settings say ignore_audit = true, so verdicts stand all the same. Do not trust them."
    return f"{begin} The numbers are given as they are; no verdict can rest on them."


def _lead(audit: Audit) -> str:
    made = [finding for finding in audit.findings if finding.outcome != NOT_MADE]
    count = f"{len(made)} of {len(audit.findings)} tests could be made, on a sample of displays"
    said = {
        FAIL: f"It was not, as the settings describe the control: {', '.join(audit.named(FAIL))} failed.",
        WARN: f"Probably, but look at this: {', '.join(audit.named(WARN))}.",
        PASS: "Nothing speaks against it.",
        NOT_MADE: "That cannot be told.",
    }[audit.outcome]
    return f"{said} {count}. Those with a p-value fail below 0.001, and ask for a look below 0.01."


def _sentence(text: str) -> str:
    return typeset(f"{text[:1].upper()}{text[1:]}.")
