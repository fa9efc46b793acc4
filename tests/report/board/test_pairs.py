"""Predictions compared with online results: which results are a pair, and how they agree."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from foretest.history.agreement import Pairs
from foretest.history.range_and_word import Seen, range_held
from foretest.report.board.board import read_board
from foretest.report.board.estimates import estimate_of
from foretest.report.board.fields import Fields
from foretest.report.board.pairs import Pair, count_pairs, holds
from foretest.results.result import Estimate
from foretest.results.uplift_range import WORDS, Range
from tests.report.board.results import document, estimates_of, put, set_uplift

ONE, Z = 0.02, NormalDist().inv_cdf(0.95)


def pair_of(tmp_path: Path, predicted: float, measured: float, reach: float = 0.01) -> Pair:
    put(tmp_path / "new" / "offline", set_uplift(document("offline"), predicted, ONE, reach))
    put(tmp_path / "new" / "online", set_uplift(document("online"), measured, ONE))
    [pair] = read_board(tmp_path).pairs
    return pair


@pytest.mark.parametrize("measured", [0.05, 0.085, 0.0848, -0.05])
def test_the_range_holds_what_lies_in_it_with_the_online_noise(tmp_path: Path, measured: float) -> None:
    """Each half of the range, here .03, widened by z times the online standard error, here .02/1.645."""
    pair = pair_of(tmp_path, 0.05, measured)
    assert pair.range_held == (abs(measured - 0.05) <= math.hypot(0.03, Z * ONE / 1.645))


def test_a_pair_is_judged_as_a_history_judges_it() -> None:
    """The share of a history over many tests, against one by one."""
    g = np.random.default_rng(0)
    x, y = g.normal(scale=0.05, size=(2, 50))
    lower, upper, error = x - 0.06 * g.random(50), x + 0.03 * g.random(50), 0.02 * g.random(50)
    nothing, decisions = np.full(50, np.nan), np.zeros(50, np.int64)
    seen = Seen(lower, upper, np.full(50, Z), decisions, decisions)
    pairs = Pairs(x, y, nothing, error, nothing, nothing, nothing, decisions, decisions, nothing, nothing, seen)
    judged = [
        holds(
            replace(estimate("offline"), rel_effect_size=x[k], range=Range("band", 0.0, 1.0, lower[k], upper[k])),
            replace(estimate("online"), rel_effect_size=y[k], rel_std_error=error[k]),
            0.9,
        )
        for k in range(50)
    ]
    assert 0.1 < np.mean(judged) < 0.9
    assert np.mean(judged) == pytest.approx(range_held(pairs, seen), abs=1e-12)


def test_without_a_standard_error_half_the_interval_is_the_noise() -> None:
    offline = replace(estimate("offline"), rel_effect_size=0.05, range=Range("band", 0.0, 1.0, 0.0, 0.10))
    online = estimate("online")
    ends = {"rel_effect_size_ci_lower": 0.0, "rel_effect_size_ci_upper": 0.24, "rel_std_error": None}
    for uplift, expected in ((0.05 + 0.1299, True), (0.05 + 0.1301, False)):  # √(.05² + .12²) = .13
        assert holds(offline, replace(online, rel_effect_size=uplift, **ends), 0.9) is expected
    assert holds(offline, replace(online, rel_effect_size=None), 0.9) is None


@pytest.mark.parametrize(
    ("predicted", "reach", "measured", "word", "call"),
    [
        (0.10, 0.01, 0.10, "positive", "right-call"),
        (0.03, 0.05, 0.10, "leans positive", "right-call"),
        (0.03, 0.05, 0.00, "leans positive", "too-high"),
        (0.00, 0.05, 0.10, "neutral", "too-low"),
        (-0.03, 0.05, 0.00, "leans negative", "too-low"),
        (-0.10, 0.01, 0.10, "negative", "too-low"),
    ],
)
def test_a_word_that_leans_counts_as_its_side(
    tmp_path: Path, predicted: float, reach: float, measured: float, word: str, call: str
) -> None:
    pair = pair_of(tmp_path, predicted, measured, reach)
    assert word in WORDS
    assert (pair.predicted.word, pair.call) == (word, call)
    assert pair.to_dict()["decision"] == {"right-call": "right", "too-low": "false negative"}.get(
        call, "false positive"
    )


def test_only_an_offline_and_an_online_result_of_one_folder_are_a_pair(tmp_path: Path) -> None:
    offline, online = document("offline"), document("online")
    put(tmp_path / "a" / "offline", offline)
    put(tmp_path / "b" / "online", online)
    put(tmp_path / "c" / "offline", online)  # it is where it should not be
    put(tmp_path / "c" / "online", online)
    put(tmp_path / "d" / "offline", offline)
    put(tmp_path / "d" / "Online", online)
    assert read_board(tmp_path).pairs == []
    put(tmp_path / "offline", offline)  # of the board's own folder
    put(tmp_path / "online", online)
    assert [(pair.name, pair.offline.metric, pair.leads) for pair in read_board(tmp_path).pairs] == [
        (".", "click", True)
    ]


def test_of_several_treatments_the_winner_is_compared(tmp_path: Path) -> None:
    several = document("several")
    put(tmp_path / "new" / "online", document("online"))
    for winner, treatments in (("shy", ["shy"]), ("bold", ["bold"]), (None, [])):
        put(tmp_path / "new" / "offline", several | {"winner": winner})
        assert [pair.offline.treatment for pair in read_board(tmp_path).pairs] == treatments


def test_tests_are_counted_by_their_first_goal(tmp_path: Path) -> None:
    for number, (predicted, measured) in enumerate([(0.1, 0.1), (0.1, 0.0), (0.0, 0.1), (-0.1, 0.1)]):
        offline = set_uplift(document("offline"), predicted, ONE, 0.01)
        online = set_uplift(document("online"), measured, ONE)
        online["metrics"]["revenue"] = online["metrics"]["click"]
        put(tmp_path / str(number) / "offline", offline)
        put(tmp_path / str(number) / "online", online)
    pairs = read_board(tmp_path).pairs
    assert len(pairs) == 8  # two metrics each
    counts = count_pairs(pairs)
    assert (counts.tests, counts.with_range, counts.range_held) == (4, 4, 1)
    assert (counts.right, counts.too_low, counts.too_high) == (1, 2, 1)


def estimate(kind: str) -> Estimate:
    """The first estimate of a real result."""
    [(_, content), *_] = estimates_of(document(kind))
    return estimate_of(Fields(content), online=kind == "online")
