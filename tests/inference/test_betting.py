"""Betting limits against the capital of both bettors, written out term by term, and their coverage by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import foretest as ft
from foretest.aggregation import fold_start
from foretest.inference import betting
from foretest.inference.betting import OrderedTerms, in_hash_order, mean_limits, mean_lower_bound
from foretest.kernels.hashing import hash_integers
from tests.support import SmallLog, build_test

LOG = SmallLog(rows=500, units=140, seed=21)


def ordered(terms: np.ndarray) -> OrderedTerms:
    """Terms as they come, those of 0 as gaps."""
    at = np.flatnonzero(terms)
    return OrderedTerms(np.diff(np.concatenate([[-1], at, [len(terms)]])) - 1, terms[at], len(terms))


def spread_out(terms: OrderedTerms) -> np.ndarray:
    """All terms, zeros included, in their order."""
    parts = [np.append(np.zeros(gap), value) for gap, value in zip(terms.gaps, terms.values, strict=False)]
    return np.concatenate([*parts, np.zeros(terms.gaps[-1])])


def log_capital(y: np.ndarray, m: float, wealth: float) -> float:
    """log ∏ (1 + λ_i (y_i − m)), λ_i = min(√(2·wealth/(C σ̂²_{i−1})), ½/m), priors ½ and ¼."""
    i = np.arange(1, len(y) + 1)
    mean = (0.5 + np.cumsum(y)) / (i + 1)
    variance = (0.25 + np.cumsum((y - mean) ** 2)) / (i + 1)
    bet = np.sqrt(2.0 * wealth / (len(y) * np.append(0.25, variance[:-1])))
    return float(np.log1p(np.minimum(bet, 0.5 / m) * (y - m)).sum())


def bisected(y: np.ndarray, wealth: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if log_capital(y, middle, wealth) >= wealth else (low, middle)
    return low


def by_hand(terms: np.ndarray, lowest: float, highest: float, level: float) -> tuple[float, float]:
    y, wealth = (terms - lowest) / (highest - lowest), np.log(2.0 / (1.0 - level))
    scale = highest - lowest
    return lowest + scale * bisected(y, wealth), highest - scale * bisected(1.0 - y, wealth)


def rare(count: int, rewarded: int, seed: int, lowest: float = -1.0, highest: float = 19.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    terms = np.zeros(count)
    terms[rng.choice(count, rewarded, replace=False)] = np.clip(rng.lognormal(0, 1.5, rewarded) - 1.0, lowest, highest)
    return terms


@pytest.mark.parametrize(("count", "rewarded"), [(2, 1), (30, 0), (30, 10), (200, 200), (1500, 40), (2000, 900)])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_limits_are_those_of_the_printed_capital(count: int, rewarded: int, level: float) -> None:
    terms = rare(count, rewarded, seed=count)
    lower, upper = by_hand(terms, -1.0, 19.0, level)
    limits = mean_limits(ordered(terms), -1.0, 19.0, level)
    assert limits.lower == pytest.approx(lower, abs=1e-8)
    assert limits.upper == pytest.approx(upper, abs=1e-8)
    assert limits.lower <= terms.mean() <= limits.upper


def test_long_runs_cost_a_power_and_move_the_limits_by_a_hair() -> None:
    """Beyond 2 048 terms bets lag by a thousandth: against the printed ones, less than a thousandth of the width."""
    terms = rare(60_000, 200, seed=3)
    lower, upper = by_hand(terms, -1.0, 19.0, 0.9)
    limits = mean_limits(ordered(terms), -1.0, 19.0, 0.9)
    assert limits.lower == pytest.approx(lower, abs=1e-3 * (upper - lower))
    assert limits.upper == pytest.approx(upper, abs=1e-3 * (upper - lower))


def test_a_hundred_million_units_have_limits_too() -> None:
    """2^17 rewarded rows in 10^8: the width is that of a normal interval but for the logarithms of the bound."""
    rng = np.random.default_rng(4)
    hashes = np.sort(rng.integers(0, 1 << 63, 1 << 17).astype(np.uint64) * np.uint64(2))
    values = np.clip(rng.lognormal(0, 1, len(hashes)) - 1.0, -1.0, 19.0)
    units = 10**8
    terms = in_hash_order(hashes, values, units, seed=0)
    assert int(terms.gaps.sum()) == units - len(hashes)
    limits = mean_limits(terms, -1.0, 19.0, 0.9)
    mean, error = values.sum() / units, np.sqrt(np.square(values).sum()) / units
    assert mean - 3.5 * error < limits.lower < mean - 1.6 * error
    assert mean + 1.6 * error < limits.upper < mean + 3.5 * error


def test_the_capital_falls_in_m() -> None:
    """Each factor does, capped or not: so the values left out are all those below a limit."""
    rng = np.random.default_rng(5)
    for y in (rng.random(50), rng.integers(0, 2, 50).astype(float), (rng.random(50) < 0.1) * 0.95 + 0.05):
        capital = [log_capital(y, m, 3.0) for m in np.linspace(1e-3, 0.999, 400)]
        assert (np.diff(capital) <= 1e-12).all()


@pytest.mark.parametrize("p", [0.01, 0.05, 0.2, 0.5, 0.8, 0.97])
def test_each_limit_holds_in_95_percent_of_all_sequences(p: float) -> None:
    """Enumerated: 2^10 sequences of ten terms that are 1 with probability p, else 0."""
    below = above = 0.0
    for sequence in product([0.0, 1.0], repeat=10):
        terms = np.array(sequence)
        share = p ** terms.sum() * (1.0 - p) ** (10 - terms.sum())
        limits = mean_limits(ordered(terms), 0.0, 1.0, 0.9)
        below += share * (limits.lower > p)
        above += share * (limits.upper < p)
    assert below <= 0.05
    assert above <= 0.05


@pytest.mark.parametrize("p", [0.02, 0.1, 0.3])
def test_the_lower_bound_needs_no_upper_one(p: float) -> None:
    """Terms of 0, 1 or 50, enumerated, with a scale far below the largest."""
    chances = np.array([1.0 - p, 0.9 * p, 0.1 * p])
    values = np.array([0.0, 1.0, 50.0])
    missed = 0.0
    for sequence in product(range(3), repeat=7):
        draw = np.array(sequence)
        missed += chances[draw].prod() * (mean_lower_bound(ordered(values[draw]), 2.0, 0.95) > chances @ values)
    assert missed <= 0.05
    assert mean_lower_bound(ordered(np.ones(7)), 2.0, 0.95) > 0.2  # and it says something


def test_every_order_of_the_units_is_equally_likely() -> None:
    """Two rewarded units among four: six places, each as often as the others (χ² with 5 degrees, 20.5 at 0.001)."""
    rng = np.random.default_rng(6)
    counts = dict.fromkeys(((i, j) for i in range(4) for j in range(i + 1, 4)), 0)
    draws = 3000
    for seed in range(draws):
        hashes = np.sort(rng.integers(0, 1 << 64, 2, dtype=np.uint64))
        first, second, _ = in_hash_order(hashes, np.ones(2), 4, seed).gaps
        counts[int(first), int(first + second + 1)] += 1
    expected = draws / 6
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 20.5


def test_places_follow_the_hashes() -> None:
    hashes = np.array([0.25, 0.5, 0.9]) * 2.0**64
    places = np.cumsum(in_hash_order(hashes.astype(np.uint64), np.ones(3), 100_003, 0).gaps)[:3]
    np.testing.assert_allclose(places / 100_000, [0.25, 0.5, 0.9], atol=4 * np.sqrt(0.25 / 100_000))


# -- through the package ----------------------------------------------------------------------------------------------


def order_by_hand(unit: np.ndarray, rewarded: np.ndarray, terms: np.ndarray, seed: int) -> np.ndarray:
    """Sums by rewarded unit in hash order, among as many zeros as there are other units."""
    hashes = hash_integers(unit)
    units_seen, at = np.unique(hashes[rewarded], return_inverse=True)
    values = np.bincount(at, weights=terms[rewarded])
    return spread_out(in_hash_order(units_seen, values, len(np.unique(unit)), seed))


@pytest.mark.parametrize("key", ["cis", "point-ncis-adaptive"])
@pytest.mark.parametrize("unit", ["user", None])
def test_interval_of_a_log(key: str, unit: str | None) -> None:
    test = build_test([key], interval="betting", r_max=1.0, unit=unit, confidence_level=0.8, seed=3)
    estimate = test.run(LOG.table()).metrics["click"].estimates[key]
    h = LOG.weights(key, 2.0, 3.0)
    units = LOG.unit if unit else np.arange(LOG.rows)  # the id is the row's number
    largest = np.bincount(units).max()
    count = len(np.unique(units))
    terms = order_by_hand(units, LOG.click > 0, (h - 1.0) * LOG.click, seed=3)
    assert len(terms) == count
    bound = 2.0 if key == "cis" else 3.0
    lower, upper = (limit * count / LOG.rows for limit in by_hand(terms, -largest, largest * (bound - 1.0), 0.8))
    if key == "cis":
        upper += max(0.0, 1.0 - h.mean())  # the worst-case bias
    assert estimate.effect_size_ci_lower == pytest.approx(lower, abs=1e-8)
    assert estimate.effect_size_ci_upper == pytest.approx(upper, abs=1e-8)
    assert estimate.rel_effect_size_ci_lower == pytest.approx(lower / LOG.click.mean(), abs=1e-7)
    assert estimate.betting == {
        "ci_lower": estimate.effect_size_ci_lower,
        "ci_upper": estimate.effect_size_ci_upper,
    }
    bernstein = build_test([key], interval="bernstein", r_max=1.0, unit=unit, confidence_level=0.8).run(LOG.table())
    wide = bernstein.metrics["click"].estimates[key]
    assert upper - lower < wide.effect_size_ci_upper - wide.effect_size_ci_lower


def test_rewards_in_other_units() -> None:
    one, many = (
        build_test(["point-ncis-adaptive"], metrics=("revenue",), interval="betting", r_max=40.0 * k)
        .run(LOG.table().set_column(1, "revenue", [LOG.revenue * k]))
        .metrics["revenue"]
        .estimates["point-ncis-adaptive"]
        for k in (1.0, 1000.0)
    )
    assert many.effect_size_ci_lower == pytest.approx(1000.0 * one.effect_size_ci_lower, rel=1e-6)
    assert many.effect_size_ci_upper == pytest.approx(1000.0 * one.effect_size_ci_upper, rel=1e-6)


@pytest.mark.parametrize("unit", ["user", None])
def test_of_too_many_rewarded_rows_the_first_are_bet_on(unit: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half the rewarded rows say less: over five logs their limits are wider in the mean, if not in each (with many
    rewards the best moment of the bets narrows them again); the estimate itself is that of all rows."""
    key, ratios = "point-ncis-adaptive", []
    test = build_test([key], interval="betting", r_max=1.0, unit=unit)
    for seed in range(5):
        log = SmallLog(rows=3000, units=3000, seed=seed)
        whole = test.run(log.table()).metrics["click"].estimates[key]
        with monkeypatch.context() as patch:
            patch.setattr(fold_start, "MOST_REWARDED", int(log.click.sum()) // 2)
            half = test.run(log.table()).metrics["click"].estimates[key]
        assert half.effect_size == pytest.approx(whole.effect_size, rel=1e-12)
        assert half.effect_size_ci_lower <= half.effect_size <= half.effect_size_ci_upper
        width = whole.effect_size_ci_upper - whole.effect_size_ci_lower
        ratios.append((half.effect_size_ci_upper - half.effect_size_ci_lower) / width)
    assert 1.05 < np.mean(ratios) < 2.0


def test_the_first_rewarded_rows_alone_hold_the_mean() -> None:
    """1 000 logs, the 40 rewarded units of smallest hash bet on: misses on either side, 5 % at the most."""
    rng = np.random.default_rng(9)
    logs, units, rate = 1000, 1500, 0.06
    below = above = 0
    for seed in range(logs):
        hashes = np.sort(rng.integers(0, 1 << 64, rng.binomial(units, rate), dtype=np.uint64))
        values = rng.exponential(1.0, len(hashes)).clip(max=5.0) - 1.0
        end = float(hashes[40]) * 2.0**-64
        terms = in_hash_order(
            hashes[:40], values[:40], units, seed, others=units - len(hashes), end=end, target=41
        )  # fmt: skip
        limits = mean_limits(terms, -1.0, 4.0, 0.9)
        mean = rate * (1.0 - np.exp(-5.0) - 1.0)  # of min(exponential, 5) − 1
        below += limits.lower > mean
        above += limits.upper < mean
    error = np.sqrt(0.05 * 0.95 / logs)
    assert below / logs <= 0.05 + 2 * error
    assert above / logs <= 0.05 + 2 * error


def test_nothing_to_bet_on() -> None:
    empty = build_test(["cis"], interval="betting", r_max=1.0).run(LOG.table().slice(0, 0)).metrics["click"]
    assert empty.estimates["cis"].effect_size_ci_lower is None
    quiet = LOG.table().set_column(0, "click", [np.zeros(LOG.rows)])
    estimate = build_test(["cis"], interval="betting", r_max=1.0).run(quiet).metrics["click"].estimates["cis"]
    assert estimate.verdict == "insufficient"
    assert estimate.effect_size_ci_lower < 0.0 < estimate.effect_size_ci_upper
    alone = LOG.table().set_column(2, "user", [np.zeros(LOG.rows, np.int64)])
    one = build_test(["cis"], interval="betting", r_max=1.0).run(alone).metrics["click"].estimates["cis"]
    assert one.effect_size_ci_lower is None


def test_it_needs_to_know_the_largest_reward() -> None:
    with pytest.raises(ft.BadInput, match="interval = \"betting\" needs r_max, the largest possible reward of 'click'"):
        build_test(["cis"], interval="betting").run(LOG.table())
    with pytest.raises(
        ft.BadInput,
        match='interval = "betting" holds for cis, point-ncis-adaptive, slot-ncis-adaptive, cascade-ncis-adaptive and',
    ):
        build_test(["ncis"], interval="betting", r_max=1.0).run(LOG.table())


def test_limits_of_other_row_terms() -> None:
    """What the band will ask for: terms and range of its own, on the same order."""
    test = build_test(["point-ncis-adaptive"], r_max=1.0)
    aggregates, _, _ = test.aggregate(LOG.table())
    columns = aggregates.rewarded.columns()
    [weighting] = aggregates.plan.point_weightings
    d = np.expm1(columns["log_h", weighting]) * columns["r", 0] + 0.5 * columns["r", 0]
    limits = betting.betting_limits(aggregates, d, (-1.0, 2.5), 0.9)
    largest, count = np.bincount(LOG.unit).max(), len(np.unique(LOG.unit))
    terms = order_by_hand(LOG.unit, LOG.click > 0, (LOG.adaptive(3.0) - 0.5) * LOG.click, seed=0)
    lower, upper = (limit * count / LOG.rows for limit in by_hand(terms, -largest, 2.5 * largest, 0.9))
    assert limits.lower == pytest.approx(lower, abs=1e-8)
    assert limits.upper == pytest.approx(upper, abs=1e-8)
