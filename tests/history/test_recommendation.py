"""Which estimator and which bound came closest, on small tables worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foretest.history.recommendation import learned_sentence, recommend, sentence


def parts(estimates: dict[str, list[float | None]], online: list[float], error: float = 0.0) -> list[dict[str, Any]]:
    return [
        {
            "online": {"rel_effect_size": y},
            "offline": {label: {"rel_effect_size": x[i]} for label, x in estimates.items()},
            "noise": {key: {"online_error": error, "covariance": 0.0001} for key in estimates},
            "bounds": None,
        }
        for i, y in enumerate(online)
    ]


def test_the_smallest_error_wins_and_noise_is_taken_out() -> None:
    online = [0.10, -0.05, 0.02, 0.08]
    far = [0.20, -0.15, 0.12, -0.02]
    near = [0.13, -0.02, 0.05, 0.11]
    told = recommend(parts({"cis": far, "ncis": near}, online, 0.02), "cis")
    assert told is not None
    assert (told["estimator"], told["headline"], told["tests"], told["clear"]) == ("ncis", "cis", 4, True)
    assert told["estimators"]["cis"]["rmse"] == pytest.approx(0.1)
    assert told["estimators"]["ncis"]["error"] == pytest.approx(np.sqrt(0.03**2 - 0.02**2 + 2 * 0.0001))
    assert sentence(told) == ("ncis came closest to online over 4 tests: an error of 3.0 points, where cis has 10.0.")
    same = recommend(parts({"cis": far, "ncis": near}, online), "ncis")
    assert same is not None
    assert sentence(same) == "ncis came closest to online, with an error of 3.0 points over 4 tests."


def test_what_is_not_used_is_judged_and_not_recommended() -> None:
    given = parts({"a": [0.2, 0.1], "a-calibrated": [0.1, 0.1]}, [0.1, 0.1])
    told = recommend(given, "a", ["a-calibrated"])
    assert told is not None
    assert told["estimator"] == "a"
    assert told["estimators"]["a-calibrated"]["rmse"] == 0.0
    free = recommend(given, "a")
    assert free is not None
    assert free["estimator"] == "a-calibrated"


def test_a_lead_by_one_test_may_be_chance() -> None:
    told = recommend(parts({"cis": [0.5, 0.1, 0.1], "ncis": [0.1, 0.11, 0.11]}, [0.1, 0.1, 0.1]), "cis")
    assert told is not None
    assert (told["estimator"], told["clear"]) == ("ncis", False)
    assert sentence(told).endswith("the lead may be chance.")


def test_only_tests_that_all_have_are_compared() -> None:
    told = recommend(parts({"cis": [0.1, 0.3], "ncis": [None, 0.2]}, [0.1, 0.2]), None)
    assert told is not None
    assert (told["tests"], told["estimator"]) == (1, "ncis")
    assert recommend(parts({"cis": [None]}, [0.1]), None) is None
    assert recommend([], None) is None


def test_the_bound_with_the_smallest_error() -> None:
    given = parts({"point-ncis-adaptive": [0.2, 0.0]}, [0.1, 0.1], 0.01)
    given[0]["bounds"] = {"weight_bound": 20.0, "bounds": [5.0, 10.0, 20.0], "rel_effect_size": [0.0, 0.1, 0.2]}
    given[1]["bounds"] = {"weight_bound": 20.0, "bounds": [5.0, 10.0, 20.0], "rel_effect_size": [0.0, 0.12, 0.0]}
    told = recommend(given, "point-ncis-adaptive")
    assert told is not None
    bounds = told["weight_bounds"]
    assert told["weight_bound"] == bounds["weight_bound"] == 10.0
    assert bounds["rmse"] == pytest.approx([0.1, np.sqrt(0.0002), 0.1])
    assert bounds["error"][0] == pytest.approx(np.sqrt(0.01 - 0.0001 + 0.0002))
    assert "Of the bounds of point-ncis-adaptive 10 did best (1.4 points; 20, as used, 10.0" in sentence(told)


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
