"""Which estimator and which bound came closest, on small tables worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foretest.history.recommendation import ComparedTest, learned_sentence, recommend, sentence


def parts(
    estimates: dict[str, list[float | None]], online: list[float], error: float = 0.0, bounds: Any = None
) -> list[ComparedTest]:
    """Tests as agreement.json has them; `bounds` has the path of each test."""
    return [
        ComparedTest.from_dict(
            {
                "online": {"rel_effect_size": y},
                "offline": {label: {"rel_effect_size": x[i]} for label, x in estimates.items()},
                "noise": {key: {"online_error": error, "covariance": 0.0001} for key in estimates},
                "bounds": None if bounds is None else bounds[i],
            }
        )
        for i, y in enumerate(online)
    ]


def test_the_smallest_error_wins_and_noise_is_taken_out() -> None:
    online = [0.10, -0.05, 0.02, 0.08]
    far = [0.20, -0.15, 0.12, -0.02]
    near = [0.13, -0.02, 0.05, 0.11]
    recommended = recommend(parts({"cis": far, "ncis": near}, online, 0.02), "cis")
    assert recommended is not None
    assert (recommended["estimator"], recommended["headline"], recommended["tests"], recommended["clear"]) == (
        "ncis",
        "cis",
        4,
        True,
    )
    assert recommended["estimators"]["cis"]["rmse"] == pytest.approx(0.1)
    assert recommended["estimators"]["ncis"]["error"] == pytest.approx(np.sqrt(0.03**2 - 0.02**2 + 2 * 0.0001))
    assert sentence(recommended) == (
        "ncis came closest to online over 4 tests: an error of 3.0 points, where cis has 10.0."
    )
    same = recommend(parts({"cis": far, "ncis": near}, online), "ncis")
    assert same is not None
    assert sentence(same) == "ncis came closest to online, with an error of 3.0 points over 4 tests."


def test_what_is_not_used_is_judged_and_not_recommended() -> None:
    given = parts({"a": [0.2, 0.1], "a-calibrated": [0.1, 0.1]}, [0.1, 0.1])
    recommended = recommend(given, "a", ["a-calibrated"])
    assert recommended is not None
    assert recommended["estimator"] == "a"
    assert recommended["estimators"]["a-calibrated"]["rmse"] == 0.0
    free = recommend(given, "a")
    assert free is not None
    assert free["estimator"] == "a-calibrated"


def test_a_lead_by_one_test_may_be_chance() -> None:
    recommended = recommend(parts({"cis": [0.5, 0.1, 0.1], "ncis": [0.1, 0.11, 0.11]}, [0.1, 0.1, 0.1]), "cis")
    assert recommended is not None
    assert (recommended["estimator"], recommended["clear"]) == ("ncis", False)
    assert sentence(recommended).endswith("the lead may be chance.")


def test_only_tests_that_all_have_are_compared() -> None:
    recommended = recommend(parts({"cis": [0.1, 0.3], "ncis": [None, 0.2]}, [0.1, 0.2]), None)
    assert recommended is not None
    assert (recommended["tests"], recommended["estimator"]) == (1, "ncis")
    assert recommend(parts({"cis": [None]}, [0.1]), None) is None
    assert recommend([], None) is None


def test_the_bound_with_the_smallest_error() -> None:
    paths = [
        {"weight_bound": 20.0, "bounds": [5.0, 10.0, 20.0], "rel_effect_size": uplifts}
        for uplifts in ([0.0, 0.1, 0.2], [0.0, 0.12, 0.0])
    ]
    given = parts({"point-ncis-adaptive": [0.2, 0.0]}, [0.1, 0.1], 0.01, paths)
    recommended = recommend(given, "point-ncis-adaptive")
    assert recommended is not None
    bounds = recommended["weight_bounds"]
    assert recommended["weight_bound"] == bounds["weight_bound"] == 10.0
    assert bounds["rmse"] == pytest.approx([0.1, np.sqrt(0.0002), 0.1])
    assert bounds["error"][0] == pytest.approx(np.sqrt(0.01 - 0.0001 + 0.0002))
    assert "Of the bounds of point-ncis-adaptive 10 did best (1.4 points; 20, as used, 10.0" in sentence(recommended)


def test_what_was_learned_in_words() -> None:
    fit = {"gamma": 1.17, "gamma_ci_lower": 1.05, "gamma_ci_upper": 1.29, "tau2": 0.0049, "tests": 39, "used": True,
           "reason": None, "estimator": "point-ncis-calibrated"}  # fmt: skip
    assert learned_sentence("point-ncis-adaptive", fit) == (
        "point-ncis-adaptive, by 39 tests: what the log does not support was worth 1.17 times what it does (Γ0, 95 %"
        " interval 1.05 to 1.29), and varies by 0.07 (τ) from test to test. foretest run --calibration calibration.json"
        " gives point-ncis-calibrated beside point-ncis-adaptive."
    )
    doubtful = fit | {"used": False, "reason": "only 9 tests"}
    assert learned_sentence("x", doubtful).endswith("Not used: only 9 tests.")


def test_errors_at_both_ends_of_covariances_that_are_not_known() -> None:
    """corrected = (x − y)² − se_y² + 2 cov, with the covariance at −bound and at +bound."""
    document = {
        "online": {"rel_effect_size": 0.1}, "offline": {"a": {"rel_effect_size": 0.2}, "b": {"rel_effect_size": 0.3}},
        "noise": {
            "a": {"online_error": 0.05, "covariance": 0.0, "covariance_bound": 0.001},
            "b": {"online_error": 0.05, "covariance": 0.0, "covariance_bound": None},
        },
        "bounds": None,
    }  # fmt: skip
    recommended = recommend([ComparedTest.from_dict(document)] * 3, "b")
    assert recommended is not None
    errors = recommended["estimators"]["a"]
    assert errors["error"] == pytest.approx(np.sqrt(0.01 - 0.0025))
    assert errors["error_low"] == pytest.approx(np.sqrt(0.01 - 0.0025 - 0.002))
    assert errors["error_high"] == pytest.approx(np.sqrt(0.01 - 0.0025 + 0.002))
    known = recommended["estimators"]["b"]
    assert known["error_low"] == known["error"] == known["error_high"]
    assert recommended["clear"]
    # at the upper end of a large bound the other one is as near: the lead may be chance
    document["noise"]["a"]["covariance_bound"] = 0.015
    unclear = recommend([ComparedTest.from_dict(document)] * 3, "b")
    assert unclear is not None
    assert not unclear["clear"]
