"""The calibration's line and the path of Γ0, as drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foretest.calibration.file import Learned
from foretest.calibration.fit import Fit, History
from foretest.history.learn import DatedTest, fit_details
from foretest.report.charts.calibration import calibration_chart, gamma_chart
from tests.report.support import HOSTILE, Drawing, assert_sound

TESTS = 14


def calibration(tests: int = TESTS, gamma: float = 1.3) -> dict[str, Any]:
    g = np.random.default_rng(4)
    t = g.gamma(2.0, 0.1, tests)
    s = np.full(tests, 0.02)
    history = History((gamma - 1.0) * t + s * g.normal(size=tests), t, s**2)
    named = [DatedTest(HOSTILE if i == 0 else f"test-{i}", f"2026-01-{i + 1:02d}") for i in range(tests)]
    fit = history.fit()
    return {**Learned(fit, 20.0, fit.doubt()).to_dict(), **fit_details(named, history, fit)}


def test_a_point_a_test_and_a_line_through_the_origin() -> None:
    found = calibration()
    spec = calibration_chart(found, HOSTILE)
    assert_sound(spec, HOSTILE)
    drawing = Drawing(spec)
    assert drawing.marks("tests") == drawing.marks("bars") == TESTS
    [line] = [layer for layer in spec["layer"] if layer.get("name") == "line"]
    values = line["data"]["values"]
    assert (values[1]["t"], values[1]["d"]) == (0.0, 0.0)
    assert values[-1]["d"] / values[-1]["t"] == pytest.approx(found["gamma"] - 1.0)
    assert values[-1]["low"] / values[-1]["t"] == pytest.approx(found["gamma_ci_lower"] - 1.0)
    assert f"Γ0 = {found['gamma']:.2f}" in spec["description"]
    assert drawing.width() <= 720


def test_where_points_are() -> None:
    """The range of a point's bar in the data is 90 % of its noise."""
    [bars] = [layer for layer in calibration_chart(calibration(), "e")["layer"] if layer.get("name") == "bars"]
    row = bars["data"]["values"][0]
    assert row["high"] - row["low"] == pytest.approx(2 * 1.645 * 0.02)
    assert (row["high"] + row["low"]) / 2 == pytest.approx(row["d"])


def test_the_path_of_gamma() -> None:
    found = calibration()
    spec = gamma_chart(found, HOSTILE)
    assert_sound(spec, HOSTILE)
    drawing = Drawing(spec)
    assert drawing.marks("steps") == TESTS
    [steps] = [layer for layer in spec["layer"] if layer.get("name") == "steps"]
    assert steps["data"]["values"][-1]["gamma"] == pytest.approx(found["gamma"])
    assert f"{found['gamma']:.2f}" in spec["description"]
    assert drawing.width() <= 720


def test_without_anything_there_is_no_line() -> None:
    nothing = History(np.array([0.01]), np.array([0.0]), np.array([0.01]))
    fit = nothing.fit()
    assert isinstance(fit, Fit)
    assert not fit.known
    empty = {**Learned(fit, 20.0, fit.doubt()).to_dict(), **fit_details([DatedTest("a", None)], nothing, fit)}
    spec = calibration_chart(empty, "e")
    assert "there is no line" in spec["description"]
    assert Drawing(spec).marks("tests") == 1
    assert Drawing(gamma_chart(empty, "e")).marks("steps") == 0
    one = calibration(tests=1)
    assert Drawing(gamma_chart(one, "e")).marks("steps") == 1
    assert Drawing(calibration_chart(one, "e")).marks("tests") == 1
