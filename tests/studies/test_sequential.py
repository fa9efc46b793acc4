"""The study of looks in small: the same worlds, the same seeds, fewer tests."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import sequential as study

from foretest.inference.peeking import false_alarm

pytestmark = pytest.mark.slow

TESTS = 60
WORLDS = ("new users", "returning users")


@pytest.fixture(scope="module")
def found() -> dict[str, study.Coverage]:
    return {name: study.run_study(name, TESTS) for name in WORLDS}


@pytest.mark.parametrize("name", WORLDS)
def test_the_always_valid_interval_holds_at_all_looks_and_the_fixed_one_does_not(name: str, found: dict) -> None:
    c = found[name]
    assert c.tests == TESTS
    for held in (c.always, c.rel_always):
        assert held >= study.LEVEL - 3.0 * c.std_error
    for held in (c.fixed, c.rel_fixed):
        assert held < study.LEVEL - 3.0 * c.std_error
    assert abs(c.last - study.LEVEL) <= 3.0 * c.std_error  # at one look it holds


def test_new_users_every_day_are_the_equal_looks_of_the_joint_law(found: dict) -> None:
    expected = 1.0 - false_alarm([1.0] * study.LOOKS, study.LEVEL)
    held = found["new users"].fixed
    assert abs(held - expected) <= 3.0 * np.sqrt(expected * (1.0 - expected) / TESTS)


@pytest.mark.parametrize("name", study.WORLDS)
def test_the_study_reports_what_run_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arms that grow day by day have the sums of whole logs; rows that are units go by other buckets there."""
    world, logs = study.WORLDS[name], ([], [])
    usual = study.day

    def kept(world: study.World, those: study.Users, treated: bool, rng: np.random.Generator) -> pa.RecordBatch:
        logs[treated].append(usual(world, those, treated, rng))
        return logs[treated][-1]

    monkeypatch.setattr(study, "day", kept)
    last = study.watched(world, study.seeds(world, 1)[0], looks=3)[-1]
    control, treatment = (pa.Table.from_batches(batches) for batches in logs)
    result = study.online_test(world).run(control, treatment)
    wanted = study.look(result.metrics[world.reward].estimates["online"], *study.true_values(world))
    assert last == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("name", ["new users", "spend", "returning users"])
def test_the_truth_is_that_of_a_long_log(name: str) -> None:
    world, rng = study.WORLDS[name]._replace(size=100_000), np.random.default_rng(3)
    for treated, mean in enumerate(study.true_values(world)):
        those = study.users(world.size, 0, rng)
        log = study.day(world, those, bool(treated), rng)
        user, reward = log["user"].to_numpy(), log[world.reward].to_numpy()
        by_user = np.bincount(user, weights=reward - mean, minlength=world.size)
        assert abs(by_user.sum()) < 4.0 * np.sqrt(np.square(by_user).sum())
