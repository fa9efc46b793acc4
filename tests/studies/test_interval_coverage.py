"""The coverage study in small: the same world, the same seeds, fewer and shorter logs."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import interval_coverage as study

pytestmark = pytest.mark.slow

LOGS = 150
ROWS, USER_ROWS = 6000, 6000  # ordinary users: twice that


ADAPTIVE = study.ADAPTIVE


@pytest.fixture(scope="module")
def by_row() -> dict:
    with study.fixed_costs_spared():
        return study.run_study("rows", LOGS, ROWS, estimators=(ADAPTIVE, "cis 10"))


@pytest.fixture(scope="module")
def by_user() -> dict:
    with study.fixed_costs_spared():
        return study.run_study("users", LOGS, USER_ROWS, estimators=(ADAPTIVE,))


@pytest.fixture(scope="module")
def by_unequal_user() -> dict:
    with study.fixed_costs_spared():
        return study.run_study("unequal users", LOGS // 2, USER_ROWS, estimators=(ADAPTIVE,))


@pytest.fixture(scope="module")
def users_by_row() -> dict:
    with study.fixed_costs_spared():
        return study.run_study("unequal users by row", LOGS // 2, USER_ROWS, estimators=(ADAPTIVE,))


def _both(c: study.Coverage) -> tuple[float, float]:
    return c.covered, c.rel_covered


@pytest.mark.parametrize("interval", ["bootstrap", "delta"])
@pytest.mark.parametrize("kind", ["by_row", "by_user"])
def test_intervals_of_the_adaptive_estimator_hold_its_limit(
    kind: str, interval: str, request: pytest.FixtureRequest
) -> None:
    c = request.getfixturevalue(kind)[ADAPTIVE, interval]
    assert c.logs == LOGS
    assert c.positives[0] >= 100.0
    assert abs(c.error) < 4.0  # the mean estimate is the limit, which was found by enumeration
    for covered in _both(c):
        assert abs(covered - study.LEVEL) <= 4.0 * c.std_error


@pytest.mark.parametrize("interval", ["bootstrap", "delta"])
def test_by_row_the_intervals_of_repeated_users_are_too_narrow(
    users_by_row: dict, by_unequal_user: dict, interval: str
) -> None:
    wrong, right = users_by_row[ADAPTIVE, interval], by_unequal_user[ADAPTIVE, interval]
    assert wrong.rel_width < 0.8 * right.rel_width
    for covered, by_unit in zip(_both(wrong), _both(right), strict=True):
        assert covered < study.LEVEL - 3.0 * wrong.std_error
        assert covered < by_unit


@pytest.mark.parametrize(("kind", "label"), [("by_row", ADAPTIVE), ("by_row", "cis 10"), ("by_user", ADAPTIVE)])
def test_bernstein_holds_at_least_as_often_as_it_says(kind: str, label: str, request: pytest.FixtureRequest) -> None:
    c = request.getfixturevalue(kind)[label, "bernstein"]
    assert min(_both(c)) >= study.LEVEL - 2.0 * c.std_error
    assert c.rel_width > request.getfixturevalue(kind)[label, "delta"].rel_width


@pytest.mark.parametrize("name", ["rows", "users"])
def test_the_study_reports_what_run_gives(name: str) -> None:
    """One fold for three kinds of interval and the spared costs change no digit."""
    kind = study.STUDIES[name]
    table = study.log_of(kind, study.make_world(), 500, study.seeds(name, 1)[0])
    with study.fixed_costs_spared():
        found = study.answers(kind, table)
    for interval in kind.intervals:
        result = study.offline_test(kind, interval).run(table)
        for label, estimate in result.metrics["click"].estimates.items():
            assert found[label, interval] == study.answer(estimate, found[label, interval].effective_units)


def test_limits_agree_with_one_another() -> None:
    world = study.make_world()
    for policy in (world.control, world.treatment):
        np.testing.assert_allclose(policy.sum(axis=1), 1.0, rtol=1e-12)
    cap, q = study.adaptive_cap(world.treatment, world.control, study.BOUND)
    assert (cap <= study.BOUND * q * (1 + 1e-9)).all()
    # the largest: a hair more breaks the bound
    more = 1.001 * cap
    assert (more > study.BOUND * np.minimum(world.treatment, more[:, None] * world.control).sum(axis=1)).all()
    wide = world._replace(treatment_scores=world.control_scores, treatment=world.control)
    same = study.limits(wide)
    np.testing.assert_allclose(list(same.values()), same["control"], rtol=1e-9)
