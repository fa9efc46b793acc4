"""A control that never varies, from check to page: what is said of it, and what is left unsaid."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

import foretest as ft
from foretest.report.facts import NEVER_VARIES, offline_facts
from foretest.report.words import assumption
from foretest.results.audit import Audit
from foretest.simulate import WORLDS, simulate_log
from foretest.terminal.markdown import result_markdown

CURVE = [1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6]
LOG = ft.LogColumns(
    rewards=["click"], unit="user", ranking="ranking", id="display_id", slot_rewards={"click": "slot_click"}
)
OF_RANKINGS = (
    "effective sample size", "mean capped weight", "rows above the cap", "largest weight", "displays with q < 0.5",
    "mass never shown", "entropy",
)  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.Table.from_batches(simulate_log(WORLDS["reranker"], rows=4000))


def build(control: ft.Policy | None = None, log: ft.LogColumns = LOG, **analysis: Any) -> ft.OfflineTest:
    return ft.OfflineTest(
        log=log, control=control or ft.TopK("control_scores"), treatment=ft.TopK("treatment_scores"),
        **{"examination": CURVE, "n_resamples": 100, **analysis},
    )  # fmt: skip


@pytest.fixture(scope="module")
def result(table: pa.Table) -> ft.Result:
    return build().run(table)


def outcome(audit: Audit | None, name: str) -> tuple[str, str]:
    assert audit is not None
    [finding] = [finding for finding in audit.findings if finding.name == name]
    return finding.outcome, finding.meaning


def test_exploration_is_not_needed_by_the_headline(result: ft.Result) -> None:
    assert outcome(result.audit, "exploration") == ("not made", "not made: not needed by the headline")
    assert result.metrics["click"].headline == "exposure-ncis-adaptive"
    assert result.metrics["click"].verdict == "positive"
    reasons = result.metrics["click"].estimates["exposure-ncis-adaptive"].reasons
    assert reasons == ["it rests on the examination curve (1, 0.5, 0.333, 0.25, 0.2, 0.167) that was given"]


@pytest.mark.parametrize("control", [ft.EpsilonGreedy("control_scores", 0.0), ft.Fixed("ranking")], ids=repr)
def test_whatever_the_policy_is_called(table: pa.Table, result: ft.Result, control: ft.Policy) -> None:
    other = build(control, estimators=["pbm", "exposure-ncis-adaptive"]).run(table)
    assert outcome(other.audit, "exploration") == ("not made", "not made: not needed by the headline")
    ours, same = (r.metrics["click"].estimates["exposure-ncis-adaptive"] for r in (other, result))
    assert ours.rel_effect_size == pytest.approx(same.rel_effect_size, rel=1e-12)


def test_the_terminal_has_no_line_on_weights_of_rankings_but_one_that_says_so(result: ft.Result) -> None:
    text = str(result)
    assert "weights of rankings     none  the control always shows one ranking: others were never tried" in text
    assert not [line for line in OF_RANKINGS if line in text]
    assert re.search(r"unsupported click +0  rewarded rows, by exposure-ncis-adaptive", text)
    assert re.search(r"treatment mass kept +100 %  by exposure-ncis-adaptive", text)
    effective = result.metrics["click"].estimates["exposure-ncis-adaptive"].effective_positives
    assert re.search(rf"effective click +{effective:.1f}  by exposure-ncis-adaptive", text)
    assert "ffective sample size" not in result_markdown(result)


def test_what_only_health_has_stays_in_the_file(result: ft.Result) -> None:
    """Numbers of weights of rankings are hidden, not lost."""
    assert result.health["control_deterministic"] is True
    assert result.health["max_weight"] == 1.0
    assert result.metrics["click"].cap_path is not None


def test_the_page_has_no_picture_of_weights_of_rankings(result: ft.Result) -> None:
    page = result.to_html()
    assert NEVER_VARIES in page
    assert 'id="cap"' not in page
    assert 'id="examination"' in page
    assert "Here with" not in page  # no option of the estimators is the user's own
    names = [fact.name for fact in offline_facts(result)]
    assert not {"treatment mass kept", "rows above the cap"} & set(names)
    assert "mass behind the answer" in names
    [correlation] = [fact for fact in offline_facts(result) if fact.name == "rank correlation"]
    assert correlation.detail == ""
    assert assumption(result) == "By exposure the log supports nearly all of what the treatment would show."
    assert list(result.figures()) == ["examination-click"]


def test_a_control_that_varies_keeps_them(table: pa.Table) -> None:
    explored = build(ft.EpsilonGreedy("control_scores", 0.5), headline="exposure-ncis-adaptive").run(table)
    text, page = str(explored), explored.to_html()
    assert not [line for line in OF_RANKINGS if line not in text]
    assert NEVER_VARIES not in page
    assert 'id="cap"' in page
    assert {"weights", "cap-click"} <= set(explored.figures())


def test_entropy_is_never_minus_zero(result: ft.Result) -> None:
    assert str(result.health["treatment"]["entropy_control"]) == "0.0"


def test_a_check_judges_as_a_run_does(table: pa.Table, result: ft.Result) -> None:
    checked = build().check(table)
    assert checked.audit == result.audit
    assert any("estimates by exposure alone" in note for note in checked.notes)
    assert not any("never tried" in note or "Show random rankings" in note for note in checked.notes)


WITHOUT_SLOTS = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="display_id")


@pytest.mark.parametrize(
    "changes",
    [
        {"examination": None},
        {"log": WITHOUT_SLOTS, "examination": None},
        {"headline": "point-ncis-adaptive"},
        {"estimators": ["ncis"]},
    ],
    ids=["no curve", "no slots", "another headline", "another estimator"],
)
def test_without_exposure_both_fail_and_say_what_is_missing(table: pa.Table, changes: dict[str, Any]) -> None:
    test = build(**changes)
    checked, run = test.check(table), test.run(table)
    for audit in (checked.audit, run.audit):
        assert outcome(audit, "exploration")[0] == "fail"
        assert outcome(audit, "possible weights") == ("not made", "not made: the control is deterministic")
    assert checked.audit == run.audit
    assert run.metrics["click"].verdict == "insufficient"
    [finding] = [finding for finding in run.audit.findings if finding.name == "exploration"]
    assert "name [log] slot_rewards and give [analysis] examination" in (finding.remedy or "")
    assert any("name [log] slot_rewards and give [analysis] examination" in note for note in checked.notes)
    # the audit has said it: no question about items that the control never shows
    assert not any("has a probability of 0 under the control" in note for note in run.notes)
    assert "weights of rankings" in str(run)


def test_a_missing_curve_is_one_note_for_both_estimators(table: pa.Table) -> None:
    notes = [note for note in build(examination=None).run(table).notes if "how likely users look at slots" in note]
    assert len(notes) == 1
    assert notes[0].startswith("pbm, exposure-ncis-adaptive were left out: the log does not show")


def test_a_check_sees_a_curve_that_is_too_short(table: pa.Table) -> None:
    with pytest.raises(ft.BadInput, match="the row shows 6 items, and the examination curve has 2 numbers"):
        build(examination=[1.0, 0.5]).check(table)
