"""What every registered estimator must satisfy."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.estimators import ESTIMATORS
from foretest.inference.buckets import bucket_sums
from foretest.inference.uplift import absolute_uplift_of, mean_reward
from tests.support import MODEL_KEYS, SCORES, SLOT_KEYS, SmallLog, apart, build_test

LOG = SmallLog()
ALL = list(ESTIMATORS)
RATIOS = ["nis", "ncis", "piece-ncis", "niips"]
LINEAR = [key for key in ALL if key not in RATIOS]
SLOTS = list(SLOT_KEYS)
BOUNDED = ["cis", "point-ncis-adaptive", "slot-ncis-adaptive", "cascade-ncis-adaptive", "exposure-ncis-adaptive"]
CAPPED = ["cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive"]


def numbers(estimate: Any) -> np.ndarray:
    """Value, uplifts, standard error and limits of an estimate."""
    names = [
        "treatment", "effect_size", "std_error", "effect_size_ci_lower", "effect_size_ci_upper",
        "rel_effect_size", "rel_effect_size_ci_lower", "rel_effect_size_ci_upper",
    ]  # fmt: skip
    return np.array([getattr(estimate, name) for name in names], dtype=float)


@pytest.mark.parametrize("interval", ["bootstrap", "delta"])
@pytest.mark.parametrize("key", ALL)
def test_equal_policies_give_no_uplift(key: str, interval: str) -> None:
    same = LOG.table().set_column(8, "treatment_scores", LOG.table()["control_scores"])
    result = build_test([key], interval=interval, metrics=("click", "revenue")).run(same)
    for name, r in (("click", LOG.click), ("revenue", LOG.revenue)):
        e = result.metrics[name].estimates[key]
        limits = [e.effect_size, e.effect_size_ci_lower, e.effect_size_ci_upper, e.rel_effect_size]
        assert np.abs(limits).max() <= 1e-12 * r.mean()
        assert e.verdict == "neutral"


@pytest.mark.parametrize("key", [key for key in RATIOS if key != "niips"])
def test_a_constant_reward_is_returned(key: str) -> None:
    table = LOG.table().set_column(0, "click", pa.array(np.full(LOG.rows, 7.25)))
    assert build_test([key]).run(table).metrics["click"].estimates[key].treatment == pytest.approx(7.25, rel=1e-12)


def test_what_each_slot_always_earns_is_returned() -> None:
    earns = pa.array([[2.0, 5.25]] * LOG.rows)
    table = LOG.table().set_column(0, "click", pa.array(np.full(LOG.rows, 7.25))).set_column(9, "slot_click", earns)
    estimate = build_test(["niips"]).run(table).metrics["click"].estimates["niips"]
    assert estimate.treatment == pytest.approx(7.25, rel=1e-12)


@pytest.mark.parametrize("interval", ["bootstrap", "delta", "bernstein"])
@pytest.mark.parametrize("key", ALL)
def test_rewards_scale(key: str, interval: str) -> None:
    if interval == "bernstein" and key not in BOUNDED:
        with pytest.raises(ft.BadInput, match="bernstein"):
            build_test([key], interval=interval, r_max=1.0).run(LOG.table())
        return
    k = 37.5
    table = LOG.table()
    # V(x) is the expected reward, so it scales as the reward does
    larger = table.set_column(0, "click", pa.array(k * LOG.click)).set_column(5, "v", pa.array(k * LOG.value))
    larger = larger.set_column(9, "slot_click", LOG.slots("click", k * LOG.click))
    bounds = {"r_max": 1.0} if interval == "bernstein" else {}
    one = build_test([key], interval=interval, **bounds).run(table).metrics["click"].estimates[key]
    more = build_test([key], interval=interval, **{n: k * b for n, b in bounds.items()}).run(larger)
    scale = np.array([k, k, k, k, k, 1, 1, 1])
    np.testing.assert_allclose(numbers(more.metrics["click"].estimates[key]), scale * numbers(one), rtol=1e-10)


@pytest.mark.parametrize("key", ALL)
def test_order_batches_and_threads_change_no_digit(key: str, tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    def answer(table: pa.Table, **how: Any) -> np.ndarray:
        path = tmp_path / "log.parquet"
        pq.write_table(table, path, row_group_size=how.pop("group", 1000))
        # draws, so that the keys of displays matter too
        test = build_test([key], normaliser="two-sided", draws=16)
        return numbers(test.run(path, **how).metrics["click"].estimates[key])

    whole = answer(LOG.table())
    tolerance = 1e-9 * LOG.click.mean()
    shuffled = np.random.default_rng(1).permutation(LOG.rows)
    for other in (
        answer(LOG.table(), batch_rows=7),
        answer(LOG.table(), group=31, threads=2),
        answer(LOG.table(), group=31, threads=1, batch_rows=17),
        answer(LOG.table(order=shuffled), group=53, threads=2),
    ):
        np.testing.assert_allclose(other, whole, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("key", "limit"), [("cis", "is"), ("ncis", "nis"), ("point-ncis", "is")])
def test_a_cap_without_effect(key: str, limit: str) -> None:
    result = build_test([key, limit], cap=1e12).run(LOG.table()).metrics["click"].estimates
    np.testing.assert_allclose(numbers(result[key]), numbers(result[limit]), rtol=1e-12)


def test_one_stratum_is_ncis() -> None:
    table = LOG.table().set_column(4, "stratum", pa.array(["all"] * LOG.rows))
    result = build_test(["piece-ncis", "ncis"]).run(table).metrics["click"].estimates
    np.testing.assert_allclose(numbers(result["piece-ncis"]), numbers(result["ncis"]), rtol=1e-12)


@pytest.mark.parametrize("key", ["is", "nis", "cis", "ncis", "piece-ncis", "dr"])
def test_weights_of_any_size(key: str) -> None:
    """log w from ln 1e-300 to ln 1e300, against rational arithmetic on the same doubles."""
    g = np.random.default_rng(5)
    n = 60
    log_w = g.uniform(-690.0, 690.0, n)
    r, v, stratum = g.integers(0, 3, n).astype(float), g.uniform(0.1, 2.0, n), g.integers(0, 3, n)
    # both logs at most 0, their difference log w
    log_p = np.minimum(-np.maximum(log_w, 0.0), 0.0)
    table = pa.table({"r": r, "p": log_p, "t": log_p + log_w, "v": v, "stratum": stratum})
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["r"]), control=ft.Logged(log_prob="p"), treatment=ft.Logged(log_prob="t"),
        estimators=[key], strata="stratum", value="v", cap=100.0,
    )  # fmt: skip
    exact_log = (log_p + log_w) - log_p  # what the doubles in the table say
    w = [Fraction(float(np.exp(x))) for x in exact_log]
    h = [min(x, Fraction(100)) for x in w] if key in ("cis", "ncis", "piece-ncis") else w
    rr, vv = [Fraction(x) for x in r], [Fraction(x) for x in v]
    if key in ("is", "cis"):
        value = sum(a * b for a, b in zip(h, rr, strict=True)) / n
    elif key == "dr":
        value = sum((b - c) * a + c for a, b, c in zip(h, rr, vv, strict=True)) / n
    elif key == "piece-ncis":
        value = Fraction(0)
        for s in range(3):
            rows = [i for i in range(n) if stratum[i] == s]
            value += Fraction(len(rows), n) * sum(h[i] * rr[i] for i in rows) / sum(h[i] for i in rows)
    else:
        value = sum(a * b for a, b in zip(h, rr, strict=True)) / sum(h)
    result = test.run(table)
    estimate = result.metrics["r"].estimates[key]
    assert estimate.treatment == pytest.approx(float(value), rel=1e-10)
    assert np.isfinite(numbers(estimate)).all()
    squares = sum((a * b) ** 2 for a, b in zip(h, rr, strict=True))
    positives = sum(a * b for a, b in zip(h, rr, strict=True)) ** 2 / squares
    assert estimate.effective_positives == pytest.approx(float(positives), rel=1e-10)
    capped = [min(x, Fraction(100)) for x in w]
    assert result.health["effective_sample_size"] == pytest.approx(
        float(sum(capped) ** 2 / sum(x * x for x in capped)), rel=1e-10
    )
    assert result.health["max_weight"] == pytest.approx(float(max(w)), rel=1e-10)


@pytest.mark.parametrize("key", ["point-ncis", "point-ncis-adaptive", *SLOTS])
@pytest.mark.parametrize("normaliser", ["auto", "two-sided"])
def test_pointwise_weights_of_any_size(key: str, normaliser: str) -> None:
    """Two items, scores up to 690 apart: q and the adaptive cap in closed form."""
    g = np.random.default_rng(6)
    n, bound, cap = 40, 5.0, 3.0
    t, p = g.uniform(-345, 345, n), g.uniform(-345, 345, n)  # score of item 0 over item 1, halved
    shown = (p < 0).astype(int)  # the likely item, else the log could not be
    table = pa.table({
        "r": np.ones(n), "ranking": pa.array([[int(a)] for a in shown]), "slots": [[1.0]] * n,
        "control_scores": pa.array([[x, -x] for x in p]), "treatment_scores": pa.array([[x, -x] for x in t]),
    })  # fmt: skip
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["r"], ranking="ranking", slot_rewards={"r": "slots"}), **SCORES, estimators=[key],
        cap=cap, weight_bound=bound, normaliser=normaliser,
    )  # fmt: skip

    def log_prob(x: float, item: int) -> float:
        return float(-np.logaddexp(0.0, -2.0 * x if item == 0 else 2.0 * x))

    h = []
    for i in range(n):
        lt, lp = [log_prob(t[i], a) for a in (0, 1)], [log_prob(p[i], a) for a in (0, 1)]
        w = np.exp(lt[shown[i]] - lp[shown[i]])
        if key == "point-ncis":
            q = sum(min(np.exp(lt[a]), cap * np.exp(lp[a])) for a in (0, 1))
            h.append(min(w, cap) / q)
        elif key in ("iips", "niips", "rips"):
            h.append(w)
        else:
            low, high = -700.0, np.log(bound)
            for _ in range(300):
                c = (low + high) / 2
                q = sum(min(np.exp(lt[a]), np.exp(c + lp[a])) for a in (0, 1))
                low, high = (c, high) if np.exp(c) <= bound * q else (low, c)
            q = sum(min(np.exp(lt[a]), np.exp(low + lp[a])) for a in (0, 1))
            h.append(min(w, np.exp(low)) / q)
    estimate = test.run(table).metrics["r"].estimates[key]
    assert np.isfinite(numbers(estimate)).all()
    if normaliser == "auto" or (key in SLOTS and key != "cascade-ncis-adaptive"):  # those have no draws
        expected = 1.0 if key == "niips" else np.mean(h)  # a ratio of rewards that are all 1
        assert estimate.treatment == pytest.approx(expected, rel=1e-9)
    else:
        assert estimate.treatment > 0.0
        if key.endswith("adaptive"):
            assert estimate.treatment <= bound


@pytest.mark.parametrize("key", ALL)
def test_copies_under_one_unit_add_no_evidence(key: str) -> None:
    once = LOG.table()
    tenfold = pa.concat_tables([once] * 10)
    one = build_test([key], interval="delta").run(once).metrics["click"].estimates[key]
    ten = build_test([key], interval="delta").run(tenfold).metrics["click"].estimates[key]
    np.testing.assert_allclose(numbers(ten), numbers(one), rtol=1e-9)


@cache
def population() -> tuple[pa.Table, dict[str, float]]:
    """A log that holds every (context, action) in exact proportions, and the limits of all estimators by hand."""
    shares = [3, 1]
    p = np.array([[0.5, 0.3, 0.2], [0.25, 0.05, 0.7]])
    t = np.array([[0.1, 0.2, 0.7], [0.05, 0.9, 0.05]])
    r = np.array([[1.0, 0.0, 2.0], [5.0, 3.0, 0.5]])
    cap, bound = 2.5, 2.2
    rows: list[tuple[int, int]] = []
    for x in (0, 1):
        for a in range(3):
            rows += [(x, a)] * round(1000 * shares[x] * p[x, a])
    x, a = np.array(rows).T
    v = np.array([1.0, 4.0])
    predicted = np.array([[0.8, 0.3, 1.5], [4.0, 2.0, 2.5]])
    table = pa.table({
        "r": r[x, a], "ranking": pa.array([[int(i)] for i in a]), "stratum": x, "v": v[x],
        "predicted": pa.array(predicted[x].tolist()),
        "slots": pa.array([[float(value)] for value in r[x, a]]),
        "control_scores": pa.array(np.log(p[x]).tolist()), "treatment_scores": pa.array(np.log(t[x]).tolist()),
    })  # fmt: skip
    share = np.array(shares) / sum(shares)
    kept = np.minimum(t, cap * p)
    q = kept.sum(axis=1)
    surrogate = np.empty((2, 3))
    for i in (0, 1):
        grid = np.linspace(1e-6, bound, 2_000_001)
        total = sum(np.minimum(t[i, j], grid * p[i, j]) for j in range(3))
        c = grid[np.flatnonzero(grid <= bound * total)[-1]]
        mass = np.minimum(t[i], c * p[i])
        surrogate[i] = mass / mass.sum()
    limits = {
        "is": float(share @ (t * r).sum(axis=1)),
        "nis": float(share @ (t * r).sum(axis=1)),
        "dr": float(share @ (t * r).sum(axis=1)),
        "cis": float(share @ (kept * r).sum(axis=1)),
        "ncis": float(share @ (kept * r).sum(axis=1) / (share @ q)),
        "piece-ncis": float(share @ ((kept * r).sum(axis=1) / q)),
        "point-ncis": float(share @ ((kept * r).sum(axis=1) / q)),
        "point-ncis-adaptive": float(share @ (surrogate * r).sum(axis=1)),
        # one slot: its item is the ranking
        "iips": float(share @ (t * r).sum(axis=1)),
        "niips": float(share @ (t * r).sum(axis=1)),
        "rips": float(share @ (t * r).sum(axis=1)),
        "slot-ncis-adaptive": float(share @ (surrogate * r).sum(axis=1)),
        "cascade-ncis-adaptive": float(share @ (surrogate * r).sum(axis=1)),
        "pbm": float(share @ (t * r).sum(axis=1)),
        "exposure-ncis-adaptive": float(share @ (surrogate * r).sum(axis=1)),
        # what is cut off is worth what the model says, and what it errs by on the rest
        "point-dr-adaptive": float(share @ (surrogate * (r - predicted) + t * predicted).sum(axis=1)),
        "cascade-dr": float(share @ (t * r).sum(axis=1)),
    }
    return table, limits


@pytest.mark.parametrize("key", ALL)
def test_the_population_gives_the_limit(key: str, tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    table, limits = population()
    pq.write_table(table, tmp_path / "fitted.parquet")  # one scale for all rows, not one in each fold
    known: dict[str, Any] = {"value": "v"}
    if key in MODEL_KEYS:
        known = {"predictions": "predicted", "value_log": tmp_path / "fitted.parquet"}
    slots = None if key == "point-dr-adaptive" else {"r": "slots"}  # a prediction as it is
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["r"], ranking="ranking", slot_rewards=slots), **SCORES, estimators=[key],
        strata="stratum", cap=2.5, weight_bound=2.2, **known,
    )  # fmt: skip
    value = test.run(table).metrics["r"].estimates[key].treatment
    assert value == pytest.approx(limits[key], rel=2e-6 if key.endswith("adaptive") else 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("normaliser", ["midzuno-sen", "lahiri"])
def test_an_unbiased_normaliser_keeps_the_expectation(normaliser: str) -> None:
    """PointNCIS with drawn 1/q: the mean over seeds is the exact value, within 4 standard errors."""
    exact = (LOG.weights("point-ncis", 1.5, 3.0) * LOG.click).mean()
    values = []
    for seed in range(60):
        test = build_test(["point-ncis"], cap=1.5, normaliser=normaliser, draws=2, seed=seed, interval="delta")
        values.append(test.run(LOG.table()).metrics["click"].estimates["point-ncis"].treatment)
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    assert error < 0.01 * exact
    assert abs(np.mean(values) - exact) < 4 * error


@pytest.mark.parametrize("key", ALL)
@pytest.mark.parametrize("metric", ["click", "revenue"])
def test_influence_is_the_jackknife_over_units(key: str, metric: str) -> None:
    """Units of unequal size: leaving one out moves the uplift by −influence/n to first order."""
    big = SmallLog(rows=3000, units=90, seed=3)
    test = build_test([key], metrics=(metric,), buckets=4096)
    table = big.table()
    aggregates, _, _ = test.aggregate(table)
    [estimator] = aggregates.plan.estimators
    sums, statistic = bucket_sums(aggregates, estimator, 0), absolute_uplift_of(estimator)
    influence = sums.influence(statistic)
    held = sums.arrays["rows"] > 0
    total = sums.total()
    whole = float(statistic(total)[0])
    moves = []
    for b in np.flatnonzero(held):
        without = replace(sums, arrays={name: np.delete(array, b, axis=0) for name, array in sums.arrays.items()})
        left = float(statistic(without.total())[0])
        moves.append((whole - left) * (big.rows - sums.arrays["rows"][b]))
    assert abs(influence.sum()) < 1e-9 * np.abs(influence).max()
    correlation = np.corrcoef(influence[held], moves)[0, 1]
    assert correlation > 0.999
    assert np.linalg.norm(moves) == pytest.approx(np.linalg.norm(influence[held]), rel=0.03)
    assert float(mean_reward(total)[0]) == pytest.approx(getattr(big, metric).mean())


@pytest.mark.parametrize("capping", ["max", "zero"])
@pytest.mark.parametrize("key", ALL)
def test_value_and_standard_error_are_the_printed_formulas(key: str, capping: str) -> None:
    """ψ of the paper's estimators in plain NumPy, clustered by unit, where no two units share a bucket."""
    if key.endswith("adaptive") and capping == "zero":
        with pytest.raises(ft.BadInput, match="zero capping"):
            build_test([key], capping=capping).run(LOG.table())
        return
    log = SmallLog(rows=600, units=60, seed=8)
    log.unit = apart(60)[log.unit]
    result = (
        build_test([key], capping=capping, interval="delta", buckets=1024)
        .run(log.table())
        .metrics["click"]
        .estimates[key]
    )
    theta, psi = log.estimate(key, log.click, 2.0, 3.0, capping)
    mean = log.click.mean()
    delta, rel = theta - mean, theta / mean - 1.0
    assert result.treatment == pytest.approx(theta, rel=1e-9)
    assert result.effect_size == pytest.approx(delta, rel=1e-8)
    assert result.rel_effect_size == pytest.approx(rel, rel=1e-8)

    def error(phi: np.ndarray) -> float:
        sums = np.array([phi[log.unit == u].sum() for u in np.unique(log.unit)])
        count = len(sums)
        return float(np.sqrt(count / (count - 1) * (sums**2).sum()) / log.rows)

    z = 1.6448536269514722
    absolute = error(psi - (log.click - mean))
    relative = error((psi - (1 + rel) * (log.click - mean)) / mean)
    assert result.std_error == pytest.approx(absolute, rel=1e-9)
    predicted = result.predicted_std_error or 0.0
    assert (predicted > 0.0) == (key == "point-ncis" or key.endswith("adaptive"))
    assert result.effect_size_ci_upper == pytest.approx(delta + z * max(absolute, predicted), rel=1e-8)
    assert result.rel_effect_size_ci_lower == pytest.approx(rel - z * max(relative, predicted / mean), rel=1e-8)
    h = log.weights(key, 2.0, 3.0, capping) * log.click
    assert result.effective_positives == pytest.approx(h.sum() ** 2 / (h**2).sum(), rel=1e-9)


@pytest.mark.parametrize("key", ALL)
def test_nothing_to_go_on_is_an_answer(key: str) -> None:
    log = SmallLog(rows=50, units=10)
    none = np.zeros(50)
    unrewarded = (
        log.table().set_column(0, "click", pa.array(none)).set_column(9, "slot_click", log.slots("click", none))
    )
    cases = {
        "the log is empty": log.table().slice(0, 0),
        "no row has a reward": unrewarded,
        "only 1 unit": log.table().set_column(2, "user", pa.array(np.zeros(50, int))),
    }
    for reason, table in cases.items():
        for interval in ("bootstrap", "delta"):
            result = build_test([key], interval=interval).run(table)
            estimate = result.metrics["click"].estimates[key]
            assert estimate.verdict == "insufficient"
            assert any(reason in text for text in estimate.reasons)
            result.to_json()  # refuses NaN
            assert "insufficient" in str(result)


def test_table_1_of_the_paper() -> None:
    """Two groups, shares .1/.9, values of p 10/1, of t 12/1, kept mass .7/1: the estimators' limits, exactly.

    In the first group R and W̄/W are uncorrelated under π_t: actions 1 and 2 (w < c) earn 8 and 16, action 3 (w = 250)
    earns 12.
    """
    p, t, r = [0.749, 0.249, 0.002], [0.25, 0.25, 0.5], [8.0, 16.0, 12.0]
    rows = [(0, a) for a in range(3) for _ in range(round(1000 * p[a]))] + [(1, 0)] * 9000
    log_p = {0: np.log(p).tolist(), 1: [0.0, 0.0, 0.0]}
    log_t = {0: np.log(t).tolist(), 1: [0.0, 0.0, 0.0]}
    table = pa.table({
        "r": [r[a] if g == 0 else 1.0 for g, a in rows], "group": [g for g, _ in rows],
        "ranking": [[a] for _, a in rows],
        "control_scores": [log_p[g] for g, _ in rows], "treatment_scores": [log_t[g] for g, _ in rows],
    })  # fmt: skip
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["r"], ranking="ranking"), **SCORES, strata="group", cap=100.0,
        estimators=["is", *CAPPED[:-1]],
    )  # fmt: skip
    metric = test.run(table).metrics["r"]
    values = {key: e.treatment for key, e in metric.estimates.items()}
    assert metric.control.value == pytest.approx(1.9, rel=1e-12)
    assert values["is"] == pytest.approx(2.1, rel=1e-12)
    assert values["cis"] == pytest.approx(1.74, rel=1e-12)
    assert values["ncis"] == pytest.approx(1.74 / 0.97, rel=1e-12)
    assert values["ncis"] == pytest.approx(1.79381, abs=5e-6)
    assert values["piece-ncis"] == pytest.approx(2.1, rel=1e-12)
    assert values["point-ncis"] == pytest.approx(2.1, rel=1e-12)


class LinearModel:
    """r̂(x, a) = a number for the first item shown, plus the display's v: a reward model that reads a column."""

    columns = ("v",)

    def predict(self, displays: ft.Displays, rankings: ft.Ragged) -> np.ndarray:
        first = rankings.values[rankings.starts]
        return np.asarray(0.1 * (first == 0) + 0.5 * displays["v"])


@pytest.mark.slow
def test_doubly_robust_with_a_reward_model() -> None:
    """E_t r̂ from draws: the mean over seeds is the value with the exact expectation, within 4 standard errors."""
    model = LinearModel()
    first = LOG.rankings[:, 0] == 0
    expected = 0.1 * (np.exp(LOG.log_t) * first).sum(axis=1) + 0.5 * LOG.value
    shown = 0.1 * first[LOG.shown] + 0.5 * LOG.value
    exact = ((LOG.click - shown) * np.exp(LOG.log_w) + expected).mean()
    values = []
    for seed in range(40):
        estimator = ft.DR(model=model, draws=8)
        result = build_test([estimator], seed=seed, interval="delta", value=None).run(LOG.table())
        values.append(result.metrics["click"].estimates["dr"].treatment)
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    assert 0.0 < error < 1e-3
    assert abs(np.mean(values) - exact) < 4 * error


def test_a_reward_model_needs_a_treatment_that_can_be_drawn_from() -> None:
    table = LOG.table(p=np.full(LOG.rows, 0.5), t=np.full(LOG.rows, 0.5))
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="p"), treatment=ft.Logged(prob="t"),
        estimators=[ft.DR(model=LinearModel())],
    )  # fmt: skip
    with pytest.raises(ft.BadInput, match="cannot be drawn from"):
        test.run(table)
    with pytest.raises(ft.BadInput, match="draws = 0"):
        ft.DR(draws=0)
