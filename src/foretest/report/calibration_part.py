"""The part of a history's page that shows its calibration and what the history recommends."""

from __future__ import annotations

from typing import Any

from foretest.formatting import plural
from foretest.history.recommendation import learned_sentence, sentence
from foretest.records import dataclass
from foretest.report.blocks import Chart, Table, chart_of
from foretest.report.charts.calibration import calibration_chart, gamma_chart
from foretest.report.digits import NONE, decimal, pct

DRIVERS = 10  # tests listed because they weigh most


@dataclass(frozen=True)
class EstimatorCalibration:
    """The calibration of one estimator."""

    label: str
    sentence: str
    line: Chart  # online − offline against the unsupported term
    over_time: Chart  # how Γ0 moved
    drivers: Table  # the tests that weigh most


@dataclass(frozen=True)
class CalibrationPart:
    """What one metric's tests say of the unsupported part, and which estimator and bound they recommend."""

    estimators: list[EstimatorCalibration]
    recommendation: str
    bounds: Table | None


def calibration_part(metric: dict[str, Any], most: int) -> CalibrationPart:
    """From a metric of `agreement.json`; charts have at most that many tests."""
    estimators = [
        EstimatorCalibration(
            label,
            learned_sentence(label, calibration).replace(" %", "\N{NO-BREAK SPACE}%"),
            chart_of(calibration_chart(calibration, label, most)),
            chart_of(gamma_chart(calibration, label, most)),
            _drivers(calibration),
        )
        for label, calibration in metric.get("calibration", {}).items()
    ]
    recommendation = metric.get("recommendation")
    if recommendation is None:
        return CalibrationPart(estimators, "", None)
    text = sentence(recommendation).replace("-0", "−0")
    return CalibrationPart(estimators, text, _bounds(recommendation["weight_bounds"]))


def _drivers(calibration: dict[str, Any]) -> Table:
    """The tests that weigh most, and what Γ0 would be without each."""
    points = sorted(calibration["points"], key=lambda point: -point["weight"])[:DRIVERS]
    dated = any(point["date"] for point in points)
    columns = ["test", *(["day"] if dated else []), "weight", "unsupported", "online − offline", "Γ0 without it"]
    rows = [
        [point["name"], *([point["date"] or NONE] if dated else []), pct(point["weight"]), pct(point["unsupported"]),
         pct(point["difference"], sign=True), decimal(point["gamma_without"])]
        for point in points
    ]  # fmt: skip
    shown = plural(len(points), "test")
    return Table(f"The {shown} that weigh most in Γ0, of {len(calibration['points'])}.", columns, rows, sortable=True)


def _bounds(bounds: dict[str, Any] | None) -> Table | None:
    """The error at each bound on the weights."""
    if bounds is None:
        return None
    rows = [[f"{bound:g}", f"{100 * rmse:.2f}", f"{100 * error:.2f}"] for bound, rmse, error in
            zip(bounds["bounds"], bounds["rmse"], bounds["error"], strict=True)]  # fmt: skip
    strong = [bounds["bounds"].index(bounds["weight_bound"])]
    return Table(
        f"point-ncis-adaptive by weight_bound, {plural(bounds['tests'], 'test')}: root mean square of offline −"
        " online, in percentage points.",
        ["weight_bound", "error", "without the noise of online"],
        rows,
        note="The smallest error is highlighted. Calibrated estimates use the bound of the settings.",
        strong=strong,
    )
