"""The answer in sentences that need no statistics to be read."""

from __future__ import annotations

from typing import Any

from foretest.inference.verdict import FEWEST_POSITIVES
from foretest.report.digits import count, level, num, pct
from foretest.results.audit import AUDIT_FAILED
from foretest.results.result import Estimate, Metric, Result
from foretest.results.robustness_text import band_factors, breakdown_text, factor

VERDICTS = ("positive", "negative", "neutral", "insufficient")
SIGNS = {"positive": "▲", "negative": "▼", "neutral": "◆", "insufficient": "?"}

# rewards that have a plain word; any other is called what its column is called
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


def sentence(name: str, metric: Metric, confidence: float, *, online: bool = False) -> str:
    """The verdict on one metric.

    >>> e = Estimate(.0206, .1, .0006, .0002, .001, .032, .011, .054, "positive", [], 99.0)
    >>> sentence("click", Metric(None, {"ncis": e}, "ncis", "positive"), 0.9).replace("\\xa0", " ")
    'Clicks would rise by 3.2 % (90 % interval 1.1 % to 5.4 %).'
    """
    estimate = metric.estimates[metric.headline or ""]
    what = things(name)
    if estimate.verdict == "insufficient":
        return f"This {'test' if online else 'log'} cannot answer: {_lack(name, estimate)}."
    relative = estimate.rel_effect_size is not None
    middle = estimate.rel_effect_size if relative else estimate.effect_size
    lower = estimate.rel_effect_size_ci_lower if relative else estimate.effect_size_ci_lower
    upper = estimate.rel_effect_size_ci_upper if relative else estimate.effect_size_ci_upper
    form = pct if relative else num
    assert middle is not None
    signs = estimate.verdict != "positive" or lower is None or lower < 0.0
    span = f"({level(confidence)}\N{NO-BREAK SPACE}interval {form(lower, sign=signs)} to {form(upper, sign=signs)})"
    start = what[:1].upper() + what[1:] if name in _PLURALS else what
    if estimate.verdict == "neutral":
        if lower == upper == 0.0 or max(abs(lower or 0.0), abs(upper or 0.0)) < 1e-9:
            return f"{start} {'did' if online else 'would'} not change {span}."
        return f"No clear change in {what}: {form(middle, sign=True)} {span}."
    way = {"positive": ("rise", "rose"), "negative": ("fall", "fell")}[estimate.verdict]
    return f"{start} {way[1] if online else f'would {way[0]}'} by {form(abs(middle))} {span}."


def _lack(name: str, estimate: Estimate) -> str:
    """Why there is no answer, in the words of the metric."""
    if estimate.reasons and estimate.reasons[0].startswith(AUDIT_FAILED):
        return estimate.reasons[0]
    effective = estimate.effective_positives
    few = f"at least {FEWEST_POSITIVES:.0f}"
    if effective is not None and effective < FEWEST_POSITIVES and any("effective" in r for r in estimate.reasons):
        kind = (
            f"effective {_PLURALS[name]}" if name in _PLURALS and name != "revenue" else f"effective rows with {name}"
        )
        return f"only {count(effective)} {kind}, {few} are needed"
    return estimate.reasons[0] if estimate.reasons else "its interval does not exist"


def others(result: Result, *, online: bool) -> list[str]:
    """A sentence for each further metric; beyond six, how many there are of each verdict."""
    rest = list(result.metrics.items())[1:]
    confidence = result.settings["analysis"]["confidence_level"]
    if len(rest) <= 6:
        return [_of(name, sentence(name, metric, confidence, online=online)) for name, metric in rest]
    counts = {v: sum(metric.verdict == v for _, metric in rest) for v in VERDICTS}
    said = ", ".join(f"{n} {v}" for v, n in counts.items() if n)
    return [f"Of the {len(rest)} further metrics, by verdict: {said}."]


def _of(name: str, said: str) -> str:
    """A sentence that does not name its metric is told whose it is."""
    return f"{name}: {said[0].lower()}{said[1:]}" if said.startswith("This ") else said


def rests_on(result: Result) -> str:
    """What the answer rests on."""
    unit = result.settings["log"].get("unit")

    def arm(log: dict[str, Any]) -> str:
        about = "about " if log.get("units_approximate") else ""
        return f"{log['rows']:,} displays" + (f" of {about}{log['units']:,} units ({unit})" if unit else "")

    if "treatment" in result.log:
        return f"From {arm(result.log)} in the control and {arm(result.log['treatment'])} in the treatment."
    if result.log.get("loggers"):
        names = ", ".join(f"{name} {pct(held['share'])}" for name, held in result.log["loggers"].items())
        baseline = result.settings["analysis"]["baseline"]
        return (
            f"Estimated from {arm(result.log)} that {len(result.log['loggers'])} policies served ({names}); the control"
            f" is {baseline}. The treatment itself was never shown."
        )
    return f"Estimated from {arm(result.log)} that the control served. The treatment itself was never shown."


def assumption(result: Result) -> str | None:
    """What the interval leaves out, with the size of it."""
    support, mean = result.health.get("support"), result.health["treatment_mass_kept"]
    cap = result.cap
    covered = "The interval covers the noise of the log, not this assumption."
    if support is not None:
        cut = max(0.0, 1.0 - support["mean_q"])
        if cut < 0.005:
            return f"At cap {cap:g} the log can speak for nearly all that the treatment would show."
        return (
            f"At cap {cap:g} the log cannot speak for {pct(cut)} of what the treatment would show; that part is assumed"
            f" to earn like the rest. {covered}"
        )
    if mean is None:
        return None
    return (
        f"By its weights, at cap {cap:g}, the log speaks for about {pct(mean)} of what the treatment would show (chance"
        f" moves this a little); the rest is assumed to earn like it. {covered}"
    )


def trust(result: Result) -> str | None:
    """How far the first metric's verdict can be trusted beyond the assumption, and what the log says of it."""
    metric = next(iter(result.metrics.values()))
    estimate = metric.estimates[metric.headline or ""]
    band, said = estimate.sensitivity, breakdown_text(estimate)
    if band is None or estimate.robustness is None:
        return None
    lower, upper, gamma = band["ci_lower"], band["ci_upper"], band["slice_gamma"]
    text = "" if said is None else f"{(estimate.robustness or '').capitalize()}: the verdict {said}. "
    if lower is not None and upper is not None and metric.control.value:
        least, most = band_factors(estimate)
        span = f"{pct(lower / metric.control.value, sign=True)} to {pct(upper / metric.control.value, sign=True)}"
        who = "they" if said else "unsupported recommendations"
        text += f"If {who} earn between {least} and {most} times as much as supported ones, the interval is {span}."
    if gamma is not None and band["slice_gamma_ci_lower"] is not None and band["slice_gamma_ci_upper"] is not None:
        limits = f"{factor(band['slice_gamma_ci_lower'])} to {factor(band['slice_gamma_ci_upper'])}"
        text += (
            f" The least supported recommendations in the log earn {factor(gamma)} times what the others earn"
            f" ({limits})."
        )
    return text


#: key: a name for readers, and how it differs
ESTIMATORS: dict[str, tuple[str, str]] = {
    "is": ("Importance sampling", "weights every reward by how much likelier the treatment was to show it. Unbiased,"
           " but a few huge weights decide."),
    "nis": ("Normalised importance sampling", "the same, divided by the sum of the weights."),
    "dr": ("Doubly robust", "importance sampling of what a reward model leaves unexplained; weights are not capped."),
    "cis": ("Capped importance sampling", "cuts weights at the cap and counts what was cut off as worthless, so it"
            " errs downward. A yardstick, not an answer."),
    "ncis": ("Normalised capped", "takes what was cut off to earn like the average of what is left."),
    "piece-ncis": ("Piecewise normalised capped", "takes what was cut off to earn like what is left of the same"
                   " stratum of alike displays."),
    "point-ncis": ("Pointwise normalised capped", "takes what was cut off to earn like what is left of the very same"
                   " display, at one cap for all."),
    "point-ncis-adaptive": ("Pointwise, adaptive cap", "as point-ncis, with a cap for each display, so that no weight"
                            " exceeds the bound."),
    "iips": ("Slot by slot", "weights what each slot earned by how much likelier the treatment puts that item there."
             " Right where slots do not influence each other; weights have no bound."),
    "rips": ("Slot by slot, from the top", "weights what each slot earned by how much likelier the treatment was to"
             " show the items down to it. Weights have no bound."),
    "slot-ncis-adaptive": ("Slot by slot, adaptive cap", "as iips, with a cap for each slot of each display, so that no"
                           " weight exceeds the bound; what was cut off is taken to earn like what is left there."),
    "point-ncis-calibrated": ("Pointwise, calibrated", "as point-ncis-adaptive, with what was cut off worth as much, by"
                              " past A/B tests, as it was there."),
    "slot-ncis-calibrated": ("Slot by slot, calibrated", "as slot-ncis-adaptive, with what was cut off worth as much,"
                             " by past A/B tests, as it was there."),
    "online": ("Online", "the difference of the two arms."),
}  # fmt: skip

_WHY = {
    "slot-ncis-adaptive": "the log says which slot earned the reward, and weights of single items, bounded as those of"
    " point-ncis-adaptive, leave less to chance than those of whole rankings",
    "point-ncis-adaptive": "its weights are bounded and it models what was cut off display by display, and in simulated"
    " histories of A/B tests it agreed best with the online results",
    "piece-ncis": "it models what was cut off stratum by stratum, and no estimator that does so display by display was"
    " run",
    "point-ncis": "it models what was cut off display by display",
    "ncis": "it corrects for the mass that the cap cuts off, and no finer estimator was run",
    "cis": "no normalised estimator was run; read it as a lower bound in expectation",
}


def headline_reason(result: Result, metric: Metric) -> str:
    """Which estimator is the headline, and why."""
    label = metric.headline or ""
    if result.settings["analysis"].get("headline") == label:
        return f"The headline is {label}, as the settings say."
    if len(metric.estimates) == 1:
        return f"The headline is {label}, the only estimator that was run."
    if metric.slots is not None and metric.slots["disagree"]:
        slot, point = metric.slots["slot"], metric.slots["point"]
        return (
            f"The headline is {label}, not {slot}: slots influence each other here, as {slot} and {point} differ by"
            " more than noise and what the log does not support explain."
        )
    return f"The headline is {label}: {_WHY.get(label, 'it is the first that the settings list')}."


_GUIDE = {
    "display": "One list of recommendations shown to somebody: a row of the log.",
    "control": "The policy that produced the log, as a rule the one in production.",
    "treatment": "The policy you would like to try.",
    "uplift": "By how much the treatment's reward per display exceeds the control's, in per cent of the control's"
    " (relative) or in the metric's own unit (absolute).",
    "interval": "The range that the data is compatible with. At 90\N{NO-BREAK SPACE}%, nine in ten such ranges hold"
    " what the estimator aims at.",
    "verdict": "Positive: the whole interval is above no change. Negative: below. Neutral: it holds no change."
    " Insufficient: there is too little evidence to draw an interval at all.",
    "weight": "How much likelier the treatment was than the control to show what was shown. Weighting turns the"
    " control's log into the treatment's.",
    "cap": "Weights are cut there, so that no few rows decide everything. What is cut off has to be modelled: the"
    " estimators differ in how.",
    "unit": "Who is independent of whom, such as a user. Intervals are over units.",
    "robust, fragile": "The log has next to nothing to say of recommendations that the control hardly ever shows. A"
    " verdict is robust if it stays the same should these earn somewhat less or more than the others, else fragile. The"
    " pale band around an interval is the interval with this allowed for.",
}


_GUIDE_OF_SEVERAL = {
    "control": "The policy that the treatment is compared with: one of those that showed the log.",
    "logger": "A policy that showed a part of the log. What was shown might have come from any of them, so it is"
    " weighed against all, by their shares of the day.",
    "weight": "How much likelier the treatment was than the loggers together to show what was shown. Weighting turns"
    " their log into the treatment's.",
    "robust, fragile": _GUIDE["robust, fragile"].replace("the control hardly ever shows", "no logger shows often"),
}


def guide(*, online: bool, several: bool = False) -> list[tuple[str, str]]:
    """The words of the page, `several` of a log of several loggers."""
    offline = ("weight", "cap", "robust, fragile")
    words = _GUIDE if not several else _GUIDE | _GUIDE_OF_SEVERAL
    return [(word, said) for word, said in words.items() if not (online and word in offline)]
