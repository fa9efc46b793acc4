"""Several loggers: every interval, the band, segments, slots and the chosen cap against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import foretest as ft
from foretest.aggregation.cap_choice import CANDIDATES
from foretest.calibration.estimate import Unsupported
from foretest.inference.bootstrap import resample_counts
from foretest.inference.sensitivity import Terms
from tests.inference.test_betting import by_hand, order_by_hand
from tests.loggers import ThreeLoggers, build
from tests.support import SLOT_KEYS

LOG = ThreeLoggers(rows=450, units=120, seed=4)
MIX = LOG.mixture()
BASELINE = LOG.baseline_weights("new", MIX)
CAP, BOUND, BUCKETS = 2.0, 3.0, 64


def uplift_terms(key: str) -> np.ndarray:
    """d = (h − w_p) r of every row."""
    return (LOG.weights(key, CAP, BOUND, MIX) - BASELINE) * LOG.click


def unsupported_terms(key: str) -> np.ndarray:
    """t = (h − w̄) r of every row, w̄ at the estimator's own cap."""
    at = np.arange(LOG.rows), LOG.shown
    w = np.exp(LOG.log_all["treatment"][at] - MIX[at])
    capped = np.minimum(w, CAP if key == "point-ncis" else LOG.own_caps(BOUND, MIX))
    return (LOG.weights(key, CAP, BOUND, MIX) - capped) * LOG.click


@pytest.mark.parametrize("key", ["cis", "point-ncis-adaptive"])
def test_bernstein(key):
    """Maurer and Pontil, with the row range [−r_max/min α_p, b r_max]."""
    estimate = build([key], interval="bernstein", r_max=1.0).run(LOG.table()).metrics["click"].estimates[key]
    units, inverse = np.unique(LOG.unit, return_inverse=True)
    count, terms = len(units), np.bincount(inverse, weights=uplift_terms(key)) * len(units) / LOG.rows
    bound = CAP if key == "cis" else BOUND
    spread = (bound + 1.0 / LOG.by_day[:, 0].min()) * count * np.bincount(inverse).max() / LOG.rows
    half = np.sqrt(2 * terms.var(ddof=1) * np.log(40) / count) + 7 * spread * np.log(40) / (3 * (count - 1))
    assert estimate.effect_size - estimate.effect_size_ci_lower == pytest.approx(half, rel=1e-6)
    hidden = max(0.0, 1.0 - LOG.weights(key, CAP, BOUND, MIX).mean()) if key == "cis" else 0.0
    assert estimate.effect_size_ci_upper - estimate.effect_size == pytest.approx(half + hidden, rel=1e-6)


@pytest.mark.parametrize("key", ["cis", "point-ncis-adaptive"])
def test_betting(key):
    """The capital of both bettors, term by term, in the wider range; r_max is a number other than 1."""
    test = build([key], interval="betting", r_max=2.0, seed=3, confidence_level=0.8)
    estimate = test.run(LOG.table()).metrics["click"].estimates[key]
    terms = order_by_hand(LOG.unit, LOG.click > 0, uplift_terms(key), seed=3)
    largest, units_a_row = np.bincount(LOG.unit).max(), len(terms) / LOG.rows
    ends = -2.0 * largest / LOG.by_day[:, 0].min(), 2.0 * largest * (CAP if key == "cis" else BOUND)
    lower, upper = (limit * units_a_row for limit in by_hand(terms, *ends, 0.8))
    if key == "cis":
        upper += 2.0 * max(0.0, 1.0 - LOG.weights(key, CAP, BOUND, MIX).mean())
    assert estimate.effect_size_ci_lower == pytest.approx(lower, abs=1e-8)
    assert estimate.effect_size_ci_upper == pytest.approx(upper, abs=1e-8)
    control = (BASELINE * LOG.click).mean()
    assert estimate.rel_effect_size_ci_upper == pytest.approx(upper / control, abs=1e-7)


@pytest.mark.parametrize("key", ["point-ncis", "point-ncis-adaptive"])
def test_the_band(key):
    gamma, level = (1.2, 1.6), 0.8
    test = build([key], gamma=gamma, interval="delta", confidence_level=level, buckets=BUCKETS)
    estimate = test.run(LOG.table()).metrics["click"].estimates[key]
    band, d, t = estimate.sensitivity, uplift_terms(key), unsupported_terms(key)
    low, high = d - (1.0 - 1.0 / gamma[0]) * t, d + (gamma[1] - 1.0) * t
    lower_error, upper_error = (LOG.error(phi, BUCKETS) for phi in (low, high))
    assert band["effect_size_lower"] == pytest.approx(low.mean(), rel=1e-6)
    assert band["effect_size_upper"] == pytest.approx(high.mean(), rel=1e-6)
    width = (high.mean() - low.mean()) / max(lower_error, upper_error)
    c = brentq(lambda c: norm.cdf(c + width) - norm.cdf(-c) - level, 0.0, 50.0, xtol=1e-14)
    limits = low.mean() - c * lower_error, high.mean() + c * upper_error
    assert band["ci_lower"] == pytest.approx(min(limits[0], estimate.effect_size_ci_lower), rel=1e-6)
    assert band["ci_upper"] == pytest.approx(max(limits[1], estimate.effect_size_ci_upper), rel=1e-6)


@pytest.mark.parametrize("sign", [1, -1])
def test_breakdown(sign):
    """Γ* of a verdict, by the treatment and the baseline that make it positive or negative."""
    log = ThreeLoggers(rows=700, units=200, seed=9)
    at, bound = (np.arange(700), log.shown), 1.5
    liked = log.log_all["treatment"][at] > log.log_all["new"][at]
    log.click = 0.4 + 0.2 * sign * liked  # what the treatment likes earns more, or less
    test = build(["point-ncis-adaptive"], interval="delta", buckets=BUCKETS, weight_bound=bound)
    estimate = test.run(log.table()).metrics["click"].estimates["point-ncis-adaptive"]
    assert estimate.verdict == ("positive" if sign > 0 else "negative")
    mix = log.mixture()
    w = np.exp(log.log_all["treatment"][at] - mix[at])
    h = log.weights("point-ncis-adaptive", CAP, bound, mix)
    d = (h - log.baseline_weights("new", mix)) * log.click
    t = (h - np.minimum(w, log.own_caps(bound, mix))) * log.click

    def limit(log_gamma: float) -> float:
        g = np.exp(log_gamma)
        phi = d - (1.0 - 1.0 / g) * t if sign > 0 else -(d + (g - 1.0) * t)
        return float(phi.mean() - norm.ppf(0.95) * log.error(phi, BUCKETS))

    exact = np.exp(brentq(limit, 0.0, np.log(1e6), xtol=1e-13))
    assert estimate.sensitivity["breakdown_gamma"] == pytest.approx(exact, rel=1e-6)


def test_the_slice_test():
    test = build(["point-ncis"], buckets=BUCKETS)
    aggregates, _, _ = test.aggregate(LOG.table())
    terms = Terms.of(aggregates, aggregates.plan.weighting(aggregates.plan.estimators[0]), 0)
    gamma, interval = terms.slice_test(0.9)
    at = np.arange(LOG.rows), LOG.shown
    t, p = np.exp(LOG.log_all["treatment"]), np.exp(MIX)
    w = t[at] / p[at]
    q, q_below = (np.minimum(t, c * p).sum(axis=1) for c in (CAP, CAP / 3.0))
    capped, below = np.minimum(w, CAP) * LOG.click, np.minimum(w, CAP / 3.0) * LOG.click
    sliced, expected = capped - below, (q - q_below) / q_below * below
    assert gamma == pytest.approx(sliced.sum() / expected.sum(), rel=1e-9)
    half = norm.ppf(0.95) * LOG.error((sliced - gamma * expected) / expected.mean(), BUCKETS)
    assert interval.upper - gamma == pytest.approx(half, rel=1e-8)


def test_the_calibrated_variance():
    """That of [d + (Γ0 − 1) t − x w_p r]/R_p, by logger and by unit."""
    key = "point-ncis-adaptive"
    aggregates, _, _ = build([key], buckets=BUCKETS).aggregate(LOG.table())
    unsupported = Unsupported.of(aggregates, aggregates.plan.estimators[0], 0)
    d, t, worth = uplift_terms(key), unsupported_terms(key), BASELINE * LOG.click
    assert unsupported.control == pytest.approx(worth.mean(), rel=1e-9)
    assert unsupported.unsupported == pytest.approx(t.mean() / worth.mean(), rel=1e-6)
    for gamma in (1.0, 1.3, 0.6):
        x = (d.mean() + (gamma - 1.0) * t.mean()) / worth.mean()
        error = LOG.error((d + (gamma - 1.0) * t - x * worth) / worth.mean(), BUCKETS)
        assert np.sqrt(unsupported.variance_at(gamma)) == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("key", SLOT_KEYS)
def test_slots(key):
    """Marginals and prefixes of the mixture; the control's part is w_p of the whole ranking."""
    columns = {"slot_rewards": {"click": "slot_click"}}
    test = build([key, "point-ncis-adaptive"], interval="delta", columns=columns, buckets=BUCKETS)
    estimate = test.run(LOG.table()).metrics["click"].estimates[key]
    value, influence = LOG.under_one(MIX).estimate(key, LOG.click, CAP, BOUND)
    d = value + influence - BASELINE * LOG.click
    assert estimate.treatment == pytest.approx(value, rel=1e-7)
    assert estimate.effect_size == pytest.approx(d.mean(), rel=1e-6)
    assert estimate.std_error == pytest.approx(LOG.error(d, BUCKETS), rel=1e-6)


def test_the_cap_is_chosen_from_weights_against_the_mixture():
    """The rule by enumeration; 128 draws a display put noise and bias a few per cent off."""
    log = ThreeLoggers(rows=1000, units=400, seed=8, treatment_is_near="older")
    chosen = build(["cis"], cap="auto", interval="delta").run(log.table()).health["cap"]
    mix = log.mixture()
    t, p, r = np.exp(log.log_all["treatment"]), np.exp(mix), log.click
    control = (log.baseline_weights("new", mix) * r).mean()
    noise, bias = np.empty(len(CANDIDATES)), np.empty(len(CANDIDATES))
    for k, c in enumerate(CANDIDATES):
        mass = np.minimum(t, c * p)
        q = mass.sum(axis=1)
        second = (mass**2 / p).sum(axis=1) / q**2
        noise[k] = norm.ppf(0.95) * np.sqrt((r**2).mean() * (second.mean() - 1.0) / log.rows) / control
        bias[k] = 0.3 * (1.0 - q.mean())
    np.testing.assert_allclose(chosen["bias"], bias, atol=0.003)
    np.testing.assert_allclose(chosen["noise"], noise, rtol=0.12)
    assert chosen["chosen"] == CANDIDATES[(noise + bias).argmin()]


# -- segments ---------------------------------------------------------------------------------------------------------


def segments(interval: str, **analysis: object) -> dict[str, ft.Segment]:
    table = LOG.table(country=["fr" if u % 3 else "de" for u in LOG.unit], all=["one"] * LOG.rows)
    test = build(["cis"], interval=interval, buckets=BUCKETS, columns={"segments": ["country", "all"]}, **analysis)
    return {segment.value: segment for segment in test.run(table).segments}


@pytest.mark.parametrize(("value", "mine"), [("fr", LOG.unit % 3 > 0), ("de", LOG.unit % 3 == 0)])
def test_a_segment_takes_away_of_each_difference_what_is_fixed(value, mine):
    """With f its share of the rows, 1 − √(1 − f) of each logger's distance from the mean."""
    metric = segments("delta")[value].metrics["click"]
    estimate, d = metric.estimates["cis"], uplift_terms("cis")[mine]
    logger, bucket = LOG.logger[mine], LOG.buckets(BUCKETS)[mine]
    fixed = 1.0 - np.sqrt(1.0 - mine.mean())
    assert 0.1 < fixed < 0.6

    def error(phi: np.ndarray) -> float:
        apart = np.array([phi[logger == j].mean() for j in range(3)])[logger] - phi.mean()
        sums = np.bincount(bucket, weights=phi - phi.mean() - fixed * apart)
        count = min(BUCKETS, len(np.unique(LOG.unit[mine])))
        return float(np.sqrt(count / (count - 1) * (sums @ sums)) / len(phi))

    assert estimate.effect_size == pytest.approx(d.mean(), rel=1e-9)
    assert estimate.std_error == pytest.approx(error(d), rel=1e-9)
    assert metric.control.std_error == pytest.approx(error((BASELINE * LOG.click)[mine]), rel=1e-9)


def test_resamples_of_a_segment():
    mine, resamples, seed = LOG.unit % 3 == 0, 200, 5
    estimate = segments("bootstrap", n_resamples=resamples, seed=seed)["de"].metrics["click"].estimates["cis"]
    d, logger, bucket = uplift_terms("cis")[mine], LOG.logger[mine], LOG.buckets(BUCKETS)[mine]
    fixed, replicates = 1.0 - np.sqrt(1.0 - mine.mean()), []
    for count in resample_counts(BUCKETS, resamples, seed):
        times = count[bucket]
        for j in range(3):
            if times[logger == j].sum():
                times[logger == j] *= ((logger == j).sum() / times[logger == j].sum()) ** fixed
        replicates.append((times * d).sum() / times.sum())
    limits = estimate.effect_size_ci_lower, estimate.effect_size_ci_upper
    assert limits == pytest.approx(np.quantile(replicates, [0.05, 0.95]), abs=1e-10)


@pytest.mark.parametrize("interval", ["delta", "bootstrap"])
def test_one_segment_is_the_whole_log(interval):
    one = segments(interval, n_resamples=50)["one"].metrics["click"].estimates["cis"]
    test = build(["cis"], interval=interval, buckets=BUCKETS, n_resamples=50)
    whole = test.run(LOG.table()).metrics["click"].estimates["cis"]
    for name in ("effect_size", "std_error", "effect_size_ci_lower", "effect_size_ci_upper"):
        assert getattr(one, name) == pytest.approx(getattr(whole, name), abs=1e-12)
