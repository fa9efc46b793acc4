"""The charts of time: how long rewards take, and the uplift by day."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foretest.report.charts.days import days_chart
from foretest.report.charts.reward_ages import age_text, reward_ages_chart
from foretest.results.days import Day
from tests.report.support import HOSTILE, Drawing, assert_sound

AGES = [float(age) for age in 10.0 ** np.linspace(1.0, 5.9, 400)]
CURVE: dict[str, Any] = {
    "age": AGES, "share": np.linspace(0.001, 1.0, 400).tolist(), "displays": np.linspace(9000.0, 500.0, 400).tolist(),
    "horizon": AGES[-1], "still_to_come": 0.123, "window": "3d",
}  # fmt: skip


def said(spec: dict[str, Any]) -> str:
    """The description, with plain blanks."""
    return str(spec["description"]).replace("\N{NO-BREAK SPACE}", " ")


def day(name: str, value: float | None, verdict: str = "neutral", half: float = 0.02) -> Day:
    limits = (None, None) if value is None else (value - half, value + half)
    return Day(name, 1200, "ncis", 0.001, 0.0, 0.002, value, *limits, verdict)


def test_the_curve_is_drawn_to_its_horizon_with_its_window() -> None:
    spec = reward_ages_chart(CURVE, "click")
    assert_sound(spec)
    drawing = Drawing(spec)
    assert (drawing.marks("curve"), drawing.marks("window")) == (1, 1)
    words = drawing.words()
    assert {"1 min", "1 h", "1 day", "window = 3d"} <= set(words)
    assert "About 12.3 % of the reward of these displays is still to come." in " ".join(
        spec["title"]["subtitle"]
    ).replace("\N{NO-BREAK SPACE}", " ")
    assert "within 9.2 days" in said(spec)
    assert said(spec).endswith("Still to come of these displays: 12.3 %.")
    [line] = [layer["data"]["values"] for layer in spec["layer"] if layer.get("name") == "curve"]
    assert len(line) <= 120
    assert line[-1]["age"] == AGES[-1]
    assert drawing.width() <= 720


def test_without_a_window_there_is_no_rule() -> None:
    drawing = Drawing(reward_ages_chart({**CURVE, "window": None}, "click"))
    assert drawing.marks("window") == 0


def test_two_bins_are_a_curve() -> None:
    short = {**CURVE, "age": [2.0, 2.2], "share": [0.5, 1.0], "displays": [10.0, 5.0], "horizon": 2.2, "window": None}
    assert_sound(reward_ages_chart(short, "click"))
    assert Drawing(reward_ages_chart(short, "click")).marks("curve") == 1


def test_names_are_data() -> None:
    assert_sound(reward_ages_chart(CURVE, HOSTILE), HOSTILE)
    spec = days_chart([day(HOSTILE, 0.1), day("b", 0.2)], HOSTILE, 0.9, 0.1)
    assert_sound(spec, HOSTILE)
    Drawing(spec)


def test_days_have_their_intervals_and_fit_those_with_evidence() -> None:
    days = [day(f"2026-03-{d:02d}", 0.01 * d) for d in range(1, 11)]
    days += [day("2026-03-11", 3.0, "insufficient", 2.0), day("2026-03-12", None, "insufficient")]
    spec = days_chart(days, "click", 0.9, 0.05)
    assert_sound(spec)
    drawing = Drawing(spec)
    assert (drawing.marks("days"), drawing.marks("overall")) == (11, 1)
    [points] = [layer for layer in spec["layer"] if layer.get("name") == "days"]
    assert points["encoding"]["y"]["scale"]["domain"] == pytest.approx([-0.01, 0.12])
    assert "2026-03-10: +10.0 % (+8.0 % to +12.0 %), neutral" in said(spec)
    assert said(spec).endswith("All days: +5.0 %.")


def test_ages_in_words() -> None:
    assert [age_text(age) for age in (0.25, 119.0, 120.0, 7_000.0, 7_300.0, 1e6)] == [
        "0.25 s", "120 s", "2 min", "120 min", "2 h", "12 days",
    ]  # fmt: skip
