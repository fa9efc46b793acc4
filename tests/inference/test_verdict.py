"""Verdicts and their reasons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.inference.buckets import Interval, Stratum
from foretest.inference.verdict import Evidence, decide, judge
from tests.support import SCORES, SmallLog, build_test


@pytest.mark.parametrize(
    ("lower", "upper", "enough", "verdict"),
    [
        (0.1, 0.2, True, "positive"),
        (-0.2, -0.1, True, "negative"),
        (-0.1, 0.2, True, "neutral"),
        (0.0, 0.2, True, "neutral"),
        (1e-14, 2e-14, True, "neutral"),  # rounding, not an uplift
        (0.1, 0.2, False, "insufficient"),
        (float("nan"), 0.2, True, "insufficient"),
    ],
)
def test_decide(lower: float, upper: float, enough: bool, verdict: str) -> None:
    assert decide(Interval(lower, upper), enough, control=1.0) == verdict


def evidence(**changes: Any) -> tuple[bool, list[str]]:
    facts: dict[str, Any] = {
        "rows": 1000, "units": 500, "positives": 100, "effective_positives": 60.0, "unsupported": 0, "rewarded": 100,
        "strata": [],
    }  # fmt: skip
    return judge(Evidence(**{**facts, **changes}))


def test_reasons() -> None:
    assert evidence() == (True, [])
    assert evidence(rows=0) == (False, ["the log is empty"])
    assert evidence(positives=0) == (False, ["no row has a reward"])
    assert evidence(units=4)[0] is False
    assert evidence(curve="(1, 0.6)") == (True, ["it rests on the examination curve (1, 0.6) that was given"])
    assert evidence(effective_positives=29.9) == (False, ["only 29.9 effective positives: at least 30 are needed"])
    assert evidence(effective_positives=30.0)[0] is True
    # the smaller of what is predicted and what the log itself shows
    too_few = "only 10.0 effective positives: at least 30 are needed"
    assert evidence(effective_positives=10.0, predicted=30.0) == (False, [too_few])
    said = "only 29.9 predicted effective positives"
    assert evidence(predicted=29.94) == (False, [f"{said}: at least 30 are needed"])
    for verdict in ("positive", "negative"):
        enough, reasons = evidence(predicted=29.94, betting=verdict)
        assert enough
        assert reasons == [f"{said}: the verdict is that of the betting interval, which holds with any number"]
    assert evidence(predicted=29.94, betting="neutral") == (
        False,
        [f"{said}, and the betting interval, which holds with any number, does not exclude 0"],
    )
    assert evidence(predicted=40.0, betting="neutral") == (True, [])
    enough, reasons = evidence(unsupported=10)
    assert enough
    assert reasons == ["10 rewarded rows (10.0%) have no support for the treatment"]
    assert evidence(unsupported=11)[0] is False
    thin = [Stratum("a", 0.99, 1.0, 0.1, 0.099), Stratum("b", 0.01, 0.0, None, 0.0)]
    enough, reasons = evidence(strata=thin)
    assert enough
    assert "b (1.0%)" in reasons[0]
    assert evidence(strata=[Stratum("a", 0.98, 1.0, 0.1, 0.1), Stratum("b", 0.02, 0.0, None, 0.0)])[0] is False


def test_a_stratum_without_weight_is_named() -> None:
    """Zero capping can leave a stratum with no weight at all: it contributes 0, and shares stay."""
    log = SmallLog(rows=400, seed=1)
    w = np.exp(log.log_w)
    log.stratum = np.where(w >= 2.0, 1, 0)
    estimate = build_test(["piece-ncis"], capping="zero").run(log.table()).metrics["click"].estimates["piece-ncis"]
    rest = log.stratum == 0
    expected = rest.mean() * (w * log.click)[rest].sum() / w[rest].sum()
    assert estimate.treatment == pytest.approx(expected, rel=1e-10)
    assert estimate.verdict == "insufficient"
    assert any("no weight in strata" in reason and "1 (" in reason for reason in estimate.reasons)


def test_infeasible_displays_count_as_unsupported() -> None:
    """π_p = (.2, .5, .3), π_t = (1, 0, 0): P_p(W > 0) = .2 < 1/4, so there is no adaptive cap for a bound of 4."""
    g = np.random.default_rng(0)
    n = 600
    scores = np.tile(np.log([0.2, 0.5, 0.3]), (n, 1))
    shown = g.choice(3, size=n, p=[0.2, 0.5, 0.3])
    table = pa.table({
        "click": (g.random(n) < 0.5).astype(float), "ranking": [[int(a)] for a in shown],
        "control_scores": scores.tolist(), "best": [[1.0, 0.0, 0.5]] * n,
    })  # fmt: skip

    def run(bound: float) -> ft.Result:
        return ft.OfflineTest(
            log=ft.LogColumns(rewards=["click"], ranking="ranking"), control=SCORES["control"],
            treatment=ft.EpsilonGreedy(scores="best", epsilon=0.0), weight_bound=bound,
            estimators=["point-ncis-adaptive"],
        ).run(table)  # fmt: skip

    result = run(4.0)
    estimate = result.metrics["click"].estimates["point-ncis-adaptive"]
    clicks = np.array(table["click"])
    assert estimate.unsupported_rows == int(clicks.sum()) == result.health["unsupported_rows"]
    assert estimate.treatment == pytest.approx(clicks.mean(), rel=1e-12)  # w̃ = 1
    assert estimate.verdict == "insufficient"
    # a bound of 5 is just feasible: w̃ = 5 on the treatment's item, 0 elsewhere
    just = run(5.0).metrics["click"].estimates["point-ncis-adaptive"]
    assert just.unsupported_rows == 0
    assert just.treatment == pytest.approx((5.0 * clicks * (shown == 0)).mean(), rel=1e-9)


def few_clicks(clicks_first: int, clicks_second: int, rows: int = 400) -> pa.Table:
    """π_p = (½, ½), π_t = (.05, .95): weights .1 and 1.9, E_p[w²] = 1.81, none beyond a bound of 3."""
    shown = np.arange(rows) % 2
    click = np.zeros(rows, np.bool_)
    click[np.flatnonzero(shown == 0)[:clicks_first]] = True
    click[np.flatnonzero(shown == 1)[:clicks_second]] = True
    return pa.table({
        "click": click, "id": np.arange(rows), "ranking": [[int(a)] for a in shown],
        "control_scores": [[0.0, 0.0]] * rows, "treatment_scores": [np.log([0.05, 0.95]).tolist()] * rows,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "verdict"), [(50, 0, "negative"), (0, 50, "positive"), (25, 25, "insufficient")]
)
def test_with_few_effective_positives_the_betting_interval_decides(first: int, second: int, verdict: str) -> None:
    """50 clicks are worth 50/1.81 = 27.6 that weigh the same."""
    key, table = "point-ncis-adaptive", few_clicks(first, second)
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking", id="id"), **SCORES, weight_bound=3.0, estimators=[key]
    )
    estimate = test.run(table).metrics["click"].estimates[key]
    assert estimate.predicted_effective_positives == pytest.approx(50 / 1.81, rel=1e-9)
    assert estimate.verdict == verdict
    assert estimate.betting is not None
    [reason] = estimate.reasons
    assert reason.startswith("only 27.6 predicted effective positives")
    # numbers stay those of the interval that was asked for
    width = estimate.effect_size_ci_upper - estimate.effect_size_ci_lower
    assert width < estimate.betting["ci_upper"] - estimate.betting["ci_lower"]
    # without a known largest reward nothing can be bet on
    numbers = table.set_column(0, "click", pa.array(np.array(table["click"]).astype(float)))
    unknown = test.run(numbers).metrics["click"].estimates[key]
    assert unknown.verdict == "insufficient"
    assert unknown.betting is None
    assert unknown.reasons == [
        "only 27.6 predicted effective positives: at least 30 are needed, or r_max for an interval that holds with any"
        " number"
    ]
    told = test.replace(r_max=1.0).run(numbers).metrics["click"].estimates[key]
    assert (told.verdict, told.betting) == (verdict, estimate.betting)


def test_with_many_effective_positives_nothing_is_bet_on() -> None:
    key = "point-ncis-adaptive"
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking", id="id"), **SCORES, weight_bound=3.0, estimators=[key]
    )
    estimate = test.run(few_clicks(60, 0)).metrics["click"].estimates[key]
    assert estimate.predicted_effective_positives == pytest.approx(60 / 1.81, rel=1e-9)
    assert (estimate.verdict, estimate.reasons, estimate.betting) == ("negative", [], None)
    # the log's own count, 60, would have been misled: all clicks happen to be on one item
    assert estimate.effective_positives == pytest.approx(60.0, rel=1e-9)
    asked = test.replace(interval="betting").run(few_clicks(60, 0)).metrics["click"].estimates[key]
    assert asked.betting == {"ci_lower": asked.effect_size_ci_lower, "ci_upper": asked.effect_size_ci_upper}


def test_policies_that_cannot_be_drawn_from_are_judged_by_the_log_itself() -> None:
    rows = 400
    click = np.zeros(rows, np.bool_)
    click[:20] = True
    table = pa.table({"click": click, "p": np.full(rows, 0.5), "t": np.where(np.arange(rows) < 200, 0.05, 0.95)})
    estimates = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"]), control=ft.Logged(prob="p"), treatment=ft.Logged(prob="t"), cap=3.0,
        estimators=["cis", "ncis"],
    ).run(table).metrics["click"].estimates  # fmt: skip
    assert estimates["cis"].predicted_effective_positives is None
    assert estimates["cis"].betting is not None
    assert estimates["cis"].reasons[0].startswith("only 20.0 effective positives")
    assert estimates["ncis"].reasons == ["only 20.0 effective positives: at least 30 are needed"]
    assert estimates["ncis"].betting is None
