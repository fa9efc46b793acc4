"""The coverage study of online tests in small: the same world, the same seeds, fewer tests."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import online_coverage as study

pytestmark = pytest.mark.slow

TESTS = 90  # a standard error of √(0.9·0.1/90) = 3.2 points: 3 of them are 9.5 points
PROMISED = ["one display", "users", "a/a"]


@pytest.fixture(scope="module")
def found() -> dict[str, dict[study.Key, study.Coverage]]:
    return {name: study.run_study(name, TESTS) for name in [*PROMISED, *study.WRONG]}


@pytest.mark.parametrize("metric", study.METRICS)
@pytest.mark.parametrize("interval", study.INTERVALS)
@pytest.mark.parametrize("name", PROMISED)
def test_intervals_hold_the_true_uplift(name: str, interval: str, metric: str, found: dict) -> None:
    c = found[name][metric, interval]
    assert c.tests == TESTS
    assert abs(c.error) < 4.0  # the mean uplift is the truth, a sum over the kinds of users
    for held in (c.held, c.rel_held):
        assert abs(held - study.LEVEL) <= 3.0 * c.std_error


@pytest.mark.parametrize("interval", study.INTERVALS)
def test_a_test_of_equal_arms_is_called_where_its_interval_misses_0(interval: str, found: dict) -> None:
    for metric in study.METRICS:
        c = found["a/a"][metric, interval]
        assert c.called == pytest.approx(1.0 - c.held)
        assert 0.0 < c.called < 0.25


@pytest.mark.parametrize("interval", study.INTERVALS)
def test_by_row_the_intervals_of_repeated_users_are_too_narrow(interval: str, found: dict) -> None:
    for metric in study.METRICS:
        wrong, right = found["users by row"][metric, interval], found["users"][metric, interval]
        assert wrong.error == pytest.approx(right.error)  # the same logs, the same uplifts
        assert wrong.rel_width < 0.95 * right.rel_width
        assert wrong.held < right.held


@pytest.mark.parametrize("name", study.STUDIES)
def test_the_study_reports_what_run_gives(name: str) -> None:
    """One fold for both intervals, and resamples drawn once, change no digit."""
    kind = study.STUDIES[name]._replace(users=(400, 300))
    control, treatment = study.logs_of(kind, study.seeds(kind, 1)[0])
    with study.resamples_kept():
        found = study.answers(kind, control, treatment)
    for interval in study.INTERVALS:
        result = study.online_test(kind, interval).run(control, treatment)
        for metric in study.METRICS:
            assert found[metric, interval] == study.answer(result.metrics[metric].estimates["online"])


def test_welch_is_used_where_every_user_has_one_display_and_only_there() -> None:
    """Welch's error is from the rows, so the number of buckets does not matter to it."""
    for name, welch in (("one display", True), ("users", False)):
        kind = study.STUDIES[name]._replace(users=(3000, 3000))
        logs = study.logs_of(kind, study.seeds(kind, 1)[0])
        errors = {
            study.online_test(kind, "delta")
            .replace(buckets=b)
            .run(*logs)
            .metrics["click"]
            .estimates["online"]
            .std_error
            for b in (64, 1024)
        }
        assert (len(errors) == 1) == welch


@pytest.mark.parametrize("repeated", [True, False])
def test_the_truth_is_that_of_a_long_log(repeated: bool) -> None:
    kind = study.STUDIES["users"]._replace(users=(200_000, 200_000), repeated=repeated)
    rng = np.random.default_rng(3)
    for treated in (False, True):
        log = study.arm(kind, 200_000, treated, 0, rng)
        user = log["user"].to_numpy()
        rows = np.bincount(user)
        for metric, values in study.true_values(kind).items():
            mean = values[int(treated)]
            by_user = np.bincount(user, weights=log[metric].to_numpy().astype(float)) - mean * rows
            assert abs(by_user.sum()) < 4.0 * np.sqrt(np.square(by_user).sum())
