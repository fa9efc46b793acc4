"""Health against the same figures in plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation import fold_start
from tests.support import SCORES, SmallLog, build_test

LOG = SmallLog(rows=600, units=600, seed=13)


@pytest.mark.parametrize("capping", ["max", "zero"])
def test_figures_of_the_weights(capping: str) -> None:
    health = build_test(["cis"], capping=capping, cap=1.5).run(LOG.table()).health
    w, h = np.exp(LOG.log_w), LOG.capped(1.5, capping)
    assert health["effective_sample_size"] == pytest.approx(h.sum() ** 2 / (h**2).sum(), rel=1e-10)
    assert health["max_weight"] == pytest.approx(w.max(), rel=1e-10)
    assert health["max_log10_weight"] == pytest.approx(np.log10(w.max()), rel=1e-9)
    assert health["max_weight_share"] == pytest.approx(w.max() / w.sum(), rel=1e-10)
    assert health["capped_share"] == pytest.approx((w > 1.5).mean())
    assert health["treatment_mass_kept"] == pytest.approx(h.mean(), rel=1e-10)
    hr = h * LOG.click
    assert health["effective_positives"]["click"] == pytest.approx(hr.sum() ** 2 / (hr**2).sum(), rel=1e-10)
    assert health["unsupported_rows"] == 0


@pytest.mark.parametrize("key", ["point-ncis", "point-ncis-adaptive"])
def test_predicted_effective_positives_by_enumeration(key: str) -> None:
    """(Σr)²/Σ r² E_p[h²|x], the expectation over all rankings that the control might have shown."""
    result = build_test([key, "cis"], metrics=("click", "revenue")).run(LOG.table())
    p, w = np.exp(LOG.log_p), np.exp(LOG.log_t - LOG.log_p)
    # h of every ranking is that of the shown one where both share min(w, c): c and q belong to the display
    shown = LOG.weights(key, 2.0, 3.0)
    at = np.arange(LOG.rows), LOG.shown
    if key == "point-ncis":
        h = np.minimum(w, 2.0) / LOG.q(2.0)[:, None]
    else:
        q_over_cap = np.array([_adaptive(LOG, i, 3.0) for i in range(LOG.rows)])
        h = np.minimum(w, q_over_cap[:, :1]) / q_over_cap[:, 1:]
    np.testing.assert_allclose(h[at], shown, rtol=1e-9)
    second = (p * h**2).sum(axis=1)
    for name, r in (("click", LOG.click), ("revenue", LOG.revenue)):
        estimates = result.metrics[name].estimates
        expected = r.sum() ** 2 / (r**2 @ second)
        assert estimates[key].predicted_effective_positives == pytest.approx(expected, rel=1e-9)
        assert estimates["cis"].predicted_effective_positives is None


def _adaptive(log: SmallLog, i: int, bound: float) -> tuple[float, float]:
    """The cap of display i by bisection, and q there."""
    t, p = np.exp(log.log_t[i]), np.exp(log.log_p[i])
    low, high = -60.0, np.log(bound) + 1e-12
    for _ in range(200):
        middle = 0.5 * (low + high)
        fits = np.exp(middle) <= bound * np.minimum(t, np.exp(middle) * p).sum()
        low, high = (middle, high) if fits else (low, middle)
    return float(np.exp(low)), float(np.minimum(t, np.exp(low) * p).sum())


def test_predicted_effective_positives_of_more_rows_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the rows tell of all: the mean of E_p[h²|x] over them, and so many more of the same kind."""
    test = build_test(["point-ncis-adaptive"])
    whole = test.run(LOG.table()).metrics["click"].estimates["point-ncis-adaptive"].predicted_effective_positives
    monkeypatch.setattr(fold_start, "MOST_REWARDED", int(LOG.click.sum()) // 2)
    half = test.run(LOG.table()).metrics["click"].estimates["point-ncis-adaptive"].predicted_effective_positives
    assert half == pytest.approx(whole, rel=0.15)
    assert half != whole


def test_support_comes_from_the_sample_of_displays() -> None:
    support = build_test(["cis"], cap=1.5).run(LOG.table()).health["support"]
    q = LOG.q(1.5)
    assert support["displays"] == 600
    assert support["mean_q"] == pytest.approx(q.mean(), rel=1e-9)
    assert support["q_quantiles"]["0.5"] == pytest.approx(np.quantile(q, 0.5), rel=1e-9)
    assert support["share_q_below_half"] == pytest.approx((q < 0.5).mean())
    assert support["treatment_mass_unshowable"] == 0.0


def test_mass_on_what_the_control_cannot_show() -> None:
    """A control that always shows its best item: all but π_t(best) of the treatment is out of reach."""
    best = np.argmax(LOG.control, axis=1)
    table = LOG.table().set_column(6, "ranking", [[[int(a)] for a in best]])
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking"), treatment=SCORES["treatment"],
        control=ft.EpsilonGreedy(scores="control_scores", epsilon=0.0), estimators=["cis"],
    )  # fmt: skip
    support = test.run(table).health["support"]
    e = np.exp(LOG.treatment)
    missing = 1.0 - (e[np.arange(600), best] / e.sum(axis=1))
    draws = 600 * 16
    assert support["treatment_mass_unshowable"] == pytest.approx(missing.mean(), abs=4 * np.sqrt(0.25 / draws))


def test_logged_policies_tell_nothing_of_support() -> None:
    table = LOG.table(p=np.full(600, 0.5), t=np.full(600, 0.25))
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="p"), treatment=ft.Logged(prob="t")
    )
    result = test.run(table)
    assert result.health["support"] is None
    assert list(result.metrics["click"].estimates) == ["is", "nis", "cis", "ncis"]
    assert any("point-ncis was left out" in note and "logged" in note for note in result.notes)
    assert any("dr was left out" in note for note in result.notes)


def test_check_gives_health_and_no_estimate() -> None:
    test = build_test()
    checked = test.check(LOG.table())
    assert checked.metrics == {}
    run = test.replace(estimators=["cis"]).run(LOG.table()).health
    assert checked.health == {name: value for name, value in run.items() if name != "mass_kept"}  # an estimator's


# -- a control that leaves nothing to chance -----------------------------------------------------------------------


def best_first(log: SmallLog) -> Any:
    """The table with the two best items of the control shown, as a greedy control shows them."""
    shown = np.argsort(-log.control, axis=1, kind="stable")[:, : log.k]
    return log.table(ranking=pa.array(shown.tolist(), pa.list_(pa.int32())), p=np.ones(log.rows))


@pytest.mark.parametrize(
    ("control", "certain"),
    [
        (ft.EpsilonGreedy(scores="control_scores", epsilon=0.0), True),
        (ft.EpsilonGreedy(scores="control_scores", epsilon=1e-9), True),
        (ft.EpsilonGreedy(scores="control_scores", epsilon=0.01), False),
        (ft.PlackettLuce(scores="control_scores", temperature=1e-9), True),
        (ft.PlackettLuce(scores="control_scores"), False),
        (ft.Mallows(scores="control_scores", dispersion=1e-9), True),
        (ft.Logged(prob="p"), True),
        (ft.PlackettLuce(scores="control_scores", prob="p"), True),
    ],
    ids=repr,
)
def test_a_deterministic_control_is_recognised(control: Any, certain: bool) -> None:
    """And answered with what to log instead: no interval of such a log says anything of the treatment."""
    log = SmallLog(rows=400, seed=9)
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id"), control=control,
        treatment=ft.EpsilonGreedy(scores="treatment_scores", epsilon=0.5), estimators=["ncis"],
    )  # fmt: skip
    result = test.run(best_first(log))
    assert result.health["control_deterministic"] is certain
    estimate = result.metrics["click"].estimates["ncis"]
    reasons = [reason for reason in estimate.reasons if reason.startswith("the control is deterministic")]
    assert len(reasons) == int(certain)
    if certain:
        assert estimate.verdict == "insufficient"
        assert "log the scores and the probability of what was shown" in reasons[0]
        assert "foretest plan" in reasons[0]
    checked = test.check(best_first(log))
    assert any("the control is deterministic" in note for note in checked.notes) is certain


def test_one_display_left_to_chance_is_enough_not_to_be_deterministic() -> None:
    log = SmallLog(rows=400, seed=9)
    p = np.ones(log.rows)
    p[17] = 0.9
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", id="id"), control=ft.Logged(prob="p"),
        treatment=ft.Logged(prob="p"), estimators=["ncis"],
    )  # fmt: skip
    table = log.table(p=p)
    assert test.run(table).health["control_deterministic"] is False
    parts = test.aggregate(table.slice(0, 100))[0] + test.aggregate(table.slice(100))[0]
    assert test.analyse(parts, [], {}).health["control_deterministic"] is False
    first = test.aggregate(table.slice(20))[0] + test.aggregate(table.slice(0, 10))[0]
    assert test.analyse(first, [], {}).health["control_deterministic"] is True
    assert test.run(table.slice(0, 0)).health["control_deterministic"] is None


@pytest.mark.parametrize("treatment", [ft.PlackettLuce("treatment_scores", 0.5), ft.Mallows("treatment_scores", 0.3)])
def test_draws_do_not_blur_what_the_cap_leaves(treatment: ft.Policy) -> None:
    """Where rankings are drawn, q of a display that the cap hardly cuts is 1, or what its draws lost: no noise around 1
    that would be cut off on one side alone."""
    rng = np.random.default_rng(5)
    rows, items = 400, 8
    control = rng.normal(size=(rows, items))
    scores = {"control_scores": control, "treatment_scores": control + 0.5 * rng.normal(size=(rows, items))}
    shown = np.argsort(-control / 0.5 - rng.gumbel(size=(rows, items)), axis=1)[:, :6]
    log = pa.table({"click": np.ones(rows), "ranking": shown.tolist(), **{k: v.tolist() for k, v in scores.items()}})
    policies = {"control": ft.PlackettLuce("control_scores", 0.5), "treatment": treatment}
    columns = ft.LogColumns(rewards=["click"], ranking="ranking")
    test = ft.OfflineTest(log=columns, **policies, estimators=["cis"], cap=100.0)
    displays = ft.Displays(
        {name: ft.Ragged.of(lists) for name, lists in scores.items()},
        ft.Ragged.of(shown.astype(np.int32)), np.full(rows, items), np.arange(rows).astype(np.uint64),
    )  # fmt: skip
    kept = np.empty((rows, 2000))
    for at in range(2000):
        ranking = treatment.sample(displays, rng.uniform(1e-12, 1.0, size=(rows, items + 1)))
        log_t, log_p = (policy.log_prob(displays, ranking) for policy in (treatment, policies["control"]))
        kept[:, at] = np.exp(np.minimum(0.0, np.log(100.0) + log_p - log_t))
    error = np.sqrt(kept.var(axis=1).mean() / 16 / rows)
    assert 0.0 < error < 0.003
    assert test.run(log).health["support"]["mean_q"] == pytest.approx(kept.mean(), abs=4.0 * error)
