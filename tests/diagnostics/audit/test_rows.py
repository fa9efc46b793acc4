"""Findings on the rows themselves."""

from __future__ import annotations

import numpy as np
import pytest

from foretest.diagnostics.audit.rows import exploration, logged_probabilities, repeated_ids, repeated_rows

LOG_P = np.log(np.random.default_rng(1).random(5000)) * 4.0


@pytest.mark.parametrize("written", [LOG_P.astype(np.float32), np.log(np.exp(LOG_P).astype(np.float32)), LOG_P])
def test_single_precision_is_no_difference(written: np.ndarray) -> None:
    assert logged_probabilities(written.astype(np.float64), LOG_P).outcome == "pass"


def test_rounded_numbers_warn_and_others_fail() -> None:
    rounded = logged_probabilities(np.round(LOG_P, 4), LOG_P)
    assert rounded.outcome == "warn"
    assert "rounded" in (rounded.remedy or "")
    few, many = LOG_P.copy(), LOG_P.copy()
    few[:3] -= 1.0
    many[:30] -= 1.0
    assert logged_probabilities(few, LOG_P).outcome == "warn"
    finding = logged_probabilities(many, LOG_P)
    assert finding.outcome == "fail"
    assert "in 30 of 5,000 sampled displays (0.60%)" in finding.meaning
    assert finding.statistic == pytest.approx((1.0 / (1.0 + np.abs(LOG_P[:30]))).max())


def test_a_probability_that_the_scores_call_impossible_fails() -> None:
    impossible = LOG_P.copy()
    impossible[:50] = -np.inf
    assert logged_probabilities(LOG_P, impossible).outcome == "fail"


@pytest.mark.parametrize(("certain", "outcome"), [(0, "pass"), (5, "pass"), (50, "warn"), (100, "fail")])
def test_a_control_without_choice(certain: int, outcome: str) -> None:
    finding = exploration(np.arange(100) < certain, declared=False)
    assert finding.outcome == outcome
    assert finding.statistic == certain / 100
    assert exploration(np.zeros(10, np.bool_), declared=True).outcome == "fail"


def keys(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


def test_repeated_ids_are_counted_within_units() -> None:
    finding = repeated_ids(keys(1, 1, 1, 2, 2), keys(7, 7, 8, 7, 9))
    assert finding.statistic == 1 / 5
    assert finding.outcome == "fail"
    unit = np.arange(1000).astype(np.uint64)
    assert repeated_ids(unit, unit).outcome == "pass"
    few = unit.copy()
    few[:5] = few[5:10]
    assert repeated_ids(few, few).outcome == "warn"


def test_repeated_rows_without_an_id() -> None:
    """Copies are equal in everything; a cached page with another reward is none."""
    rng = np.random.default_rng(2)
    scores = rng.integers(0, 2**62, 1000).astype(np.uint64)
    key, reward = scores + np.uint64(1), np.zeros(1000)
    for column in (scores, key):
        column[:40] = column[40:80]
    reward[:10] = 1.0
    finding = repeated_rows(scores, key, scores, [reward], has_unit=True)
    assert finding.outcome == "warn"
    assert finding.statistic == 30 / 1000
    assert repeated_rows(scores, key, scores, [reward], has_unit=False).outcome == "fail"


def test_scores_that_recur_make_equal_rows_no_copies() -> None:
    rng = np.random.default_rng(3)
    scores, ranking = rng.integers(0, 5, 1000).astype(np.uint64), rng.integers(0, 6, 1000).astype(np.uint64)
    finding = repeated_rows(scores, scores * np.uint64(10) + ranking, scores, [np.zeros(1000)], has_unit=False)
    assert finding.outcome == "not made"
    assert "recur" in finding.meaning


def test_an_id_that_starts_anew_with_every_unit_warns() -> None:
    """Such rows are no copies, but an id should name one display."""
    finding = repeated_ids(np.repeat(np.arange(50), 4).astype(np.uint64), np.tile(np.arange(4), 50).astype(np.uint64))
    assert finding.outcome == "warn"
    assert finding.statistic == 196 / 200
    assert "a row of another unit has" in finding.meaning


def test_rows_that_recur_with_other_rewards_are_no_copies() -> None:
    """Three contexts and one ranking: equal rows are chance, told by their rewards."""
    scores = np.repeat(np.arange(3), 200).astype(np.uint64)
    reward = (np.random.default_rng(4).random(600) < 0.1).astype(np.float64)
    assert repeated_rows(scores, scores, scores, [reward], has_unit=False).outcome == "not made"
