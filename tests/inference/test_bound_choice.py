"""The bound that a log chooses: against the rule in plain NumPy, and where it is known what to choose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.inference.bound_choice import choose_bound
from foretest.weights.weight_bounds import GRID
from tests.support import SCORES, SmallLog

POINT, SLOT = "point-ncis-adaptive", "slot-ncis-adaptive"


def test_of(keys: list[str], **analysis: Any) -> ft.OfflineTest:
    slots = {"click": "slot_click", "revenue": "slot_revenue"}
    log = ft.LogColumns(rewards=["click", "revenue"], unit="user", ranking="ranking", id="id", slot_rewards=slots)
    return ft.OfflineTest(log=log, **SCORES, estimators=keys, n_resamples=100, **analysis)


test_of.__test__ = False  # type: ignore[attr-defined]  # a helper, whatever its name


class Rule:
    """The rule of `bound_choice`, outcome by outcome, from weights w̃_b of every ranking (or item of a slot)."""

    def __init__(
        self, p: np.ndarray, weights: list[np.ndarray], shown: np.ndarray, r: np.ndarray, rows: int, *, dense: bool
    ) -> None:
        at = np.arange(len(p))
        self.joint = np.array([[(p * a * b).sum(axis=1) for b in weights] for a in weights])
        gains = np.array([(r * (p * np.maximum(a - weights[0], 0.0)).sum(axis=1)).sum() for a in weights])
        h = np.array([w[at, shown] for w in weights])
        self.r, self.rows, self.dense = r, rows, dense
        self.beta = (h * r).sum(axis=1) / h.sum(axis=1) if dense else np.zeros(len(GRID))
        self.value = self.beta * len(p) / rows if dense else (h * r).sum(axis=1) / rows
        squares = [self.apart(0, b, 0.0) for b in range(len(GRID))]
        self.events = np.array([g**2 / s if s > 0.0 else np.inf for g, s in zip(gains, squares, strict=True)])
        self.effective = r.sum() ** 2 / np.array([self.second(b, 0.0) for b in range(len(GRID))])
        self.variance = np.array([self.second(b, self.beta[b]) for b in range(len(GRID))]) / rows**2

    def second(self, b: int, beta: float) -> float:
        return float(((self.r - beta) ** 2 * self.joint[b, b]).sum())

    def apart(self, a: int, b: int, beta: float) -> float:
        m = self.joint
        square = ((self.r - beta) ** 2 * (m[a, a] + m[b, b] - 2 * m[a, b])).sum()
        return float(square) if square > 1e-12 * self.second(a, beta) else 0.0

    def choice(self) -> tuple[float, list[bool]]:
        events, positives, clear = (5, 15, 1) if self.dense else (20, 30, 3)
        admissible = [b == 0 or (self.events[b] >= events and self.effective[b] >= positives) for b in range(len(GRID))]
        risks = {}
        for b in np.flatnonzero(admissible):
            bias = [
                (self.value[k] - self.value[b]) ** 2 - clear**2 * self.apart(b, k, self.beta[b]) / self.rows**2
                for k in np.flatnonzero(admissible)
                if k > b
            ]
            risks[b] = self.variance[b] + max([0.0, *bias])
        return GRID[min(risks, key=lambda b: (risks[b], b))], admissible

    def moved(self) -> tuple[float, float]:
        """How far larger admissible bounds move the value beyond one standard error, down and up."""
        bound, admissible = self.choice()
        best = GRID.index(bound)
        above = [b for b in np.flatnonzero(admissible) if b > best]
        gains = {b: self.value[b] - self.value[best] for b in above}
        noise = {b: self.apart(best, b, self.beta[best]) ** 0.5 / self.rows for b in above}
        clear = [gains[b] for b in above if abs(gains[b]) > noise[b]]
        return min([0.0, *clear]), max([0.0, *clear])


def weights_at(t: np.ndarray, p: np.ndarray, bound: float) -> np.ndarray:
    """w̃ of every outcome, by bisection on log c̃; every outcome can be shown by both policies."""
    low, high = np.full(len(t), -80.0), np.full(len(t), np.log(bound) + 1e-12)
    for _ in range(200):
        c = np.exp((low + high) / 2)
        fits = c <= bound * np.minimum(t, c[:, None] * p).sum(axis=1)
        low, high = np.where(fits, np.log(c), low), np.where(fits, high, np.log(c))
    c = np.exp(low)[:, None]
    return np.asarray(np.minimum(t / p, c) / np.minimum(t, c * p).sum(axis=1, keepdims=True))


def compare(estimate: ft.Estimate, rule: Rule) -> None:
    found = estimate.bound_choice
    assert found is not None
    bound, admissible = rule.choice()
    assert found["bound"] == bound
    rows = found["bounds"]
    assert [row["admissible"] for row in rows] == admissible
    assert [row["value"] for row in rows] == pytest.approx(rule.value, rel=1e-9)
    assert [row["effective_positives"] for row in rows] == pytest.approx(rule.effective, rel=1e-8)
    assert [row["predicted_std_error"] for row in rows] == pytest.approx(np.sqrt(rule.variance), rel=1e-7)
    events = [np.inf if row["events"] is None else row["events"] for row in rows]
    assert events == pytest.approx(rule.events, rel=1e-6)
    assert estimate.treatment == pytest.approx(rule.value[GRID.index(bound)], rel=1e-9)
    compare_range(estimate, *rule.moved(), control=float(rule.r.sum() / rule.rows))


def compare_range(estimate: ft.Estimate, down: float, up: float, *, control: float) -> None:
    """Each end is moved by the largest of the assumed Γ's share, the slice test's nearest end and the path above."""
    band, limits = estimate.sensitivity, estimate.range
    assert band is not None
    assert limits is not None
    lower, upper = estimate.effect_size_ci_lower, estimate.effect_size_ci_upper
    assert lower is not None
    assert upper is not None
    t = (estimate.unsupported or 0.0) * control
    slices = [band[f"slice_gamma_ci_{end}"] for end in ("lower", "upper")]
    least = min([1 / (band["gamma_lower"] or 1.0), *[s for s in slices[1:] if s is not None]])
    most = max([band["gamma_upper"] or 1.0, *[s for s in slices[:1] if s is not None]])
    assert limits.ci_lower == pytest.approx(lower + min((least - 1) * t, down), rel=1e-7)
    assert limits.ci_upper == pytest.approx(upper + max((most - 1) * t, up), rel=1e-7)
    if t:
        assert limits.factor_lower == pytest.approx(max(0.0, min(least, 1 + down / t)), rel=1e-7)
        assert limits.factor_upper == pytest.approx(max(most, 1 + up / t), rel=1e-7)


@pytest.mark.parametrize("dense", [False, True], ids=["rare", "dense"])
@pytest.mark.parametrize("spread", [1.5, 4.0])
def test_by_ranking_and_by_slot_against_the_rule(spread: float, dense: bool) -> None:
    log = SmallLog(rows=3000, units=3000, spread=spread, seed=8)
    if not dense:
        rare = np.arange(log.rows) % 8 == 0
        log.click, log.revenue = log.click * rare, log.revenue * rare
    assert (log.click.mean() > 0.1) == dense
    result = test_of([POINT, SLOT]).run(log.table())
    t, p = np.exp(log.log_t), np.exp(log.log_p)
    by_ranking = [weights_at(t, p, bound) for bound in GRID]
    flat_t, flat_p = (log.marginals(log_prob).reshape(-1, log.m) for log_prob in (log.log_t, log.log_p))
    by_slot = [weights_at(flat_t, flat_p, bound) for bound in GRID]
    for name, r in (("click", log.click), ("revenue", log.revenue)):
        estimates = result.metrics[name].estimates
        compare(estimates[POINT], Rule(p, by_ranking, log.shown, r, log.rows, dense=dense))
        earned = (log.shares[name] * r[:, None]).ravel()
        items = log.rankings[log.shown].ravel()
        compare(estimates[SLOT], Rule(flat_p, by_slot, items, earned, log.rows, dense=dense))


def bandit(rows: int, rate: tuple[float, float], shown: float, seed: int) -> pa.Table:
    """Two actions: the control shows the second with probability `shown`, the treatment with .9."""
    g = np.random.default_rng(seed)
    action = (g.random(rows) < shown).astype(int)
    click = g.random(rows) < np.asarray(rate)[action]
    return pa.table(
        {
            "ranking": [[a] for a in action], "click": click, "id": np.arange(rows),
            "p": [[np.log(1 - shown), np.log(shown)]] * rows, "t": [[np.log(0.1), np.log(0.9)]] * rows,
        }
    )  # fmt: skip


def run_bandit(table: pa.Table, **analysis: Any) -> ft.Estimate:
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking", id="id"), control=ft.PlackettLuce("p"),
        treatment=ft.PlackettLuce("t"), estimators=[POINT], n_resamples=100, **analysis,
    )  # fmt: skip
    return test.run(table, threads=1).metrics["click"].estimates[POINT]


def test_dense_rewards_and_a_far_treatment_raise_it() -> None:
    """At 20 the treatment's action, which weighs 90, is cut off and its worth of .8 not seen: truth .74."""
    table = bandit(40_000, (0.2, 0.8), 0.01, 1)
    chosen, fixed = run_bandit(table), run_bandit(table, weight_bound=20.0)
    assert chosen.bound_choice is not None
    assert chosen.bound_choice["bound"] >= 100.0
    assert chosen.treatment == pytest.approx(0.74, abs=0.1)
    assert fixed.bound_choice is None
    assert fixed.treatment is not None
    assert fixed.treatment < 0.4
    assert "best balance" in chosen.bound_choice["reason"]


def test_the_range_reaches_as_far_as_larger_bounds_move_the_value() -> None:
    """At 20 the second action, which weighs 30, has a weight of 20, and .75 of the treatment is unsupported (c = 5, q =
    .25); at 50 all is supported. The log can carry both, and their difference is more than one standard error."""
    rows, table = 20_000, bandit(20_000, (0.05, 0.05), 0.03, 3)
    estimate = run_bandit(table, gamma=1.0)
    found = estimate.bound_choice
    assert found is not None
    assert (found["bound"], found["bounds"][1]["admissible"]) == (20.0, True)
    action, click = np.array(table["ranking"].to_pylist())[:, 0], table["click"].to_numpy()
    small, large = np.array([0.1 / 0.97 / 0.25, 20.0]), np.array([0.1 / 0.97, 30.0])
    up = float((click * (large - small)[action]).mean())
    error = np.sqrt((click.sum() * (0.97 * (large - small)[0] ** 2 + 0.03 * (large - small)[1] ** 2)) / rows**2)
    assert up > error
    assert 1 + up / ((estimate.unsupported or 0.0) * click.mean()) > 1.05  # more than Γ = 1 says
    compare_range(estimate, 0.0, up, control=float(click.mean()))


def test_rare_rewards_leave_it() -> None:
    estimate = run_bandit(bandit(10_000, (0.002, 0.004), 0.01, 2))
    assert estimate.bound_choice is not None
    assert estimate.bound_choice["bound"] == 20.0
    assert "too few rewards carry the difference" in estimate.bound_choice["reason"]


def test_a_number_is_what_it_is() -> None:
    table = SmallLog(rows=500, spread=4.0).table()
    fixed = test_of([POINT], weight_bound=50.0).run(table).metrics["click"].estimates[POINT]
    own = test_of([ft.AdaptivePointNCIS(weight_bound=50.0)]).run(table).metrics["click"].estimates[POINT]
    assert fixed.bound_choice is own.bound_choice is None
    assert fixed.effect_size == own.effect_size
    with pytest.raises(ft.BadInput, match='expected a number of at least 1, or "auto"'):
        test_of([POINT], weight_bound="large")


def test_nothing_to_choose_without_rewards() -> None:
    table = SmallLog(rows=50).table(click=np.zeros(50), slot_click=pa.array([[0.0, 0.0]] * 50))
    test = test_of([POINT])
    assert choose_bound(test.aggregate(table).aggregates, ft.AdaptivePointNCIS(), 0) is None
    assert test.run(table).metrics["click"].estimates[POINT].verdict == "insufficient"
