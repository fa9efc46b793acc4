"""How far a verdict can be trusted, in words: every kind of verdict, and on the page."""

from __future__ import annotations

from dataclasses import replace

import pytest

import foretest as ft
from foretest.report.words import trust
from foretest.results.result import Estimate
from foretest.results.robustness_text import breakdown_text, is_fragile, refuted_text, robustness_sentence
from tests.results.support import BAND, UP, with_estimate
from tests.support import SmallLog, build_test


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


def test_a_log_that_refutes_the_band_is_said() -> None:
    """The least supported part earns 1.5 to 1.9 times as much, where the band allows 1.3 times: never robust."""
    assert refuted_text(UP) is None
    beyond = replace(UP, sensitivity={**BAND, "slice_gamma_ci_lower": 1.5, "slice_gamma_ci_upper": 1.9})
    assert "earn 1.5 to 1.9 times what the others earn, beyond these factors" in (robustness_sentence(beyond) or "")
    below = replace(UP, sensitivity={**BAND, "slice_gamma_ci_lower": 0.5, "slice_gamma_ci_upper": 0.8})
    assert refuted_text(below) is not None
    assert refuted_text(replace(UP, sensitivity={**BAND, "slice_gamma_ci_lower": None})) is None


def test_the_page_says_how_far_to_trust(result: ft.Result) -> None:
    def words_of(estimate: Estimate) -> str | None:
        words = trust(with_estimate(result, estimate))
        return None if words is None else words.replace("\N{NO-BREAK SPACE}", " ")

    assert words_of(UP) == (
        "Fragile: the verdict holds unless unsupported recommendations earn less than 1/1.4 of what supported ones"
        " earn. The least supported recommendations in the log earn 1.06 times what the others earn (0.9 to 1.22)."
    )
    neutral = replace(UP, verdict="neutral", robustness="robust", sensitivity={**BAND, "slice_gamma": None})
    assert words_of(neutral) is None  # nothing to undo, and nothing known
    assert words_of(replace(UP, robustness=None)) is None
    assert words_of(replace(UP, sensitivity=None, robustness=None)) is None
    page = with_estimate(result, UP).to_html()
    assert page.count('<span class="small">by noise alone positive, fragile</span>') == 2
    assert "Fragile: the verdict holds unless" in page
