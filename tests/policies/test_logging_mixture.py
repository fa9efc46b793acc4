"""The mixture of several loggers, with shares by row, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import foretest as ft
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.log.logger_columns import hash_day, shares_of
from foretest.policies.logging_mixture import DAY, LOGGER, LoggingMixture, OwnLogger
from tests.loggers import NAMES, ThreeLoggers

LOG = ThreeLoggers(rows=6, seed=3)
LOGGERS = {name: ft.PlackettLuce(scores=f"{name}_scores") for name in NAMES}
# a logger without a share comes last: rounding must not pick it
SHARES = shares_of({("a", 0): 6, ("a", 1): 3, ("a", 2): 1, ("b", 0): 2, ("b", 1): 8}, 3)
ALPHA = np.array([[0.6, 0.3, 0.1], [0.2, 0.8, 0.0]])


def displays(repeat: int = 1) -> tuple[Displays, np.ndarray]:
    rows = np.repeat(np.arange(LOG.rows), repeat)
    day = rows % 2
    columns = {f"{name}_scores": Ragged.of(LOG.scores[name][rows]) for name in NAMES}
    columns |= {LOGGER: (rows % 3).astype(np.int64), DAY: np.array([hash_day("ab"[d]) for d in day], np.uint64)}
    ranking = Ragged.of(LOG.rankings[LOG.shown[rows]].astype(np.int32))
    return Displays(columns, ranking, np.full(len(rows), 4), rows.astype(np.uint64)), day


def exact() -> np.ndarray:
    """π_mix of every ranking, rows × rankings."""
    return sum(ALPHA[np.arange(6) % 2, j, None] * np.exp(LOG.log_all[name]) for j, name in enumerate(NAMES))


def test_probabilities_are_the_mixture_and_sum_to_one():
    every = len(LOG.rankings)
    some, _ = displays(every)
    rankings = Ragged.of(np.tile(LOG.rankings, (LOG.rows, 1)).astype(np.int32))
    found = np.exp(LoggingMixture(LOGGERS, "new", SHARES).log_prob(some, rankings)).reshape(LOG.rows, every)
    np.testing.assert_allclose(found, exact(), rtol=1e-10)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("own", [False, True])
def test_draws_have_these_probabilities(own):
    count = 4000
    some, _ = displays(count)
    uniforms = np.random.default_rng(7).random((len(some), 5))
    pooled = LoggingMixture(LOGGERS, "new", SHARES)
    drawn = (OwnLogger(pooled) if own else pooled).sample(some, uniforms).flat().reshape(LOG.rows, count, 2)
    expected = exact()
    if own:
        expected = np.stack([np.exp(LOG.log_all[NAMES[i % 3]][i]) for i in range(LOG.rows)])
    for i in range(LOG.rows):
        share = np.array([(drawn[i] == ranking).all(axis=1).mean() for ranking in LOG.rankings])
        error = np.sqrt(expected[i] * (1 - expected[i]) / count)
        assert (np.abs(share - expected[i]) < 4.5 * error + 1e-12).all()


def test_own_logger_prices_each_row_by_its_own():
    some, _ = displays()
    found = OwnLogger(LoggingMixture(LOGGERS, "new", SHARES)).log_prob(some, some.ranking)
    expected = [LOG.log_all[NAMES[i % 3]][i, LOG.shown[i]] for i in range(LOG.rows)]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_baselines_part():
    some, _ = displays()
    pooled = LoggingMixture(LOGGERS, "old", SHARES)
    expected = LOG.log_all["old"][np.arange(6), LOG.shown] - np.log(exact()[np.arange(6), LOG.shown])
    np.testing.assert_allclose(pooled.log_baseline(some, np.arange(len(some))), expected, rtol=1e-10)
    assert pooled.baseline_range == pytest.approx((0.0, 1 / 0.3))


def test_slot_marginals():
    some, _ = displays()
    shows = LOG.rankings[:, :, None] == np.arange(4)
    expected = np.einsum("ra,aki->rki", exact(), shows)
    found = LoggingMixture(LOGGERS, "new", SHARES).slot_marginals(some).flat().reshape(6, 2, 4)
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_one_column_of_probabilities_cannot_be_two_loggers():
    with pytest.raises(ft.BadInput, match="'a' and 'b' both take their probabilities from the column 'p'"):
        LoggingMixture({"a": ft.Logged(prob="p"), "b": ft.Logged(prob="p")}, "a")


def test_a_day_that_was_not_counted():
    with pytest.raises(ft.BadInput, match="a day that was not in it when the shares of its loggers were counted"):
        SHARES.of(np.array([hash_day("c")]))
