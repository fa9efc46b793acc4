"""The part of a history's page that shows its calibration and what the history recommends."""

from __future__ import annotations

from typing import Any

from foretest.formatting import plural
from foretest.history.recommendation import learned_sentence, sentence
from foretest.report.blocks import Table, chart_of
from foretest.report.charts.calibration import calibration_chart, gamma_chart
from foretest.report.digits import NONE, pct

DRIVERS = 10  # tests listed as those that pull most


def calibration_parts(metric: dict[str, Any], most: int) -> dict[str, Any]:
    """From `agreement.json`'s metric: for each estimator its line, the tests that drive it, how Γ0 moved."""
    found = []
    for label, calibration in metric.get("calibration", {}).items():
        found.append({
            "label": label,
            "sentence": learned_sentence(label, calibration).replace(" %", "\N{NO-BREAK SPACE}%"),
            "line": chart_of(calibration_chart(calibration, label, most)),
            "over_time": chart_of(gamma_chart(calibration, label, most)),
            "drivers": _drivers(calibration),
        })  # fmt: skip
    told = metric.get("recommendation")
    return {
        "estimators": found,
        "recommendation": "" if told is None else sentence(told).replace("-0", "−0"),
        "bounds": None if told is None else _bounds(told["weight_bounds"]),
    }


def _drivers(calibration: dict[str, Any]) -> Table:
    """The tests that weigh most, and what Γ0 would be without each."""
    points = sorted(calibration["points"], key=lambda point: -point["weight"])[:DRIVERS]
    dated = any(point["date"] for point in points)
    columns = ["test", *(["day"] if dated else []), "weight", "unsupported", "online − offline", "Γ0 without it"]
    rows = [
        [point["name"], *([point["date"] or NONE] if dated else []), pct(point["weight"]), pct(point["unsupported"]),
         pct(point["difference"], sign=True), NONE if point["gamma_without"] is None else _two(point["gamma_without"])]
        for point in points
    ]  # fmt: skip
    shown = plural(len(points), "test")
    return Table(f"The {shown} that weigh most in Γ0, of {len(calibration['points'])}.", columns, rows, sortable=True)


def _bounds(bounds: dict[str, Any] | None) -> Table | None:
    """The error along the bound on weights."""
    if bounds is None:
        return None
    rows = [[f"{bound:g}", f"{100 * rmse:.2f}", f"{100 * error:.2f}"] for bound, rmse, error in
            zip(bounds["bounds"], bounds["rmse"], bounds["error"], strict=True)]  # fmt: skip
    strong = [bounds["bounds"].index(bounds["weight_bound"])]
    return Table(
        f"point-ncis-adaptive along weight_bound, {plural(bounds['tests'], 'test')}: root mean square of offline −"
        " online, in points.",
        ["weight_bound", "error", "online's noise taken out"],
        rows,
        note="The smallest error stands out. Calibrated estimates are at the bound of the settings.",
        strong=strong,
    )


def _two(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
