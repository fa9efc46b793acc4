"""Weights by exposure: vectors, identities, values against enumeration for every policy, slopes, and every road."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.weights.examination import Curves
from foretest.weights.exposure_weights import UNCAPPED, ExposurePricer, ExposurePrices
from foretest.weights.normaliser import Normaliser
from foretest.weights.slot_weights import SlotPricer, marginal_parts
from tests.support import CURVE, EXPOSURE_KEYS, SmallLog, build_test

KEYS = list(EXPOSURE_KEYS)
CONTROL, TREATMENT = np.array([1.0, 0.2, -0.5, 0.0]), np.array([0.3, 0.9, 0.1, -0.4])


def displays_of(control: np.ndarray, treatment: np.ndarray, rankings: np.ndarray) -> Displays:
    """One display per ranking, all with the same scores."""
    rows, m = len(rankings), len(control)
    lists = {name: Ragged.of(np.tile(s, (rows, 1))) for name, s in (("c", control), ("t", treatment))}
    keys = np.arange(rows, dtype=np.uint64)
    return Displays(lists, Ragged.of(rankings.astype(np.int32)), np.full(rows, m), keys)  # type: ignore[arg-type]


def prices(
    displays: Displays, curve: Any, bounds: Any, control: Any = None, treatment: Any = None, **options: Any
) -> ExposurePrices:
    normaliser = Normaliser(
        treatment or ft.PlackettLuce(scores="t"), control or ft.PlackettLuce(scores="c"), "auto", 256, 0
    )
    pricer = ExposurePricer(displays, Curves((tuple(curve),)), bounds, **options)
    for part in marginal_parts(displays, np.zeros(len(displays)), normaliser):
        pricer.add(part)
    return pricer.prices()


def test_vectors() -> None:
    """Plackett-Luce, four items in two slots, and a control that never varies."""
    rankings = np.array([[0, 1], [2, 3]])
    displays = displays_of(CONTROL, TREATMENT, rankings)
    of_log = prices(displays, (1.0, 0.5), [1.5, UNCAPPED])
    cap, q, *_ = of_log.caps[1.5, 0]
    assert cap == pytest.approx([1.307682513] * 2, abs=1e-8)
    assert q == pytest.approx([0.871788342] * 2, abs=1e-8)
    w = np.exp(of_log.log_w[0])
    e_p = np.array([0.64331677, 0.36380534, 0.18938891, 0.30348898])
    e_t = np.array([0.38309722, 0.59493971, 0.32078023, 0.20118284])
    assert w == pytest.approx(e_t / e_p, rel=1e-7)
    assert np.minimum(w, cap[0]) / q[0] == pytest.approx([0.68308236, 1.5, 1.5, 0.76039098], abs=1e-8)

    fixed = displays_of(np.array([9.0, 8.0, 1.0, 0.0]), TREATMENT, rankings[:1])
    for bound, c, mass, weights in (
        (20.0, None, 0.652024619, (0.58755023, 1.82489953)),
        (1.5, 0.766194433, 0.510796289, (0.75, 1.5)),
    ):
        one = prices(fixed, (1.0, 0.5), [bound], control=ft.TopK(scores="c"))
        cap, q, *_ = one.caps[bound, 0][:, 0]
        assert c is None or cap == pytest.approx(c, abs=1e-8)
        assert q == pytest.approx(mass, abs=1e-8)
        assert np.minimum(np.exp(one.log_w[0]), cap) / q == pytest.approx(weights, abs=1e-7)


def test_identities() -> None:
    g = np.random.default_rng(3)
    control, treatment = g.normal(size=5), g.normal(size=5)
    rankings = np.array(list(permutations(range(5), 3)))
    displays = displays_of(control, treatment, rankings)
    bounds = [2.0, UNCAPPED]

    def same(one: ExposurePrices, other: ExposurePrices, rel: float) -> None:
        assert one.log_w[0] == pytest.approx(other.log_w[0], abs=rel)
        for key in one.caps:
            assert one.caps[key] == pytest.approx(other.caps[key], rel=rel, nan_ok=True)

    plain = prices(displays, (1.0, 0.6, 0.4), bounds)
    same(plain, prices(displays, (50.0, 30.0, 20.0), bounds), 1e-12)  # the unit of θ does not matter
    equal = prices(displays, (1.0, 0.6, 0.4), bounds, treatment=ft.PlackettLuce(scores="c"))
    assert equal.log_w[0] == pytest.approx(np.zeros(3 * len(rankings)), abs=1e-12)
    # all slots looked at alike: how likely an item is among those shown
    among = {name: np.zeros(5) for name in ("c", "t")}
    for name, scores in (("c", control), ("t", treatment)):
        for ranking in rankings:
            left, p = np.exp(scores), 1.0
            for item in ranking:
                p *= left[item] / left.sum()
                left = np.where(np.arange(5) == item, 0.0, left)
            among[name][ranking] += p
    flat = prices(displays, (1.0, 1.0, 1.0), bounds)
    assert np.exp(flat.log_w[0]) == pytest.approx((among["t"] / among["c"])[rankings.ravel()], rel=1e-9)
    # only the first slot looked at: slot 1 of the weights by slot
    first = prices(displays, (1.0, 1e-300, 1e-300), [2.0])
    pricer = SlotPricer(displays, [2.0])
    normaliser = Normaliser(ft.PlackettLuce(scores="t"), ft.PlackettLuce(scores="c"), "auto", 256, 0)
    for part in marginal_parts(displays, np.zeros(len(displays)), normaliser):
        pricer.add(part)
    by_slot = pricer.prices()
    assert first.log_w[0][::3] == pytest.approx(by_slot.log_w[::3], abs=1e-9)
    assert first.caps[2.0, 0] == pytest.approx(by_slot.caps[2.0][:, ::3], rel=1e-9)


def test_one_slot_is_the_pointwise_estimator() -> None:
    log = SmallLog(k=1)
    one = build_test(["exposure-ncis-adaptive", "point-ncis-adaptive"], interval="delta").run(log.table())
    exposure, point = (one.metrics["click"].estimates[key] for key in ("exposure-ncis-adaptive", "point-ncis-adaptive"))
    for name in ("treatment", "std_error", "effect_size_ci_lower"):
        assert getattr(exposure, name) == pytest.approx(getattr(point, name), rel=1e-9)


@pytest.mark.parametrize("curve", [CURVE, (1.0, 1.0, 1.0, 1.0), (0.2, 0.9, 0.5, 0.1)])
def test_values_enumerated(curve: Any) -> None:
    log = SmallLog(rows=150, units=50, m=6, k=3, seed=4)
    options = {"metrics": ("click", "revenue"), "interval": "delta", "buckets": 1 << 16, "examination": curve[:3]}
    result = build_test(KEYS, **options).run(log.table())
    for metric, r in (("click", log.click), ("revenue", log.revenue)):
        for key in KEYS:
            h = (log.exposure_weights(key, 3.0, curve) * log.shares[metric]).sum(axis=1)
            estimate = result.metrics[metric].estimates[key]
            assert estimate.treatment == pytest.approx((h * r).mean(), rel=1e-8)
            d = (h - 1.0) * r
            terms = np.array([(d - d.mean())[log.unit == u].sum() for u in np.unique(log.unit)])
            error = np.sqrt(len(terms) / (len(terms) - 1) * (terms**2).sum()) / log.rows
            assert estimate.std_error == pytest.approx(error, rel=1e-8)
    assert log.exposure_weights(KEYS[1], 3.0, curve).max() == pytest.approx(3.0, rel=1e-9)  # caps matter here


POLICIES = {
    "plackett-luce": lambda s: ft.PlackettLuce(scores=s, temperature=0.8),
    "mallows": lambda s: ft.Mallows(scores=s, dispersion=0.7),
    "thurstone": lambda s: ft.Thurstone(scores=s, sigma=1.5),
    "epsilon-greedy": lambda s: ft.EpsilonGreedy(scores=s, epsilon=0.5),
    "top-k": lambda s: ft.TopK(scores=s),
    "mixture": lambda s: ft.Mixture([(0.5, ft.PlackettLuce(scores=s)), (0.5, ft.Mallows(scores=s, dispersion=0.8))]),
}


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_enumerated(name: str) -> None:
    """q and weights over all rankings of 5 items in 3 slots, by each policy's own log_prob, tested elsewhere."""
    g = np.random.default_rng(7)
    control, treatment = g.normal(size=5), g.normal(size=5)
    rankings = np.array(list(permutations(range(5), 3)))
    displays = displays_of(control, treatment, rankings)
    policies = {"c": POLICIES[name]("c"), "t": POLICIES[name]("t")}
    theta = np.array([1.0, 0.5, 0.3])
    e = {}
    for which, policy in policies.items():
        p = np.exp(policy.log_prob(displays, displays.ranking))
        e[which] = sum(p @ (theta[k] * (rankings[:, [k]] == np.arange(5))) for k in range(3)) / theta.sum()
    found = prices(displays, theta, [2.0, UNCAPPED], control=policies["c"], treatment=policies["t"])
    shown = e["c"][rankings.ravel()] > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        w = (e["t"] / e["c"])[rankings.ravel()]
    assert np.exp(found.log_w[0])[shown] == pytest.approx(w[shown], rel=1e-7)
    cap, q, *_ = found.caps[2.0, 0][:, 0]
    assert q == pytest.approx(np.minimum(e["t"], cap * e["c"]).sum(), rel=1e-7)
    assert cap == pytest.approx(2.0 * q, rel=1e-9)  # the largest cap: the bound is met


def test_without_a_cap_that_keeps_the_bound_all_slots_have_weight_one() -> None:
    """The control shows items 0 and 1, the treatment prefers what it never shows."""
    displays = displays_of(np.array([9.0, 8.0, 1.0, 0.0]), np.array([-40.0, -41.0, 1.0, 0.5]), np.array([[0, 1]]))
    one = prices(displays, (1.0, 0.5), [1.01], control=ft.TopK(scores="c"), treatment=ft.TopK(scores="t"))
    assert one.caps[1.01, 0][:2, 0].tolist() == [0.0, 0.0]


def test_slopes_are_derivatives() -> None:
    g = np.random.default_rng(5)
    rankings = np.array(list(permutations(range(5), 3)))
    displays = displays_of(g.normal(size=5), 2.0 * g.normal(size=5), rankings)
    theta, step, bounds = np.array([1.0, 0.6, 0.4]), 1e-6, [1.5, 3.0, UNCAPPED]

    def logs(curve: np.ndarray, bound: float) -> tuple[np.ndarray, np.ndarray]:
        one = prices(displays, curve, [bound])
        cap, q, *_ = one.caps[bound, 0]
        log_q = np.log(q) if bound != UNCAPPED else np.zeros(len(q))
        log_capped = np.minimum(one.log_w[0], np.repeat(np.log(cap), 3))
        return log_capped - np.repeat(log_q, 3), log_q

    fitted = prices(displays, theta, bounds, fitted=True)
    for bound in bounds:
        for slot in range(3):
            up, down = (theta * np.exp(sign * step * (np.arange(3) == slot)) for sign in (1, -1))
            (high, q_high), (low, q_low) = logs(up, bound), logs(down, bound)
            assert fitted.slopes[bound].weight[:, slot] == pytest.approx((high - low) / (2 * step), abs=1e-7)
            assert fitted.slopes[bound].mass[:, slot] == pytest.approx((q_high - q_low) / (2 * step), abs=1e-7)
        assert fitted.slopes[bound].weight.sum(axis=1) == pytest.approx(0.0, abs=1e-9)  # the unit of θ does not matter


def test_saved_sums_leave_a_fitted_curve_out(tmp_path: Path) -> None:
    log = SmallLog(rows=300, units=80)
    test = build_test(["slot-ncis-adaptive", *KEYS], examination="fit")
    pq.write_table(log.table(), tmp_path / "log.parquet")
    test.save_aggregates(tmp_path / "log.parquet", tmp_path / "a.sums")
    result = ft.OfflineTest.from_aggregates(tmp_path / "a.sums").run(tmp_path / "a.sums")
    assert list(result.metrics["click"].estimates) == ["slot-ncis-adaptive"]
    [note] = [note for note in result.notes if "left out" in note]
    assert note.startswith("pbm, exposure-ncis-adaptive were left out: ")
    assert "do not add up" in note


def test_curves_by_the_values_of_a_column() -> None:
    log = SmallLog(rows=200, units=60, m=5, k=3, seed=9)
    device = np.where(np.arange(log.rows) % 3 == 0, "phone", "desktop")
    curves = {"phone": (1.0, 0.3, 0.1), "desktop": (1.0, 0.8, 0.7)}
    by_device = {"column": "device", "curves": curves}
    table = log.table(device=pa.array(device))
    result = build_test(KEYS, examination=by_device, interval="delta").run(table)
    for key in KEYS:
        each = {name: log.exposure_weights(key, 3.0, curve) for name, curve in curves.items()}
        h = np.where((device == "phone")[:, None], each["phone"], each["desktop"])
        expected = ((h * log.shares["click"]).sum(axis=1) * log.click).mean()
        assert result.metrics["click"].estimates[key].treatment == pytest.approx(expected, rel=1e-8)
    assert result.to_dict()["examination"]["curves"]["phone"] == [1.0, 0.3, 0.1]
    with pytest.raises(ft.BadInput, match="'desktop' has no examination curve"):
        build_test(KEYS, examination={"column": "device", "curves": {"phone": (1.0, 0.3, 0.1)}}).run(table)
    with pytest.raises(ft.BadInput, match="the row shows 3 items, and the examination curve has 2 numbers"):
        build_test(KEYS, examination=(1.0, 0.5)).run(table)


@pytest.mark.parametrize(
    ("examination", "sentence"),
    [
        ([], "expected one number above 0 per slot"),
        ([1.0, 0.0], "slot 2 has 0.0"),
        ([1.0, -0.5], "must be above 0"),
        ([1.0, float("nan")], "slot 2 has nan"),
        ({}, "empty table"),
        ({"clicks": [1.0]}, "names 'clicks', which is no reward. Did you mean 'click'"),
        ({"column": "device"}, "expected one number above 0 per slot"),
        ({"column": "device", "curves": {}}, "curves is empty"),
        ("nowhere.json", "nowhere.json"),
    ],
)
def test_curves_that_are_none(examination: Any, sentence: str) -> None:
    with pytest.raises(ft.BadInput, match=sentence):
        build_test(KEYS, examination=examination)


def test_the_curve_of_an_earlier_result(tmp_path: Path) -> None:
    log = SmallLog(rows=200, units=60, k=3)
    first = build_test(KEYS, examination=(1.0, 0.5, 0.2))
    first.run(log.table()).to_json(tmp_path / "result.json")
    again = build_test(KEYS, examination=str(tmp_path / "result.json"))
    assert again.settings.analysis.examination == (1.0, 0.5, 0.2)
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(ft.BadInput, match="not a result"):
        build_test(KEYS, examination=str(tmp_path / "other.json"))
