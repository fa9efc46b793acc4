"""Which treatment to take: the rule on every outcome, the sentences, and a log of which the truth is known."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import foretest as ft
from foretest.offline.winner import choice_of, choose_winner, shortfalls_of
from foretest.results.result import Adjusted, Control, Estimate, Metric
from tests.offline.candidates import ROLES, candidates_log, candidates_test
from tests.offline.test_treatments import SCHEMA
from tests.schemas import validate


def metric(
    verdict: str, role: str | None = "goal", *, adjusted: str | None = None, guardrail: str | None = None,
    direction: str = "increase", reasons: tuple[str, ...] = (),
) -> Metric:  # fmt: skip
    after = None if adjusted is None else Adjusted(0.1, 0.1, adjusted, None, None, None, None)
    e = Estimate(1.1, 0.1, 0.1, 0.0, 0.2, 0.1, 0.0, 0.2, verdict, list(reasons), 99.0, adjusted=after)
    roles: dict[str, Any] | None = None
    if role is not None:
        roles = {"role": role, "direction": direction, "outcome": "", **({"guardrail": guardrail} if guardrail else {})}
    return Metric(Control(1.0, None, None, None), {"cis": e}, "cis", verdict, role=roles)


@pytest.mark.parametrize(
    ("goal", "short"),
    [
        (metric("positive"), []),
        (metric("positive", None), []),
        (metric("positive", adjusted="positive"), []),
        (metric("positive", adjusted="neutral"), ["click is not clearly better"]),  # the adjusted verdict counts
        (metric("neutral", adjusted="neutral"), ["click is not clearly better"]),
        (metric("negative", adjusted="neutral"), ["click is worse"]),  # harm is not adjusted away
        (metric("insufficient"), ["click has too little evidence"]),
        (metric("insufficient", reasons=("the propensity audit failed (balance)",)), ["the propensity audit failed"]),
        (metric("negative", direction="decrease"), []),
        (metric("positive", direction="decrease"), ["click is worse"]),
    ],
)
def test_the_first_goal_must_be_better(goal: Metric, short: list[str]) -> None:
    assert shortfalls_of({"click": goal}) == short


@pytest.mark.parametrize(
    ("other", "short"),
    [
        (metric("neutral"), []),
        (metric("insufficient"), []),
        (metric("negative"), ["sale is worse"]),
        (metric("negative", None), ["sale is worse"]),  # without roles all metrics are goals
        (metric("negative", "secondary"), []),
        (metric("positive", direction="decrease"), ["sale is worse"]),
        (metric("negative", "guardrail", guardrail="pass"), []),  # worse, and within its margin
        (metric("neutral", "guardrail", guardrail="unclear"), ["the guardrail sale is unclear"]),
        (metric("negative", "guardrail", guardrail="fail"), ["the guardrail sale fails"]),
    ],
)
def test_no_goal_may_be_worse_and_every_guardrail_must_pass(other: Metric, short: list[str]) -> None:
    good = metric("positive", None if other.role is None else "goal")
    assert shortfalls_of({"click": good, "sale": other}) == short


def test_the_first_of_those_that_pass_wins() -> None:
    good, bad = {"click": metric("positive")}, {"click": metric("neutral")}
    choice = choose_winner({"a": bad, "b": good, "c": bad, "d": good, "e": good})
    assert choice.winner == "b"
    assert choice.reason == (
        "Best: b, +10.0 % in click. Ranked higher, and not taken: a (click is not clearly better). Passing too: d, e."
    )
    fragile = replace(
        metric("positive"), estimates={"cis": replace(good["click"].estimates["cis"], robustness="fragile")}
    )
    assert "Best: a, +10.0 % in click, a fragile verdict." in choose_winner({"a": {"click": fragile}, "b": bad}).reason


def test_where_none_passes_each_reason_is_there_once() -> None:
    neutral, worse = {"click": metric("neutral")}, {"click": metric("negative")}
    mixed = choose_winner({"a": neutral, "b": worse, "c": neutral})
    assert (mixed.winner, mixed.title) == (None, "None of the 3 treatments passes.")
    assert mixed.reason == "None passes, because click is not clearly better (a, c); click is worse (b)."
    same = choose_winner({"a": neutral, "b": neutral})
    assert same.title == same.reason == "None passes, because click is not clearly better."


@pytest.fixture(scope="module")
def result() -> ft.Result:
    return candidates_test(metrics=ROLES).run(candidates_log())


def test_the_best_uplift_loses_where_its_guardrail_fails(result: ft.Result) -> None:
    """Truth: bold gains most and raises bounces by 30 %, where 10 % are allowed."""
    assert [t.rank for t in result.treatments] == [1, 2, 3, 4, 5]
    states = {t.name: t.metrics["bounce"].role["guardrail"] for t in result.treatments}  # type: ignore[index]
    assert states == {"bold": "fail", "balanced": "pass", "cautious": "pass", "idle": "pass", "harmful": "pass"}
    assert result.winner == "balanced"
    assert result.winner_reason == (
        "Best that passes every guardrail: balanced, +40.0 % in click. Ranked higher, and not taken: bold (the"
        " guardrail bounce fails). Passing too: cautious."
    )
    document = json.loads(result.to_json())
    validate(document, SCHEMA)
    assert (document["winner"], document["winner_reason"]) == (result.winner, result.winner_reason)


def test_without_roles_the_first_metric_is_the_goal() -> None:
    test = candidates_test(["bold", "cautious", "idle"])
    bare = test.run(candidates_log())
    assert bare.winner == "bold"  # more bounces are better, as nobody said otherwise
    assert bare.winner_reason is not None
    assert bare.winner_reason.startswith("Best: bold, +50.0 % in click.")


def test_a_goal_that_should_decrease() -> None:
    down = {"bounce": {"role": "goal", "direction": "decrease"}}
    found = candidates_test(metrics=down).run(candidates_log())
    assert found.winner == "harmful"  # it has the fewest bounces, and clicks are no goal here
    assert {t.name: t.rank for t in found.treatments}["harmful"] == 1
    both = candidates_test(metrics={**down, "click": {"role": "goal"}}).run(candidates_log())
    assert both.winner == "balanced"  # the first goal is that of the first reward, and bold has more bounces
    assert "not taken: bold (bounce is worse)" in (both.winner_reason or "")


@pytest.mark.parametrize(("name", "winner"), [("balanced", "treatment"), ("bold", None)])
def test_one_treatment_passes_or_not(name: str, winner: str | None) -> None:
    found = candidates_test([name], metrics=ROLES).run(candidates_log())
    choice = choice_of(found)
    assert choice is not None
    assert found.winner == choice.winner == winner
    assert found.winner_reason == (
        "The treatment passes every guardrail: +40.0 % in click."
        if winner
        else "The treatment does not pass, because the guardrail bounce fails."
    )
    assert choice_of(candidates_test([name]).run(candidates_log())) is None  # without roles the verdict says it all


def test_a_failed_audit_leaves_no_winner() -> None:
    log = candidates_log().append_column("q", candidates_log()["bold"])
    broken = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user"), control=ft.Logged(prob="harmful"),
        treatment={"a": ft.Logged(prob="bold"), "b": ft.Logged(prob="q")}, estimators=["cis"], n_resamples=50,
    )  # fmt: skip
    found = broken.run(log)
    assert found.audit is not None
    assert found.audit.outcome == "fail"
    assert found.winner is None
    assert found.winner_reason == "None passes, because the propensity audit failed."


def test_a_check_chooses_nothing() -> None:
    checked = candidates_test(metrics=ROLES).check(candidates_log())
    assert checked.winner_reason is None
    assert choice_of(checked) is None
    assert "winner" not in checked.to_dict()
