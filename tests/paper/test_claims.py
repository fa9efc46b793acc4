"""Table 2 and the claims made in passing, on a history of three tests written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foretest.paper.capping import cappings
from foretest.paper.estimators import TABLE_2_KEYS, UNCAPPED, ZERO, all_estimators, zero_label
from foretest.paper.modelled_bias import modelled_bias
from foretest.paper.table_two import table_two
from foretest.paper.uncapped import uncapped

LABELS = [*TABLE_2_KEYS, *UNCAPPED, *(zero_label(key) for key in ZERO)]


def estimate(
    uplift: float | None, width: float = 0.1, verdict: str = "neutral", error: float = 0.001
) -> dict[str, Any]:
    limits = (None, None) if uplift is None else (uplift - width / 2, uplift + width / 2)
    return {
        "treatment": None if uplift is None else 0.02 * (1 + uplift), "std_error": error, "verdict": verdict,
        "rel_effect_size": uplift, "rel_effect_size_ci_lower": limits[0], "rel_effect_size_ci_upper": limits[1],
        "effect_size": None if uplift is None else 0.02 * uplift,
        "effect_size_ci_lower": None if uplift is None else 0.02 * limits[0],
        "effect_size_ci_upper": None if uplift is None else 0.02 * limits[1], "effective_positives": 50.0,
    }  # fmt: skip


def agreement(**figures: float) -> dict[str, Any]:
    """Three tests whose estimates are all neutral and 0, and a table with 0.5 everywhere."""
    names = ("correlation", "precision", "fnr", "ci_size", "noise_ceiling", "bias", "rmse", "coverage")
    row = {field: 0.5 for name in names for field in (name, f"{name}_q10", f"{name}_q90")} | figures
    tests = [
        {"name": f"t{k}", "online": {"verdict": verdict}, "offline": {label: estimate(0.0) for label in LABELS}}
        for k, verdict in enumerate(("positive", "positive", "neutral"))
    ]
    return {"tests": tests, "table": {label: dict(row) for label in LABELS}, "failures": []}


def test_the_estimators_have_the_labels_of_the_tables() -> None:
    listed = [item if isinstance(item, str) else item.label for item in all_estimators()]
    assert sorted(listed) == sorted(LABELS)


def test_table_2_stands_beside_the_printed_one() -> None:
    document = agreement()
    for k, key in enumerate(("cis", "ncis", "piece-ncis", "point-ncis-adaptive")):
        document["table"][key] |= {"correlation": 0.1 * k, "precision": 0.2 + 0.1 * k, "fnr": 0.6 - 0.1 * k}
    section = table_two(document)
    assert section["online"] == {"negative": 0, "neutral": 1, "insufficient": 0, "positive": 2}
    assert section["in_order"] == {"correlation": True, "precision": True, "fnr": True}
    printed = {key: row["paper"] for key, row in section["rows"].items()}
    figures = ("correlation", "precision", "fnr", "ci_size")
    expected = {
        "cis": [-0.15, 0.28, 0.64, 1.0],
        "ncis": [0.24, 0.47, 0.33, 1.1],
        "piece-ncis": [0.36, 0.53, 0.28, 1.5],
        "point-ncis": [0.49, 0.56, 0.16, 0.8],
    }
    assert {key: [printed[key][name]["value"] for name in figures] for key in expected} == expected
    assert printed["point-ncis-adaptive"] is None
    # .28 of 39 tests are 11, .64 are 25: the printed shares are of all tests
    assert round(11 / 39, 2) == 0.28
    assert round(25 / 39, 2) == 0.64


@pytest.mark.parametrize(("name", "value", "expected"), [("correlation", 0.0, False), ("fnr", None, None)])
def test_an_order_that_does_not_hold(name: str, value: float | None, expected: bool | None) -> None:
    document = agreement()
    for k, key in enumerate(("cis", "ncis", "piece-ncis", "point-ncis-adaptive")):
        document["table"][key] |= {"correlation": 0.1 * k, "precision": 0.1 * k, "fnr": 0.6 - 0.1 * k}
    document["table"]["piece-ncis"][name] = value
    assert table_two(document)["in_order"][name] is expected


def test_zero_against_max() -> None:
    document = agreement()
    for test, (most, zero) in zip(document["tests"], [(0.10, 0.08), (0.00, -0.05), (None, 0.02)], strict=True):
        test["offline"]["cis"] = estimate(most, width=0.2, verdict="positive" if most else "neutral")
        test["offline"]["cis-zero"] = estimate(zero, verdict="neutral")
    document["table"]["cis-zero"]["correlation"] = 0.4
    row = cappings(document)["rows"]["cis"]
    assert row["mean_move"] == pytest.approx((-0.02 - 0.05) / 2)
    assert row["mean_absolute_move"] == pytest.approx(0.035)
    assert row["largest_move"] == pytest.approx(-0.05)
    assert row["half_width"] == pytest.approx(0.1)
    assert row["same_verdict"] == 2
    assert row["correlation"] == {"max": 0.5, "zero": 0.4}


def test_estimators_without_a_cap() -> None:
    document = agreement()
    verdicts = ("negative", "insufficient", "neutral")
    for test, verdict, uplift, error in zip(
        document["tests"], verdicts, (-0.3, -0.2, 0.01), (1.0, 2.0, 4.0), strict=True
    ):
        test["offline"]["is"] = estimate(uplift, verdict=verdict, error=error)
        test["offline"]["dr"] = estimate(uplift, verdict=verdict, error=1.1 * error)
    section = uncapped(document)["rows"]
    assert section["is"]["verdicts"] == {"negative": 1, "neutral": 1, "insufficient": 1, "positive": 0}
    # the interval of −20 % ± 5 % is below 0 too, though its evidence is insufficient
    assert section["is"]["interval_decides"] == {"positive": 0, "negative": 2}
    assert section["dr"]["std_error_over_is"] == pytest.approx({"0.1": 1.1, "0.5": 1.1, "0.9": 1.1})
    assert section["is"]["std_error_over_is"]["0.5"] == pytest.approx(1.0)


def test_modelled_bias_is_value_minus_cis() -> None:
    document = agreement()
    for test, cis, ncis in zip(document["tests"], (-0.2, -0.1, -0.3), (0.0, 0.0, -0.1), strict=True):
        test["offline"]["cis"], test["offline"]["ncis"] = estimate(cis), estimate(ncis)
    truth = np.array([0.1, 0.0, 0.1])
    example = {"estimates": {key: estimate(-0.2 if key == "cis" else 0.05) for key in TABLE_2_KEYS}}
    section = modelled_bias(document, truth, example, 0.07)
    assert section["rows"]["cis"]["mean"] == 0.0
    assert section["rows"]["ncis"]["mean"] == pytest.approx((0.2 + 0.1 + 0.2) / 3)
    assert section["rows"]["ncis"]["example"] == pytest.approx(0.25)
    assert section["truth"]["example"] == pytest.approx(0.27)
    assert section["truth"]["mean"] == pytest.approx((0.3 + 0.1 + 0.4) / 3)
    # the error of the model of the bias is that of the estimate: ncis − truth
    assert section["rows"]["ncis"]["rmse_of_bias"] == pytest.approx(np.sqrt(np.mean([0.1**2, 0.0, 0.2**2])))
