"""The audit of both arms: right ones pass, an arm that ran something else is named, and what cannot be audited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.online import arm_audit
from foretest.online.arm_audit import TREATMENT, audit_arm
from foretest.report.result_page import result_page
from foretest.results.audit import FAIL, PASS, UNVERIFIED
from tests.online.support import SCHEMA
from tests.schemas import validate
from tests.support import SmallLog

LOG = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id")
CONTROL, OTHER = ft.PlackettLuce("control_scores"), ft.PlackettLuce("treatment_scores")


def arms(rows: int = 3000) -> tuple[pa.Table, pa.Table]:
    """Two arms, each drawn from its own policy, with the scores of both."""
    control, treatment = (SmallLog(rows=rows, units=rows // 2, m=4, seed=seed) for seed in (1, 2))
    swapped = treatment.table().rename_columns(
        [
            {"control_scores": "treatment_scores", "treatment_scores": "control_scores"}.get(name, name)
            for name in treatment.table().column_names
        ]
    )
    users = pa.array(treatment.unit + 1_000_000)
    return control.table(), swapped.set_column(swapped.column_names.index("user"), "user", users)


def online_test(treatment: Any = OTHER) -> ft.OnlineTest:
    return ft.OnlineTest(log=LOG, control=CONTROL, treatment=treatment)


def test_arms_that_ran_their_policies_pass() -> None:
    result = online_test().run(*arms())
    assert {arm: audit.outcome for arm, audit in result.audits.items()} == {"control": PASS, "treatment": PASS}
    assert "exploration" not in [finding.name for finding in result.audits["treatment"].findings]
    validate(result.to_dict(), SCHEMA)
    assert "treatment audit  passed" in str(result)
    assert "Was the treatment&#39;s log drawn from its policy?" in result_page(result)


def test_an_arm_that_ran_something_else_is_named_on_top() -> None:
    """The treatment's scores at another temperature than its table has, as in a test with a stale configuration."""
    result = online_test(ft.PlackettLuce("treatment_scores", temperature=2.0)).run(*arms())
    assert result.audits["control"].outcome == PASS
    assert result.audits["treatment"].outcome == FAIL
    text = " ".join(str(result).split())
    assert text.startswith("The propensity audit failed for the treatment's log (log-likelihood")
    assert "more likely than the treatment says" in text
    assert "The temperature in [treatment]" in text
    assert 'set temperature = "fit"' not in text  # no log of its own to fit it on
    assert "The propensity audit failed for the treatment" in result_page(result)
    validate(result.to_dict(), SCHEMA)
    assert result.metrics["click"].verdict == online_test().run(*arms()).metrics["click"].verdict


def test_the_columns_of_the_other_policy_are_not_needed() -> None:
    control, treatment = arms()
    result = online_test().run(control.drop_columns(["treatment_scores"]), treatment.drop_columns(["control_scores"]))
    assert [audit.outcome for audit in result.audits.values()] == [PASS, PASS]
    names = [finding.name for finding in result.audits["treatment"].findings]
    assert "capped moment" not in names
    assert "log-likelihood" in names


def test_a_ranking_that_the_policy_never_shows_fails_its_arm() -> None:
    never = [[float(x)] for x in np.arange(3000) % 7 == 0]  # probability 0 in most rows
    logs = [log.append_column("p", [[row[0] for row in never]]) for log in arms()]
    result = online_test(ft.Logged(prob="p")).run(*logs)
    assert result.audits["treatment"].outcome == FAIL
    assert "probability 0" in result.audits["treatment"].findings[0].meaning


def test_probabilities_alone_are_not_verified() -> None:
    logs = [log.append_column("p", [np.full(3000, 1.0 / 12.0)]) for log in arms()]
    result = ft.OnlineTest(log=LOG, control=ft.Logged(prob="p"), treatment=ft.Logged(prob="p")).run(*logs)
    assert {audit.outcome for audit in result.audits.values()} == {UNVERIFIED}


def test_what_cannot_be_audited_is_a_note_and_no_fault(tmp_path: Path) -> None:
    control, treatment = arms(400)
    none = online_test().run(control, treatment.drop_columns(["treatment_scores"]))
    assert list(none.audits) == ["control"]
    assert any(note.startswith("the treatment's log was not audited") and "treatment_scores" in note
               for note in none.notes)  # fmt: skip
    stream = pa.RecordBatchReader.from_batches(treatment.schema, treatment.to_batches())
    assert any("stream that can be read once" in note for note in online_test().run(control, stream).notes)

    file = tmp_path / "test.toml"
    rewards = '[log]\nrewards = ["click"]\nunit = "user"\nranking = "ranking"\n'
    file.write_text(f'{rewards}[control]\npolicy = "nowhere:Nothing"\n[treatment]\npolicy = "logged"\nprob = "p"\n')
    unread = ft.OnlineTest.from_toml(file).run(control, treatment)
    assert not unread.audits
    assert any(note.startswith("the logs of the arms were not audited") for note in unread.notes)
    with pytest.raises(ft.BadInput, match="the policy of one arm is given"):
        ft.OnlineTest(log=LOG, control=CONTROL)


def test_several_treatments_leave_the_treatments_log_alone() -> None:
    settings = ft.Settings(LOG, CONTROL, OTHER, treatments={"a": OTHER, "b": CONTROL})
    audited = audit_arm(TREATMENT, arms(100)[1], 100, settings)
    assert audited.audit is None
    assert audited.obstacle is not None
    assert "several treatments (a, b)" in audited.obstacle


@pytest.mark.parametrize("keys", [{"unit": "user", "id": "id"}, {"id": "id"}, {}])
def test_a_sample_is_what_an_audit_looks_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, str]
) -> None:
    """With a margin, the units of smallest hash: the sampled displays are those of the whole log."""
    control, _ = arms()
    pq.write_table(control, tmp_path / "control.parquet", row_group_size=700)
    monkeypatch.setattr(arm_audit, "SAMPLED_DISPLAYS", 800)
    seen = []
    settings = ft.Settings(ft.LogColumns(rewards=["click"], ranking="ranking", **keys), CONTROL, OTHER)
    check = ft.OfflineTest.check

    def counted(test: ft.OfflineTest, log: Any, **more: Any) -> ft.Result:
        seen.append(check(test, log, **more))
        return seen[-1]

    monkeypatch.setattr(ft.OfflineTest, "check", counted)
    audited = audit_arm("control", str(tmp_path / "control.parquet"), 3000, settings)
    assert audited.audit is not None
    assert audited.audit.outcome == PASS
    assert 850 < seen[0].log["rows"] < 1150  # 1 000 of 3 000
