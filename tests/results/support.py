"""An estimate with a sensitivity band, and results that have it as their headline."""

from __future__ import annotations

from dataclasses import replace

import foretest as ft
from foretest.results.result import Control, Estimate, Metric
from foretest.results.uplift_range import Range

BAND: dict[str, float | None] = {
    "gamma_lower": 1.15, "gamma_upper": 1.3, "effect_size_lower": 0.0001, "effect_size_upper": 0.001,
    "ci_lower": -0.0001, "ci_upper": 0.0012, "breakdown_gamma": 1.4, "slice_gamma": 1.06,
    "slice_gamma_ci_lower": 0.9, "slice_gamma_ci_upper": 1.22,
}  # fmt: skip
RANGE = Range("band", -0.0001, 0.0012, -0.005, 0.06)
UP = Estimate(0.0206, 0.1, 0.0006, 0.0002, 0.001, 0.03, 0.01, 0.05, "positive", [], 99.0,
              sensitivity=BAND, robustness="fragile", range=RANGE, word="leans positive")  # fmt: skip


def with_estimate(result: ft.Result, estimate: Estimate, **others: Estimate) -> ft.Result:
    estimates = {**others, "point-ncis-adaptive": estimate}
    metric = Metric(Control(0.02, 0.001, 0.018, 0.022), estimates, "point-ncis-adaptive", estimate.verdict)
    return replace(result, metrics={"click": metric})
