"""The normaliser: estimates of 1/q(x) in mean against enumeration, for every method, generic and fused."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.kernels.hashing import hash_integers
from foretest.kernels.normaliser import two_sided_means
from foretest.policies import EpsilonGreedy, Mallows, PlackettLuce, Policy, TopK
from foretest.weights import enumeration_cost, inverse_mass
from foretest.weights.inverse_mass import count_trials
from foretest.weights.normaliser import Normaliser
from foretest.weights.weightings import Pointwise


class Generic(PlackettLuce):
    """Plackett-Luce as a user would write it: no kernel but log_prob and sample."""


def displays(t: list[list[float]], p: list[list[float]], slots: list[int]) -> Displays:
    columns = {"t": Ragged.of([np.array(row) for row in t]), "p": Ragged.of([np.array(row) for row in p])}
    ranking = Ragged.of([np.arange(k, dtype=np.int32) for k in slots])
    return Displays(columns, ranking, columns["t"].lengths, hash_integers(np.arange(len(slots))))


def copies(t: list[float], p: list[float], k: int, n: int) -> Displays:
    """One display n times, each with an id and so with draws of its own."""
    one = displays([t], [p], [k]).take(np.zeros(n, np.int64))
    return Displays(one.columns, one.ranking, one.eligible, hash_integers(np.arange(n)))


def normaliser(kind: str, method: str = "auto", **more: int) -> Normaliser:
    policy = {"fused": PlackettLuce, "generic": Generic}[kind]
    return Normaliser(policy("t"), policy("p"), method, **more)


def probabilities(rows: Displays, row: int, normaliser: Normaliser) -> tuple[np.ndarray, np.ndarray]:
    """π_t and π_p of every ranking of a display."""
    rankings = Ragged.of(np.array(list(permutations(range(rows.eligible[row]), int(rows.slots[row]))), np.int32))
    same = rows.take(np.full(len(rankings), row))
    return np.exp(normaliser.treatment.log_prob(same, rankings)), np.exp(normaliser.control.log_prob(same, rankings))


def assert_mean(sample: np.ndarray, expected: float) -> None:
    se = sample.std(ddof=1) / np.sqrt(len(sample))
    assert se > 0.0
    assert abs(sample.mean() - expected) <= 4 * se, (sample.mean(), expected, se)


# -- four rankings, worked out by hand ---------------------------------------------------------------------------

PI_T, PI_P, CAP = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.5, 0.4, 0.07, 0.03]), 3.0
W = PI_T / PI_P
Z = {False: np.minimum(1.0, CAP / W), True: (W < CAP).astype(float)}
KINDS = ["fused", "generic"]


def inverse_of(own: Normaliser, rows: Displays, cap: float, *, zero: bool) -> tuple[Any, Any, Any]:
    """An estimate of 1/q, the rows without support, the rows past the bound on trials."""
    masses = own.at_cap(rows, cap, zero=zero)
    return masses.inverse, masses.inverse == 0.0, masses.stuck


def adaptive_of(own: Normaliser, rows: Displays, bound: float) -> tuple[Any, Any, Any]:
    """The adaptive cap, q there, and E_p[w̄²]."""
    masses = own.at_adaptive_cap(rows, bound)
    return masses.cap, masses.q, masses.squares


def squares_of(own: Normaliser, rows: Displays, cap: float, *, zero: bool = False) -> Any:
    """E_p[w̄²], for what is averaged over many displays."""
    return own._at_little_cost(rows, np.arange(len(rows)), cap, zero)[0]


def four(n: int) -> Displays:
    return copies(np.log(PI_T).tolist(), np.log(PI_P).tolist(), 1, n)


def expected_ratio(first: np.ndarray, z: np.ndarray, draws: int) -> float:
    """E[S/Σz], a_1 from `first` and the others from π_t, over all sequences."""
    sequences = [list(a) for a in product(range(4), repeat=draws) if first[a[0]] > 0.0]
    return sum(first[a[0]] * PI_T[a[1:]].prod() * draws / z[a].sum() for a in sequences)


@pytest.mark.parametrize(
    ("rule", "zero", "by_draws"),
    [
        # accepted with probability z, and q = 0.6: 1/q whatever S
        ("accepted", False, {1: 1.6667, 2: 1.6667, 3: 1.6667, 5: 1.6667}),
        # accepted where w < u, as the paper prints it
        ("printed", False, {1: 1.000, 2: 1.306, 3: 1.431}),
        ("none", False, {1: 2.506, 2: 2.052, 3: 1.896}),
        # z may be 0, and q = 0.3: (1 − 0.7^S)/0.3
        ("accepted", True, {1: 1.0, 2: 1.7, 5: 2.773}),
    ],
)
def test_the_mean_of_each_rule_by_enumeration(rule: str, zero: bool, by_draws: dict[int, float]) -> None:
    accepted = {"accepted": Z[zero], "printed": np.maximum(0.0, 1.0 - W), "none": np.ones(4)}[rule]
    first = PI_T * accepted / (PI_T * accepted).sum()
    for draws, expected in by_draws.items():
        assert expected_ratio(first, Z[zero], draws) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["auto", "exact"])
def test_four_rankings_exactly(kind: str, method: str) -> None:
    for zero, expected in [(False, 1 / 0.6), (True, 1 / 0.3)]:
        inverse, unsupported, stuck = inverse_of(normaliser(kind, method), four(2), CAP, zero=zero)
        np.testing.assert_allclose(inverse, expected, rtol=1e-13)
        assert not unsupported.any()
        assert not stuck.any()


@pytest.mark.parametrize("draws", [1, 2, 4])
@pytest.mark.parametrize("method", ["midzuno-sen", "lahiri"])
def test_midzuno_sen_and_lahiri_have_mean_one_over_q(method: str, draws: int) -> None:
    inverse, _, stuck = inverse_of(normaliser("generic", method, draws=draws), four(30_000), CAP, zero=False)
    assert not stuck.any()
    assert_mean(inverse, 1 / 0.6)


def test_midzuno_sen_has_the_enumerated_distribution() -> None:
    from scipy.stats import chisquare

    n = 30_000
    inverse, _, _ = inverse_of(normaliser("generic", "midzuno-sen", draws=2), four(n), CAP, zero=False)
    z, place = np.unique(Z[False], return_inverse=True)
    first = np.bincount(place, weights=PI_T * Z[False] / 0.6)
    second = np.bincount(place, weights=PI_T)
    table: dict[float, float] = {}
    for i, j in product(range(len(z)), repeat=2):
        value = round(2 / (z[i] + z[j]), 9)
        table[value] = table.get(value, 0.0) + first[i] * second[j]
    found, counts = np.unique(inverse.round(9), return_counts=True)
    assert found.tolist() == sorted(table)
    assert chisquare(counts, [n * table[value] for value in found.tolist()]).pvalue > 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_under_zero_capping_trials_are_counted(kind: str) -> None:
    inverse, unsupported, stuck = inverse_of(normaliser(kind, "midzuno-sen", draws=2), four(4000), CAP, zero=True)
    assert_mean(inverse, 1 / 0.3)
    # a negative binomial number of trials over 64: variance (1 − q)/(64 q²)
    assert inverse.var() == pytest.approx(0.7 / (64 * 0.09), rel=4 * np.sqrt(2.2 / 4000))
    assert not unsupported.any()
    assert not stuck.any()


# -- longer rankings ---------------------------------------------------------------------------------------------

T, P = [0.0, 1.0, 2.0, -1.0, 0.5], [1.0, 0.0, -1.0, 0.3, 0.2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["midzuno-sen", "lahiri"])
@pytest.mark.parametrize("cap", [0.7, 4.0])
def test_three_slots_in_mean(kind: str, method: str, cap: float) -> None:
    rows = copies(T, P, 3, 3000)
    own = normaliser(kind, method, draws=8)
    alpha, beta = probabilities(rows, 0, own)
    inverse, _, stuck = inverse_of(own, rows, cap, zero=False)
    assert not stuck.any()
    assert_mean(inverse, 1.0 / np.minimum(alpha, cap * beta).sum())


def two_sided_mass(own: Normaliser, rows: Displays, cap: float, zero: bool) -> np.ndarray:
    """q̂ = mean of 2·w̄/(1+W) over draws from both policies: unbiased, bounded by 2c/(1+c)."""
    w = np.exp(np.hstack(own.pair.two_sided_draws(rows, own.draws)))
    kept = np.where(w < cap, w, 0.0) if zero else np.minimum(w, cap)
    return (2.0 * kept / (1.0 + w)).mean(axis=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("zero", [False, True])
def test_the_two_sided_mass_has_mean_q(kind: str, zero: bool) -> None:
    rows, cap = copies(T, P, 3, 3000), 4.0
    own = normaliser(kind, "two-sided", draws=8)
    alpha, beta = probabilities(rows, 0, own)
    q = alpha[alpha < cap * beta].sum() if zero else np.minimum(alpha, cap * beta).sum()
    mass = two_sided_mass(own, rows, cap, zero)
    assert_mean(mass, q)
    assert mass.max() <= 2 * cap / (1 + cap) + 1e-12
    inverse, unsupported, _ = inverse_of(own, rows, cap, zero=zero)
    assert np.array_equal(unsupported, mass == 0.0)
    np.testing.assert_allclose(inverse[~unsupported], 1.0 / mass[~unsupported], rtol=1e-15)


@pytest.mark.parametrize("zero", [False, True])
def test_trials_with_three_slots(zero: bool) -> None:
    rows, cap = copies(T, P, 3, 800), 2.0
    for kind in KINDS:
        own = normaliser(kind, "midzuno-sen")
        alpha, beta = probabilities(rows, 0, own)
        q = alpha[alpha < cap * beta].sum() if zero else np.minimum(alpha, cap * beta).sum()
        inverse, _ = count_trials(own.pair, rows, cap, zero)
        assert_mean(inverse, 1.0 / q)


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("draws", [16, 128])
def test_trials_that_begin_with_known_draws(draws: int, zero: bool) -> None:
    """The treatment's side of a batch's draws are the first trials: the estimate has the same mean."""
    rows, cap, own = copies(T, P, 3, 1500), 2.0, normaliser("generic", "midzuno-sen", draws=draws)
    own.control.full_support = False
    alpha, beta = probabilities(rows, 0, own)
    q = alpha[alpha < cap * beta].sum() if zero else np.minimum(alpha, cap * beta).sum()
    inverse, unsupported, stuck = inverse_of(own.for_batch(rows), rows, cap, zero=zero)
    assert not stuck.any()
    assert not unsupported.any()
    assert_mean(inverse, 1.0 / q)
    # the time to the 64th of independent trials of probability q
    assert inverse.var() == pytest.approx((1.0 - q) / (64 * q * q), rel=4 * np.sqrt(2.2 / 1500))


def various(n: int = 40) -> Displays:
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 7, n)
    return displays(
        [(2 * rng.normal(size=m)).tolist() for m in sizes],
        [(2 * rng.normal(size=m)).tolist() for m in sizes],
        [int(rng.integers(1, m + 1)) for m in sizes],
    )


@pytest.mark.parametrize("method", ["exact", "auto"])
def test_generic_and_fused_enumeration_agree(method: str) -> None:
    rows = various()
    fused, generic = normaliser("fused", method), normaliser("generic", method)
    for cap, zero in [(0.5, False), (5.0, False), (5.0, True)]:
        a, _, _ = inverse_of(fused, rows, cap, zero=zero)
        b, _, _ = inverse_of(generic, rows, cap, zero=zero)
        np.testing.assert_allclose(a, b, rtol=1e-12)
    for a, b in zip(adaptive_of(fused, rows, 6.0), adaptive_of(generic, rows, 6.0), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_exact_answers_against_the_definition() -> None:
    rows, own = various(), normaliser("fused", "exact")
    inverse, _, _ = inverse_of(own, rows, 2.0, zero=False)
    cap, q, _ = adaptive_of(own, rows, 6.0)
    for i in range(len(rows)):
        alpha, beta = probabilities(rows, i, own)
        assert 1.0 / inverse[i] == pytest.approx(np.minimum(alpha, 2.0 * beta).sum(), rel=1e-12)
        assert q[i] == pytest.approx(np.minimum(alpha, cap[i] * beta).sum(), rel=1e-12)
        assert cap[i] / q[i] <= 6.0 * (1 + 1e-12)
        # and no larger cap will do
        assert cap[i] * 1.001 / np.minimum(alpha, cap[i] * 1.001 * beta).sum() > 6.0


def test_generic_and_fused_draws_agree_in_mean() -> None:
    rows = copies(T, P, 3, 4000)
    for from_treatment in (True, False):
        sides = [
            normaliser(kind).pair.draw(rows, 3, 0, 4, from_treatment=from_treatment).mean(axis=1) for kind in KINDS
        ]  # fmt: skip
        alpha, beta = probabilities(rows, 0, normaliser("fused"))
        expected = (alpha if from_treatment else beta) @ np.log(alpha / beta)
        for side in sides:
            assert_mean(side, expected)


def test_no_weight_above_the_cap_gives_exactly_one() -> None:
    # 200 items and 10 slots: far too many rankings to go through, and no draw is needed
    s = np.random.default_rng(0).normal(size=(30, 200))
    rows = displays(s.tolist(), (s + 3.0).tolist(), [10] * 30)
    inverse, unsupported, stuck = inverse_of(normaliser("fused"), rows, 1.5, zero=False)
    assert (inverse == 1.0).all()
    assert not unsupported.any()
    assert not stuck.any()
    cap, q, _ = adaptive_of(normaliser("fused"), rows, 20.0)
    assert (cap == 20.0).all()
    assert (q == 1.0).all()
    nearly = displays(s.tolist(), (s + 0.01 * np.sin(s)).tolist(), [10] * 30)
    assert (inverse_of(normaliser("fused"), nearly, 1.5, zero=True)[0] == 1.0).all()


def test_the_same_policy_at_cap_one() -> None:
    rows = copies(T, T, 3, 1)
    assert inverse_of(normaliser("fused"), rows, 1.0, zero=False)[0] == 1.0
    # under zero capping w = 1 = c is set to 0: nothing is left (but for rounding of w, at a cap a hair away)
    assert inverse_of(normaliser("fused"), rows, 1.0 - 1e-9, zero=True)[0] == 0.0
    assert inverse_of(normaliser("fused"), rows, 1.0 + 1e-9, zero=True)[0] == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_adaptive_caps_from_draws_close_in_on_the_exact_ones(kind: str) -> None:
    """c̃ solves q̂(c) = c/b: its error is that of q̂ over the slope q'(c) − 1/b."""
    bound = 3.0
    rng = np.random.default_rng(5)
    rows = displays(rng.normal(size=(8, 5)).tolist(), rng.normal(size=(8, 5)).tolist(), [3] * 8)
    exact, _, _ = adaptive_of(normaliser(kind, "exact"), rows, bound)
    checked = 0
    for draws in (2048, 32768):
        cap, q, _ = adaptive_of(normaliser(kind, "two-sided", draws=draws), rows, bound)
        assert (cap / q <= bound * (1 + 1e-12)).all()
        for i in np.flatnonzero(exact < bound * 0.999):
            alpha, beta = probabilities(rows, i, normaliser(kind))
            w = alpha / beta
            g = 2 * np.minimum(w, exact[i]) / (1 + w)
            variance = sum(side @ g**2 - (side @ g) ** 2 for side in (alpha, beta)) / (2 * draws)
            slope = abs(beta[w > exact[i]].sum() - 1 / bound)
            assert abs(cap[i] - exact[i]) <= 4 * np.sqrt(variance) / slope, (draws, i)
            checked += 1
    assert checked >= 8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("method", "zero"), [("midzuno-sen", False), ("midzuno-sen", True), ("lahiri", False), ("two-sided", False)]
)
def test_rows_have_the_same_digits_in_any_company(kind: str, method: str, zero: bool) -> None:
    rows, own = various(60), normaliser(kind, method, draws=8)
    whole = inverse_of(own, rows, 1.5, zero=zero)[0]
    order = np.random.default_rng(0).permutation(60)
    assert np.array_equal(inverse_of(own, rows.take(order), 1.5, zero=zero)[0], whole[order])
    for part in (np.arange(7), np.array([33])):
        assert np.array_equal(inverse_of(own, rows.take(part), 1.5, zero=zero)[0], whole[part])
    if method == "two-sided":
        caps = adaptive_of(own, rows, 4.0)
        for got, expected in zip(adaptive_of(own, rows.take(order), 4.0), caps, strict=True):
            assert np.array_equal(got, expected[order])
    assert not np.array_equal(inverse_of(normaliser(kind, method, draws=8, seed=1), rows, 1.5, zero=zero)[0], whole)


# -- bounds, support, refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("method", "zero"), [("midzuno-sen", False), ("lahiri", False), ("midzuno-sen", True)])
def test_past_the_bound_on_trials_the_two_sided_mass_is_used_and_counted(
    kind: str, method: str, zero: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inverse_mass, "MOST_TRIALS", 70)
    # the first display accepts hardly one trial in 100 000, the second nearly every one
    rows = displays([[12.0, 0.0, 0.0], [0.1, 0.0, 0.2]], [[0.0, 12.0, 11.0], [0.0, 0.1, 0.0]], [2, 2])
    own = normaliser(kind, method, draws=8)
    inverse, unsupported, stuck = inverse_of(own, rows, 2.0, zero=zero)
    assert stuck.tolist() == [True, False]
    mass = two_sided_mass(own, rows, 2.0, zero)
    assert inverse[0] == (1.0 / mass[0] if mass[0] else 0.0)
    assert unsupported.tolist() == [mass[0] == 0.0, False]
    assert 1.0 <= inverse[1] < 1.2


def test_a_deterministic_treatment_has_one_ranking() -> None:
    # 40 items and 6 slots, of which only the sort counts
    s = np.random.default_rng(1).normal(size=(3, 40))
    rows = displays(s.tolist(), (s * 4).tolist(), [6] * 3)
    own = Normaliser(EpsilonGreedy("t", 0.0), PlackettLuce("p"))
    shown = Ragged.of(np.argsort(-s, axis=1)[:, :6].astype(np.int32))
    p = np.exp(PlackettLuce("p").log_prob(rows, shown))
    inverse, _, _ = inverse_of(own, rows, 2.0, zero=False)
    np.testing.assert_allclose(inverse, 1.0 / np.minimum(1.0, 2.0 * p), rtol=1e-12)
    inverse, unsupported, _ = inverse_of(own, rows, 2.0, zero=True)
    assert np.array_equal(unsupported, p <= 0.5)
    assert np.array_equal(inverse, np.where(p > 0.5, 1.0, 0.0))
    # feasible iff the control shows the ranking at least once in `bound` times; then c̃ = bound and q = 1
    for bound in (0.9 / p.max(), 1.1 / p.max(), 1.1 / p.min()):
        cap, q, _ = adaptive_of(own, rows, bound)
        assert np.array_equal(q > 0, p >= 1 / bound)
        np.testing.assert_allclose(cap[q > 0], bound, rtol=1e-12)
        np.testing.assert_allclose(q[q > 0], 1.0, rtol=1e-12)
        assert (cap[q == 0] == 0.0).all()


def test_a_control_that_never_shows_some_rankings() -> None:
    """Then z may be 0 for the treatment's rankings, and trials are counted: the mean is still 1/q."""
    t = (-1.2 * np.arange(30)).tolist()
    rows = copies(t, t, 3, 1500)  # 24 360 rankings: not gone through
    own = Normaliser(PlackettLuce("t", 0.8), EpsilonGreedy("p", 0.0), draws=4)
    best = Ragged.of([np.arange(3, dtype=np.int32)])
    q = np.exp(own.treatment.log_prob(rows.take(np.array([0])), best)[0])
    inverse, _, stuck = inverse_of(own, rows, 5.0, zero=False)
    assert not stuck.any()
    assert_mean(inverse, 1.0 / q)


def test_policies_of_two_kinds() -> None:
    rows = copies(T, P, 2, 3000)
    exact = Normaliser(Mallows("t", 0.5), EpsilonGreedy("p", 0.4), "exact")
    alpha, beta = probabilities(rows, 0, exact)
    expected = 1.0 / np.minimum(alpha, 1.5 * beta).sum()
    assert inverse_of(exact, rows.take(np.arange(1)), 1.5, zero=False)[0] == pytest.approx(expected, rel=1e-12)
    for method in ("midzuno-sen", "lahiri"):
        own = Normaliser(Mallows("t", 0.5), EpsilonGreedy("p", 0.4), method, draws=4)
        assert_mean(inverse_of(own, rows, 1.5, zero=False)[0], expected)


@pytest.mark.parametrize("policy", [PlackettLuce, Generic])
def test_too_many_rankings_to_go_through_are_refused(policy: type[Policy]) -> None:
    rows = displays([[0.0, 5.0] * 20], [[5.0, 0.0] * 20], [6])
    with pytest.raises(
        BadInput, match=r'normaliser = "exact": a display has 2,763,633,600 rankings, more than 5,000,000'
    ):
        Normaliser(policy("t"), policy("p"), "exact").at_cap(rows, 1.01, zero=False)  # type: ignore[call-arg]


def test_the_mass_is_exact_where_cheap_and_drawn_elsewhere() -> None:
    rng = np.random.default_rng(2)
    sizes = [4, 40]
    rows = displays(
        [rng.normal(size=m).tolist() for m in sizes], [(4 * rng.normal(size=m)).tolist() for m in sizes], [2, 5]
    )
    own = normaliser("fused", draws=512)
    log_w, _ = own.pair.two_sided_draws(rows, 512)
    assert log_w.shape == (2, 256)
    for zero in (False, True):
        q = own.mass(rows, 1.2, zero=zero, log_w=log_w)
        alpha, beta = probabilities(rows, 0, own)
        exact = alpha[alpha < 1.2 * beta].sum() if zero else np.minimum(alpha, 1.2 * beta).sum()
        assert q[0] == pytest.approx(exact, rel=1e-12)
        w = np.exp(log_w[1])
        kept = np.where(w < 1.2, 1.0, 0.0 if zero else 1.2 / w)
        assert q[1] == pytest.approx(kept.mean(), rel=1e-13)
    beyond = 1.01 * float(np.exp(log_w.max()))
    assert own.mass(rows, beyond, zero=False, log_w=log_w)[1] == 1.0  # nothing is cut, whatever was drawn


def test_weights_of_any_size_do_not_overflow() -> None:
    rows = displays([[0.0, 700.0], [0.0, -700.0], [0.0, 1500.0]], [[700.0, 0.0], [0.0, 0.0], [1500.0, 0.0]], [1, 1, 1])
    for kind in KINDS:
        for method in ("exact", "two-sided"):
            inverse, _, _ = inverse_of(normaliser(kind, method, draws=64), rows, 100.0, zero=False)
            assert np.isfinite(inverse).all()
            cap, q, _ = adaptive_of(normaliser(kind, method, draws=64), rows, 20.0)
            assert np.isfinite(cap).all()
            assert np.isfinite(q).all()


@pytest.mark.parametrize("method", ["midzuno-sen", "lahiri"])
def test_a_control_without_full_support_counts_trials(method: str) -> None:
    """Where π_p may be 0, z may be 0: both methods give way to trials, whose mean is 1/q."""
    rows = copies([1.0, 0.5, 0.0, 0.2], [3.0, 2.0, 1.0, 0.0], 2, 4000)
    pair = Normaliser(PlackettLuce("t"), EpsilonGreedy("p", 0.0), method, draws=4)
    t, p = probabilities(rows, 0, pair)
    inverse, _, _ = inverse_of(pair, rows, 3.0, zero=False)
    assert_mean(inverse, 1.0 / np.minimum(t, 3.0 * p).sum())


def test_many_slots_stay_in_range() -> None:
    """M = 2000, K = 100: a product of 100 tails must neither overflow nor vanish."""
    rng = np.random.default_rng(0)
    t, p = 0.1 * rng.normal(size=2000), 0.1 * rng.normal(size=2000)
    rows = displays([t.tolist()], [p.tolist()], [100])
    fused, generic = normaliser("fused"), normaliser("generic")
    log_w = fused.pair.draw(rows, 0, 0, 400, from_treatment=True)[0]
    other = generic.pair.draw(rows, 0, 0, 400, from_treatment=True)[0]
    assert np.isfinite(log_w).all()
    se = np.sqrt((log_w.var() + other.var()) / 400)
    assert abs(log_w.mean() - other.mean()) < 4 * se
    z = fused.pair.treatment_z(rows, 0, 0, 400, 3.0)[0]
    plain = np.exp(np.minimum(0.0, np.log(3.0) - other))
    assert abs(z.mean() - plain.mean()) < 4 * np.sqrt((z.var() + plain.var()) / 400)


# -- E_p[w̄²], which tells how many effective positives to expect -----------------------------------------------------


def squares(alpha: np.ndarray, beta: np.ndarray, cap: float, zero: bool = False) -> float:
    w = alpha / beta
    return float(beta @ np.where(w < cap, w, 0.0 if zero else cap) ** 2)


@pytest.mark.parametrize("kind", KINDS)
def test_squares_exactly(kind: str) -> None:
    """Enumerated, whether or not a certificate says that no weight can exceed the cap."""
    rows, own = various(), normaliser(kind)
    for cap, zero in [(0.7, False), (5.0, False), (5.0, True)]:
        found = squares_of(own, rows, cap, zero=zero)
        for i in range(len(rows)):
            assert found[i] == pytest.approx(squares(*probabilities(rows, i, own), cap, zero), rel=1e-10)
    cap, _, found = adaptive_of(own, rows, 20.0)
    for i in range(len(rows)):
        assert found[i] == pytest.approx(squares(*probabilities(rows, i, own), cap[i]), rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("zero", [False, True])
def test_squares_from_draws_have_the_right_mean(kind: str, zero: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumeration_cost, "FEW_RANKINGS", 1)
    rows, own = copies(T, P, 3, 2000), normaliser(kind)
    expected = squares(*probabilities(rows, 0, own), 1.5, zero)
    assert_mean(squares_of(own, rows, 1.5, zero=zero), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_squares_at_the_adaptive_cap_come_from_its_draws(kind: str) -> None:
    """With many draws they close in on enumeration; E_p[w̃²] is then within the bound b, as w̃ ≤ b and E_p[w̃] = 1."""
    rng = np.random.default_rng(5)
    rows = displays(rng.normal(size=(8, 5)).tolist(), rng.normal(size=(8, 5)).tolist(), [3] * 8)
    _, q, exact = adaptive_of(normaliser(kind, "exact"), rows, 3.0)
    _, drawn_q, drawn = adaptive_of(normaliser(kind, "two-sided", draws=32768), rows, 3.0)
    np.testing.assert_allclose(drawn / drawn_q**2, exact / q**2, rtol=0.04)
    assert (exact / q**2 <= 3.0).all()
    assert (exact / q**2 >= 1.0 - 1e-12).all()


def test_the_same_policy_has_squares_of_one() -> None:
    s = np.random.default_rng(0).normal(size=(30, 200))
    rows = displays(s.tolist(), (s + 3.0).tolist(), [10] * 30)
    np.testing.assert_allclose(adaptive_of(normaliser("fused"), rows, 20.0)[2], 1.0, rtol=1e-9)


def test_squares_of_a_deterministic_treatment() -> None:
    """It shows one ranking: E_p[w̃²] = 1/π_p(a) at any cap."""
    rows = displays([[3.0, 1.0, 2.0]], [[0.5, 0.1, 0.2]], [2])
    pair = Normaliser(EpsilonGreedy("t", epsilon=0.0), PlackettLuce("p"))
    p = np.exp(pair.control.log_prob(rows, Ragged.of(np.array([[0, 2]], np.int32))))[0]
    _, q, found = adaptive_of(pair, rows, 30.0)
    assert found[0] / q[0] ** 2 == pytest.approx(1.0 / p, rel=1e-12)
    inverse, _, _ = inverse_of(pair, rows, 1.5, zero=False)
    assert inverse[0] ** 2 * squares_of(pair, rows, 1.5)[0] == pytest.approx(1.0 / p, rel=1e-12)


# -- q at the cap and at a third of it, for the slice test ------------------------------------------------------------


def mass_at(alpha: np.ndarray, beta: np.ndarray, cap: float, zero: bool = False) -> float:
    return float(alpha[alpha < cap * beta].sum() if zero else np.minimum(alpha, cap * beta).sum())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("zero", [False, True])
def test_masses_at_both_caps_exactly(kind: str, zero: bool) -> None:
    """Enumerated, certified at the cap or not."""
    rows, own = various(), normaliser(kind)
    for cap in (0.7, 5.0, 100.0):
        found = own.at_cap(rows, cap, zero=zero)
        for i in range(len(rows)):
            weights = probabilities(rows, i, own)
            assert found.q[i] == pytest.approx(mass_at(*weights, cap, zero), rel=1e-10)
            assert found.q_below[i] == pytest.approx(mass_at(*weights, cap / 3.0, zero), rel=1e-10)
            assert found.squares[i] == pytest.approx(squares(*weights, cap, zero), rel=1e-10)
    found = own.at_adaptive_cap(rows, 4.0)
    for i in range(len(rows)):
        expected = mass_at(*probabilities(rows, i, own), found.cap[i] / 3.0)
        assert found.q_below[i] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("method", "zero"),
    [("midzuno-sen", False), ("lahiri", False), ("two-sided", False), ("two-sided", True), ("midzuno-sen", True)],
)
def test_masses_from_draws_have_the_right_mean(kind: str, method: str, zero: bool) -> None:
    rows, own = copies(T, P, 3, 1500), normaliser(kind, method, draws=8)
    weights = probabilities(rows, 0, own)
    found = own.at_cap(rows, 1.5, zero=zero)
    assert_mean(found.q, mass_at(*weights, 1.5, zero))
    assert_mean(found.q_below, mass_at(*weights, 0.5, zero))
    if method != "two-sided":
        assert (found.q_below <= found.q + 1e-12).all()  # of the same rankings


@pytest.mark.parametrize("kind", KINDS)
def test_masses_of_wide_scores_come_from_the_same_rankings(kind: str) -> None:
    """Beyond the spread that products of exponentials allow, by Gumbel noise: z at both caps has the right mean."""
    rows = copies([0.0, 1.0, -400.0, 0.3], [1.0, 0.0, -400.0, 0.5], 2, 3000)
    own = normaliser(kind, "midzuno-sen", draws=8)
    weights = probabilities(rows, 0, own)
    found = own.at_cap(rows, 1.2, zero=False)
    assert_mean(found.q, mass_at(*weights, 1.2))
    assert_mean(found.q_below, mass_at(*weights, 0.4))


@pytest.mark.parametrize("kind", KINDS)
def test_masses_below_a_certificate_have_the_right_mean(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No weight can exceed the cap, some exceed a third of it: what these cut off, from a few draws."""
    monkeypatch.setattr(enumeration_cost, "FEW_RANKINGS", 1)
    rows, own = copies(T, P, 3, 2000), normaliser(kind)
    alpha, beta = probabilities(rows, 0, own)
    cap = 2.0 * float((alpha / beta).max())
    _, cut = own._at_little_cost(rows, np.arange(2000), cap, False)
    assert_mean(1.0 - cut, mass_at(alpha, beta, cap / 3.0))
    found = own.at_adaptive_cap(rows.take(np.arange(5)), 1e6)
    assert (found.q_below <= found.q).all()


def test_masses_at_the_adaptive_cap_come_from_its_draws() -> None:
    rng = np.random.default_rng(6)
    rows = displays(rng.normal(size=(8, 5)).tolist(), rng.normal(size=(8, 5)).tolist(), [3] * 8)
    exact, drawn = (normaliser("fused", m, draws=32768).at_adaptive_cap(rows, 3.0) for m in ("exact", "two-sided"))
    np.testing.assert_allclose(drawn.q_below, exact.q_below, rtol=0.04)
    assert (exact.q_below < exact.q).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["midzuno-sen", "lahiri"])
def test_a_batch_draws_once_whoever_asks_first(kind: str, method: str) -> None:
    """The fixed cap's rankings are the treatment's side of the two-sided draws: the order of asking changes nothing."""
    rng = np.random.default_rng(5)
    rows = displays(rng.normal(size=(30, 6)).tolist(), rng.normal(size=(30, 6)).tolist(), [3] * 30)
    own = normaliser(kind, method, draws=16)
    alone = own.at_cap(rows, 1.2, zero=False), own.at_adaptive_cap(rows, 2.0)
    for first in (0, 1):
        batch = own.for_batch(rows)
        asked = [lambda b=batch: b.at_cap(rows, 1.2, zero=False), lambda b=batch: b.at_adaptive_cap(rows, 2.0)]
        found = {i: asked[i]() for i in (first, 1 - first)}
        assert batch.batch is not None
        assert len(batch.batch.missing(np.arange(30))) == 0
        w = np.exp(np.hstack(own.pair.two_sided_draws(rows, 16)))
        np.testing.assert_allclose(batch.batch.weights(np.arange(30)), w, rtol=1e-12)
        for i in (0, 1):
            for name in ("cap", "inverse", "q", "q_below"):
                np.testing.assert_allclose(getattr(found[i], name), getattr(alone[i], name), rtol=1e-12)


def test_means_of_many_draws_are_those_of_each_row() -> None:
    """Blocks of rows do not show."""
    log_w = np.random.default_rng(6).normal(scale=3.0, size=(1300, 8))
    w = np.exp(log_w)
    for zero in (False, True):
        kept = np.where(w < 2.0, w, 0.0) if zero else np.minimum(w, 2.0)
        expected = (2.0 * kept / (1.0 + w)).mean(axis=1)
        np.testing.assert_allclose(two_sided_means(log_w, 2.0, zero), expected, rtol=1e-12)


@pytest.mark.parametrize("method", ["exact", "auto"])
@pytest.mark.parametrize("apart", [700.0, 712.0, 745.0, 800.0])
def test_a_mass_whose_inverse_no_double_holds_is_none(method: str, apart: float) -> None:
    """q = 100·π_p(t) of a treatment that always shows the item with π_p = e^−apart: below 2e-308 it counts as 0, so
    that a display that shows the other item, whose weight is 0, does not weigh 0 times infinity."""
    rows = displays([[0.0, 1.0]] * 2, [[0.0, -apart]] * 2, [1, 1])
    own = Normaliser(TopK("t"), PlackettLuce("p"), method=method)
    weights = Pointwise(cap=100.0).of_rewarded(np.array([-np.inf, apart]), rows, own)
    log_q = np.log(100.0) - apart
    if log_q > np.log(np.finfo(float).tiny):
        np.testing.assert_allclose(weights.log_h, [-np.inf, apart], rtol=1e-12)
        assert not weights.unsupported.any()
    else:
        assert (weights.log_h == -np.inf).all()
        assert weights.unsupported.all()
    assert np.isfinite(weights.q).all()
    assert not np.isnan(weights.second).any()
