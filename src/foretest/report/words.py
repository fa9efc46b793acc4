"""The answer in sentences that can be read without statistics."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from foretest.formatting import displays_text, units_text
from foretest.inference.verdict import EFFECTIVE, FEWEST_POSITIVES
from foretest.report.digits import count, interval_text, level, num, pct
from foretest.results.audit import AUDIT_FAILED, FAIL
from foretest.results.range_text import WORD_MEANING, is_wider_than_noise, range_meaning, range_of
from foretest.results.result import Estimate, Metric, Result
from foretest.results.robustness_text import breakdown_text, factor, refuted_text
from foretest.results.uplift_range import NOISE, WORDS
from foretest.settings.metric_roles import toward_good

LITTLE = 0.01  # a neutral range within 1 % either way: no clear change
CANNOT_TELL = "cannot tell whether"
NOT_FROM_CONTROL = "it was not produced by the control as the settings describe it"
VERDICTS = ("positive", "negative", "neutral", "insufficient")
SIGNS = {
    "positive": "▲", "leans positive": "△", "negative": "▼", "leans negative": "▽", "neutral": "◆", "insufficient": "?",
}  # fmt: skip

# rewards with an ordinary plural; any other is called by the name of its column
_PLURALS = {
    "click": "clicks", "clicks": "clicks", "sale": "sales", "sales": "sales", "order": "orders", "orders": "orders",
    "purchase": "purchases", "purchases": "purchases", "conversion": "conversions", "conversions": "conversions",
    "view": "views", "views": "views", "like": "likes", "likes": "likes", "play": "plays", "plays": "plays",
    "booking": "bookings", "bookings": "bookings", "revenue": "revenue", "watch_time": "watch time",
}  # fmt: skip


def things(metric: str) -> str:
    """What a metric counts, in the middle of a sentence.

    >>> things("click"), things("gmv_eur")
    ('clicks', 'gmv_eur')
    """
    return _PLURALS.get(metric, metric)


def verdict_sentence(name: str, metric: Metric, confidence: float, *, online: bool = False) -> str:
    """The answer for one metric, by its word: offline with its range, online with its interval.

    >>> from foretest.results.uplift_range import Range
    >>> e = Estimate(.0206, .1, .0006, .0002, .001, .032, .011, .054, "positive", [], 99.0, word="leans positive",
    ...              range=Range("band", -.0001, .0014, -.005, .07))
    >>> verdict_sentence("click", Metric(None, {"ncis": e}, "ncis", "positive"), 0.9).replace("\\xa0", " ")
    'Leans positive: clicks would change by +3.2 %, between −0.50 % and +7.0 %.'
    """
    estimate = metric.estimates[metric.headline or ""]
    word = estimate.word
    if "insufficient" in (word, estimate.verdict):
        return f"This {'test' if online else 'log'} cannot answer: {_lack(name, estimate)}."
    form, middle, lower, upper = _limits(estimate)
    signs = word != "positive" or lower is None or lower < 0.0
    ends = f"{form(lower, sign=signs)}", f"{form(upper, sign=signs)}"
    if online:
        span = f" ({level(confidence)}\N{NO-BREAK SPACE}interval {ends[0]} to {ends[1]})"
    else:
        span = f", between {ends[0]} and {ends[1]}" + (" by noise alone" if range_of(estimate).kind == NOISE else "")
    what = things(name)
    start = what[:1].upper() + what[1:] if name in _PLURALS else what
    if word == "neutral":
        if max(abs(lower or 0.0), abs(upper or 0.0)) < 1e-9:
            return f"{start} {'did' if online else 'would'} not change{span}."
        if _cannot_tell(estimate, lower, upper):
            rose_or_fell = "rose or fell" if online else "would rise or fall"
            which = f"This {'test' if online else 'log'} {CANNOT_TELL} {what} {rose_or_fell}"
            return f"{which}: {form(middle, sign=True)}{span}."
        return f"No clear change in {what}: {form(middle, sign=True)}{span}."
    if word.startswith("leans"):
        return (
            f"{word.capitalize()}: {what} {'changed' if online else 'would change'} by {form(middle, sign=True)}{span}."
        )
    would, did = {"positive": ("rise", "rose"), "negative": ("fall", "fell")}[word]
    return f"{start} {did if online else f'would {would}'} by {form(abs(middle))}{span}."


def _cannot_tell(estimate: Estimate, lower: float | None, upper: float | None) -> bool:
    """Does the range of a neutral answer contain 0 and reach beyond 1 % on a side? Then a change that matters may be in
    it, either way. Where there is no relative range nobody knows what is little."""
    contains_0 = lower is not None and upper is not None and lower <= 0.0 <= upper
    is_narrow = estimate.rel_effect_size is not None and max(abs(lower or 0.0), abs(upper or 0.0)) <= LITTLE
    return contains_0 and not is_narrow


def _limits(estimate: Estimate) -> tuple[Callable[..., str], float, float | None, float | None]:
    """How to write the uplift, the uplift, and the limits of its range: relative ones where there are."""
    limits = range_of(estimate)
    if estimate.rel_effect_size is not None:
        return pct, estimate.rel_effect_size, limits.rel_ci_lower, limits.rel_ci_upper
    assert estimate.effect_size is not None
    return num, estimate.effect_size, limits.ci_lower, limits.ci_upper


def _lack(name: str, estimate: Estimate) -> str:
    """Why there is no answer."""
    if estimate.reasons and estimate.reasons[0].startswith(AUDIT_FAILED):
        return NOT_FROM_CONTROL
    effective = estimate.effective_positives
    few = [reason for reason in estimate.reasons if EFFECTIVE in reason]
    if effective is not None and effective < FEWEST_POSITIVES and few:
        has_plural = name in _PLURALS and name != "revenue"
        rewards = f"effective {_PLURALS[name]}" if has_plural else f"effective rows with {name}"
        needed = re.search(r"at least (\d+) are needed", few[0])  # fewer of dense rewards
        fewest = f"{FEWEST_POSITIVES:.0f}" if needed is None else needed[1]
        return f"only {count(effective)} {rewards}, at least {fewest} are needed"
    return estimate.reasons[0] if estimate.reasons else "there is no interval"


def further_sentences(result: Result, *, online: bool) -> list[str]:
    """One sentence for each further metric; for more than six, one with the number of each word."""
    rest = list(result.metrics.items())[1:]
    confidence = result.settings["analysis"]["confidence_level"]
    if len(rest) <= 6:
        return [_named(name, verdict_sentence(name, metric, confidence, online=online)) for name, metric in rest]
    words = [word_of(metric) for _, metric in rest]
    counts = ", ".join(f"{words.count(word)} {word}" for word in WORDS if word in words)
    return [f"Of the {len(rest)} further metrics: {counts}."]


def word_of(metric: Metric) -> str:
    """The word of a metric: that of its headline."""
    headline = metric.estimates.get(metric.headline or "")
    return metric.verdict if headline is None else headline.word


def _named(name: str, text: str) -> str:
    """A sentence with the name of its metric in front, unless it has it already."""
    is_named = not text.startswith("This ") or CANNOT_TELL in text
    return text if is_named else f"{name}: {text[0].lower()}{text[1:]}"


def evidence(result: Result) -> str:
    """The displays and units that the answer rests on; not who served them, where the audit says that nobody knows."""
    unit = result.settings["log"].get("unit")

    def arm(log: dict[str, Any]) -> str:
        return displays_text(log) + (f" of {units_text(log)} ({unit})" if unit else "")

    if "treatment" in result.log:
        return f"From {arm(result.log)} in the control and {arm(result.log['treatment'])} in the treatment."
    loggers = result.log.get("loggers")
    if loggers:
        names = ", ".join(f"{name} {pct(logger['share'])}" for name, logger in loggers.items())
        return (
            f"Estimated from {arm(result.log)} that {len(loggers)} policies served ({names}); the control is"
            f" {result.settings['analysis']['baseline']}. {_never_shown(result)}"
        )
    served = "" if result.audit is not None and result.audit.outcome == FAIL else " that the control served"
    return f"Estimated from {arm(result.log)}{served}. {_never_shown(result)}"


def _never_shown(result: Result) -> str:
    return "None of the treatments was shown." if result.treatments else "The treatment itself was never shown."


def assumption(result: Result) -> str | None:
    """What the log cannot support, and how much of the treatment that concerns, by the weights of the headline where
    their mass is known, else at the cap; None where neither is known, or the control never varies and so says nothing
    about rankings."""
    support, mean, cap = result.health.get("support"), result.health["treatment_mass_kept"], result.cap
    headline = next((metric.headline for metric in result.metrics.values()), None) or ""
    kept = result.health.get("mass_kept", {}).get(headline)
    if kept is not None and headline.startswith("exposure-"):
        return _not_supported("By exposure", kept)
    if mean is None or result.health.get("control_deterministic"):
        return None
    if support is not None:
        return (
            _not_supported(f"At cap {cap:g}", support["mean_q"])
            if kept is None
            else _not_supported(f"By the weights of {headline}", kept)
        )
    return (
        f"Judging by its weights at cap {cap:g}, the log supports about {pct(mean)} of what the treatment would show"
        " (chance moves this number a little); the estimate assumes that the rest earns as much."
    )


def _not_supported(how: str, kept: float) -> str:
    """The part of the treatment that is not kept, and what is assumed of it."""
    cut = max(0.0, 1.0 - kept)
    if cut < 0.005:
        return f"{how} the log supports nearly all of what the treatment would show."
    return (
        f"{how} the log does not support {pct(cut)} of what the treatment would show; the estimate assumes that this"
        " part earns as much as the rest."
    )


def range_sentence(result: Result, metric: Metric) -> str | None:
    """What the range allows for, and how far noise alone goes; None where there is no range."""
    estimate = metric.estimates[metric.headline or ""]
    limits = range_of(estimate)
    if limits.rel_ci_lower is None and limits.ci_lower is None:
        return None
    sentence = f"The range allows for {range_meaning(estimate)}."
    if not is_wider_than_noise(estimate) or estimate.rel_effect_size_ci_lower is None:
        return sentence
    noise = interval_text(estimate.rel_effect_size_ci_lower, estimate.rel_effect_size_ci_upper)
    if noise == interval_text(limits.rel_ci_lower, limits.rel_ci_upper):
        return f"{sentence} Noise alone gives the same range."
    confidence = level(result.settings["analysis"]["confidence_level"])
    at_once = "" if estimate.adjusted is None else ", of all treatments at once"
    return f"{sentence} Noise alone goes from {noise} ({confidence} interval{at_once})."


def trust(result: Result) -> str | None:
    """How far the first metric's verdict can be trusted if the assumption is wrong, and what the log says of it."""
    metric = next(iter(result.metrics.values()))
    estimate = metric.estimates[metric.headline or ""]
    band, breakdown = estimate.sensitivity, breakdown_text(estimate)
    if band is None or estimate.robustness is None:
        return None
    sentences = [] if breakdown is None else [f"{estimate.robustness.capitalize()}: the verdict {breakdown}."]
    gamma, least_gamma, most_gamma = (band[f"slice_gamma{end}"] for end in ("", "_ci_lower", "_ci_upper"))
    if gamma is not None and least_gamma is not None and most_gamma is not None:
        sentences.append(
            f"The least supported recommendations in the log earn {factor(gamma)} times what the others earn"
            f" ({factor(least_gamma)} to {factor(most_gamma)})."
            + ("" if refuted_text(estimate) is None else " That is beyond those factors, so the verdict is not robust.")
        )
    return " ".join(sentences) or None


_NEXT = {
    "positive": "This is a reason to run the A/B test, not a replacement for it.",
    "leans positive": "This speaks for running the A/B test, though not strongly. It does not replace the test.",
    "neutral": "This is a reason neither for the A/B test nor against it. A longer log, or a treatment closer to the"
    " control, would say more.",
    "leans negative": "This speaks against running the A/B test as it is, though not strongly.",
    "negative": "This is a reason not to run the A/B test as it is, or to run it small. It does not replace the test.",
    "insufficient": "The numbers below are shown as they are; no decision should rest on them, for the A/B test or"
    " against it. What helps: more log, a treatment closer to the control, or an estimator with bounded weights.",
}
_NONE_OF_SEVERAL = (
    "No treatment is a candidate for the A/B test as it is. Where a goal or a guardrail is unclear, a longer log, or a"
    " treatment closer to the control, would say more; where a guardrail fails or a goal is worse, no log will help."
)
_LITTLE_CHANGE = "An A/B test would hardly find a difference in this metric."
_AUDIT_FIRST = (
    "Do not decide by this page. What helps: settings that describe the control as it served, and a log of what it"
    " showed; see the audit."
)
_LIMITS_OF_A_LOG = (
    "The range is about the true uplift: an A/B test has noise of its own, so its result may fall outside, above all if"
    " the test is small. The log cannot tell about items it does not contain, changed habits, or effects over weeks;"
    " and a treatment must not have been trained on these rows."
)


def next_step(metric: Metric, *, none_passes: bool = False, several: bool = False, audit_failed: bool = False) -> str:
    """What an offline answer is good for, by its word, and what no log can tell."""
    if audit_failed:
        return _AUDIT_FIRST
    if none_passes and several:
        return _NONE_OF_SEVERAL
    word = toward_good(word_of(metric), metric.direction)
    step = _NEXT["neutral" if none_passes and "positive" in word else word]
    estimate = metric.estimates[metric.headline or ""]
    if word == "neutral" and not none_passes and not _cannot_tell(estimate, *_limits(estimate)[2:]):
        step = _LITTLE_CHANGE
    return step if word == "insufficient" else f"{step} {_LIMITS_OF_A_LOG}"


RANGE_GUIDE = (
    "The interval to look at first: it allows for noise, and for what the log cannot support, if unsupported"
    " recommendations earn between 1/Γ_lower and Γ_upper times what supported ones earn. With a calibration it allows"
    " for what they earned in past tests instead. The pale bar is the range; the bar inside it is noise alone."
)
_GUIDE = {
    "display": "One list of recommendations shown to somebody: a row of the log.",
    "control": "The policy that produced the log, usually the one in production.",
    "treatment": "The policy you would like to try.",
    "uplift": "By how much the treatment's reward per display exceeds the control's, in percent of the control's"
    " (relative) or in the metric's own unit (absolute).",
    "range": RANGE_GUIDE,
    "word": f"{WORD_MEANING[0].upper()}{WORD_MEANING[1:]}. Neutral: neither does. Insufficient: there is too little"
    " evidence for an interval.",
    "noise": "How far chance alone could move the uplift, as an interval. At 90\N{NO-BREAK SPACE}%, nine in ten such"
    " intervals contain the true uplift, provided that unsupported recommendations earn what the estimator assumes; the"
    " range covers the case that they do not.",
    "interval": "How far noise alone goes. At 90\N{NO-BREAK SPACE}%, nine in ten such intervals contain the true"
    " uplift.",
    "verdict": "The answer by noise alone. Positive: the whole interval is above 0. Negative: it is below 0. Neutral:"
    " it contains 0. Insufficient: there is too little evidence for an interval.",
    "weight": "How much more likely the treatment was than the control to show what was shown. Weighting turns the"
    " control's log into the treatment's.",
    "cap": "The limit at which weights are cut off, so that a few rows do not decide everything. What is cut off has to"
    " be modelled: the estimators differ in how.",
    "unit": "What counts as independent, such as a user. Intervals are computed over units.",
    "robust, fragile": "The log says next to nothing about recommendations that the control hardly ever shows. A"
    " verdict is robust if it stays the same when these earn somewhat less or more than the others, and the log does"
    " not show that they earn more or less than that; else fragile. It does not cover wrong probabilities.",
}
_GUIDE_OF_SEVERAL = {
    "control": "The policy that the treatment is compared with: one of those that served the log.",
    "logger": "A policy that served a part of the log. What was shown could have come from any of them, so it is"
    " weighted against all of them, by their shares of the day.",
    "weight": "How much more likely the treatment was than the loggers together to show what was shown. Weighting turns"
    " their log into the treatment's.",
    "robust, fragile": _GUIDE["robust, fragile"].replace("the control hardly ever shows", "no logger shows often"),
}


def guide(*, online: bool, several: bool = False) -> list[tuple[str, str]]:
    """The words of the page and their meanings; `several` is for a log of several loggers."""
    left_out = ("range", "word", "noise", "weight", "cap", "robust, fragile") if online else ("interval",)
    words = _GUIDE | _GUIDE_OF_SEVERAL if several else _GUIDE
    return [(word, meaning) for word, meaning in words.items() if word not in left_out]
