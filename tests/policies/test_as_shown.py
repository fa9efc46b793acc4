"""A control that always shows the same, as it served: priced by the places shown, the rest left to the audit."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.kernels.hashing import hash_integers
from foretest.policies import EpsilonGreedy, Fixed, TopK
from foretest.policies.as_shown import AsShown, served
from tests.support import CURVE, SCORES, SmallLog

ROWS, KEYS = 200, ["is", "iips", "pbm", "exposure-ncis-adaptive"]
LOG = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", slot_rewards={"click": "slot_click"})


def test_the_shown_ranking_is_certain() -> None:
    every = np.array(list(permutations(range(4), 2)), np.int32)
    shown = Ragged.of(np.array([[2, 0]] * len(every), np.int32))
    displays = Displays({}, shown, np.full(len(every), 4), hash_integers(np.arange(len(every))))
    policy = served(TopK("s"))
    assert isinstance(policy, AsShown)
    log_prob = policy.log_prob(displays, Ragged.of(every))
    assert every[np.exp(log_prob) == 1.0].tolist() == [[2, 0]]
    assert np.exp(log_prob).sum() == 1.0
    assert policy.sample(displays, np.empty((len(every), 5))).flat().tolist() == [2, 0] * len(every)
    assert policy.slot_marginals(displays)[3].tolist() == [0, 0, 1, 0, 1, 0, 0, 0]
    assert served(SCORES["control"]) is SCORES["control"]
    assert (policy.columns, policy.score_columns, policy.ranking_columns) == (("s",), ("s",), ())


def log_of(others: int, kind: str) -> tuple[SmallLog, pa.Table, ft.Policy]:
    """A log of the control's best items, but for the last `others` rows, which show two other items."""
    log = SmallLog(rows=ROWS, seed=4)
    best = np.argsort(-log.control, axis=1, kind="stable")[:, : log.k]
    shown = best.copy()
    shown[ROWS - others :] = np.argsort(log.control, axis=1, kind="stable")[ROWS - others :, : log.k]
    log.shown = np.array([log.rankings.tolist().index(row) for row in shown.tolist()])
    control = TopK("control_scores") if kind == "top-k" else Fixed("best")
    return log, log.table(best=pa.array(best.tolist())), control


def run(control: ft.Policy, table: pa.Table) -> ft.Result:
    return ft.OfflineTest(
        log=LOG, control=control, treatment=SCORES["treatment"], estimators=KEYS, examination=CURVE[:2], n_resamples=50,
        weight_bound=20.0, headline="exposure-ncis-adaptive",
    ).run(table)  # fmt: skip


def finding(result: ft.Result) -> Any:
    assert result.audit is not None
    return next(f for f in result.audit.findings if f.name == "as served")


@pytest.mark.parametrize("kind", ["top-k", "fixed"])
@pytest.mark.parametrize(("others", "outcome"), [(0, "pass"), (10, "warn"), (11, "fail")])
def test_exposure_is_that_of_the_places_shown(kind: str, others: int, outcome: str) -> None:
    log, table, control = log_of(others, kind)
    result = run(control, table)
    estimates, theta = result.metrics["click"].estimates, np.array(CURVE[:2])
    at, shown = np.arange(ROWS)[:, None], log.rankings[log.shown]
    exposed = np.einsum("k,rki->ri", theta, log.marginals(log.log_t))
    earned = log.shares["click"] * log.click[:, None]
    pbm = (exposed[at, shown] / theta * earned).sum() / ROWS
    assert estimates["pbm"].treatment == pytest.approx(pbm, rel=1e-8)
    likely = np.exp(log.log_t[np.arange(ROWS), log.shown])
    assert estimates["is"].treatment == pytest.approx((likely * log.click).mean(), rel=1e-10)
    of_places = finding(result)
    assert of_places.outcome == outcome
    assert of_places.statistic == pytest.approx(others / ROWS)
    assert (of_places.remedy is None) == (outcome == "pass")
    assert result.audit is not None
    assert result.audit.outcome == outcome
    assert result.health["control_deterministic"]
    if others:
        assert f"{others} of 200 sampled displays ({others / 2:.2f}%) show another ranking" in of_places.meaning
    assert (result.metrics["click"].verdict == "insufficient") == (outcome == "fail")


def test_a_control_that_might_explore_must_have_shown_its_own() -> None:
    _, table, _ = log_of(1, "top-k")
    with pytest.raises(ft.BadInput, match=r"column 'control_scores', row 199 .*: the control gives probability 0"):
        run(EpsilonGreedy("control_scores", 0.0), table)


def test_scores_that_are_none_are_refused() -> None:
    _, table, control = log_of(0, "top-k")
    scores = table["control_scores"].to_pylist()
    scores[17][1] = float("nan")
    at = table.schema.get_field_index("control_scores")
    with pytest.raises(ft.BadInput, match=r"column 'control_scores', row 17 .*: a score is NaN"):
        run(control, table.set_column(at, "control_scores", pa.array(scores)))
