"""The sentences of a history's page."""

from __future__ import annotations

from typing import Any

from foretest.formatting import minus_signs, plural
from foretest.history.agreement import DECISIONS
from foretest.records import dataclass
from foretest.report.blocks import Remark
from foretest.results.range_text import WORD_MEANING

#: how offline decided: a CSS class, and the word for it
CALLS = {"right-call": "right", "too-low": "false negative", "too-high": "false positive"}

GUIDE = [
    (
        "offline",
        "What Foretest says about the treatment from the control's log alone, before anybody has seen the treatment.",
    ),
    ("online", "What the A/B test said, from the logs of both arms or from the results that were given."),
    (
        "decision",
        "Positive, neutral or negative, by the interval of the uplift, which is about noise. Insufficient evidence"
        " counts as neutral.",
    ),
    (
        "range",
        "The interval to look at first: it allows for noise, and for what the log cannot support, if unsupported"
        " recommendations earn between 1/Γ_lower and Γ_upper times what supported ones earn; of a calibrated"
        " estimate, what they earned in the other tests. It contains an online result that lies in it, with the online"
        " noise allowed for.",
    ),
    ("word", f"{WORD_MEANING[0].upper()}{WORD_MEANING[1:]}."),
    ("right", "Offline decided as online did."),
    ("false negative", "Offline decided lower than online, negative < neutral < positive: an improvement missed."),
    ("false positive", "Offline decided higher than online: a test run in vain."),
    (
        "calibrated",
        "Corrected by what the other tests say about the part that the log does not support: each test is judged by a"
        " fit without it.",
    ),
    (
        "10 % and 90 % quantiles",
        "How much a figure might differ with other tests of the same kind: by resampling tests.",
    ),
]


@dataclass(frozen=True)
class Counts:
    """How often offline decided as online did, lower, and higher."""

    right: int
    too_low: int
    too_high: int


def call(offline: dict[str, Any] | None, online: dict[str, Any]) -> str:
    """How offline decided compared with online, as a key of `CALLS`; empty without an offline estimate."""
    if offline is None:
        return ""
    apart = DECISIONS[offline["verdict"]] - DECISIONS[online["verdict"]]
    return "right-call" if apart == 0 else "too-low" if apart < 0 else "too-high"


def count_calls(tests: list[dict[str, Any]], label: str) -> Counts:
    """How often one estimator decided as online did."""
    calls = [call(test["offline"].get(label), test["online"]) for test in tests]
    return Counts(*(calls.count(name) for name in CALLS))


def history_sentence(counts: Counts) -> str:
    """The answer of the page.

    >>> history_sentence(Counts(3, 1, 0)).replace("\\xa0", " ")
    'Offline decided as online did in 3 of 4 tests (75 %): 1 false negative, 0 false positives.'
    """
    judged = counts.right + counts.too_low + counts.too_high
    if not judged:
        return "No test has both an offline and an online decision."
    share = f"{100 * counts.right / judged:.0f}\N{NO-BREAK SPACE}%"
    return (
        f"Offline decided as online did in {counts.right} of {judged} tests ({share}):"
        f" {plural(counts.too_low, 'false negative')}, {plural(counts.too_high, 'false positive')}."
    )


def history_remarks(headline: str, metric: str, ceiling: str, failures: int, notes: list[str]) -> list[Remark]:
    """The lines below the sentence: what it is about, the noise ceiling, notes on some tests, and the tests that could
    not be read."""
    analysed = "Each test was analysed twice: offline from the control's log alone, online from both logs."
    if notes:
        analysed = "Each test has an offline answer, by the control's log alone, and an online one."
    sentences = [f"By {headline}, for the metric {metric}. {analysed}"]
    if ceiling:
        sentences.append(ceiling)
    sentences += notes
    if failures:
        sentences.append(f"{plural(failures, 'test')} could not be read, for the reasons given below.")
    return [Remark(sentence) for sentence in sentences]


def failed_audits_remark(names: list[str], of_treatments: list[str]) -> list[Remark]:
    """Warnings in red for the tests whose control's or treatment's log was not drawn from its policy."""
    failed = {
        "control": (names, "Their offline verdicts are insufficient, and the calibration leaves them out"),
        "treatment": (
            of_treatments,
            "Their online result is not that of the treatment that offline is about, and the calibration leaves them"
            " out",
        ),
    }
    return [
        Remark(
            f"The propensity audit failed for the {arm}'s log of {plural(len(tests), 'test')}: {_shown(tests)}."
            f" {what}, unless ignore_audit is set.",
            "alarm",
        )
        for arm, (tests, what) in failed.items()
        if tests
    ]


def _shown(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def ceiling_sentence(figures: dict[str, Any]) -> str:
    """The headline's correlation beside the noise ceiling; empty without a correlation."""
    correlation, ceiling = figures["correlation"], figures["noise_ceiling"]
    if correlation is None:
        return ""
    start = f"Offline and online uplifts correlate at {minus_signs(f'{correlation:.2f}')}"
    if ceiling is None:
        return (
            f"{start}. The noise of these tests is as large as the differences between them, so no correlation can say"
            " much."
        )
    if correlation > ceiling:
        return (
            f"{start}. A perfect estimator would show about {ceiling:.2f} if the noise of both were independent; but"
            " both share the noise of the control's log, and chance plays its part."
        )
    return f"{start}; with the noise of these tests a perfect estimator would show about {ceiling:.2f}."


def shared_reasons(test: dict[str, Any]) -> list[str]:
    """Each reason of a test once, with the estimators that share it."""
    labels_by_reason: dict[str, list[str]] = {}
    for label, estimate in {"online": test["online"], **test["offline"]}.items():
        for reason in estimate["reasons"]:
            labels_by_reason.setdefault(reason, []).append(label)
    return [f"{', '.join(labels)}: {reason}." for reason, labels in labels_by_reason.items()]
