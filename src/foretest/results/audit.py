"""What the audit says: one finding per test, and an outcome for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PASS, WARN, FAIL, NOT_MADE = "pass", "warn", "fail", "not made"
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
    """All findings. It fails if any fails, and warns if any warns; `ignored` says that verdicts stand all the same."""

    outcome: str
    findings: tuple[Finding, ...]
    ignored: bool = False

    @classmethod
    def of(cls, findings: list[Finding], *, ignore: bool) -> Audit:
        """The audit of all findings.

        >>> Audit.of([not_made("balance", "the settings name no features")], ignore=False).outcome
        'not made'
        """
        outcomes = {finding.outcome for finding in findings}
        outcome = next(word for word in (FAIL, WARN, PASS, NOT_MADE) if word in outcomes)
        return cls(outcome, tuple(findings), ignore and outcome == FAIL)

    def outcomes(self) -> dict[str, Any]:
        """The outcomes alone, of the whole and by test."""
        return {
            "outcome": self.outcome,
            "ignored": self.ignored,
            "tests": {finding.name: finding.outcome for finding in self.findings},
        }

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
