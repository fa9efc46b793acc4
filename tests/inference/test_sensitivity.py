"""The sensitivity band against row terms in plain NumPy, against populations whose Γ is known, and at its edges."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from scipy.stats import t as student

import foretest as ft
from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.errors import BadInput
from foretest.estimators import Estimator
from foretest.inference.betting import betting_limits
from foretest.inference.buckets import Interval
from foretest.inference.sensitivity import Bounds, Terms, imbens_manski, robustness
from foretest.inference.verdict import decide
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derive
from foretest.results.sensitivity import Sensitivity
from tests.schemas import validate
from tests.support import SCORES, SmallLog, build_test

SCHEMA = json.loads(files("foretest").joinpath("schema/result-1.json").read_text(encoding="utf-8"))
POINTS = ("point-ncis", "point-ncis-adaptive")
CAP, BOUND = 2.0, 3.0


@cache
def displays(rows: int, seed: int) -> SmallLog:
    return SmallLog(rows=rows, seed=seed)


def apart(rows: int, units: int, seed: int) -> SmallLog:
    """A log whose units have a bucket each, of the 1024 there are: sums by bucket are then sums by unit."""
    log = copy(displays(rows, seed))
    log.unit = np.random.default_rng(seed).integers(0, units, rows)
    ids = np.arange(4000)
    bucket = derive(hash_integers(ids), BUCKET_SALT) % np.uint64(1024)
    _, first = np.unique(bucket, return_index=True)
    log.unit = np.sort(first)[log.unit]
    return log


LOG = apart(rows=900, units=250, seed=31)


# -- by hand ----------------------------------------------------------------------------------------------------------


def own_caps(log: SmallLog, key: str) -> np.ndarray:
    """The cap of every row: one for all, or by bisection the largest c with c ≤ bound·q(c)."""
    if key == "point-ncis":
        return np.full(log.rows, CAP)
    t, p = np.exp(log.log_t), np.exp(log.log_p)
    low, high = np.full(log.rows, -60.0), np.full(log.rows, np.log(BOUND) + 1e-12)
    for _ in range(200):
        c = np.exp((low + high) / 2)
        fits = c <= BOUND * np.minimum(t, c[:, None] * p).sum(axis=1)
        low, high = np.where(fits, np.log(c), low), np.where(fits, high, np.log(c))
    return np.exp(low)


def masses(log: SmallLog, caps: np.ndarray, capping: str = "max") -> tuple[np.ndarray, np.ndarray]:
    """w̄ of the shown ranking, and q."""
    w, t, p = np.exp(log.log_w), np.exp(log.log_t), np.exp(log.log_p)
    if capping == "zero":
        return np.where(w < caps, w, 0.0), np.where(t < caps[:, None] * p, t, 0.0).sum(axis=1)
    return np.minimum(w, caps), np.minimum(t, caps[:, None] * p).sum(axis=1)


class ByHand:
    """d, t and both sides of the slice test of every row, and everything that follows from them."""

    def __init__(self, log: SmallLog, key: str, r: np.ndarray, capping: str = "max") -> None:
        caps = own_caps(log, key)
        capped, q = masses(log, caps, capping)
        below, q_below = masses(log, caps / 3.0, capping)
        h = np.divide(capped, q, out=np.zeros(log.rows), where=q > 0)
        self.unit, self.d, self.t = log.unit, (h - 1.0) * r, (h - capped) * r
        whole = q_below > 0
        self.sliced = np.where(whole, (capped - below) * r, 0.0)
        self.expected = np.where(whole, (q - q_below) * below * r / np.where(whole, q_below, 1.0), 0.0)

    def error(self, phi: np.ndarray) -> float:
        """se² = C/(C−1)·Σ_u [Σ_{i∈u}(φ_i − φ̄)]²/n²."""
        by_unit = [(phi - phi.mean())[self.unit == u].sum() for u in np.unique(self.unit)]
        count = len(by_unit)
        return float(np.sqrt(count / (count - 1) * np.square(by_unit).sum()) / len(phi))

    def low(self, gamma: float) -> np.ndarray:
        return self.d - (1.0 - 1.0 / gamma) * self.t

    def high(self, gamma: float) -> np.ndarray:
        return self.d + (gamma - 1.0) * self.t

    def bounds(self, gamma: tuple[float, float]) -> Bounds:
        low, high = self.low(gamma[0]), self.high(gamma[1])
        return Bounds(low.mean(), high.mean(), self.error(low), self.error(high))

    def imbens_manski(self, gamma: tuple[float, float], level: float) -> tuple[float, float]:
        lower, upper, s, u = self.bounds(gamma)
        units = len(np.unique(self.unit))
        law = norm if units >= 30 else student(units - 1)
        c = brentq(lambda c: law.cdf(c + (upper - lower) / max(s, u)) - law.cdf(-c) - level, 0.0, 50.0, xtol=1e-14)
        return lower - c * s, upper + c * u

    def breakdown(self, sign: int, level: float) -> float:
        """Where the limit that the verdict rests on reaches 0."""
        units = len(np.unique(self.unit))
        z = norm.ppf(0.5 + level / 2) if units >= 30 else student(units - 1).ppf(0.5 + level / 2)

        def limit(log_gamma: float) -> float:
            phi = self.low(np.exp(log_gamma)) if sign > 0 else -self.high(np.exp(log_gamma))
            return float(phi.mean() - z * self.error(phi))

        return float(np.exp(brentq(limit, 0.0, np.log(1e6), xtol=1e-13)))


def estimate(test: ft.OfflineTest, log: Any, key: str, metric: str = "click") -> Any:
    return test.run(log).metrics[metric].estimates[key]


def terms_of(test: ft.OfflineTest, table: pa.Table, key: str, metric: int = 0) -> Terms:
    aggregates, _, _ = test.aggregate(table)
    by_label: dict[str, Estimator] = {e.label: e for e in aggregates.plan.estimators}
    return Terms.of(aggregates, aggregates.plan.weighting(by_label[key]), metric)


# -- L, U, their errors and the interval ------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["click", "revenue"])
@pytest.mark.parametrize(("key", "capping"), [(POINTS[0], "max"), (POINTS[0], "zero"), (POINTS[1], "max")])
def test_the_band_is_that_of_the_row_terms(key: str, capping: str, metric: str) -> None:
    hand = ByHand(LOG, key, getattr(LOG, metric), capping)
    gamma, level = (1.2, 1.6), 0.8
    test = build_test([key], metrics=("click", "revenue"), capping=capping, gamma=gamma,
                      confidence_level=level, interval="delta")  # fmt: skip
    lower, upper, lower_error, upper_error = hand.bounds(gamma)
    bounds = terms_of(test, LOG.table(), key, ("click", "revenue").index(metric)).bounds(gamma)
    assert bounds == pytest.approx((lower, upper, lower_error, upper_error), rel=1e-9)
    e = estimate(test, LOG.table(), key, metric)
    band = e.sensitivity
    assert (band["gamma_lower"], band["gamma_upper"]) == gamma
    assert (band["effect_size_lower"], band["effect_size_upper"]) == pytest.approx((lower, upper), rel=1e-9)
    limits = hand.imbens_manski(gamma, level)
    assert band["ci_lower"] == pytest.approx(min(limits[0], e.effect_size_ci_lower), rel=1e-9)
    assert band["ci_upper"] == pytest.approx(max(limits[1], e.effect_size_ci_upper), rel=1e-9)
    # with one number both ends have it
    assert build_test([key], gamma=1.7).settings.analysis.gamma == (1.7, 1.7)


@pytest.mark.parametrize("key", POINTS)
@pytest.mark.parametrize("units", [12, 250])
def test_gamma_1_is_the_plain_interval(key: str, units: int) -> None:
    log = apart(rows=900, units=units, seed=31)
    e = estimate(build_test([key], gamma=1.0, interval="delta"), log.table(), key)
    band, width = e.sensitivity, e.effect_size_ci_upper - e.effect_size_ci_lower
    assert band["effect_size_lower"] == pytest.approx(e.effect_size, abs=1e-12 * width)
    assert band["effect_size_upper"] == pytest.approx(e.effect_size, abs=1e-12 * width)
    assert band["ci_lower"] == pytest.approx(e.effect_size_ci_lower, abs=1e-12 * width)
    assert band["ci_upper"] == pytest.approx(e.effect_size_ci_upper, abs=1e-12 * width)
    refuted = band["slice_gamma_ci_lower"] is not None and not (
        band["slice_gamma_ci_lower"] <= 1.0 <= band["slice_gamma_ci_upper"]
    )
    assert e.robustness in ("fragile" if refuted else "robust", None)


def test_the_lower_end_as_gamma_grows_is_cis() -> None:
    """There the unsupported part is worth nothing."""
    test = build_test(["point-ncis", "cis"], interval="delta")
    e = estimate(test, LOG.table(), "cis")
    bounds = terms_of(test, LOG.table(), "point-ncis").bounds((np.inf, 1.0))
    assert bounds.lower == pytest.approx(e.effect_size, rel=1e-10)
    assert bounds.lower_error == pytest.approx(e.std_error, rel=1e-9)


@pytest.mark.parametrize("key", POINTS)
def test_the_weights_are_those_of_a_policy(key: str) -> None:
    """E_p[w̃ | x] = 1 on every display, each of whose rankings is a row of the log."""
    population = Population(6, 12)
    test = population.test(key)
    ones = np.ones_like(population.log_p)
    for displays in ([0], [1], [2], [3], [4], [5], None):
        e = estimate(test, population.table(ones, displays), key, "gain")
        assert e.treatment == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("units", [9, 29, 30, 10_000])
@pytest.mark.parametrize("width", [0.0, 1e-9, 0.3, 5.0, 1e6])
def test_imbens_manski(units: int, width: float) -> None:
    bounds = Bounds(1.0, 1.0 + width, 0.5, 0.2)
    law = norm if units >= 30 else student(units - 1)
    c = brentq(lambda c: law.cdf(c + width / 0.5) - law.cdf(-c) - 0.9, 0.0, 50.0, xtol=1e-14)
    limits = imbens_manski(bounds, units, 0.9)
    assert limits.lower == pytest.approx(1.0 - 0.5 * c, rel=1e-10)
    assert limits.upper == pytest.approx(1.0 + width + 0.2 * c, rel=1e-10)


def test_imbens_manski_holds_every_point_of_the_band() -> None:
    """4 000 normal estimates of L = 0 and U = ½ with σ = 1: the worst point is held in 90 %, no less."""
    rng = np.random.default_rng(0)
    shifts = rng.normal(size=4000)  # L and U from one log move together
    covered = np.zeros(3)
    for shift in shifts:
        limits = imbens_manski(Bounds(shift, 0.5 + shift, 1.0, 1.0), 10_000, 0.9)
        covered += [limits.lower <= point <= limits.upper for point in (0.0, 0.25, 0.5)]
    error = np.sqrt(0.09 / len(shifts))
    assert covered.min() / len(shifts) == pytest.approx(0.9, abs=3 * error)
    assert covered[1] / len(shifts) >= 0.9


# -- populations: what Γ is, it finds ---------------------------------------------------------------------------------


class Population:
    """A log that holds every ranking of some displays once; its rewards have the probability in them, so that means
    over rows are expectations under the control."""

    def __init__(self, displays: int, seed: int) -> None:
        self.log = SmallLog(rows=displays, units=displays, m=5, k=2, seed=seed)
        self.log_p, self.log_t, self.rankings = self.log.log_p, self.log.log_t, self.log.rankings

    def table(self, value: np.ndarray, displays: Any = None) -> pa.Table:
        chosen = np.arange(len(self.log_p)) if displays is None else np.asarray(displays)
        count = len(self.rankings)
        rows = np.repeat(chosen, count)
        lists = pa.list_(pa.float64())
        return pa.table({
            "gain": (value * np.exp(self.log_p) * count)[chosen].ravel(),
            "user": np.arange(len(rows)),
            "id": np.arange(len(rows)),
            "ranking": pa.array(np.tile(self.rankings, (len(chosen), 1)).tolist(), pa.list_(pa.int32())),
            "control_scores": pa.array(self.log.control[rows].tolist(), lists),
            "treatment_scores": pa.array(self.log.treatment[rows].tolist(), lists),
        })  # fmt: skip

    def test(self, key: str, **analysis: Any) -> ft.OfflineTest:
        columns = ft.LogColumns(rewards=["gain"], unit="user", ranking="ranking", id="id")
        return ft.OfflineTest(
            log=columns, **SCORES, estimators=[key], cap=CAP, weight_bound=BOUND, interval="delta", **analysis
        )

    def worth(self, caps: np.ndarray, gamma: float) -> np.ndarray:
        """r(a, x): 1 where w ≤ c, and above it so much that what min(π_t, c·π_p) leaves out is worth Γ times the rest.

        Above c all rankings earn ρ, and the rest 1 − B + ρB with B its mass above c: ρ = Γ·(1 − B + ρB), if ΓB < 1.
        """
        t, capped = np.exp(self.log_t), np.minimum(np.exp(self.log_t), caps[:, None] * np.exp(self.log_p))
        above = t > capped
        share = np.where(above, capped, 0.0).sum(axis=1) / capped.sum(axis=1)
        rho = gamma * (1.0 - share) / (1.0 - gamma * share)
        assert (rho > 0).all()
        return np.where(above, rho[:, None], 1.0)


@pytest.mark.parametrize("key", POINTS)
@pytest.mark.parametrize("gamma", [1.0, 1.1, 0.7])
def test_where_the_unsupported_part_is_worth_gamma_the_band_ends_at_the_truth(key: str, gamma: float) -> None:
    population = Population(8, 13)
    value = population.worth(own_caps(population.log, key), gamma)
    truth = ((np.exp(population.log_t) - np.exp(population.log_p)) * value).sum(axis=1).mean()
    test = population.test(key, gamma=max(gamma, 1.0 / gamma))
    band = test.run(population.table(value)).metrics["gain"].estimates[key].sensitivity
    end = band["effect_size_upper"] if gamma >= 1.0 else band["effect_size_lower"]
    assert end == pytest.approx(truth, rel=1e-9)
    if gamma != 1.0:  # and the estimate alone is not the truth
        plain = test.run(population.table(value)).metrics["gain"].estimates[key].effect_size
        assert abs(plain - truth) > 0.01 * abs(truth)


@pytest.mark.parametrize("key", POINTS)
@pytest.mark.parametrize("gamma", [1.0, 1.08, 0.6])
def test_the_slice_test_finds_gamma(key: str, gamma: float) -> None:
    """Between c/3 and c recommendations are worth Γ times those that c/3 supports: then so says Γ̂."""
    population = Population(8, 14)
    value = population.worth(own_caps(population.log, key) / 3.0, gamma)
    band = population.test(key).run(population.table(value)).metrics["gain"].estimates[key].sensitivity
    assert band["slice_gamma"] == pytest.approx(gamma, rel=1e-9)
    assert band["slice_gamma_ci_lower"] < gamma < band["slice_gamma_ci_upper"]


@pytest.mark.parametrize(("key", "capping"), [(POINTS[0], "max"), (POINTS[0], "zero"), (POINTS[1], "max")])
def test_the_slice_test_is_a_ratio_by_unit(key: str, capping: str) -> None:
    hand = ByHand(LOG, key, LOG.revenue, capping)
    ratio = hand.sliced.sum() / hand.expected.sum()
    half = norm.ppf(0.95) * hand.error((hand.sliced - ratio * hand.expected) / hand.expected.mean())
    test = build_test([key], metrics=("revenue",), capping=capping)
    band = estimate(test, LOG.table(), key, "revenue").sensitivity
    slice_test = band["slice_gamma"], band["slice_gamma_ci_lower"], band["slice_gamma_ci_upper"]
    assert slice_test == pytest.approx((ratio, max(0.0, ratio - half), ratio + half), rel=1e-9)


# -- breakdown and robustness -----------------------------------------------------------------------------------------


def with_uplift(sign: int, units: int = 300, seed: int = 33) -> tuple[SmallLog, np.ndarray]:
    """Rewards that follow the weight, so that the treatment is better, or worse, beyond noise but not beyond all Γ."""
    strength = 0.25 if sign > 0 else 0.5
    log = apart(rows=1500, units=units, seed=seed)
    better = log.log_w > 0
    rng = np.random.default_rng(seed)
    log.click = (rng.random(log.rows) < 0.5 + sign * strength * (better - 0.5)).astype(float)
    return log, log.click


@pytest.mark.parametrize("key", POINTS)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("units", [15, 300])
def test_breakdown(key: str, sign: int, units: int) -> None:
    log, r = with_uplift(sign, units)
    hand = ByHand(log, key, r)
    expected = hand.breakdown(sign, 0.9)
    table, options = log.table(), {"interval": "delta"}
    e = estimate(build_test([key], **options), table, key)
    assert e.verdict == {1: "positive", -1: "negative"}[sign]
    assert e.sensitivity["breakdown_gamma"] == pytest.approx(expected, rel=1e-8)
    assert expected > 1.0
    # a band well inside it agrees with the verdict, one outside does not
    inside = estimate(build_test([key], gamma=1.0 + 0.9 * (expected - 1.0), **options), table, key)
    outside = estimate(build_test([key], gamma=1.0 + 1.5 * (expected - 1.0), **options), table, key)
    assert (inside.robustness, outside.robustness) == ("robust", "fragile")
    assert inside.sensitivity["breakdown_gamma"] == e.sensitivity["breakdown_gamma"]
    # the verdict stays, unless it is to be decided on the band
    assert outside.verdict == e.verdict
    cautious = estimate(build_test([key], gamma=1.0 + 1.5 * (expected - 1.0), decide_on="band", **options), table, key)
    assert cautious.verdict == "neutral"
    assert cautious.robustness == "fragile"
    assert f"decided on the sensitivity band: the interval alone says {e.verdict}" in cautious.reasons


def terms(d: list[float], t: list[float], n: list[float] | None = None) -> Terms:
    zero = np.zeros(len(d))
    return Terms(np.ones(len(d)) if n is None else np.array(n), np.array(d), np.array(t), zero, zero, len(d))


def test_no_gamma_undoes_some_verdicts() -> None:
    rng = np.random.default_rng(1)
    d, t = 1.0 + 0.1 * rng.normal(size=100), 0.2 * rng.random(100)
    assert terms(d.tolist(), t.tolist()).breakdown(1, 0.9) is None  # worth nothing, it still holds
    assert terms((-d).tolist(), t.tolist()).breakdown(-1, 0.9) is not None  # worth enough, a loss is undone
    assert terms((-d).tolist(), [0.0] * 100).breakdown(-1, 0.9) is None  # unless there is nothing unsupported
    # the bootstrap may call what the delta method does not
    assert terms([-0.3, 0.4] * 50, t.tolist()).breakdown(1, 0.9) == 1.0
    assert terms([1.0], [0.5]).breakdown(1, 0.9) is None  # one unit has no errors


@pytest.mark.parametrize("scale", [1e-280, 1e-30, 1e140])
def test_breakdown_does_not_see_the_unit_of_rewards(scale: float) -> None:
    rng = np.random.default_rng(2)
    d, t = 1.0 + rng.normal(size=200), 3.0 * rng.random(200)
    expected = terms(d.tolist(), t.tolist()).breakdown(1, 0.9)
    assert terms((scale * d).tolist(), (scale * t).tolist()).breakdown(1, 0.9) == pytest.approx(expected, rel=1e-9)


def test_a_slice_without_a_reward_says_nothing() -> None:
    some = np.array([0.0, 0.2, 0.1])
    bare = Terms(np.ones(3), some, some, np.zeros(3), some, 3)
    assert np.isnan(bare.slice_test(0.9).gamma)
    assert np.isfinite(replace(bare, sliced=some).slice_test(0.9).gamma)


def test_robustness_says_whether_the_band_agrees() -> None:
    def band(lower: float, upper: float) -> Sensitivity:
        return Sensitivity(1.15, 1.3, 0.0, 0.0, 0.0, 0.0, None, (lower + upper) / 2.0, lower, upper)

    fits, unknown = band(0.9, 1.2), band(np.nan, np.nan)
    assert robustness("positive", "positive", fits) == "robust"
    assert robustness("positive", "neutral", fits) == "fragile"
    assert robustness("neutral", "neutral", unknown) == "robust"
    assert robustness("insufficient", "insufficient", fits) is None
    # the slice below the cap earns more, or less, than the band assumes of what lies above it
    assert robustness("positive", "positive", band(1.4, 1.9)) == "fragile"
    assert robustness("positive", "positive", band(0.5, 0.8)) == "fragile"


# -- few rewards: limits by betting -----------------------------------------------------------------------------------


def small(rows: int = 300, seed: int = 35) -> SmallLog:
    log = SmallLog(rows=rows, units=90, seed=seed)
    keep = np.cumsum(log.click) <= 20
    log.click = log.click * keep
    return log


def test_with_few_rewards_the_band_is_built_on_betting_limits() -> None:
    log, gamma, r_max = small(), (1.2, 1.5), 1.0
    test = build_test([POINTS[1]], gamma=gamma, r_max=r_max)
    e = estimate(test, log.table(), POINTS[1])
    assert e.predicted_effective_positives < 30
    # the same terms, in the order of the kept rows
    aggregates, _, _ = test.aggregate(log.table())
    columns = aggregates.rewarded.columns()
    hand = ByHand(log, POINTS[1], log.click)
    place = {round(float(w), 12): i for i, w in enumerate(log.log_w)}
    rows = np.array([place[round(float(w), 12)] for w in columns["log_w"]])
    low = betting_limits(aggregates, hand.low(gamma[0])[rows], (-r_max, (BOUND - 1.0) * r_max), 0.9)
    high = betting_limits(aggregates, hand.high(gamma[1])[rows], (-r_max, (gamma[1] * BOUND - 1.0) * r_max), 0.9)
    band = e.sensitivity
    assert band["ci_lower"] == pytest.approx(min(low.lower, e.betting["ci_lower"]), rel=1e-9)
    assert band["ci_upper"] == pytest.approx(max(high.upper, e.betting["ci_upper"]), rel=1e-9)
    # Γ = 1 is the betting interval itself
    one = estimate(test.replace(gamma=1.0), log.table(), POINTS[1])
    assert one.sensitivity["ci_lower"] == pytest.approx(one.betting["ci_lower"], rel=1e-9)
    assert one.sensitivity["ci_upper"] == pytest.approx(one.betting["ci_upper"], rel=1e-9)
    # point-ncis has no bound on its weights: the usual limits
    assert estimate(build_test([POINTS[0]], r_max=1.0), log.table(), POINTS[0]).betting is None


@pytest.mark.parametrize("sign", [1, -1])
def test_breakdown_of_a_betting_verdict(sign: int) -> None:
    """Where every limit is asked to be betting's; at Γ* the limit is 0."""
    log, _ = with_uplift(sign, units=800)
    test = build_test([POINTS[1]], interval="betting", r_max=1.0)
    e = estimate(test, log.table(), POINTS[1])
    assert e.verdict == {1: "positive", -1: "negative"}[sign]
    star = e.sensitivity["breakdown_gamma"]
    ends = [
        estimate(test.replace(gamma=1.0 + share * (star - 1.0)), log.table(), POINTS[1]) for share in (0.999, 1.001)
    ]
    verdicts = [decide(Interval(e.sensitivity["ci_lower"], e.sensitivity["ci_upper"]), True, 1.0) for e in ends]
    assert verdicts == [ends[0].verdict, "neutral"]
    assert ends[1].robustness == "fragile"


# -- edges ------------------------------------------------------------------------------------------------------------


def check(result: ft.Result) -> None:
    validate(json.loads(result.to_json()), SCHEMA)


@pytest.mark.parametrize("rows", [0, 1, 2, 30])
def test_small_logs(rows: int) -> None:
    result = build_test().run(LOG.table().slice(0, rows))
    check(result)
    for key, e in result.metrics["click"].estimates.items():
        assert (e.sensitivity is not None) == (key in POINTS)


def test_no_rewards_and_one_unit() -> None:
    log = SmallLog(rows=50, units=1, seed=36)
    result = build_test().run(log.table())
    check(result)
    band = result.metrics["click"].estimates[POINTS[1]].sensitivity
    assert band["ci_lower"] is None
    assert band["effect_size_lower"] <= band["effect_size_upper"]
    log.click = np.zeros(50)
    result = build_test().run(log.table())
    check(result)
    band = result.metrics["click"].estimates[POINTS[1]].sensitivity
    assert (band["effect_size_lower"], band["effect_size_upper"]) == (0.0, 0.0)
    assert band["slice_gamma"] is None
    assert band["breakdown_gamma"] is None


def test_the_same_policies_leave_nothing_unsupported() -> None:
    log = SmallLog(rows=200, units=60, spread=0.0, seed=37)
    band = estimate(build_test([POINTS[1]], gamma=5.0), log.table(), POINTS[1]).sensitivity
    assert [band[name] for name in ("effect_size_lower", "effect_size_upper", "ci_lower", "ci_upper")] == [0.0] * 4
    assert band["slice_gamma"] is None  # no weight between 1 and 3


@pytest.mark.parametrize("spread", [700.0, 200.0])
def test_weights_of_any_size(spread: float) -> None:
    """Scores so far apart that weights reach 1e±300."""
    log = SmallLog(rows=300, units=100, seed=38)
    log.treatment = log.treatment * spread
    table = log.table()
    for capping in ("max", "zero"):
        result = build_test(capping=capping, cap=100.0, weight_bound=20.0).run(table)
        check(result)
        for key, e in result.metrics["click"].estimates.items():
            if key in POINTS:
                assert np.isfinite([e.sensitivity["ci_lower"], e.sensitivity["ci_upper"]]).all()
                assert e.sensitivity["ci_lower"] <= e.effect_size_ci_lower


def test_infeasible_rows_count_whole_as_unsupported() -> None:
    """A deterministic treatment that the control shows with less than 1/b: w̃ = 1, w̄ = 0, t = r."""
    log = SmallLog(rows=200, units=60, seed=39)
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id"),
        control=SCORES["control"], treatment=ft.EpsilonGreedy(scores="treatment_scores", epsilon=0.0),
        estimators=["point-ncis-adaptive"], weight_bound=1.0 + 1e-9, gamma=2.0,
    )  # fmt: skip
    e = estimate(test, log.table(), POINTS[1])
    assert e.unsupported_rows == log.click.sum()
    assert e.effect_size == 0.0
    assert e.sensitivity["effect_size_lower"] == pytest.approx(-0.5 * log.click.mean(), rel=1e-12)
    assert e.sensitivity["effect_size_upper"] == pytest.approx(log.click.mean(), rel=1e-12)
    assert e.sensitivity["slice_gamma"] is None


# -- another gamma -----------------------------------------------------------------------------------------------------


def same(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert left.keys() == right.keys()
    for name, value in left.items():
        assert value == (None if right[name] is None else pytest.approx(right[name], rel=1e-9, abs=1e-13)), name


def test_saved_sums_serve_another_gamma(tmp_path: Path) -> None:
    log, _ = with_uplift(1)
    table, test = log.table(), build_test(list(POINTS), gamma=1.4)
    test.save_aggregates(table, tmp_path / "sums.parquet")
    other = test.replace(gamma=[1.1, 2.0], decide_on="band").run(tmp_path / "sums.parquet").metrics["click"].estimates
    direct = test.replace(gamma=[1.1, 2.0]).run(table).metrics["click"].estimates
    for key in POINTS:
        same(other[key].sensitivity, direct[key].sensitivity)


# -- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.9, [1.1, 0.5], [1.1, 1.2, 1.3], [], "wide", True, float("inf")])
def test_a_gamma_below_1_is_refused(gamma: Any) -> None:
    with pytest.raises(BadInput, match="gamma"):
        build_test(gamma=gamma)


def test_deciding_on_a_band_needs_one() -> None:
    with pytest.raises(BadInput, match="decide_on"):
        build_test(decide_on="both")
    test = build_test(["cis", "ncis"], decide_on="band")
    with pytest.raises(BadInput, match='decide_on = "band": ncis, whose verdict'):
        test.run(LOG.table())
    with pytest.raises(BadInput, match="cis, whose verdict"):
        build_test(headline="cis", decide_on="band").run(LOG.table())
    assert build_test(decide_on="band").run(LOG.table()).metrics["click"].headline == POINTS[1]


def test_logged_policies_have_no_band() -> None:
    table = pa.table({"click": [1, 0] * 50, "control": [0.5] * 100, "treatment": [0.6, 0.4] * 50})
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="control"), treatment=ft.Logged(prob="treatment")
    )
    result = test.run(table)
    check(result)
    assert all(e.sensitivity is None and e.robustness is None for e in result.metrics["click"].estimates.values())
