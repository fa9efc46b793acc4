"""The outcome of a history: every test offline and online, and for each metric how well they agreed."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from foretest._version import __version__
from foretest.calibration.file import Calibration
from foretest.estimators import HEADLINES
from foretest.files import html_text, json_ready, json_text
from foretest.history.recommendation import ComparedTest, recommend
from foretest.provenance import public
from foretest.records import dataclass
from foretest.results.audit import FAIL
from foretest.stores import Location

SCHEMA = 1


@dataclass(frozen=True)
class Agreement:
    """The outcome of a history: every test offline and online, and for each metric the table of agreement.

    >>> import foretest as ft
    >>> ft.Agreement(tests=[], failures=[], tables={}).to_dict()["tests"]
    []
    """

    tests: list[dict[str, Any]]  # name, date, audit, and by metric online, offline and their noise
    failures: list[dict[str, str]]  # tests that could not be read, and why
    tables: dict[str, dict[str, dict[str, float | None]]]  # metric, estimator, figure
    reused: int = 0  # tests whose measurement the cache had
    confidence_level: float | None = None  # of the intervals, where all tests have one
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)  # by the name of the settings file
    provenance: dict[str, Any] = field(default_factory=dict)  # versions, fingerprints, the command
    calibration: Calibration | None = None  # what the tests say of unsupported parts
    calibration_details: dict[str, dict[str, Any]] = field(default_factory=dict)  # by metric and estimator
    notes: list[str] = field(default_factory=list)  # what a reader must know of some tests

    def to_dict(self) -> dict[str, Any]:
        """The content of agreement.json; the top level is the first metric's."""
        first = next(iter(self.tables), None)
        document: dict[str, Any] = json_ready(
            {
                "foretest": __version__,
                "schema": SCHEMA,
                "confidence_level": self.confidence_level,
                **self._metric_dict(first),
                "metrics": {name: self._metric_dict(name) for name in self.tables},
                "failures": [{name: public(text) for name, text in failure.items()} for failure in self.failures],
                **({"notes": self.notes} if self.notes else {}),
                "settings": self.settings,
                "provenance": self.provenance,
            }
        )
        return document

    def _metric_dict(self, metric: str | None) -> dict[str, Any]:
        return {
            "tests": [_metric_of_test(test, metric) for test in self.tests],
            "table": {} if metric is None else self.tables[metric],
            "calibration": self.calibration_details.get(metric or "", {}),
            "recommendation": self.recommendation(metric),
        }

    def recommendation(self, metric: str | None) -> dict[str, Any] | None:
        """Which estimator, and which bound on its weights, came closest to online."""
        compared = [ComparedTest.from_dict(test["metrics"][metric]) for test in self.tests if metric in test["metrics"]]
        headline = next((key for key in HEADLINES if key in self.tables.get(metric or "", {})), None)
        fits = self.calibration_details.get(metric or "", {}).values()
        return recommend(compared, headline, [fit["estimator"] for fit in fits if not fit["used"]])

    @property
    def failed_audits(self) -> list[str]:
        """The tests whose control's log the propensity audit fails."""
        return self._failed("audit")

    @property
    def failed_treatment_audits(self) -> list[str]:
        """The tests whose treatment's log it fails."""
        return self._failed("treatment_audit")

    def _failed(self, key: str) -> list[str]:
        return [test["name"] for test in self.tests if (test.get(key) or {}).get("outcome") == FAIL]

    def to_json(self, path: str | Location | None = None) -> str:
        """JSON text; with a path it is also written there, completely or not at all."""
        return json_text(self.to_dict(), path)

    def to_html(self, path: str | Location | None = None) -> str:
        """One self-contained page; with a path it is also written there, completely or not at all."""
        from foretest.report.history_page import history_page

        return html_text(history_page(self), path)

    def _repr_html_(self) -> str:
        from foretest.report.notebook import agreement_html

        return agreement_html(self)

    def figures(self) -> dict[str, dict[str, Any]]:
        """Vega-Lite specifications by name: `correlation`, for each estimator `decisions-…`, and for each that is
        calibrated `calibration-…` and `gamma-…`; those of metrics other than the first end in the metric's name."""
        from foretest.report.figures import agreement_figures

        return agreement_figures(self.to_dict())

    def __str__(self) -> str:
        from foretest.terminal.history import render_agreement

        return render_agreement(self)

    __repr__ = __str__


def _metric_of_test(test: dict[str, Any], metric: str | None) -> dict[str, Any]:
    """A test as agreement.json lists it under one metric."""
    nothing: dict[str, Any] = {"online": None, "offline": {}, "noise": {}, "unsupported": {}, "bounds": None}
    part = test["metrics"].get(metric, nothing)
    about = {"name": test["name"], **{key: test.get(key) for key in ("date", "audit", "treatment_audit")}}
    return {**about, **part}
