"""Logs of several loggers: who showed what, the bound on weights, production's value, errors against the truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from foretest.offline.test import OfflineTest
from foretest.paper.loggers import ESTIMATORS, MIXED, SHARES, SINGLE, mixed_log, production_value, several_loggers
from foretest.paper.rows import read_displays
from foretest.policies import PlackettLuce
from foretest.settings.log_columns import LogColumns
from foretest.simulate import WORLDS, draw_test, true_values, write_history

WORLD = WORLDS["rewards"]
ROWS = 20_000
TEST = draw_test(WORLD, 1)
# iterations that change much: a log of one that changes little looks like production's
OTHERS = sorted((draw_test(WORLD, n) for n in range(2, 12)), key=lambda test: -test.change.strength)[:2]
MIXED_TEST = OfflineTest(
    log=LogColumns(rewards=("click",), ranking="ranking", id="display_id"),
    control=MIXED,
    treatment=PlackettLuce("treatment_scores"),
    estimators=["is"],
)


@pytest.fixture(scope="module")
def log() -> pa.Table:
    return mixed_log(WORLD, TEST, OTHERS, ROWS)


def test_displays_fall_to_the_loggers_by_their_shares(log: pa.Table) -> None:
    assert log.num_rows == ROWS
    assert np.unique(np.array(log["display_id"])).size == ROWS
    shown = np.bincount(np.array(log["logger"])) / ROWS
    share = np.array(SHARES)
    assert (np.abs(shown - share) <= 4 * np.sqrt(share * (1 - share) / ROWS)).all()


@pytest.mark.parametrize("k", [0, 1, 2])
def test_each_logger_shows_its_own_rankings(log: pa.Table, k: int) -> None:
    """log π_k of what logger k showed has the mean of fresh draws from π_k; under another's scores it has not."""
    displays, _ = read_displays(MIXED_TEST, log, ROWS)
    part = displays.take(np.flatnonzero(np.array(log["logger"]) == k))
    g = np.random.default_rng(k)

    def z_score(policy: PlackettLuce) -> float:
        drawn = policy.sample(part, g.random((len(part), int(part.eligible.max()) + 1)))
        difference = policy.log_prob(part, part.ranking) - policy.log_prob(part, drawn)
        return float(difference.mean() / difference.std() * np.sqrt(len(part)))

    policies = [policy for _, policy in MIXED.components]  # type: ignore[attr-defined]
    assert abs(z_score(policies[k])) < 4
    assert abs(z_score(policies[(k + 1) % 3])) > 8


def test_weights_of_production_are_bounded_by_its_share(log: pa.Table) -> None:
    displays, rewards = read_displays(MIXED_TEST, log, ROWS)
    w = np.exp(SINGLE.log_prob(displays, displays.ranking) - MIXED.log_prob(displays, displays.ranking))
    assert w.max() <= 1 / SHARES[0] * (1 + 1e-9)
    assert abs(w.mean() - 1.0) <= 4 * w.std() / np.sqrt(ROWS)
    value = production_value(MIXED_TEST, log, ROWS)
    assert value == pytest.approx((w * rewards).mean(), rel=1e-12)
    # and it is production's true value, not the mixture's mean reward
    truth = true_values(WORLD, TEST.change, 3, displays=65_536, draws=2)["click"].control
    assert abs(value - truth) <= 4 * (w * rewards).std() / np.sqrt(ROWS)


@pytest.mark.slow
def test_one_logger_beside_several(tmp_path: Path) -> None:
    """The answers of two tests from their logs, put together by hand."""
    world = replace(WORLD, name="small")
    write_history(tmp_path, world, 2, 3000, 5)
    truth = {"test-001": {"rel_uplift": 0.03}, "test-002": {"rel_uplift": -0.02}}
    called: list[int] = []
    compared = several_loggers(tmp_path, world, 2, 3000, 5, truth, called.append)
    assert called == [2, 2]
    assert compared["tests"] == 2
    errors = []
    for number, known in ((1, 0.03), (2, -0.02)):
        test = OfflineTest(
            log=MIXED_TEST.settings.log, control=SINGLE, treatment=PlackettLuce("treatment_scores"),
            estimators=list(ESTIMATORS), draws=128,
        )  # fmt: skip
        click = test.run(str(tmp_path / f"test-00{number}/control.parquet")).metrics["click"]
        errors.append({key: e.rel_effect_size - known for key, e in click.estimates.items()})
    for key in ESTIMATORS:
        of_key = np.array([error[key] for error in errors])
        assert compared["single"]["estimators"][key]["bias"] == pytest.approx(of_key.mean(), rel=1e-6)
        assert compared["single"]["estimators"][key]["rmse"] == pytest.approx(np.sqrt(np.mean(of_key**2)), rel=1e-6)
    others = [draw_test(world, 2 + 2 * k, 5) for k in (1, 2)]
    again = MIXED_TEST.run(mixed_log(world, draw_test(world, 2, 5), others, 3000))
    first = MIXED_TEST.run(mixed_log(world, draw_test(world, 1, 5), [draw_test(world, n, 5) for n in (3, 5)], 3000))
    mass_kept = [result.health["support"]["mean_q"] for result in (first, again)]
    assert compared["mixed"]["mass_kept"] == pytest.approx(np.mean(mass_kept), rel=1e-9)
