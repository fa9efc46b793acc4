"""Weights under a control that explores: against enumeration, and against logs simulated with it."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation.fold_plan import FoldPlan
from foretest.planning.exploration import DRAWS, moments, ranking_draws
from foretest.planning.exploring_policies import SHARES
from foretest.planning.plan import plan_log
from foretest.planning.rewarded_sample import DISPLAYS, rewarded_sample
from foretest.sources import open_source
from foretest.weights.weightings import Adaptive, Capped, Pointwise, Uncapped, Weighting, log_weights
from tests.support import SmallLog, build_test

M, K = 5, 2
RANKINGS = np.array(list(permutations(range(M), K)))
UNIFORM = 1.0 / len(RANKINGS)


def probabilities(scores: np.ndarray) -> np.ndarray:
    """Plackett-Luce over all rankings of two of five items, a row a display."""
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    first, second = e[:, RANKINGS[:, 0]], e[:, RANKINGS[:, 1]]
    total = e.sum(axis=1, keepdims=True)
    return first / total * second / (total - first)


class World:
    """Displays, both policies, and the chance of a click of every ranking."""

    def __init__(self, rows: int, seed: int, spread: float = 1.5) -> None:
        self.g = np.random.default_rng(seed)
        self.rows = rows
        self.control = 1.5 * self.g.normal(size=(rows, M))
        self.treatment = self.control + spread * self.g.normal(size=(rows, M))
        self.p, self.t = probabilities(self.control), probabilities(self.treatment)
        self.rate = 0.1 + 0.2 * self.g.random((rows, 1)) * (self.g.random(len(RANKINGS)) < 0.5)

    def table(self, epsilon: float) -> pa.Table:
        mixed = (1.0 - epsilon) * self.p + epsilon * UNIFORM
        shown = (mixed.cumsum(axis=1) < self.g.random((self.rows, 1))).sum(axis=1).clip(max=len(RANKINGS) - 1)
        click = self.g.random(self.rows) < self.rate[np.arange(self.rows), shown]
        return pa.table({
            "click": click,
            "id": np.arange(self.rows),
            "ranking": pa.FixedSizeListArray.from_arrays(pa.array(RANKINGS[shown].ravel(), pa.int32()), K).cast(
                pa.list_(pa.int32())
            ),
            "control_scores": pa.array(list(self.control)),
            "treatment_scores": pa.array(list(self.treatment)),
        })  # fmt: skip


def explored(epsilon: float) -> Any:
    """The control of such a log, as a settings file would have it."""
    plain = ft.PlackettLuce(scores="control_scores")
    if epsilon == 0.0:
        return plain
    return ft.Mixture([(1.0 - epsilon, plain), (epsilon, ft.EpsilonGreedy(scores="control_scores", epsilon=1.0))])


def offline(estimator: str, epsilon: float = 0.0) -> ft.OfflineTest:
    return ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], id="id", ranking="ranking"), control=explored(epsilon),
        treatment=ft.PlackettLuce(scores="treatment_scores"), estimators=[estimator], cap=5.0, weight_bound=4.0,
        interval="delta",
    )  # fmt: skip


def exactly(log: SmallLog, rows: np.ndarray, weighting: Weighting, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """E[h²|x] and q(x) over all rankings."""
    t, p = np.exp(log.log_t[rows]), np.exp(log.log_p[rows])
    mixed = (1.0 - epsilon) * p + epsilon / t.shape[1]
    if isinstance(weighting, Adaptive):
        low, high = np.full(len(rows), -60.0), np.full(len(rows), np.log(weighting.bound))
        for _ in range(100):
            mid = (low + high) / 2
            c = np.exp(mid)
            fits = c <= weighting.bound * np.minimum(t, c[:, None] * mixed).sum(axis=1)
            low, high = np.where(fits, mid, low), np.where(fits, high, mid)
        cap = np.exp(low)
    else:
        cap = np.full(len(rows), getattr(weighting, "cap", np.inf))
    capped = np.minimum(t, cap[:, None] * mixed)
    q, squares = capped.sum(axis=1), (capped**2 / mixed).sum(axis=1)
    mass = q if weighting.pointwise else np.full(len(q), q.mean())
    return squares / mass**2, q


@pytest.mark.parametrize("weighting", [Adaptive(4.0), Pointwise(5.0), Capped(5.0), Uncapped()], ids=repr)
def test_against_enumeration(weighting: Weighting) -> None:
    log = SmallLog(rows=1500, units=1500, spread=1.5, seed=8)
    plan = FoldPlan(build_test().settings)
    sample = rewarded_sample(open_source(log.table()), plan)
    assert sample is not None
    columns = ranking_draws(sample.displays, plan.normaliser.pair)
    assert columns["log_t"].shape == (int((log.click > 0).sum()), DRAWS)
    assert (sample.rewards[:, 0] > 0).all()
    np.testing.assert_allclose(np.exp(columns["log_rankings"]), 20.0)
    # the rows in the sample's order, by their own weight
    place = {round(float(w), 9): i for i, w in enumerate(log.log_w)}
    log_w = log_weights(plan.settings.treatment, plan.settings.control, sample.displays)
    rows = np.array([place[round(float(w), 9)] for w in log_w])
    for epsilon in SHARES:
        predicted = moments(columns, weighting, epsilon)
        second, q = exactly(log, rows, weighting, epsilon)
        # 64 draws: a few per cent of bias in 1/q², and the noise of some 600 displays
        assert predicted.second.mean() - 1.0 == pytest.approx(second.mean() - 1.0, rel=0.12)
        assert predicted.mass_kept.mean() == pytest.approx(q.mean(), abs=0.006)
        if epsilon:
            assert predicted.bound == pytest.approx(20.0 / epsilon)
            assert predicted.largest <= predicted.bound


def test_the_sample_is_bounded() -> None:
    world = World(30_000, seed=1)
    plan = FoldPlan(offline("point-ncis-adaptive").settings)
    sample = rewarded_sample(open_source(world.table(0.0)), plan)
    assert sample is not None
    assert len(sample) == DISPLAYS


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["point-ncis-adaptive", "point-ncis"])
def test_a_log_that_explored_has_the_error_that_was_predicted(estimator: str) -> None:
    """Predicted from the log of the control as it is, met by a log of the mixed control: within 8 %."""
    world = World(40_000, seed=2)
    outlook = plan_log(offline(estimator), world.table(0.0)).to_dict()
    rows = {row["epsilon"]: row for row in outlook["metrics"]["click"]["exploration"] if row["kind"] == "uniform"}
    assert list(rows) == list(SHARES)
    for epsilon in (0.0, 0.05, 0.2):
        result = offline(estimator, epsilon).run(world.table(epsilon))
        error = result.metrics["click"].estimates[estimator].std_error
        assert error is not None
        assert rows[epsilon]["std_error"] == pytest.approx(error, rel=0.08), epsilon
        band = result.metrics["click"].estimates[estimator].sensitivity
        assert band is not None
        half = (band["effect_size_upper"] - band["effect_size_lower"]) / 2.0 / result.metrics["click"].control.value
        predicted = rows[epsilon]["smallest_uplift"]["identification"]
        assert predicted == pytest.approx(half, abs=0.15 * rows[0.0]["smallest_uplift"]["identification"]), epsilon
    # there is something to predict
    assert rows[0.2]["treatment_mass_kept"] > rows[0.0]["treatment_mass_kept"] + 0.02
