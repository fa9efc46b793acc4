"""The health strip: which facts, in which order, and when they ask for attention."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import foretest as ft
from foretest.report.blocks import Fact
from foretest.report.facts import offline_facts, online_facts, summary
from foretest.results.result import Control, Estimate, Metric

CONTROL = Control(0.02, 0.001, 0.019, 0.021)


def estimate(effective: float) -> Estimate:
    return Estimate(0.02, 0.1, 0.0, -0.1, 0.1, 0.0, -0.1, 0.1, "neutral", [], effective)


def states(**changes: Any) -> dict[str, str]:
    """The state of each fact of a good log, with some numbers changed."""
    given = {"rows": 10_000, "units": 500, "positives": 900, "effective": 400.0, "kept": 0.97, "capped": 0.001,
             "unsupported": 0, **changes}  # fmt: skip
    health = {"treatment_mass_kept": given["kept"], "capped_share": given["capped"]}
    health["unsupported_rows"] = given["unsupported"]
    result = ft.Result(
        "0",
        {"rows": given["rows"], "units": given["units"], "positives": {"click": given["positives"]}},
        {"log": {"unit": "user"}, "analysis": {"cap": 100.0, "confidence_level": 0.9}},
        {"click": Metric(CONTROL, {"ncis": estimate(given["effective"])}, "ncis", "neutral")},
        {
            "treatment_mass_kept": given["kept"],
            "capped_share": given["capped"],
            "unsupported_rows": given["unsupported"],
        },
    )
    return {fact.name: fact.state for fact in offline_facts(result)}


def test_a_good_log_needs_no_attention() -> None:
    assert states() == dict.fromkeys(
        ("rows", "units", "rewarded rows", "effective clicks", "treatment mass kept", "rows above the cap",
         "unsupported rows"), "fine",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "fact", "state"),
    [
        ({"effective": 29.9}, "effective clicks", "alert"),  # below, the verdict is insufficient
        ({"effective": 30.0}, "effective clicks", "watch"),
        ({"effective": 29.9, "positives": 1000}, "effective clicks", "watch"),  # dense rewards need fewer
        ({"effective": 14.9, "positives": 1000}, "effective clicks", "alert"),
        ({"effective": 299.0}, "effective clicks", "watch"),  # the measured edge of trustworthy upper limits
        ({"effective": 300.0}, "effective clicks", "fine"),
        ({"units": 4}, "units", "alert"),  # below five there is no interval
        ({"units": 29}, "units", "watch"),
        ({"positives": 0}, "rewarded rows", "alert"),
        ({"kept": 0.49}, "treatment mass kept", "alert"),
        ({"kept": 0.89}, "treatment mass kept", "watch"),
        ({"kept": None}, "treatment mass kept", "fine"),
        ({"capped": 0.02}, "rows above the cap", "watch"),
        ({"unsupported": 1}, "unsupported rows", "watch"),
        ({"unsupported": 90}, "unsupported rows", "watch"),  # a tenth of the rewarded rows: still allowed
        ({"unsupported": 91}, "unsupported rows", "alert"),  # beyond it the verdict is insufficient
    ],
)
def test_a_fact_asks_for_attention_where_the_verdict_does(changes: dict[str, Any], fact: str, state: str) -> None:
    found = states(**changes)
    assert found.pop(fact) == state
    assert set(found.values()) == {"fine"}


@pytest.mark.parametrize(("mass", "state"), [(0.97, "fine"), (0.89, "watch"), (0.49, "alert")])
def test_the_mass_that_the_headline_keeps_has_a_tile(mass: float, state: str) -> None:
    """Below one half the verdict is insufficient."""
    result = ft.Result(
        "0", {"rows": 10_000, "units": 500, "positives": {"click": 900}},
        {"log": {"unit": "user"}, "analysis": {"cap": 100.0, "confidence_level": 0.9}},
        {"click": Metric(CONTROL, {"ncis": estimate(400.0)}, "ncis", "neutral")},
        {"treatment_mass_kept": 1.0, "capped_share": 0.0, "unsupported_rows": 0,
         "mass_kept": {"cis": 0.2, "ncis": mass}},
    )  # fmt: skip
    facts = {fact.name: fact for fact in offline_facts(result)}
    tile = facts["mass behind the answer"]
    assert tile.value == f"{100 * mass:.1f}\N{NO-BREAK SPACE}%"
    assert tile.state == state
    assert tile.detail == "kept by ncis"
    health = {**result.health, "mass_kept": {"cis": 0.2}}
    assert "mass behind the answer" not in {
        fact.name for fact in offline_facts(dataclasses.replace(result, health=health))
    }


def online(p_value: float | None, alert: bool, days: list[Any]) -> list[Fact]:
    check = {"p_value": p_value, "alert": alert, "days": days, "observed": [0.45, 0.55], "expected": [0.5, 0.5]}
    smallest = {"relative": 0.1, "absolute": 0.01, "power": 0.8}
    arm = {"rows": 1000, "units": 500, "positives": {"click": 200}}
    return online_facts(ft.Result(
        "0", {**arm, "treatment": arm}, {"log": {}, "analysis": {}},
        {"click": Metric(CONTROL, {"online": estimate(150.0)}, "online", "neutral")},
        {"sample_ratio": check, "minimum_detectable_effect": {"click": smallest}},
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("p_value", "alert", "days", "state"),
    [
        (0.4, False, [], "fine"),
        (0.4, False, ["2026-03-01"], "watch"),
        (1e-9, True, [], "alert"),
        (None, False, [], "fine"),
    ],
)
def test_the_split_of_an_online_test(p_value: float | None, alert: bool, days: list[Any], state: str) -> None:
    facts = {fact.name: fact for fact in online(p_value, alert, days)}
    assert facts["sample ratio"].state == state
    assert facts["sample ratio"].value == ("–" if p_value is None else "45.0 : 55.0")
    assert facts["detectable uplift"].value == "10.0\N{NO-BREAK SPACE}%"
    assert "80\N{NO-BREAK SPACE}% of such tests" in facts["detectable uplift"].meaning


def test_the_summary_names_what_needs_attention() -> None:
    fine, watch, alert = (
        Fact(name, "1", "m", state) for name, state in (("a", "fine"), ("b", "watch"), ("c", "alert"))
    )
    assert summary([fine]) == "Nothing here needs attention."
    assert summary([fine, watch]) == "This needs attention: b."
    assert summary([watch, alert]) == "These need attention: b, c."


def test_an_estimated_number_of_units_has_the_digits_that_are_known() -> None:
    """An estimate is good to 0.3 %; one that rounding would put above the rows is rounded down."""

    def shown(rows: int, units: int, approximate: bool = True) -> str:
        log = {"rows": rows, "units": units, "positives": {"click": 900}, "units_approximate": approximate}
        result = ft.Result(
            "0", log, {"log": {"unit": "user"}, "analysis": {"cap": 100.0, "confidence_level": 0.9}},
            {"click": Metric(CONTROL, {"ncis": estimate(400.0)}, "ncis", "neutral")},
            {"treatment_mass_kept": 0.97, "capped_share": 0.0, "unsupported_rows": 0},
        )  # fmt: skip
        value = next(fact.value for fact in offline_facts(result) if fact.name == "units")
        return value.replace("\N{NO-BREAK SPACE}", " ")

    assert shown(3_000_000, 200_134) == "≈200,000"
    assert shown(3_000_000, 200_534) == "≈201,000"
    assert shown(150_600, 150_600) == "≈150,000"
    assert shown(10**9, 123_456_789) == "≈123 million"
    assert shown(3_000_000, 100_534, approximate=False) == "100,534"
