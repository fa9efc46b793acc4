"""The sentences: what each verdict says, and of what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import foretest as ft
from foretest.report.estimator_words import headline_reason
from foretest.report.words import (
    assumption,
    evidence,
    further_sentences,
    guide,
    next_step,
    range_sentence,
    things,
    verdict_sentence,
)
from foretest.results.result import Control, Estimate, Metric
from foretest.results.uplift_range import Range

UP = Estimate(0.0206, 0.1, 0.0006, 0.0002, 0.001, 0.032, 0.011, 0.054, "positive", [], 99.0,
              range=Range("band", 0.0001, 0.0013, 0.005, 0.065), word="positive")  # fmt: skip
CONTROL = Control(0.02, 0.001, 0.019, 0.021)


def words_of(estimate: Estimate, name: str = "click", **options: Any) -> str:
    metric = Metric(CONTROL, {"ncis": estimate}, "ncis", estimate.verdict)
    return verdict_sentence(name, metric, 0.9, **options).replace("\N{NO-BREAK SPACE}", " ")


def limits(verdict: str, *values: float | None, **rest: Any) -> Estimate:
    names = ("rel_effect_size", "rel_effect_size_ci_lower", "rel_effect_size_ci_upper")
    relative = dict(zip(names, values, strict=True))
    limits = Range("band", 0.0002, 0.001, values[1], values[2])
    return replace(UP, **{"verdict": verdict, "word": verdict, "range": limits, **relative, **rest})


@pytest.mark.parametrize(
    ("estimate", "options", "words"),
    [
        (UP, {}, "Clicks would rise by 3.2 %, between 0.50 % and 6.5 %."),
        (limits("positive", 0.032, 0.011, 0.054), {"online": True},
         "Clicks rose by 3.2 % (90 % interval 1.1 % to 5.4 %)."),
        (UP, {"name": "gmv"}, "gmv would rise by 3.2 %, between 0.50 % and 6.5 %."),
        (limits("positive", 0.05, -0.01, 0.1, word="leans positive"), {},
         "Leans positive: clicks would change by +5.0 %, between −1.0 % and +10.0 %."),
        (replace(UP, range=None, word="leans positive"), {"name": "gmv"},
         "Leans positive: gmv would change by +3.2 %, between +1.1 % and +5.4 % by noise alone."),
        # decided on the absolute interval, while the relative one contains 0
        (limits("positive", 0.05, -0.001, 0.1), {}, "Clicks would rise by 5.0 %, between −0.10 % and +10.0 %."),
        (limits("negative", -0.02, -0.03, -0.01), {}, "Clicks would fall by 2.0 %, between −3.0 % and −1.0 %."),
        (limits("negative", -0.02, -0.03, -0.01), {"online": True},
         "Clicks fell by 2.0 % (90 % interval −3.0 % to −1.0 %)."),
        (limits("neutral", 0.032, -0.096, 0.271), {},
         "This log cannot tell whether clicks would rise or fall: +3.2 %, between −9.6 % and +27.1 %."),
        (limits("neutral", 0.001, -0.004, 0.0101), {},
         "This log cannot tell whether clicks would rise or fall: +0.10 %, between −0.40 % and +1.0 %."),
        (limits("neutral", 0.001, -0.01, 0.009), {},  # nowhere beyond 1 %
         "No clear change in clicks: +0.10 %, between −1.0 % and +0.90 %."),
        (limits("neutral", 0.01, -0.01, 0.03), {"online": True, "name": "gmv"},
         "This test cannot tell whether gmv rose or fell: +1.0 % (90 % interval −1.0 % to +3.0 %)."),
        (limits("neutral", None, None, None, range=Range("band", -0.0002, 0.001, None, None)), {},
         "This log cannot tell whether clicks would rise or fall: +0.0006000, between −0.0002000 and +0.001000."),
        (limits("neutral", 0.0, 0.0, 0.0), {}, "Clicks would not change, between +0.0 % and +0.0 %."),
        (limits("positive", None, None, None), {},
         "Clicks would rise by 0.0006000, between 0.0002000 and 0.001000."),
        (limits("insufficient", 1.0, 0.0, 2.0, effective_positives=12.2, reasons=["only 12.2 effective positives: …"]),
         {},
         "This log cannot answer: only 12 effective clicks, at least 30 are needed."),
        (limits("insufficient", 1.0, 0.0, 2.0, effective_positives=12.2,
                reasons=["only 2 units: an interval needs at least 5",
                         "only 9.1 predicted effective positives: at least 15 are needed, or r_max for an interval"]),
         {},
         "This log cannot answer: only 12 effective clicks, at least 15 are needed."),
        (limits("insufficient", 1.0, 0.0, 2.0, effective_positives=2.25, reasons=["only 2.2 effective positives: …"]),
         {"name": "gmv", "online": True},
         "This test cannot answer: only 2.2 effective rows with gmv, at least 30 are needed."),
        (limits("insufficient", 1.0, 0.0, 2.0, reasons=["the propensity audit failed (balance): …"]), {},
         "This log cannot answer: it was not produced by the control as the settings describe it."),
        (limits("insufficient", None, None, None, effective_positives=None, reasons=["no row has a reward"]), {},
         "This log cannot answer: no row has a reward."),
    ],
)  # fmt: skip
def test_the_verdict_in_a_sentence(estimate: Estimate, options: dict[str, Any], words: str) -> None:
    assert words_of(estimate, **options) == words


@pytest.mark.parametrize(
    ("estimate", "options", "begin"),
    [
        (UP, {}, "This is a reason to run the A/B test, not a replacement for it. The range is about the true uplift"),
        (limits("neutral", 0.03, -0.1, 0.3), {}, "This is a reason neither for the A/B test nor against it. A longer"),
        (limits("neutral", 0.0, -0.009, 0.009), {}, "An A/B test would hardly find a difference in this metric. The"),
        (limits("negative", -0.02, -0.03, -0.01), {}, "This is a reason not to run the A/B test as it is"),
        (limits("insufficient", 1.0, 0.0, 2.0), {}, "The numbers below are shown as they are; no decision should rest"),
        (UP, {"audit_failed": True}, "Do not decide by this page."),
        (UP, {"none_passes": True}, "This is a reason neither for the A/B test nor against it."),
    ],
)  # fmt: skip
def test_what_to_do_next_depends_on_the_word(estimate: Estimate, options: dict[str, Any], begin: str) -> None:
    metric = Metric(CONTROL, {"ncis": estimate}, "ncis", estimate.verdict)
    text = next_step(metric, **options)
    assert text.startswith(begin)
    assert ("effects over weeks" in text) == ("audit_failed" not in options and estimate.word != "insufficient")


def test_where_lower_is_better_a_fall_is_a_reason_to_test() -> None:
    role = {"role": "goal", "direction": "decrease", "outcome": ""}
    falls = Metric(CONTROL, {"ncis": limits("negative", -0.02, -0.03, -0.01)}, "ncis", "negative", role=role)
    assert next_step(falls).startswith("This is a reason to run the A/B test")
    for word in ("positive", "negative", "insufficient"):
        none = next_step(metrics(word)["m0"], none_passes=True, several=True)
        assert none.startswith("No treatment is a candidate for the A/B test as it is.")


def result(metrics: dict[str, Metric], **changes: Any) -> ft.Result:
    settings = {"log": {"unit": "user"}, "analysis": {"confidence_level": 0.9, "cap": 100.0}}
    health = {"treatment_mass_kept": 0.9, "support": {"mean_q": 0.862}}
    log = {"rows": 1000, "units": 77, "positives": {}}
    return replace(ft.Result("0", log, settings, metrics, health), **changes)


def metrics(*verdicts: str) -> dict[str, Metric]:
    return {f"m{k}": Metric(CONTROL, {"cis": replace(UP, verdict=v, word=v)}, "cis", v) for k, v in enumerate(verdicts)}


def test_further_metrics_have_a_sentence_each_or_are_counted() -> None:
    few = further_sentences(result(metrics("positive", "positive", "insufficient")), online=False)
    assert [text.replace("\N{NO-BREAK SPACE}", " ") for text in few] == [
        "m1 would rise by 3.2 %, between 0.50 % and 6.5 %.",
        "m2: this log cannot answer: there is no interval.",
    ]
    many = further_sentences(result(metrics("positive", *["positive"] * 4, *["negative"] * 3, "neutral")), online=False)
    assert many == ["Of the 8 further metrics: 4 positive, 1 neutral, 3 negative."]


def test_what_the_answer_rests_on_and_leaves_out() -> None:
    offline = result(metrics("positive"))
    assert evidence(offline) == (
        "Estimated from 1,000 displays of 77 units (user) that the control served. The treatment itself was never"
        " shown."
    )
    many = {"rows": 900_000, "units": 200_134, "units_approximate": True, "positives": {}}
    assert "900,000 displays of about 200,000 units (user) that" in evidence(result(metrics("positive"), log=many))
    assert "does not support 13.8\N{NO-BREAK SPACE}% of what the treatment would show" in (assumption(offline) or "")
    logged = result(metrics("positive"), health={"treatment_mass_kept": 0.9, "support": None})
    assert "supports about 90.0\N{NO-BREAK SPACE}% of what" in (assumption(logged) or "")
    whole = result(metrics("positive"), health={"treatment_mass_kept": 1.0, "support": {"mean_q": 0.9999}})
    assert "nearly all" in (assumption(whole) or "")
    by_slot = {"treatment_mass_kept": 0.9, "support": {"mean_q": 0.862}, "mass_kept": {"cis": 0.97}}
    assert (assumption(result(metrics("positive"), health=by_slot)) or "").startswith(
        "By the weights of cis the log does not support 3.0 % of what the treatment would show;"
    )


def test_why_the_headline_is_the_headline() -> None:
    both = Metric(CONTROL, {"cis": UP, "ncis": UP}, "ncis", "positive")
    assert "ncis: it corrects for the mass" in headline_reason(result({"m": both}), both)
    asked = result({"m": both})
    asked.settings["analysis"]["headline"] = "ncis"
    assert headline_reason(asked, both) == "The headline is ncis, as the settings say."
    alone = Metric(CONTROL, {"ncis": UP}, "ncis", "positive")
    assert headline_reason(result({"m": alone}), alone) == "The headline is ncis, the only estimator that was run."


def test_common_rewards_have_plain_words() -> None:
    assert [things(name) for name in ("click", "revenue", "order", "p42")] == ["clicks", "revenue", "orders", "p42"]


def test_the_range_says_what_it_allows_for() -> None:
    def words(estimate: Estimate) -> str | None:
        metric = Metric(CONTROL, {"cis": estimate}, "cis", "positive")
        text = range_sentence(result({"m": metric}), metric)
        return None if text is None else text.replace("\N{NO-BREAK SPACE}", " ")

    banded = replace(UP, sensitivity={"gamma_lower": 1.3, "gamma_upper": 2.0})
    assert words(banded) == (
        "The range allows for noise, and for what the log cannot support: unsupported recommendations may earn from"
        " 1/1.3 to 2 times what supported ones earn. Noise alone goes from +1.1 % to +5.4 % (90 % interval)."
    )
    as_far = replace(banded, range=Range("band", 0.0002, 0.001, 0.011, 0.054))
    assert (words(as_far) or "").endswith("what supported ones earn. Noise alone gives the same range.")
    past = "The range allows for noise, and for what unsupported recommendations earned in past tests."
    assert words(replace(UP, range=Range("calibrated", 0.0, 0.1, 0.0, 0.1))) == past
    assert words(replace(UP, range=None)) == "The range allows for noise alone."
    assert words(replace(UP, range=Range("noise", None, None, None, None))) is None
    assert {"range", "word"} <= dict(guide(online=False)).keys()
    assert not {"range", "word"} & dict(guide(online=True)).keys()
    # the page calls noise what the tables call noise; an online test has but the interval
    assert ("noise" in dict(guide(online=False)), "interval" in dict(guide(online=False))) == (True, False)
    assert ("noise" in dict(guide(online=True)), "interval" in dict(guide(online=True))) == (False, True)
