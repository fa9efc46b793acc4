"""Verdicts and their reasons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.inference.buckets import Interval, Stratum
from foretest.verdict import decide, reasons_against
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
    return reasons_against(**{**facts, **changes})


def test_reasons() -> None:
    assert evidence() == (True, [])
    assert evidence(rows=0) == (False, ["the log is empty"])
    assert evidence(positives=0) == (False, ["no row has a reward"])
    assert evidence(units=4)[0] is False
    assert evidence(effective_positives=29.9) == (False, ["only 29.9 effective positives: at least 30 are needed"])
    assert evidence(effective_positives=30.0)[0] is True
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
