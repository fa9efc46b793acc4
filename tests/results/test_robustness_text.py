"""How far a verdict can be trusted, in words: every kind of verdict, in the terminal and on the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import foretest as ft
from foretest.report.words import trust
from foretest.results.result import Control, Estimate, Metric
from foretest.results.robustness_text import breakdown_text, is_fragile, robustness_sentence
from foretest.terminal.result import render
from tests.support import SmallLog, build_test

BAND: dict[str, float | None] = {
    "gamma_lower": 1.15, "gamma_upper": 1.3, "effect_size_lower": 0.0001, "effect_size_upper": 0.001,
    "ci_lower": -0.0001, "ci_upper": 0.0012, "breakdown_gamma": 1.4, "slice_gamma": 1.06,
    "slice_gamma_ci_lower": 0.9, "slice_gamma_ci_upper": 1.22,
}  # fmt: skip
UP = Estimate(0.0206, 0.1, 0.0006, 0.0002, 0.001, 0.03, 0.01, 0.05, "positive", [], 99.0,
              sensitivity=BAND, robustness="fragile")  # fmt: skip


def with_gamma(gamma: float | None, verdict: str = "positive") -> Estimate:
    return replace(UP, verdict=verdict, sensitivity={**BAND, "breakdown_gamma": gamma})


@pytest.mark.parametrize(
    ("estimate", "words"),
    [
        (with_gamma(1.4), "holds unless unsupported recommendations earn less than 1/1.4 of what supported ones earn"),
        (
            with_gamma(1.0849, "negative"),
            "holds unless unsupported recommendations earn more than 1.08 times what supported ones earn",
        ),
        (with_gamma(None), "holds even if unsupported recommendations earn nothing"),
        (with_gamma(None, "negative"), "holds whatever unsupported recommendations earn: there are next to none"),
        (with_gamma(1.0), "is lost as soon as unsupported recommendations earn less than supported ones"),
        (with_gamma(None, "neutral"), None),
        (with_gamma(None, "insufficient"), None),
        (replace(UP, sensitivity=None, robustness=None), None),
    ],
)
def test_what_undoes_a_verdict(estimate: Estimate, words: str | None) -> None:
    assert breakdown_text(estimate) == words
    expected = None if words is None else f"fragile at factors from 1/1.15 to 1.3: the verdict {words}"
    assert robustness_sentence(estimate) == expected
    assert is_fragile(estimate) == (words is not None)


@pytest.fixture(scope="module")
def result() -> ft.Result:
    return build_test(["cis", "point-ncis-adaptive"]).run(SmallLog(rows=200, units=80).table())


def with_estimate(result: ft.Result, estimate: Estimate, **others: Estimate) -> ft.Result:
    estimates = {**others, "point-ncis-adaptive": estimate}
    metric = Metric(Control(0.02, 0.001, 0.018, 0.022), estimates, "point-ncis-adaptive", estimate.verdict)
    return replace(result, metrics={"click": metric})


def test_the_terminal_marks_a_fragile_verdict_in_80_columns(result: ft.Result) -> None:
    def table(*estimates: Any, **others: Any) -> str:
        text = render(with_estimate(result, *estimates, **others))
        assert all(len(line) <= 80 for line in text.splitlines())
        return " ".join(text.split())

    said = table(UP)
    assert "positive ~" in said
    assert "fragile at factors from 1/1.15 to 1.3: the verdict holds unless unsupported recommendations earn" in said
    assert "~ fragile:" not in said  # the sentence has said it
    assert "~ fragile: the sensitivity band contains 0" in table(replace(UP, robustness="robust"), other=UP)
    assert "~" not in table(replace(UP, robustness="robust"))
    neutral = table(replace(UP, verdict="neutral", robustness="robust"))
    assert "robust" not in neutral


def test_the_page_says_how_far_to_trust(result: ft.Result) -> None:
    def said(estimate: Estimate) -> str | None:
        words = trust(with_estimate(result, estimate))
        return None if words is None else words.replace("\N{NO-BREAK SPACE}", " ")

    assert said(UP) == (
        "Fragile: the verdict holds unless unsupported recommendations earn less than 1/1.4 of what supported ones earn."
        " If they earn between 1/1.15 and 1.3 times as much as supported ones, the interval is −0.50 % to +6.0 %. The"
        " least supported recommendations in the log earn 1.06 times what the others earn (0.9 to 1.22)."
    )
    assert said(replace(UP, verdict="neutral", robustness="robust", sensitivity={**BAND, "slice_gamma": None})) == (
        "If unsupported recommendations earn between 1/1.15 and 1.3 times as much as supported ones, the interval is"
        " −0.50 % to +6.0 %."
    )
    assert said(replace(UP, robustness=None)) is None
    assert said(replace(UP, sensitivity=None, robustness=None)) is None
    page = with_estimate(result, UP).to_html()
    assert page.count('<span class="small">fragile</span>') == 2
    assert "Fragile: the verdict holds unless" in page
