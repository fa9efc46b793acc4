"""The figures of a result by name; names are safe as file names, whatever metrics and estimators are called."""

from __future__ import annotations

import re
from typing import Any

from foretest.report.charts.calibration import calibration_chart, gamma_chart
from foretest.report.charts.cap import cap_chart
from foretest.report.charts.cap_estimates import bound_chart, cap_estimates_chart
from foretest.report.charts.correlation import correlation_chart
from foretest.report.charts.days import days_chart
from foretest.report.charts.decisions import decisions_chart
from foretest.report.charts.examination import examination_chart
from foretest.report.charts.reward_ages import reward_ages_chart
from foretest.report.charts.weights import weights_chart
from foretest.results.days import Day
from foretest.settings.metric_roles import INCREASE

Figures = dict[str, dict[str, Any]]


def result_figures(document: dict[str, Any]) -> Figures:
    """The figures of an offline test, from the content of result.json; an online test has none."""
    figures: Figures = {}
    never_varies = document.get("health", {}).get("control_deterministic")  # weights of rankings are then 1 or 0
    if document.get("weights") is not None and not never_varies:
        figures["weights"] = weights_chart(document["weights"])
    for name, metric in document["metrics"].items():
        if metric.get("cap_path") is not None and not never_varies:
            _add(figures, f"cap-{name}", cap_chart(metric["cap_path"]))
            _add(figures, f"cap-estimates-{name}", cap_estimates_chart(metric["cap_path"]))
            if metric["cap_path"].get("point-ncis-adaptive") is not None:
                _add(figures, f"bound-{name}", bound_chart(metric["cap_path"]))
        if metric.get("examination") is not None:
            level = document["settings"]["analysis"]["confidence_level"]
            _add(figures, f"examination-{name}", examination_chart(metric["examination"], name, level))
        if metric.get("days"):
            days = [Day(**day) for day in metric["days"]]
            overall = metric["estimates"].get(days[0].estimator, {}).get("rel_effect_size")
            level = document["settings"]["analysis"]["confidence_level"]
            _add(figures, f"days-{name}", days_chart(days, name, level, overall, metric.get("direction", INCREASE)))
    for name, curve in document.get("late_rewards", {}).get("ages", {}).items():
        _add(figures, f"reward-ages-{name}", reward_ages_chart(curve, name))
    return figures


def agreement_figures(document: dict[str, Any]) -> Figures:
    """The figures of a history, from the content of agreement.json."""
    figures: Figures = {}
    for number, (name, metric) in enumerate(document["metrics"].items()):
        ending = f"-{name}" if number else ""
        _add(figures, f"correlation{ending}", correlation_chart(metric["table"]))
        for label in metric["table"]:
            chart = decisions_chart(metric["tests"], label, document["confidence_level"])
            _add(figures, f"decisions-{label}{ending}", chart)
        for label, calibration in metric["calibration"].items():
            _add(figures, f"calibration-{label}{ending}", calibration_chart(calibration, label))
            _add(figures, f"gamma-{label}{ending}", gamma_chart(calibration, label))
    return figures


def file_name(text: str) -> str:
    """A safe file name: at most 80 letters, digits, dots, dashes and underscores, with no dot or dash in front.

    >>> file_name("cap-click"), file_name("decisions-../a b"), file_name("cap-</script>")
    ('cap-click', 'decisions-..-a-b', 'cap-script')
    """
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).lstrip("-.")[:80].rstrip("-") or "figure"


def _add(figures: Figures, name: str, chart: dict[str, Any]) -> None:
    """Add a figure under a safe name; names that differ only in unsafe characters are numbered."""
    safe = stem = file_name(name)
    number = 2
    while safe.lower() in {other.lower() for other in figures}:  # as some file systems compare them
        safe, number = f"{stem}-{number}", number + 1
    figures[safe] = chart
