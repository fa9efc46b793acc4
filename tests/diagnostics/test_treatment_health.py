"""The treatment beside the control: correlation, entropies and scale against plain NumPy and enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import spearmanr

import foretest as ft
from foretest.diagnostics.treatment_health import mean_by_unit
from tests.support import SCORES, SmallLog

LOG = SmallLog(rows=400, units=150, seed=4)
ROLES = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id")


def check(**changes: Any) -> ft.Result:
    return ft.OfflineTest(**{"log": ROLES, **SCORES, **changes}).check(LOG.table(), threads=1)


def test_the_numbers_are_those_of_the_displays() -> None:
    health = check().health["treatment"]
    correlations = [spearmanr(c, t).statistic for c, t in zip(LOG.control, LOG.treatment, strict=True)]
    assert health["rank_correlation"] == pytest.approx(np.mean(correlations), abs=1e-6)
    terms = np.bincount(LOG.unit, np.array(correlations) - np.mean(correlations))
    units = len(np.unique(LOG.unit))
    error = np.sqrt(units / (units - 1) * np.square(terms).sum()) / LOG.rows
    assert health["rank_correlation_error"] == pytest.approx(error, rel=1e-5)
    spreads = [np.median(scores.std(axis=1)) for scores in (LOG.control, LOG.treatment)]
    assert health["scale_ratio"] == pytest.approx(spreads[1] / spreads[0], rel=1e-6)
    assert health["entropy_uniform"] == pytest.approx(np.log(5 * 4))
    assert health["looks_like"] is None
    assert health["sorted"] is False
    assert health["identical"] is False
    assert health["mass_never_shown"] == 0.0


@pytest.mark.parametrize("policy", [ft.PlackettLuce("treatment_scores"), ft.EpsilonGreedy("treatment_scores", 0.3)])
def test_entropies_are_those_of_all_rankings(policy: Any) -> None:
    """One ranking in four displays from the treatment, sixteen in all from the control: within three errors."""
    health = check(treatment=policy).health["treatment"]
    of_control = -(np.exp(LOG.log_p) * LOG.log_p).sum(axis=1)
    assert health["entropy_control"] == pytest.approx(of_control.mean(), abs=3.0 * LOG.log_p.std() / np.sqrt(16 * 400))
    if isinstance(policy, ft.PlackettLuce):
        log_t = LOG.log_t
    else:  # the best is shown with probability 1 − ε + ε/M, any other with ε/M, among the M that are left
        log_t = np.empty_like(LOG.log_t)
        for column, ranking in enumerate(LOG.rankings):
            left, total = np.ones(LOG.treatment.shape, bool), np.zeros(LOG.rows)
            for slot, item in enumerate(ranking):
                best = np.where(left, LOG.treatment, -np.inf).argmax(axis=1) == item
                total += np.log(np.where(best, 0.7, 0.0) + 0.3 / (5 - slot))
                left[:, item] = False
            log_t[:, column] = total
    p = np.exp(log_t)
    of_treatment = -(p * log_t).sum(axis=1)
    variance = (p * log_t**2).sum(axis=1) - of_treatment**2
    error = np.sqrt((variance.mean() + of_treatment.var()) * 4.0 / LOG.rows)
    assert health["entropy_treatment"] == pytest.approx(of_treatment.mean(), abs=3.0 * error)


def test_temperatures_are_part_of_the_scale() -> None:
    plain, sharp = check().health["treatment"], check(treatment=ft.PlackettLuce("treatment_scores", 0.5))
    assert sharp.health["treatment"]["scale_ratio"] == pytest.approx(2.0 * plain["scale_ratio"], rel=1e-6)
    sorts = check(treatment=ft.EpsilonGreedy("treatment_scores", 0.3)).health["treatment"]
    assert sorts["scale_ratio"] is None  # only the order matters
    assert sorts["rank_correlation"] == plain["rank_correlation"]


def another_temperature(control: Any, treatment: Any, scores: np.ndarray | None = None) -> list[str]:
    """The questions about the temperature of a log drawn at .6, of a new model whose scores are as far apart."""
    g = np.random.default_rng(0)
    old = g.normal(size=(3000, 5))
    new = (0.8 * old + 0.6 * g.normal(size=old.shape)) if scores is None else scores * old
    shown = np.argsort(-(old / 0.6 + g.gumbel(size=old.shape)), axis=1)[:, :2]
    log = pa.table({
        "click": g.random(len(old)) < 0.1, "ranking": shown.tolist(), "old": old.tolist(), "new": new.tolist(),
    })  # fmt: skip
    policies = {"control": ft.PlackettLuce("old", control), "treatment": ft.PlackettLuce("new", treatment)}
    result = ft.OfflineTest(log=ft.LogColumns(rewards=["click"], ranking="ranking"), **policies).check(log)
    asked = [note for note in result.notes if "temperature" in note and "?" in note]
    assert ("another temperature" in result.health["questions"]) == bool(asked)
    return asked


def test_another_temperature_of_scores_that_are_as_far_apart_is_asked_about() -> None:
    [question] = another_temperature(0.6, 1.0)
    assert question == (
        "the control has temperature 0.6 and the treatment 1, though the scores of both are as far apart within a"
        " display: for that alone the treatment shows its best items less often. Is that meant? If it would be served"
        ' with the control\'s, give it temperature = "control".'
    )
    assert "shows its best items more often" in another_temperature(0.6, 0.3)[0]
    assert "the control has temperature 0.6" in another_temperature("fit", 1.0)[0]
    for control, treatment in ((0.6, "control"), (0.6, 0.7), ("fit", "control"), (None, 0.5)):
        assert another_temperature(control, treatment) == []
    assert another_temperature(0.6, 1.2, scores=np.array(2.0)) == []  # scores twice as far apart explain it


def test_a_fitted_temperature_that_the_treatment_has_not_is_asked_about() -> None:
    [question] = another_temperature("fit", None)
    assert question.startswith("the control's temperature was fitted as 0.6")
    assert question.endswith(
        ", and the treatment has none, so that it draws at 1. Would it be served with the control's? Then give it"
        ' temperature = "control", else its own, as in temperature = 1.0.'
    )


def test_a_mean_by_unit_leaves_out_what_is_not_known() -> None:
    values, unit = np.array([1.0, np.nan, 3.0, 5.0]), np.array([1, 1, 2, 2], np.uint64)
    mean, error = mean_by_unit(values, unit)
    assert mean == 3.0
    assert error == pytest.approx(np.sqrt(2.0 * (4.0 + 4.0)) / 3.0)
    assert mean_by_unit(np.full(4, np.nan), unit) == (None, None)


def test_of_logged_policies_only_identity_is_known() -> None:
    p = np.exp(LOG.log_p[np.arange(LOG.rows), LOG.shown])
    table = pa.table({"click": LOG.click, "p": p, "t": p})
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="p"), treatment=ft.Logged(prob="t")
    )
    result = test.check(table)
    health = result.health["treatment"]
    assert health["identical"] is True
    assert health["rank_correlation"] is None
    assert health["entropy_treatment"] is None
    assert health["entropy_control"] == pytest.approx(-np.log(p).mean())
    assert result.health["questions"] == ["identical policies"]


def test_the_line_of_health() -> None:
    text = str(check())
    assert "rank correlation" in text
    assert "of both scores; entropy" in text


def test_equal_probabilities_have_no_scale_to_compare() -> None:
    """Sixths differ from their mean by rounding alone, which is no spread."""
    g = np.random.default_rng(0)
    rows, items = 2000, 6
    log = pa.table({
        "click": g.random(rows) < 0.1, "action": g.integers(0, items, rows),
        "p": np.full((rows, items), 1.0 / items).tolist(), "t": g.dirichlet(np.ones(items), rows).tolist(),
    })  # fmt: skip
    columns = ft.LogColumns(rewards=("click",), ranking="action")
    test = ft.OfflineTest(log=columns, control=ft.Probabilities("p"), treatment=ft.Probabilities("t"))
    result = test.run(log)
    assert not [note for note in result.notes if "another scale" in note]
