"""What the audit says: one finding per test, and an outcome for all of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from foretest.records import dataclass

PASS, WARN, FAIL, NOT_MADE = "pass", "warn", "fail", "not made"
UNVERIFIED = "unverified"  # of the whole audit: too little could be checked to trust the probabilities
CONTROL, TREATMENT, FEW_ROWS = "control", "treatment", "few rows"  # what stands in the way of checking it
AUDIT_FAILED = "the propensity audit failed"  # what the reason of a verdict begins with
FAILS_BELOW = 0.001
WARNS_BELOW = 0.01


@dataclass(frozen=True)
class Finding:
    """The answer of one test, in numbers and in words."""

    name: str
    outcome: str  # pass, warn, fail, not made
    p_value: float | None  # None where chance plays no part, or the test was not run
    statistic: float | None
    meaning: str
    remedy: str | None  # what to do; None where nothing has to be done


@dataclass(frozen=True)
class Audit:
    """All findings. It fails if any fails, else warns if any warns; else it is unverified where too little could be
    checked to trust the probabilities. `ignored` says that verdicts stand although it fails."""

    outcome: str  # fail, warn, unverified, pass
    findings: tuple[Finding, ...]
    ignored: bool = False
    unchecked: str | None = None  # whose probabilities could not be checked against scores

    @classmethod
    def of(cls, findings: list[Finding], *, ignore: bool, unchecked: str | None = None) -> Audit:
        """The audit of all findings; `unchecked`: CONTROL or TREATMENT, if its probabilities could not be checked
        against its scores, or FEW_ROWS, if only their number stands in the way of that.

        >>> Audit.of([not_made("balance", "the settings name no features")], ignore=False).outcome
        'unverified'
        """
        outcomes = {finding.outcome for finding in findings}
        outcome = next((word for word in (FAIL, WARN) if word in outcomes), PASS)
        if unchecked is None and not outcomes - {NOT_MADE}:
            unchecked = CONTROL
        if outcome == PASS and unchecked is not None:
            outcome = UNVERIFIED
        return cls(outcome, tuple(findings), ignore and outcome == FAIL, unchecked)

    def to_dict(self) -> dict[str, Any]:
        """The content of result.json."""
        return {key: value for key, value in asdict(self).items() if key != "unchecked"}

    def outcomes(self) -> dict[str, Any]:
        """The outcomes alone, of the whole and by test."""
        return {
            "outcome": self.outcome,
            "ignored": self.ignored,
            "tests": {finding.name: finding.outcome for finding in self.findings},
        }

    def doubt(self) -> str | None:
        """What could not be checked, in a sentence, also where another test warns; None where all was, or the audit
        failed anyway."""
        if self.unchecked is None or self.outcome == FAIL:
            return None
        unmade = ", ".join(self.named(NOT_MADE))
        if self.unchecked == FEW_ROWS:
            return (
                f"the control's probabilities are not verified: the log has too few rows for the audit ({unmade} could"
                " not be run)."
            )
        if self.unchecked == TREATMENT:
            return (
                "the treatment's probabilities are not verified: they are taken as they are logged. Those of another"
                " display, of one slot, of another model or with another base of logarithms would often not be seen."
                " Log the treatment's scores of all eligible items to have it priced from them."
            )
        return (
            f"the control's probabilities are not verified ({unmade} could not be run): they are taken as they are"
            " logged. A log that was thinned or chosen by reward, a join that is slightly off, or probabilities that"
            " are wrong in a way that leaves the mean weight plausible would not be seen. Log the scores of all"
            " eligible items to have them checked."
        )

    def named(self, outcome: str) -> list[str]:
        """The names of the findings with an outcome."""
        return [finding.name for finding in self.findings if finding.outcome == outcome]


def grade(p_value: float) -> str:
    """Fails below .001, warns below .01.

    >>> grade(0.2), grade(0.005), grade(0.0005)
    ('pass', 'warn', 'fail')
    """
    return FAIL if p_value < FAILS_BELOW else WARN if p_value < WARNS_BELOW else PASS


def not_made(name: str, reason: str) -> Finding:
    """A test that could not be run, and why."""
    return Finding(name, NOT_MADE, None, None, f"not made: {reason}", None)


def tested(name: str, p_value: float, statistic: float, passed: str, otherwise: str, remedy: str) -> Finding:
    """The finding of a test with a p-value: what it means, and what to do, follow from its outcome."""
    outcome = grade(p_value)
    fine = outcome == PASS
    return Finding(name, outcome, p_value, statistic, passed if fine else otherwise, None if fine else remedy)
