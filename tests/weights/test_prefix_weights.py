"""Weights of prefixes with a cap: against sums over all prefixes, drawn where these are many, and each with draws of
its own."""

from __future__ import annotations

import numpy as np
import pytest

import foretest as ft
from foretest.aggregation.quantities import SLICE, SLICE_EXPECTED, UNSUPPORTED_REWARDS, WEIGHTED_REWARDS
from foretest.inference.sensitivity import Terms
from foretest.weights.normaliser import Normaliser
from foretest.weights.prefix_weights import PrefixAdaptive, prefix_displays, prefix_prices
from foretest.weights.weight_bounds import GRID
from tests.support import SCORES, SmallLog, build_test

KEY = "cascade-ncis-adaptive"
LOG = SmallLog(rows=200, units=80, m=5, k=3, seed=12)
BOUND = 1.7


def displays(log: SmallLog) -> ft.Displays:
    columns = {"control_scores": ft.Ragged.of(log.control), "treatment_scores": ft.Ragged.of(log.treatment)}
    shown = ft.Ragged.of(log.rankings[log.shown].astype(np.int32))
    return ft.Displays(columns, shown, np.full(log.rows, log.m), np.arange(log.rows).astype(np.uint64))


def priced(log: SmallLog, bounds: tuple[float, ...], together: tuple[float, ...] = (), draws: int = 256) -> tuple:
    """The prices of all slots of a log, and its normaliser."""
    normaliser = Normaliser(SCORES["treatment"], SCORES["control"], draws=draws)
    every, shown = np.ones(log.rows * log.k, np.bool_), displays(log)
    return prefix_prices(shown, log.log_w, normaliser, every, bounds, together=together), normaliser


def test_prices_are_sums_over_all_prefixes() -> None:
    prices, _ = priced(LOG, (BOUND,))
    cap, q, below, _ = (column.reshape(LOG.rows, LOG.k) for column in prices.caps[BOUND])
    w = np.exp(prices.log_w).reshape(LOG.rows, LOG.k)
    np.testing.assert_allclose(w, LOG.slot_weights("rips", BOUND), rtol=1e-9)
    for k in range(LOG.k):
        capped, mass, capped_below, mass_below = LOG.prefix_terms(k + 1, BOUND)
        np.testing.assert_allclose(np.minimum(w, cap)[:, k], capped, rtol=1e-9)
        np.testing.assert_allclose(np.minimum(w, cap / 3.0)[:, k], capped_below, rtol=1e-9)
        np.testing.assert_allclose(q[:, k], mass, rtol=1e-9)
        np.testing.assert_allclose(below[:, k], mass_below, rtol=1e-9)
    assert (cap < w).any()


@pytest.mark.parametrize("metric", ["click", "revenue"])
def test_value_and_band_against_enumeration(metric: str) -> None:
    """Σ h r, Σ (h − w̄) r and both sides of the slice test, by all prefixes."""
    test = build_test([KEY], metrics=(metric,), weight_bound=BOUND)
    aggregates = test.aggregate(LOG.table()).aggregates
    prefix = [LOG.prefix_terms(k + 1, BOUND) for k in range(LOG.k)]
    capped, q, below, q_below = (np.stack([terms[i] for terms in prefix], axis=1) for i in range(4))
    earned = LOG.shares[metric] * getattr(LOG, metric)[:, None]
    found = test.run(LOG.table()).metrics[metric].estimates[KEY]
    assert found.treatment == pytest.approx((capped / q * earned).sum() / LOG.rows, rel=1e-9)
    account = aggregates.weighted(PrefixAdaptive(BOUND), 0)
    expected = {
        WEIGHTED_REWARDS: capped / q, UNSUPPORTED_REWARDS: capped / q - capped, SLICE: capped - below,
        SLICE_EXPECTED: (q - q_below) / q_below * below,
    }  # fmt: skip
    for quantity, h in expected.items():
        assert account.total(quantity) * np.exp(account.log_unit) == pytest.approx((h * earned).sum(), rel=1e-9), (
            quantity
        )
    terms = Terms.of(aggregates, PrefixAdaptive(BOUND), 0)
    assert terms.mean(terms.t) == pytest.approx((expected[UNSUPPORTED_REWARDS] * earned).sum() / LOG.rows, rel=1e-9)
    assert found.sensitivity is not None
    kept = test.run(LOG.table()).health["mass_kept"][KEY]
    assert kept == pytest.approx(q.mean(), rel=1e-9)


def test_several_bounds_say_what_each_says() -> None:
    """Caps and masses of the grid are those of the bounds alone; E_p[w̃_b w̃_b'] by enumeration."""
    together, _ = priced(LOG, GRID[:2], GRID[:2])
    alone, _ = priced(LOG, GRID[:2])
    for bound in GRID[:2]:
        np.testing.assert_allclose(together.caps[bound][:2], alone.caps[bound][:2], rtol=1e-9)
    assert together.bounds is not None
    row, bounds = 7, (1.3, BOUND)
    products = priced(LOG, bounds, bounds)[0].bounds.products.reshape(LOG.rows, LOG.k, 2, 2)
    for k in range(LOG.k):
        prefixes, place = np.unique(LOG.rankings[:, : k + 1], axis=0, return_inverse=True)
        t, p = (np.bincount(place.ravel(), weights=np.exp(log[row])) for log in (LOG.log_t, LOG.log_p))
        weights = []
        for bound in bounds:
            one = SmallLog(rows=len(prefixes), m=5, k=3)  # every prefix of the row shown once
            one.log_t, one.log_p = (np.tile(log[row], (len(prefixes), 1)) for log in (LOG.log_t, LOG.log_p))
            one.shown = np.array([np.flatnonzero(place.ravel() == j)[0] for j in range(len(prefixes))])
            capped, q, _, _ = one.prefix_terms(k + 1, bound)
            weights.append(capped / q)
        np.testing.assert_allclose(products[row, k], np.einsum("ij,kj,j->ik", weights, weights, p), rtol=1e-9)
        assert t.sum() == pytest.approx(1.0)


def test_the_last_slot_has_the_masses_of_the_ranking() -> None:
    """Also where they are drawn: with the ranking's own draws, whether they are given or not."""
    log = LOG
    normaliser = Normaliser(SCORES["treatment"], SCORES["control"], method="two-sided", draws=32)
    shown, every = displays(log), np.ones(log.rows * log.k, np.bool_)
    whole = normaliser.at_bounds(shown, GRID)
    given = prefix_prices(shown, log.log_w, normaliser, every, GRID, together=GRID, whole=whole)
    found = prefix_prices(shown, log.log_w, normaliser, every, GRID, together=GRID)
    for mine, other in zip(given.bounds, found.bounds, strict=True):
        np.testing.assert_array_equal(mine, other)
    np.testing.assert_array_equal(found.bounds.q[log.k - 1 :: log.k], whole.q)


def test_draws_are_right_in_the_mean_and_each_length_has_its_own() -> None:
    """q of drawn prefixes against all prefixes; no two lengths of a display share a key, nor one with the ranking."""
    shown = displays(LOG)
    rows = np.repeat(np.arange(LOG.rows), LOG.k)
    cut = prefix_displays(shown, rows, np.tile(np.arange(1, LOG.k + 1), LOG.rows))
    assert len(np.unique(cut.key())) == LOG.rows * LOG.k
    np.testing.assert_array_equal(cut.key()[LOG.k - 1 :: LOG.k], shown.key())
    assert cut.slots.tolist() == [1, 2, 3] * LOG.rows
    normaliser = Normaliser(SCORES["treatment"], SCORES["control"], method="two-sided", draws=512)
    at_cap = normaliser.at_cap(cut, 1.2, zero=False).q.reshape(LOG.rows, LOG.k)
    exact = Normaliser(SCORES["treatment"], SCORES["control"], method="exact").at_cap(cut, 1.2, zero=False).q
    error = at_cap - exact.reshape(LOG.rows, LOG.k)
    z = error.mean(axis=0) / (error.std(axis=0, ddof=1) / np.sqrt(LOG.rows))
    assert np.abs(z).max() < 3.7  # of three: a chance of 0.06 %


def test_only_slots_that_earn_are_priced() -> None:
    earns = np.zeros(LOG.rows * LOG.k, np.bool_)
    earns[[4, 8]] = True  # slot 2 of the second row, slot 3 of the third
    normaliser = Normaliser(SCORES["treatment"], SCORES["control"])
    some = prefix_prices(displays(LOG), LOG.log_w, normaliser, earns, (BOUND,))
    every, _ = priced(LOG, (BOUND,))
    np.testing.assert_array_equal(some.caps[BOUND][:, earns], every.caps[BOUND][:, earns])
    assert not some.caps[BOUND][:, ~earns].any()


def test_equal_policies_have_no_uplift_at_any_bound() -> None:
    for bound in ("auto", 20.0):
        test = ft.OfflineTest(
            log=build_test([KEY]).settings.log, control=SCORES["control"], treatment=SCORES["control"],
            estimators=[KEY], weight_bound=bound, n_resamples=100,
        )  # fmt: skip
        estimate = test.run(LOG.table()).metrics["click"].estimates[KEY]
        assert (estimate.effect_size, estimate.std_error) == (0.0, 0.0)
