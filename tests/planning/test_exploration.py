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
from foretest.policies.own_candidates import candidates_of, places_column
from foretest.settings.file import settings_from_tables
from foretest.sources import open_source
from foretest.weights.weightings import Adaptive, Capped, Pointwise, Uncapped, Weighting, log_weights
from tests.own_lists import CONTROL, TREATMENT, OwnLog, own_test
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
    columns = ranking_draws(sample.displays, plan.normaliser.pair, plan.settings.control)
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


def test_exploration_shows_only_what_the_control_may() -> None:
    """Of a treatment with a list of its own, rankings with an item that the control has not stay unsupported."""
    control, treatment = ft.PlackettLuce("control_scores"), ft.PlackettLuce("treatment_scores")
    log = OwnLog(control, rows=600, seed=2)
    log.user = np.arange(600)
    plan = FoldPlan(own_test(control, treatment).settings)
    sample = rewarded_sample(open_source(log.table()), plan)
    assert sample is not None
    columns = ranking_draws(sample.displays, plan.normaliser.pair, plan.settings.control)
    rewarded = np.flatnonzero(log.slots.sum(axis=1) > 0)
    inside = []
    for i in rewarded:
        own, (rankings, t) = set(log.lists[CONTROL][i].items), log.priced(treatment, TREATMENT, i, log.union(i))
        inside.append(sum(share for ranking, share in zip(rankings, t, strict=True) if set(ranking) <= own))
    own_items = [len(log.lists[CONTROL][i].items) for i in rewarded]
    counts = sorted(m * (m - 1) for m in own_items)
    np.testing.assert_allclose(np.sort(np.exp(columns["log_rankings"])), counts, rtol=1e-9)
    error = 0.5 / np.sqrt(len(rewarded) * DRAWS / 2)
    for epsilon in (0.0, 0.2, 1.0):
        predicted = moments(columns, Uncapped(), epsilon)
        assert predicted.mass_kept.mean() == pytest.approx(np.mean(inside), abs=4 * error)
        assert predicted.bound == np.inf


@pytest.mark.parametrize("control", [ft.PlackettLuce("control_scores"), ft.TopK("control_scores")])
def test_every_way_to_explore_ranks_the_controls_own_candidates(control: ft.Policy) -> None:
    """Each row has settings that load beside the treatment's own list, and shows no item that the control lacks."""
    log = OwnLog(control, rows=600, seed=3)
    test = own_test(control, ft.PlackettLuce("treatment_scores"), estimators=["slot-ncis-adaptive"])
    rows = plan_log(test, log.table()).to_dict()["metrics"]["click"]["exploration"]
    assert {row["kind"] for row in rows} == {"uniform", "swap-neighbours", "plackett-luce", "epsilon-greedy"}
    for row in rows:
        tables = {
            "log": {"rewards": ["click"], "ranking": "shown"},
            "control": row["settings"],
            "treatment": {
                "policy": "plackett-luce", "scores": "treatment_scores", "candidates": TREATMENT, "temperature": 1.0
            },
        }  # fmt: skip
        assert candidates_of(settings_from_tables(tables).control) == CONTROL
    sample = rewarded_sample(open_source(log.table()), FoldPlan(test.settings))
    assert sample is not None
    marginals = test.settings.treatment.slot_marginals(sample.displays)  # by enumeration in tests/policies
    item = np.concatenate([np.tile(np.arange(m), K) for m in sample.displays.eligible])
    row = np.repeat(np.arange(len(sample)), sample.displays.eligible * K)
    inside = item < sample.displays[places_column(CONTROL)].lengths[row]
    most = float(marginals.flat()[inside].sum()) / (K * len(sample))
    kept = [one["levels"]["slot"]["treatment_mass_kept"] for one in rows]
    assert max(kept) <= most + 0.05  # by the rewards of slots, all slots alike above
    assert max(kept) >= 0.8 * most
