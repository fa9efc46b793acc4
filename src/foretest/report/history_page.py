"""The page of a history: how often and how closely offline agreed with online."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from foretest.estimators import HEADLINES
from foretest.formatting import plural
from foretest.history.agreement import DECISIONS
from foretest.records import dataclass
from foretest.report.blocks import Chart, Fact, Words, chart_of
from foretest.report.calibration_part import CalibrationPart, calibration_part
from foretest.report.charts.correlation import correlation_chart
from foretest.report.charts.decisions import decisions_chart
from foretest.report.digits import NONE, interval_text, level, pct
from foretest.report.history_figures import (
    AGREEMENT,
    NOISE_AND_TRUTH,
    RANGE_AND_WORD,
    FigureTable,
    figure_table,
    history_facts,
)
from foretest.report.history_words import (
    CALLS,
    GUIDE,
    call,
    ceiling_sentence,
    count_calls,
    failed_audits_remark,
    history_remarks,
    history_sentence,
    shared_reasons,
)
from foretest.report.method import settings_text
from foretest.report.origin import Origin, origin
from foretest.report.page import Download, bounded, fill
from foretest.report.words import SIGNS, VERDICTS
from foretest.results.audit import FAIL
from foretest.results.uplift_range import WORDS

if TYPE_CHECKING:
    from foretest.history.agreement_result import Agreement

TESTS_SHOWN = 500  # rows of the list of tests, and boxes of a chart
METRICS_SHOWN = 6
SETTINGS_SHOWN = 10


@dataclass(frozen=True)
class TestLine:
    """A test in the list of tests, by the headline estimator."""

    name: str
    online: str  # a verdict
    online_uplift: str
    online_value: float | None
    offline: str | None  # a word
    offline_uplift: str
    offline_value: float | None
    offline_range: str
    call: str  # by verdict


@dataclass(frozen=True)
class MetricPart:
    """What is shown of one metric at a time."""

    name: str
    headline: str
    sentence: str
    facts: list[Fact]
    tables: list[FigureTable | None]
    charts: dict[str, Chart]  # decisions, by estimator
    correlation: Chart
    tests: list[TestLine]
    labels: list[str]  # of estimators, the headline first
    left_out: int  # tests
    ceiling: str
    failed_audits: list[str]  # names of tests whose control's log fails
    failed_treatment_audits: list[str]  # and whose treatment's log does
    data: dict[str, Any]  # JSON for the page's script
    calibration: CalibrationPart


def history_page(agreement: Agreement) -> str:
    """The whole page."""
    document = agreement.to_dict()
    files = [Download("agreement.json", document)]
    if agreement.calibration is not None:
        files.append(Download("calibration.json", agreement.calibration.to_dict()))
    return bounded(lambda part: _page(document, files, part))


def _page(document: dict[str, Any], files: Sequence[Download], part: int) -> str:
    parts = metric_parts(document, TESTS_SHOWN // part)
    first = parts[0]
    notes = document.get("notes", [])
    remarks = history_remarks(first.headline, first.name, first.ceiling, len(document["failures"]), notes)
    context = {
        "sentence": first.sentence,
        "remarks": [*failed_audits_remark(first.failed_audits, first.failed_treatment_audits), *remarks],
        "facts": first.facts,
        "parts": parts,
        "metrics_left_out": len(document["metrics"]) - len(parts),
        "failures": document["failures"],
        "calls": CALLS,
        "verdicts": VERDICTS,
        "guide": GUIDE,
        "origin": _origin(document),
    }
    calibrated = any(part.calibration.estimators for part in parts)
    places = [("table", "Agreement"), ("boxes", "Boxes"), ("correlation", "Correlation"),
              *[("calibration", "Calibration")] * calibrated, ("tests", "Tests"),
              ("ceiling", "Noise ceiling")]  # fmt: skip
    data = {f"tests-{number}": part.data for number, part in enumerate(parts)}
    title = f"{first.sentence} – Foretest"
    return fill("history.html", "offline against online", title, places, context, files, data, part)


def _origin(document: dict[str, Any]) -> Origin:
    settings = document["settings"]
    seeds = sorted({str(one["analysis"]["seed"]) for one in settings.values()})
    words = [Words(settings_text(one), f"The settings in {name}") for name, one in settings.items()]
    return origin(document["provenance"], [("seed", ", ".join(seeds))], words[:SETTINGS_SHOWN])


def metric_parts(document: dict[str, Any], most: int = TESTS_SHOWN) -> list[MetricPart]:
    """What is shown of each metric, with at most that many tests."""
    metrics = list(document["metrics"].items())[:METRICS_SHOWN]
    return [_metric_part(name, metric, document["confidence_level"], most) for name, metric in metrics]


def _metric_part(name: str, metric: dict[str, Any], confidence_level: float | None, most: int) -> MetricPart:
    figures, tests = metric["table"], [test for test in metric["tests"] if test["online"] is not None]
    headline = next((key for key in HEADLINES if key in figures), next(iter(figures)))
    labels = [headline, *(label for label in figures if label != headline)]
    drawn = tests[:most]
    caption = f"{name}, {plural(len(tests), 'test')}"
    return MetricPart(
        name=name,
        headline=headline,
        sentence=history_sentence(count_calls(tests, headline)),
        facts=history_facts(tests, figures[headline]),
        tables=[
            figure_table(f"{caption}: how offline agreed with online.", figures, headline, AGREEMENT),
            figure_table(
                f"{caption}: by range and word, which people look at first.", figures, headline, RANGE_AND_WORD
            ),
            figure_table(f"{caption}: the limits that noise sets, and the truth.", figures, headline, NOISE_AND_TRUTH),
        ],
        charts={label: chart_of(decisions_chart(drawn, label, confidence_level)) for label in labels},
        correlation=chart_of(correlation_chart(figures)),
        tests=[_test_line(test, headline) for test in drawn],
        labels=labels,
        left_out=len(tests) - len(drawn),
        ceiling=ceiling_sentence(figures[headline]),
        failed_audits=_failed(tests, "audit"),
        failed_treatment_audits=_failed(tests, "treatment_audit"),
        data=_script_data(drawn, labels, confidence_level),
        calibration=calibration_part(metric, most),
    )


def _failed(tests: list[dict[str, Any]], audit: str) -> list[str]:
    return [test["name"] for test in tests if (test.get(audit) or {}).get("outcome") == FAIL]


def _test_line(test: dict[str, Any], label: str) -> TestLine:
    online, offline = test["online"], test["offline"].get(label)
    value = None if offline is None else offline["rel_effect_size"]
    return TestLine(
        name=test["name"],
        online=online["verdict"],
        online_uplift=pct(online["rel_effect_size"], sign=True),
        online_value=online["rel_effect_size"],
        offline=None if offline is None else offline["word"],
        offline_uplift=pct(value, sign=True),
        offline_value=value,
        offline_range=NONE if offline is None else interval_text(*_range(offline)),
        call=call(offline, online),
    )


def _script_data(tests: list[dict[str, Any]], labels: list[str], confidence_level: float | None) -> dict[str, Any]:
    """What the list of tests shows on demand, as numbers that the page's script formats."""
    intervals = "" if confidence_level is None else f" with {level(confidence_level)} intervals"
    return {
        "estimators": labels,
        "verdicts": list(VERDICTS),
        "words": list(WORDS),
        "signs": SIGNS,
        "decisions": DECISIONS,
        "calls": CALLS,
        "caption": f"Relative uplifts, ranges, and noise only{intervals}: online from both arms, offline from the"
        " control's log alone.",
        "tests": [
            {
                "name": test["name"],
                "online": _numbers(test["online"]),
                "offline": [_numbers(test["offline"].get(label)) for label in labels],
                "reasons": shared_reasons(test),
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
    limits = [None if limit is None else float(f"{limit:.9g}") for limit in _range(estimate)]
    verdict, word = VERDICTS.index(estimate["verdict"]), WORDS.index(estimate["word"])
    return [*values, verdict, None if positives is None else round(positives), *limits, word]


def _range(estimate: dict[str, Any]) -> tuple[float | None, float | None]:
    """The relative limits of an estimate's range."""
    return estimate["range"]["rel_ci_lower"], estimate["range"]["rel_ci_upper"]
