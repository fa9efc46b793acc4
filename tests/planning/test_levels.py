"""What exploration would show, against sums over all rankings written in plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.aggregation.fold_plan import FoldPlan
from foretest.estimators import AdaptiveExposureNCIS, AdaptiveSlotNCIS
from foretest.planning import levels
from foretest.planning.cost import Cost, Uncertainty, cost_at_most, cost_of
from foretest.planning.levels import GIVEN, LevelOutlook, LevelsToPlan, Scale, SmallestUplift, outlooks
from foretest.planning.policy_tables import MetricLists, PolicyTables
from foretest.planning.rewarded_sample import RewardedSample, rewarded_sample
from foretest.policies import Policy
from foretest.sources import open_source
from foretest.weights.examination import Curves
from foretest.weights.exposure_weights import ExposureAdaptive
from foretest.weights.slot_weights import SlotAdaptive
from foretest.weights.weightings import Adaptive
from tests.support import SCORES, SmallLog, log_softmax_rankings

BOUND, MOST, THETA = 4.0, 6.0, (1.0, 0.5)
LOG = SmallLog(rows=1200, units=1200, m=5, k=2, spread=1.5, seed=8)
SCALE = Scale(
    factor=2.5, width={"ranking": 0.2, "slot": 0.6, "exposure": 0.6}, control=0.3, treatment=0.33, mean_square=0.3,
    rows=1200, rewards=360.0, dense={},
)  # fmt: skip
REACH = Uncertainty(1.645, {"ranking": (1.15, 1.3), "slot": (1.3, 2.0), "exposure": (1.3, 2.0)})


def small_plan(metric: str = "click") -> FoldPlan:
    columns = ft.LogColumns(
        rewards=[metric], unit="user", ranking="ranking", id="id", slot_rewards={metric: f"slot_{metric}"}
    )
    test = ft.OfflineTest(log=columns, **SCORES, examination=list(THETA))
    return FoldPlan(test.settings, (AdaptiveSlotNCIS(), AdaptiveExposureNCIS()))


class Enumerated:
    """The sampled displays in the sample's order, with the probabilities of all rankings."""

    def __init__(self, metric: str = "click") -> None:
        plan = small_plan(metric)
        sample = rewarded_sample(open_source(LOG.table()), plan)
        assert sample is not None
        self.sample: RewardedSample = sample
        control = {tuple(np.round(row, 9)): i for i, row in enumerate(LOG.control)}
        scores = sample.displays["control_scores"]
        self.rows = np.array([control[tuple(np.round(scores[i], 9))] for i in range(len(sample))])
        tables = PolicyTables(sample, plan.normaliser.pair, MOST)
        self.lists = MetricLists(tables, 0, Curves((THETA,)))
        self.shares = LOG.shares[metric][self.rows]
        self.r = sample.rewards[:, 0]
        self.shown = LOG.rankings[LOG.shown[self.rows]]
        self.t, self.p = (np.exp(log[self.rows]) for log in (LOG.log_t, LOG.log_p))

    def marginals(self, probabilities: np.ndarray) -> np.ndarray:
        return LOG.marginals(np.log(np.maximum(probabilities, 1e-300)))

    def levels(self, *names: str, fitted: bool = True) -> LevelsToPlan:
        weightings = {"ranking": Adaptive(BOUND), "slot": SlotAdaptive(BOUND), "exposure": ExposureAdaptive(BOUND)}
        kept = {name: weightings[name] for name in ("ranking", *names)}
        # a curve is fitted where there is one for all displays
        return LevelsToPlan(0, kept, Curves((THETA,) if fitted else (THETA, THETA)), True)

    def look(self, policy: Policy, *names: str, fitted: bool = True) -> dict[str, LevelOutlook]:
        return outlooks(self.lists.of(policy), self.levels(*names, fitted=fitted), SCALE)


@pytest.fixture
def items_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items that the log hardly shows are worth what the others are."""
    monkeypatch.setattr("foretest.planning.policy_tables.relative_worth", lambda lists, z: np.ones(len(lists.control)))


def hotter(temperature: float) -> tuple[Policy, np.ndarray]:
    """Plackett-Luce at a temperature, and its probabilities of all rankings."""
    policy = ft.PlackettLuce(scores="control_scores", temperature=temperature)
    return policy, np.exp(log_softmax_rankings(LOG.control / temperature, LOG.rankings))


def caps(t: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """c̃ and q over the last axis, by bisection, and w̃ of every entry."""
    low, high = np.full(t.shape[:-1], -60.0), np.full(t.shape[:-1], np.log(BOUND) + 1e-12)
    for _ in range(200):
        c = np.exp((low + high) / 2)
        fits = c <= BOUND * np.minimum(t, c[..., None] * p).sum(axis=-1)
        low, high = np.where(fits, np.log(c), low), np.where(fits, high, np.log(c))
    c = np.exp(low)
    q = np.minimum(t, c[..., None] * p).sum(axis=-1)
    return c, q, np.minimum(t / p, c[..., None]) / q[..., None]


def test_rankings_against_all_of_them() -> None:
    world = Enumerated()
    policy, probabilities = hotter(2.0)
    p = probabilities[world.rows]
    _, q, w = caps(world.t, p)
    second, r = (p * w**2).sum(axis=1), world.r
    outlook = world.look(policy)["ranking"]
    error = np.sqrt(SCALE.mean_square * (np.average(second, weights=r**2) - 1.0) / SCALE.rows)
    assert outlook.std_error == pytest.approx(error, rel=1e-6)
    assert outlook.treatment_mass_kept == pytest.approx(np.average(q, weights=r), rel=1e-6)
    unsupported = (1.0 - np.average(q, weights=r)) * SCALE.treatment
    expected = SmallestUplift(2.5 * error / 0.3, 0.2 * unsupported / 0.3)
    np.testing.assert_allclose(outlook.smallest_uplift, expected, rtol=1e-6)


def expected_of(
    most: float, beta: np.ndarray, rho: np.ndarray, g: np.ndarray, item: np.ndarray, r: np.ndarray
) -> float:
    """Σ r·[min(β/ρ, c)·g of the item + Σ_i (β − c ρ)⁺ m g] of lists, m being 1."""
    at = np.arange(len(item))
    known = np.minimum(beta[at, item] / rho[at, item], most) * g[at, item]
    rest = (np.maximum(beta - most * rho, 0.0) * g).sum(axis=1)
    return float((r * (known + rest)).sum())


@pytest.mark.parametrize("metric", ["click", "revenue"])
@pytest.mark.usefixtures("items_alike")
def test_slots_and_exposure_against_all_rankings(metric: str) -> None:
    """Of revenue every slot has a part."""
    world = Enumerated(metric)
    policy, probabilities = hotter(0.6)  # sharper: some of the treatment is cut off
    t, beta, rho = (world.marginals(x) for x in (world.t, probabilities[world.rows], world.p))
    found = world.look(policy, "slot", "exposure", fitted=False)
    r = world.r[:, None] * world.shares
    _, q, w = caps(t, beta)
    squares = unsupported = 0.0
    for k in range(LOG.k):
        lists = (beta[:, k], rho[:, k])
        squares += expected_of(levels.MOST, *lists, (w[:, k] - 1.0) ** 2, world.shown[:, k], r[:, k] ** 2)
        unsupported += expected_of(levels.MOST, *lists, (1.0 - q[:, k, None]) * w[:, k], world.shown[:, k], r[:, k])
    check(found["slot"], squares / np.square(world.r).sum(), unsupported / world.r.sum())
    assert found["slot"].treatment_mass_kept == pytest.approx((q * r).sum() / r.sum(), rel=1e-6)
    share = np.asarray(THETA) / sum(THETA)
    e_t, e_b, e_p = (np.einsum("rki,k->ri", x, share) for x in (t, beta, rho))
    _, q, w = caps(e_t, e_b)
    squares = sum(
        expected_of(levels.MOST, e_b, e_p, (w - 1.0) ** 2, world.shown[:, k], r[:, k] ** 2) for k in range(LOG.k)
    )  # fmt: skip
    unsupported = sum(
        expected_of(levels.MOST, e_b, e_p, (1.0 - q[:, None]) * w, world.shown[:, k], r[:, k]) for k in range(LOG.k)
    )
    exposed = world.lists.of(policy).exposed_slots(levels.MOST)
    moved = exposed.half_range(exposed.lists.capped(BOUND))  # by other curves
    check(found["exposure"], squares / np.square(world.r).sum(), (unsupported + moved / 0.6) / world.r.sum())
    assert found["exposure"].treatment_mass_kept == pytest.approx((q[:, None] * r).sum() / r.sum(), rel=1e-6)
    assert found["exposure"].examination == GIVEN


def check(outlook: LevelOutlook, squares: float, unsupported: float) -> None:
    """The two parts, from mean squares relative to r² and from mean(t) relative to r."""
    error = np.sqrt(SCALE.mean_square * squares / SCALE.rows)
    assert outlook.std_error == pytest.approx(error, rel=1e-6)
    assert outlook.smallest_uplift.identification == pytest.approx(0.6 * unsupported, rel=1e-6)


def test_a_control_that_shows_what_the_treatment_does_leaves_nothing_open() -> None:
    world = Enumerated()
    for outlook in world.look(ft.PlackettLuce(scores="treatment_scores"), "slot", "exposure").values():
        assert outlook.std_error == pytest.approx(0.0, abs=1e-7)
        assert outlook.smallest_uplift.total == pytest.approx(0.0, abs=1e-6)
        assert outlook.treatment_mass_kept == pytest.approx(1.0)


def test_a_level_that_would_have_no_verdict_says_why() -> None:
    uplift = SmallestUplift(0.1, 0.1)
    assert LevelOutlook(uplift, 0.01, 0.9, 0.0).obstacle is None
    assert LevelOutlook(uplift, 0.01, 0.4, 0.0).obstacle == "only 40.0 % of what the treatment shows would be supported"
    outlook = LevelOutlook(uplift, 0.01, 0.9, 0.2)
    assert outlook.obstacle == "20.0 % of the rewards would have no support"
    assert outlook.total == np.inf
    assert outlook.to_dict()["smallest_uplift"]["total"] is None


def cost(world: Enumerated, policy: Any, *names: str, deterministic: bool = False) -> Cost:
    return cost_of(world.lists.of(policy), world.levels(*names), REACH, deterministic=deterministic)


def test_costs_by_all_levels() -> None:
    """The control as it is costs nothing; a share of random rankings ε times what random rankings cost."""
    world = Enumerated()
    control = world.lists.tables.pair.control
    at_random = ft.EpsilonGreedy(scores="control_scores", epsilon=1.0)
    for names in ((), ("slot",), ("slot", "exposure")):
        assert cost(world, control, *names).value == pytest.approx(0.0, abs=1e-9)
        few = ft.Mixture([(0.98, control), (0.02, at_random)])
        more = ft.Mixture([(0.96, control), (0.04, at_random)])
        small, large = cost(world, few, *names), cost(world, more, *names)
        assert large.value == pytest.approx(2.0 * small.value, rel=0.02, abs=1e-6)
        assert large.std_error == pytest.approx(2.0 * small.std_error, rel=0.02)
        assert small.ci_lower < small.value < small.ci_upper
        assert small.level == (names[-1] if names else "ranking")
    assert cost_at_most(few, world.lists.tables, 0) <= 0.02
    assert cost_at_most(control, world.lists.tables, 0) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.usefixtures("items_alike")
def test_a_cost_by_slot_against_plain_sums() -> None:
    world = Enumerated()
    policy, probabilities = hotter(2.0)
    beta, rho = (world.marginals(x) for x in (probabilities[world.rows], world.p))
    r = world.r[:, None] * world.shares
    worth = sum(
        expected_of(MOST, beta[:, k], rho[:, k], np.ones((len(r), LOG.m)), world.shown[:, k], r[:, k])
        for k in range(LOG.k)
    )
    at, k = np.nonzero(r)
    item = world.shown[at, k]
    ratio = np.minimum(beta[at, k, item] / rho[at, k, item], MOST) + np.maximum(beta - MOST * rho, 0.0)[at, k].sum(
        axis=1
    )
    terms = r[at, k] * (ratio - worth / r.sum())
    found = cost(world, policy, "slot")
    assert found.value == pytest.approx(1.0 - worth / r.sum(), rel=1e-6, abs=1e-9)
    by_unit = np.bincount(np.unique(world.sample.unit[at], return_inverse=True)[1], weights=terms)
    units = len(by_unit)
    assert found.std_error == pytest.approx(np.sqrt(units / (units - 1) * np.square(by_unit).sum()) / r.sum(), rel=1e-6)


def test_a_control_that_never_varies_tells_no_cost_without_a_curve() -> None:
    world = Enumerated()
    swapped = ft.SwapNeighbours(scores="control_scores", swap=0.1)
    unknown = cost(world, swapped, "slot", deterministic=True)
    assert np.isnan(unknown.value)
    assert unknown.to_dict()["cost"] is None
    assert cost(world, world.lists.tables.pair.control, deterministic=True).value == 0.0
    assert np.isfinite(cost(world, swapped, "exposure", deterministic=True).value)
