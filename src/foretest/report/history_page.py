"""The page of a history: how often, and how well, offline agreed with online."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from foretest.estimators import HEADLINES
from foretest.formatting import plural
from foretest.history.agreement import DECISIONS
from foretest.report.blocks import Fact, Words, chart_of
from foretest.report.calibration_part import calibration_parts
from foretest.report.charts.correlation import correlation_chart
from foretest.report.charts.decisions import decisions_chart
from foretest.report.digits import NONE, level, pct
from foretest.report.method import settings_text
from foretest.report.origin import origin
from foretest.report.page import Download, bounded, fill
from foretest.report.words import SIGNS, VERDICTS

if TYPE_CHECKING:
    from foretest.history.agreement_result import Agreement

TESTS_SHOWN = 500  # rows of the list of tests, and boxes of a chart
METRICS_SHOWN = 6
CALLS = {"right-call": "right", "too-low": "false negative", "too-high": "false positive"}

#: figure of a table: its heading and what it says
AGREED = {
    "correlation": ("correlation", "of offline and online uplifts, over tests"),
    "precision": ("right", "share of tests in which offline decided as online did"),
    "fnr": ("false negatives", "share of tests in which offline decided lower than online: improvements missed"),
    "fpr": ("false positives", "share of tests in which offline decided higher than online"),
    "ppv": ("positives confirmed", "of the tests that offline calls positive, the share that online does"),
    "miss_rate": ("positives missed", "of the tests that online calls positive, the share that offline does not"),
    "ci_size": ("interval size", "mean width of the interval, over that of cis"),
}
BEYOND = {
    "noise_ceiling": ("noise ceiling", "the correlation that a perfect estimator would show under this noise"),
    "deconvolved_correlation": ("noise removed", "the correlation with the noise of both axes taken out"),
    "bias": ("bias", "mean of estimate minus truth"),
    "rmse": ("error", "root mean square of estimate minus truth"),
    "coverage": ("coverage", "share of intervals that hold the truth"),
}
_PERCENT = ("precision", "fnr", "fpr", "ppv", "miss_rate", "bias", "rmse", "coverage")


def history_page(agreement: Agreement) -> str:
    """The whole page."""
    document = agreement.to_dict()
    files = [Download("agreement.json", document)]
    if agreement.calibration is not None:
        files.append(Download("calibration.json", agreement.calibration.to_dict()))
    return bounded(lambda part: _page(document, files, part))


def _page(document: dict[str, Any], files: Sequence[Download], part: int) -> str:
    parts = agreement_parts(document, TESTS_SHOWN // part)
    first = parts[0]
    context = {
        "sentence": first["sentence"],
        "remarks": [*_audits(first), *({"kind": "quiet", "text": text} for text in _remarks(first, document))],
        "facts": first["facts"],
        "parts": parts,
        "metrics_left_out": len(document["metrics"]) - len(parts),
        "failures": document["failures"],
        "calls": CALLS,
        "verdicts": VERDICTS,
        "guide": _GUIDE,
        "origin": origin(
            document["provenance"],
            [("seed", ", ".join(sorted({str(s["analysis"]["seed"]) for s in document["settings"].values()})))],
            [Words(settings_text(s), f"The settings in {name}") for name, s in list(document["settings"].items())[:10]],
        ),
    }
    learned = any(part["calibration"]["estimators"] for part in parts)
    places = [("table", "Agreement"), ("boxes", "Boxes"), ("correlation", "Correlation"),
              *[("calibration", "Calibration")] * learned, ("tests", "Tests"),
              ("ceiling", "Noise ceiling")]  # fmt: skip
    data = {f"tests-{number}": part["data"] for number, part in enumerate(parts)}
    title = f"{first['sentence']} – Foretest"
    return fill("history.html", "offline against online", title, places, context, files, data, part)


def agreement_parts(document: dict[str, Any], most: int = TESTS_SHOWN) -> list[dict[str, Any]]:
    """What is shown of one metric at a time."""
    shown = list(document["metrics"].items())[:METRICS_SHOWN]
    return [_part(name, metric, document["confidence_level"], most) for name, metric in shown]


def _part(name: str, metric: dict[str, Any], confidence_level: float | None, most: int) -> dict[str, Any]:
    """One metric's table, charts and tests."""
    table, tests = metric["table"], [test for test in metric["tests"] if test["online"] is not None]
    headline = _headline(list(table))
    labels = [headline, *(label for label in table if label != headline)]
    counts = _counts(tests, headline)
    drawn = tests[:most]
    charts = {label: chart_of(decisions_chart(drawn, label, confidence_level)) for label in labels}
    return {
        "name": name,
        "headline": headline,
        "sentence": _sentence(counts),
        "counts": counts,
        "facts": _facts(tests, table[headline]),
        "tables": [
            _table(f"{name}, {plural(len(tests), 'test')}: {what}.", table, headline, chosen)
            for what, chosen in (
                ("how offline agreed with online", AGREED),
                ("what noise allows, and the truth", BEYOND),
            )
        ],
        "charts": charts,
        "correlation": chart_of(correlation_chart(table)),
        "tests": [_line(test, headline) for test in drawn],
        "labels": labels,
        "left_out": len(tests) - len(drawn),
        "ceiling": _ceiling(table[headline]),
        "failed_audits": [t["name"] for t in tests if (t.get("audit") or {}).get("outcome") == "fail"],
        "data": _data(drawn, labels, confidence_level),
        "calibration": calibration_parts(metric, most),
    }


def _headline(labels: list[str]) -> str:
    return next((key for key in HEADLINES if key in labels), labels[0])


def call(offline: dict[str, Any] | None, online: dict[str, Any]) -> str:
    """Did offline decide as online did?"""
    if offline is None:
        return ""
    apart = DECISIONS[offline["verdict"]] - DECISIONS[online["verdict"]]
    return "right-call" if apart == 0 else "too-low" if apart < 0 else "too-high"


def _counts(tests: list[dict[str, Any]], label: str) -> dict[str, int]:
    calls = [call(test["offline"].get(label), test["online"]) for test in tests]
    return {"tests": len(tests), **{name: calls.count(name) for name in CALLS}}


def _sentence(counts: dict[str, int]) -> str:
    judged = sum(counts[name] for name in CALLS)
    if not judged:
        return "No test has both an offline and an online decision."
    share = f"{100 * counts['right-call'] / judged:.0f}\N{NO-BREAK SPACE}%"
    return (
        f"Offline decided as online did in {counts['right-call']} of {judged} tests ({share}):"
        f" {plural(counts['too-low'], 'false negative')}, {plural(counts['too-high'], 'false positive')}."
    )


def _remarks(part: dict[str, Any], document: dict[str, Any]) -> list[str]:
    said = [
        f"By {part['headline']}, for the metric {part['name']}. Each test was analysed twice: offline from the"
        " control's log alone, online from both logs."
    ]
    if part["ceiling"]:
        said.append(part["ceiling"])
    if document["failures"]:
        said.append(f"{plural(len(document['failures']), 'test')} could not be read, for the reasons below.")
    return said


def _audits(part: dict[str, Any]) -> list[dict[str, str]]:
    """In red words, the tests whose log was not drawn from its control."""
    failed = part["failed_audits"]
    if not failed:
        return []
    names = ", ".join(failed[:5]) + (f" and {len(failed) - 5} more" if len(failed) > 5 else "")
    said = f"The propensity audit fails the control's log of {plural(len(failed), 'test')}: {names}."
    return [{"kind": "alarm", "text": f"{said} Offline verdicts there are insufficient, unless ignore_audit is set."}]


_TILES = {
    "precision": ("right decisions", "The share of tests in which offline decided (positive, neutral, negative) as"
                  " online did."),
    "fnr": ("false negatives", "The share of tests in which offline decided lower than online: improvements that would"
            " never have been tried. These cost most."),
    "fpr": ("false positives", "The share of tests in which offline decided higher than online: online tests run in"
            " vain."),
    "correlation": ("correlation", "Of offline and online uplifts over tests; 1 is perfect, 0 is none."),
    "noise_ceiling": ("noise ceiling", "The correlation that a perfect estimator would show, since both uplifts are"
                      " noisy. No figure means that the noise exceeds the differences between tests."),
}  # fmt: skip


def _facts(tests: list[dict[str, Any]], figures: dict[str, Any]) -> list[Fact]:
    positive = [test["online"]["verdict"] for test in tests].count("positive")
    few = "watch" if len(tests) < 10 else "fine"
    meaning = "A/B tests with logs of both arms. Under ten, every figure is rough."
    facts = [Fact("tests", f"{len(tests):,}", meaning, few, f"{positive} positive online")]
    for name, (title, meaning) in _TILES.items():
        state = "watch" if name == "fnr" and (figures[name] or 0.0) > 0.25 else "fine"
        facts.append(Fact(title, _figure(name, figures[name]), meaning, state, _span(name, figures)))
    return facts


def _table(
    caption: str, table: dict[str, Any], headline: str, figures: dict[str, tuple[str, str]]
) -> dict[str, Any] | None:
    """The figures that any estimator has, by estimator; None where there are none."""
    names = [name for name in figures if any(row.get(name) is not None for row in table.values())]
    rows = [
        {"label": label, "leads": label == headline,
         "cells": [{"text": _figure(name, row.get(name)), "value": row.get(name), "span": _span(name, row)}
                   for name in names]}
        for label, row in table.items()
    ]  # fmt: skip
    columns = [{"title": figures[name][0], "meaning": figures[name][1]} for name in names]
    return {"caption": caption, "columns": columns, "rows": rows} if names else None


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return NONE
    if name in _PERCENT:
        return (
            pct(value, sign=name == "bias")
            if abs(value) < 0.1
            else f"{100 * value:.0f}\N{NO-BREAK SPACE}%".replace("-", "−")
        )
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def _span(name: str, row: dict[str, Any]) -> str:
    lower, upper = row.get(f"{name}_q10"), row.get(f"{name}_q90")
    return (
        ""
        if row.get(name) is None or lower is None or upper is None
        else f"{_figure(name, lower)} to {_figure(name, upper)}"
    )


def _line(test: dict[str, Any], label: str) -> dict[str, Any]:
    online, offline = test["online"], test["offline"].get(label)
    value = None if offline is None else offline["rel_effect_size"]
    return {
        "name": test["name"], "online": online["verdict"], "online_uplift": pct(online["rel_effect_size"], sign=True),
        "online_value": online["rel_effect_size"], "offline": None if offline is None else offline["verdict"],
        "offline_uplift": pct(value, sign=True), "offline_value": value, "call": call(offline, online),
    }  # fmt: skip


def _ceiling(figures: dict[str, Any]) -> str:
    correlation, ceiling = figures["correlation"], figures["noise_ceiling"]
    if correlation is None:
        return ""
    if ceiling is None:
        return (
            f"Offline and online uplifts correlate at {correlation:.2f}. The noise of these tests is as large as the"
            " differences between them, so no correlation can say much."
        ).replace("-", "−")
    if correlation > ceiling:
        return (
            f"Offline and online uplifts correlate at {correlation:.2f}. A perfect estimator would show about"
            f" {ceiling:.2f} if the noise of both were independent; both share that of the control's log, and chance"
            " plays its part."
        )
    return (
        f"Offline and online uplifts correlate at {correlation:.2f}; under the noise of these tests a perfect estimator"
        f" would show about {ceiling:.2f}."
    ).replace("-", "−")


def _data(tests: list[dict[str, Any]], labels: list[str], confidence_level: float | None) -> dict[str, Any]:
    """What the list of tests shows on demand: numbers, to be written by the page."""
    at = "" if confidence_level is None else f" with {level(confidence_level)} intervals"
    return {
        "estimators": labels,
        "verdicts": list(VERDICTS),
        "signs": SIGNS,
        "decisions": DECISIONS,
        "calls": CALLS,
        "caption": f"Relative uplifts{at}: online from both logs, offline from the control's alone.",
        "tests": [
            {
                "name": test["name"],
                "online": _numbers(test["online"]),
                "offline": [_numbers(test["offline"].get(label)) for label in labels],
                "reasons": _reasons(test),
            }
            for test in tests
        ],
    }


def _numbers(estimate: dict[str, Any] | None) -> list[Any] | None:
    if estimate is None:
        return None
    names = ("rel_effect_size", "rel_effect_size_ci_lower", "rel_effect_size_ci_upper")
    values = [None if estimate[name] is None else float(f"{estimate[name]:.9g}") for name in names]
    positives = estimate["effective_positives"]
    return [*values, VERDICTS.index(estimate["verdict"]), None if positives is None else round(positives)]


def _reasons(test: dict[str, Any]) -> list[str]:
    """Each reason once, with the estimators that share it."""
    shared: dict[str, list[str]] = {}
    for label, estimate in {"online": test["online"], **test["offline"]}.items():
        for reason in estimate["reasons"]:
            shared.setdefault(reason, []).append(label)
    return [f"{', '.join(labels)}: {reason}." for reason, labels in shared.items()]


_GUIDE = [
    (
        "offline",
        "What Foretest says of the treatment from the control's log alone, before the treatment is shown to anybody.",
    ),
    ("online", "What the A/B test said, from the logs of both arms."),
    (
        "decision",
        "Positive, neutral or negative, by the interval of the uplift. Insufficient evidence counts as neutral.",
    ),
    ("right", "Offline decided as online did."),
    ("false negative", "Offline decided lower than online, negative < neutral < positive: an improvement overlooked."),
    ("false positive", "Offline decided higher than online: a test run in vain."),
    (
        "calibrated",
        "Moved by what the other tests say of the part that the log does not support: judged on tests that had no part"
        " in the fit.",
    ),
    ("10 % and 90 % quantiles", "How far a figure might move with other tests of the same kind: tests are resampled."),
]
