"""What is kept of each sampled display: the same from compiled draws as from `sample` and `log_prob` alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.aggregation import audit_draws
from foretest.aggregation.audit_draws import MOST_SLOTS, NO_ITEM, Drawn, draw_rankings, drawn_columns, shown_columns
from foretest.aggregation.shown_scores import COLUMNS
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.weights.policy_pair import FROM_TREATMENT, PolicyPair
from tests.support import SmallLog

LOG = SmallLog(rows=300, seed=5)
LOG_P = LOG.log_p[np.arange(300), LOG.shown]


class Own(ft.PlackettLuce):
    """A user's policy: not the class that the kernels know."""


def displays(**columns: Any) -> Displays:
    return Displays(
        {"control_scores": Ragged.of(LOG.control), "treatment_scores": Ragged.of(LOG.treatment), **columns},
        Ragged.of(LOG.rankings[LOG.shown].astype(np.int32)), np.full(300, LOG.m), np.arange(300).astype(np.uint64),
    )  # fmt: skip


def drawn(control: Any, treatment: Any = None, count: int = 16, **columns: Any) -> Drawn:
    pair = PolicyPair(treatment or ft.PlackettLuce("treatment_scores"), control, seed=3)
    return draw_rankings(pair, displays(**columns), count, weigh=True)


@pytest.mark.parametrize("policy", [ft.PlackettLuce, Own])
@pytest.mark.parametrize("weigh", [True, False])
def test_draws_are_priced_as_enumerated(policy: type, weigh: bool) -> None:
    """Compiled and generic alike: a drawn ranking's probabilities are those of the same ranking among all 20."""
    pair = PolicyPair(ft.PlackettLuce("treatment_scores"), policy("control_scores"), seed=3)
    draws = draw_rankings(pair, displays(), 4, weigh=weigh)
    place = {tuple(ranking): i for i, ranking in enumerate(LOG.rankings.tolist())}
    which = np.array([[place[tuple(r[:2])] for r in row] for row in draws.positions.tolist()])
    rows = np.arange(300)[:, None]
    np.testing.assert_allclose(draws.log_p, LOG.log_p[rows, which], rtol=1e-10)
    assert (draws.log_w is None) != weigh
    if draws.log_w is not None:
        np.testing.assert_allclose(draws.log_w, (LOG.log_t - LOG.log_p)[rows, which], rtol=1e-9, atol=1e-10)
    expected = pair.draw(displays(), FROM_TREATMENT, 0, 4, from_treatment=True) if weigh else None
    np.testing.assert_equal(draws.log_w_treatment, expected)


def test_batches_of_draws_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rankings of both policies are priced together, few displays at a time or many."""
    pair = PolicyPair(Own("treatment_scores"), Own("control_scores"), seed=3)
    whole = draw_rankings(pair, displays(), 16, weigh=True)
    monkeypatch.setattr(audit_draws, "rankings_at_once", lambda displays: 100)
    for part, same in zip(draw_rankings(pair, displays(), 16, weigh=True), whole, strict=True):
        np.testing.assert_array_equal(part, same)


def test_expectations_by_enumeration() -> None:
    """Mean log π and the first slot's items, of all 20 rankings of each display."""
    p = np.exp(LOG.log_p)
    draws = drawn(ft.PlackettLuce("control_scores"), count=64)
    error = np.sqrt(((p * LOG.log_p**2).sum(axis=1) - (p * LOG.log_p).sum(axis=1) ** 2).sum() / 64)
    assert draws.log_p.mean(axis=1).sum() == pytest.approx((p * LOG.log_p).sum(), abs=4 * error)
    for item in range(LOG.m):
        share = p[:, LOG.rankings[:, 0] == item].sum(axis=1)
        seen = (draws.positions[:, :, 0] == item).sum()
        assert seen == pytest.approx(64 * share.sum(), abs=4 * np.sqrt(64 * (share * (1 - share)).sum()))


def test_columns_of_a_display() -> None:
    control = ft.PlackettLuce("control_scores")
    shown = shown_columns(control, displays())
    np.testing.assert_allclose(shown["log_p"], LOG.log_p[np.arange(300), LOG.shown], rtol=1e-10)
    assert not shown["certain"].any()
    columns = drawn_columns(control, control, displays(), LOG_P, drawn(control), seed=3)
    assert set(columns) - set(COLUMNS) == {"expected_log_p", "place", "ranks"}
    assert columns["ranks"].shape == (300, 5, MOST_SLOTS)
    best = LOG.control.argmax(axis=1) == LOG.rankings[LOG.shown, 0]
    np.testing.assert_array_equal(columns["ranks"][:, 0, 0] == 0, best)
    assert (columns["ranks"][:, :, 2:] == 255).all()


def test_items_are_counted_by_id_where_the_log_has_ids() -> None:
    ids = np.random.default_rng(1).integers(100, 130, (300, LOG.m))
    control = ft.PlackettLuce("control_scores")
    extra = {"foretest: items": Ragged.of(ids)}
    columns = drawn_columns(control, control, displays(**extra), LOG_P, drawn(control, **extra), seed=3)
    np.testing.assert_array_equal(
        columns["items"][:, 0, :2], np.take_along_axis(ids, LOG.rankings[LOG.shown], axis=1)
    )  # fmt: skip
    assert (columns["items"][:, :, 2:] == NO_ITEM).all()


def test_a_logged_probability_is_kept_beside_the_recomputed_one() -> None:
    control = ft.PlackettLuce("control_scores", prob="p")
    extra = {"p": np.full(300, 0.25)}
    assert (shown_columns(control, displays(**extra))["log_p"] == np.log(0.25)).all()
    columns = drawn_columns(control, control, displays(**extra), LOG_P, drawn(control, **extra), seed=3)
    np.testing.assert_allclose(columns["log_p_scores"], LOG.log_p[np.arange(300), LOG.shown], rtol=1e-10)


def test_the_only_ranking_is_certain() -> None:
    extra = {"p": np.where(np.arange(300) < 40, 1.0, 0.5)}
    assert shown_columns(ft.Logged(prob="p"), displays(**extra))["certain"].sum() == 40
