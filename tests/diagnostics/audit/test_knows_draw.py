"""Treatments that were trained on the log they are tested on, and right ones beside right and wrong controls."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation.shown_scores import COLUMNS
from foretest.diagnostics.audit import audit, audits, draw_standing, knows_draw
from foretest.diagnostics.audit.knows_draw import Standing
from foretest.offline.analysis import by_treatment
from foretest.results.audit import Audit, Finding
from tests.support import list_column

ROWS, M, K = 4000, 8, 2
Treatments = ft.Policy | Mapping[str, ft.Policy]


class Log:
    """A log whose control draws by Plackett-Luce, and a treatment that has its clicks in its scores."""

    def __init__(self, seed: int = 3):
        g = np.random.default_rng(seed)
        self.control = g.normal(size=(ROWS, M))
        self.shown = np.argsort(-(self.control + g.gumbel(size=(ROWS, M))), axis=1)[:, :K]
        clicked = np.zeros((ROWS, M), bool)
        np.put_along_axis(clicked, self.shown, g.random((ROWS, K)) < 0.2, axis=1)
        self.click = clicked.sum(axis=1).astype(float)
        self.right = self.control + 0.4 * g.normal(size=self.control.shape)
        self.leak = self.control + 0.05 * clicked
        self.strong = self.right + clicked

    def table(self, **extra: Any) -> pa.Table:
        lists = {"control": self.control, "right": self.right, "leak": self.leak, "strong": self.strong}
        return pa.table({
            "click": self.click, "user": np.arange(ROWS) // 3, "id": np.arange(ROWS),
            "ranking": list_column(self.shown.astype(np.int32)),
            **{name: list_column(values) for name, values in lists.items()}, **extra,
        })  # fmt: skip


LOG = Log()


def build(treatment: Treatments, control: Any = None, **log: Any) -> ft.OfflineTest:
    roles: dict[str, Any] = {"rewards": ["click"], "unit": "user", "ranking": "ranking", "id": "id", **log}
    return ft.OfflineTest(
        log=ft.LogColumns(**roles), control=control or ft.PlackettLuce("control"), treatment=treatment,
        estimators=["ncis"], interval="delta",
    )  # fmt: skip


def finding(outcome: Audit | None, name: str = knows_draw.NAME) -> Finding:
    assert outcome is not None
    [one] = [f for f in outcome.findings if f.name == name]
    return one


def checked(treatment: Treatments, table: pa.Table | None = None, **settings: Any) -> Audit:
    answer = build(treatment, **settings).check(LOG.table() if table is None else table).audit
    assert answer is not None
    return answer


def test_a_treatment_trained_on_the_log_has_no_verdict() -> None:
    result = build(ft.PlackettLuce("leak")).run(LOG.table())
    assert finding(result.audit).outcome == "fail"
    assert "they were computed from data that contains them" in finding(result.audit).meaning
    assert "trained_until = DATE" in (finding(result.audit).remedy or "")
    assert result.metrics["click"].verdict == "insufficient"
    assert "knows the draw" in result.metrics["click"].estimates["ncis"].reasons[0]


def test_the_capped_moment_names_the_leak_where_the_treatment_alone_makes_it_fail() -> None:
    moment = finding(checked(ft.PlackettLuce("strong")), "capped moment")
    assert moment.outcome == "fail"
    assert (moment.remedy or "").startswith("The control passes its own tests, so the treatment's scores probably know")


def test_a_wrong_control_is_put_right_first() -> None:
    answer = checked(ft.PlackettLuce("right"), control=ft.PlackettLuce("right"))
    assert finding(answer, "log-likelihood").outcome == "fail"
    for treatment in ("strong", "control"):
        outcome = checked(ft.PlackettLuce(treatment), control=ft.PlackettLuce("right"))
        assert finding(outcome).outcome == "fail"
        assert "but the control is wrong first (log-likelihood" in finding(outcome).meaning
        assert (finding(outcome).remedy or "").startswith("Put the control right")
        assert "probably know" not in (finding(outcome, "capped moment").remedy or "")


@pytest.mark.parametrize("treatment", [
    ft.PlackettLuce("right"), ft.EpsilonGreedy("right", 0.2), ft.Mallows("right", 0.5), ft.TopK("right"),
    ft.Mixture([(0.7, ft.PlackettLuce("right")), (0.3, ft.PlackettLuce("control"))]),
])  # fmt: skip
def test_a_right_treatment_passes(treatment: ft.Policy) -> None:
    assert finding(checked(treatment)).outcome == "pass"


def test_each_row_is_held_against_its_own_logger() -> None:
    """Half of the log is of a second control, which goes by the scores of `other`."""
    g = np.random.default_rng(5)
    other = LOG.control + g.normal(size=LOG.control.shape)
    which = g.random(ROWS) < 0.5
    shown = np.where(
        which[:, None], LOG.shown, np.argsort(-(other + g.gumbel(size=other.shape)), axis=1)[:, :K]
    )  # fmt: skip
    extra = {"logger": np.where(which, "a", "b"), "other": list_column(other)}
    table = LOG.table(**extra)
    table = table.set_column(table.schema.get_field_index("ranking"), "ranking", list_column(shown.astype(np.int32)))
    control = {"a": ft.PlackettLuce("control"), "b": ft.PlackettLuce("other")}
    tested = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", logger="logger"),
        control=control, baseline="a", treatment=ft.PlackettLuce("right"),
    )  # fmt: skip
    assert finding(tested.check(table).audit).outcome == "pass"


def test_rows_of_a_thinned_log_stand_for_all() -> None:
    """All rows with a click are there and a fifth of the others: right treatments pass, and leaks do not."""
    g = np.random.default_rng(9)
    keep = np.where(LOG.click > 0.0, 1.0, 0.2)
    rows = np.flatnonzero(g.random(ROWS) < keep)
    table = LOG.table(keep=keep).take(pa.array(rows))
    assert finding(checked(ft.PlackettLuce("right"), table, keep="keep")).outcome == "pass"
    assert finding(checked(ft.PlackettLuce("strong"), table, keep="keep")).outcome == "fail"


def test_several_treatments_are_one_family() -> None:
    treatments = {name: ft.PlackettLuce(name) for name in ("right", "strong")} | {"top": ft.TopK("right")}
    sums = by_treatment(build(treatments).aggregate(LOG.table()).aggregates)
    together, alone = audits(sums), {name: audit(part) for name, part in sums.items()}
    assert finding(together["strong"]).p_value == pytest.approx(3.0 * (finding(alone["strong"]).p_value or 0.0))
    assert [finding(one).outcome for one in together.values()] == ["pass", "fail", "pass"]


def test_parts_of_a_log_join() -> None:
    offline = build(ft.PlackettLuce("right"))
    parts = [offline.aggregate(LOG.table().slice(at, ROWS // 2)).aggregates for at in (0, ROWS // 2)]
    whole, joined = (draw_standing(one) for one in (offline.aggregate(LOG.table()).aggregates, parts[0] + parts[1]))
    assert isinstance(whole, Standing)
    assert isinstance(joined, Standing)
    np.testing.assert_allclose(whole.z, joined.z, rtol=1e-9)


@pytest.mark.parametrize(("treatment", "control", "reason"), [
    (ft.Fixed("ranking"), None, "the treatment has no scores"),
    (ft.Logged(prob="p"), None, "the treatment has no scores"),
    (ft.PlackettLuce("right"), ft.Logged(prob="p"), "the control is a logged policy"),
    (ft.PlackettLuce("right"), ft.Fixed("ranking"), "the control is deterministic"),
    (ft.PlackettLuce("control", temperature=0.5), None, "the treatment's scores follow the control's"),
])  # fmt: skip
def test_where_it_cannot_be_run_it_says_why(treatment: ft.Policy, control: Any, reason: str) -> None:
    one = finding(checked(treatment, LOG.table(p=np.full(ROWS, 0.1)), control=control))
    assert one.outcome == "not made"
    assert reason in one.meaning


def test_rows_that_were_chosen_by_their_reward_are_not_tested() -> None:
    table = LOG.table().filter(pa.array(LOG.click == 1.0))
    assert "every row has a reward" in finding(checked(ft.PlackettLuce("right"), table)).meaning


def test_sums_that_an_earlier_version_saved_lack_it() -> None:
    sums = build(ft.PlackettLuce("right")).aggregate(LOG.table()).aggregates
    columns = {name: column for name, column in sums.sample.columns().items() if name not in COLUMNS}
    old = dataclasses.replace(sums, sample=dataclasses.replace(sums.sample, parts=[columns]))
    assert "pack or fold the log again" in finding(audit(old)).meaning
    assert finding(audit(old)).outcome == "not made"


def test_the_error_of_a_fit_is_no_leak() -> None:
    """With S along the control's own score z² is divided by all of 1 + I_audit/I_fit; across it, by 1."""
    g = np.random.default_rng(2)
    along, across = g.normal(size=500), g.normal(size=500)
    across -= along * (along @ across) / (along @ along)
    columns = {name: np.zeros(500) for name in COLUMNS}
    for size, divided in ((along, 2.0), (across, 1.0)):
        plain, fitted = (
            knows_draw.standing({**columns, "shown_residual_size": size}, np.arange(500), along, ratio)
            for ratio in (0.0, 3.0)
        )
        assert plain is not None
        assert fitted is not None
        np.testing.assert_allclose(plain.z, divided * fitted.z)
