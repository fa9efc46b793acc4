"""The page of an offline or online A/B test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foretest.offline.winner import Choice, choice_of
from foretest.records import dataclass
from foretest.report.audit_list import alarm, arm_checklists, checklist, company_line
from foretest.report.bars import Bar, bars
from foretest.report.blocks import Chart, Remark, Words, chart_of, typeset
from foretest.report.charts.cap import cap_charts
from foretest.report.charts.forest import Row, forest_chart
from foretest.report.charts.weights import weights_chart
from foretest.report.choice_table import choice_table
from foretest.report.days_part import days_section, reward_age_charts
from foretest.report.digits import level, num, pct
from foretest.report.estimator_words import headline_reason
from foretest.report.examination_part import ExaminationPart, examination_part
from foretest.report.facts import control_never_varies, offline_facts, online_facts, summary
from foretest.report.many import leading, segments_section, treatments_section
from foretest.report.method import methods, references, settings_text
from foretest.report.online_part import adjusted_for, online_sections
from foretest.report.origin import origin
from foretest.report.page import Download, bounded, fill
from foretest.report.rows import EstimatorRow, absolute, arm_rows, estimator_rows, metric_rows, relative
from foretest.report.strata import StrataTable, strata_table
from foretest.report.words import (
    assumption,
    evidence,
    further_sentences,
    guide,
    next_step,
    range_sentence,
    things,
    trust,
    verdict_sentence,
    word_of,
)
from foretest.results.audit import AUDIT_FAILED, FAIL
from foretest.results.online_text import failed_arms, warnings
from foretest.results.questions import is_question
from foretest.results.result import Metric, Result
from foretest.settings.metric_roles import toward_good

METRICS_SHOWN = 200  # rows of the table of metrics
METRICS_DRAWN = 12  # metrics with charts of their own
STRATA_SHOWN = 50  # rows of a table of strata
QUESTIONS_SHOWN = 3  # beside the answer
METRICS_COMPARED = 40  # rows of an online test's chart
_A_LONGER_TEST = "The numbers below are shown as they are; no decision should rest on them. What helps: a longer test."
ROOM_ON_A_SCREEN, ROOM_ON_A_PHONE = 9.0, 26.0  # percent of the bar's width that a label at either end needs


@dataclass(frozen=True)
class Hero:
    """The headline's range, drawn large on top of the page, with noise alone inside it."""

    bar: Bar
    lower: str
    middle: str
    upper: str
    noise: tuple[str, str] | None = None  # the limits of noise alone, where they are drawn too
    at_once: bool = False  # is that noise of all treatments at once? It may then be the wider of the two

    @property
    def key(self) -> str | None:
        """What the two bars are; None where there is one."""
        if self.noise is None:
            return None
        if self.at_once:
            return "Pale: the range of this treatment alone. Narrow: noise only, of all treatments at once."
        same = self.noise == (self.lower, self.upper)
        return "Range and noise are the same here." if same else "Pale: the range. Inside it: noise only."

    @property
    def room(self) -> str:
        """A CSS class: is the bar too narrow for labels at its ends, always or on a phone?"""
        point = self.bar.begin if self.bar.point is None else self.bar.point
        least = min(point - self.bar.begin, self.bar.begin + self.bar.width - point)
        return "narrow" if least < ROOM_ON_A_SCREEN else "narrow-on-a-phone" if least < ROOM_ON_A_PHONE else ""


@dataclass(frozen=True)
class FurtherMetric:
    """The answer for a metric that is not the first."""

    sentence: str
    word: str
    tone: str  # the word whose colour says good or bad


@dataclass(frozen=True)
class MetricPart:
    """What is shown of one metric at a time: estimators, examination curve, cap, strata."""

    name: str
    forest: Chart
    estimators: list[EstimatorRow]
    examination: ExaminationPart | None
    cap: list[Chart]
    strata: StrataTable | None
    company: str | None  # do rewards depend on what else is shown?


def result_page(result: Result, truth: Mapping[str, float] | None = None) -> str:
    """The whole page; `truth` is the known relative uplift of simulated metrics."""
    if not result.metrics:
        raise ValueError("a check has no page: there is no metric in the result")
    document = result.to_dict()
    files = [Download("result.json", document)]
    return bounded(lambda part: _page(result, document, truth or {}, files, part))


def _page(
    result: Result, document: dict[str, Any], truth: Mapping[str, float], files: Sequence[Download], part: int
) -> str:
    online = "sample_ratio" in result.health
    drawn, never_varies = max(1, METRICS_DRAWN // part), control_never_varies(result)
    parts = [] if online else _metric_parts(result, document, truth, drawn, STRATA_SHOWN // part)
    context = {
        "online": online,
        "about": f" ({result.treatments[0].name})" if result.treatments else "",
        "several": bool(result.log.get("loggers")),
        "adjusted": adjusted_for(result),
        "level": level(result.settings["analysis"]["confidence_level"]),
        **_answer(result, truth, online=online),
        "audits": [lines for lines in (checklist(result), *arm_checklists(result)) if lines is not None],
        "choice": choice_table(result, part),
        "treatments": treatments_section(result, drawn),
        "segments": segments_section(result, drawn),
        "ages": [] if online else reward_age_charts(result, drawn),
        "days": None if online else days_section(result, drawn),
        "metrics": metric_rows(result)[: METRICS_SHOWN // part],
        "metrics_left_out": max(0, len(result.metrics) - METRICS_SHOWN // part),
        "parts": parts,
        "drawn_left_out": max(0, len(result.metrics) - drawn),
        "weights": None
        if document["weights"] is None or never_varies
        else chart_of(weights_chart(document["weights"])),
        "arms": arm_rows(result) if online else None,
        "forest": _online_forest(result) if online else None,
        "online_sections": online_sections(result) if online else [],
        "methods": methods(result),
        "references": references(result),
        "notes": result.notes,
        "origin": origin(
            result.provenance,
            [("seed", str(result.settings["analysis"]["seed"]))],
            [Words(settings_text(result.settings), "The settings, with every default filled in")],
        ),
    }
    kind = "online A/B test" if online else "offline A/B test"
    return fill("result.html", kind, f"{context['sentence']} – Foretest", _places(context), context, files, part=part)


def _answer(result: Result, truth: Mapping[str, float], *, online: bool) -> dict[str, Any]:
    """What the template shows above the tables."""
    answer = leading(result)
    name, metric = next(iter(answer.metrics.items()))
    choice = choice_of(result)
    sentence = verdict_sentence(name, metric, result.settings["analysis"]["confidence_level"], online=online)
    none_of_several = choice is not None and choice.winner is None and bool(result.treatments)
    if choice is not None:
        sentence = choice.title if none_of_several else f"{choice.title} {sentence}"
    facts = online_facts(result) if online else offline_facts(result)
    return {
        **_chip(metric, choice, several=bool(result.treatments)),
        "sentence": typeset(sentence),
        "hero": None if none_of_several else _hero(metric),
        "warnings": _warnings(result),
        "alarms": [text for text in (alarm(result), *map(typeset, failed_arms(result))) if text is not None],
        "questions": [] if online else _questions(result),
        "next_step": None
        if online
        else next_step(
            metric,
            none_passes=choice is not None and choice.winner is None,
            several=bool(result.treatments),
            audit_failed=result.audit is not None and result.audit.outcome == FAIL,
        ),
        "more": [] if none_of_several else _further_metrics(answer, online=online),
        "remarks": [
            *_choice_remarks(choice),
            *(_remarks(answer, truth, online=online) if not none_of_several else [Remark(evidence(result), "")]),
        ],
        "guide": guide(online=online, several=bool(result.log.get("loggers"))),
        "facts": facts,
        "facts_summary": summary(facts, never_varies=control_never_varies(result)),
        "reason": headline_reason(result, metric),
    }


def _choice_remarks(choice: Choice | None) -> list[Remark]:
    """What else to know of the choice: who ranks higher, who passes too, or why nobody does."""
    if choice is None:
        return []
    reasons = [choice.sentence] if choice.winner is None and choice.title != choice.sentence else []
    return [Remark(typeset(text), "") for text in [*reasons, *choice.details]]


def _chip(metric: Metric, choice: Choice | None, *, several: bool) -> dict[str, str | None]:
    """The chip above the sentence: the word, and whether it is good; that nothing passes where that is not in it."""
    tone = toward_good(word_of(metric), metric.direction)
    if choice is None or choice.winner is not None or (not several and "positive" not in tone):
        return {"verdict": word_of(metric), "tone": tone, "word": None}
    state = "insufficient" if tone == "insufficient" else "neutral"
    return {"verdict": state, "tone": state, "word": "no winner" if several else "does not pass"}


def _places(context: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The anchors and names of the navigation: of the sections that the page has."""
    parts, offline = context["parts"], not context["online"]
    cap = context["weights"] is not None or any(part.cap for part in parts)
    sections = [
        ("choice", "Choice", context["choice"] is not None),
        ("treatments", "Treatments", context["treatments"] is not None),
        ("health", "Health", True),
        *((audit.anchor, "Audit", True) for audit in context["audits"][:1]),
        ("metrics", "Metrics", True),
        ("arms", "Arms", context["online"]),
        *((section.anchor, section.name, True) for section in context["online_sections"]),
        ("estimators", "Estimators", offline),
        ("examination", "Slots", any(part.examination is not None for part in parts)),
        ("cap", "Cap", offline and cap),
        ("strata", "Strata", any(part.strata is not None for part in parts)),
        ("segments", "Segments", context["segments"] is not None),
        ("ages", "Ages", bool(context["ages"])),
        ("days", "Days", context["days"] is not None),
    ]
    return [(anchor, name) for anchor, name, is_there in sections if is_there]


def _hero(metric: Metric) -> Hero | None:
    """The headline's range; None where it has none."""
    estimate = metric.estimates[metric.headline or ""]
    form, span = (num, absolute(estimate)) if estimate.rel_effect_size is None else (pct, relative(estimate))
    [bar] = bars([span._replace(sound=True)])
    if bar is None or span.middle is None:
        return None
    lower, middle, upper = (form(value, sign=True) for value in span[:3])
    noise = None if span.noise is None else (form(span.noise[0], sign=True), form(span.noise[1], sign=True))
    return Hero(bar, lower, middle, upper, noise, estimate.adjusted is not None)


def _remarks(result: Result, truth: Mapping[str, float], *, online: bool) -> list[Remark]:
    """The lines below the sentence: the truth where it is known, the evidence, and what the answer leaves out."""
    remarks = []
    known = [f"{pct(truth[name], sign=True)} in {things(name)}" for name in result.metrics if name in truth]
    if known:
        remarks.append(Remark(f"This log is simulated, so the truth is known: {', '.join(known)}.", "truth"))
    remarks.append(Remark(evidence(result), ""))
    failed = result.audit is not None and result.audit.outcome == FAIL
    if not online and not failed:  # what the log supports follows from the control's probabilities
        first = next(iter(result.metrics.values()))
        texts = (assumption(result), range_sentence(result, first), trust(result))
        remarks += [Remark(text) for text in texts if text]
    name, metric = next(iter(result.metrics.items()))
    estimate = metric.estimates[metric.headline or ""]
    if online and estimate.verdict == "insufficient":
        remarks.append(Remark(_A_LONGER_TEST, ""))
    sentence = verdict_sentence(name, metric, 0.0, online=online)
    for reason in estimate.reasons:
        is_told = "effective positives" in reason or reason in sentence or reason.startswith(AUDIT_FAILED)
        if not is_told:  # in the sentence, or in the warning below it
            remarks.append(Remark(f"{reason[:1].upper()}{reason[1:]}."))
    return remarks


def _warnings(result: Result) -> list[str]:
    """What is wrong with the arms of an online test: their split, their displays per unit."""
    check = result.health.get("sample_ratio")
    split = [] if check is None or not check["alert"] else [_SPLIT]
    return [*split, *map(typeset, warnings(result))]


_SPLIT = (
    "The units are not split as designed. Find out why before you believe any number on this page: whatever moved"
    " the split may also have moved the result."
)


def _questions(result: Result) -> list[str]:
    """What to answer before the numbers are believed: what the log or a treatment asks, and what nobody could check."""
    asked = [note for note in result.notes if is_question(note)]
    doubts = {audit.doubt() for audit in (result.audit, *(t.audit for t in result.treatments)) if audit is not None}
    texts = [*asked, *(note for note in result.notes if any(note.endswith(doubt) for doubt in doubts if doubt))]
    shown = [typeset(f"{text[:1].upper()}{text[1:]}") for text in texts[:QUESTIONS_SHOWN]]
    more = len(texts) - len(shown)
    return [*shown, f"{more} more in the notes at the end of this page."] if more > 0 else shown


def _further_metrics(result: Result, *, online: bool) -> list[FurtherMetric]:
    """The metrics after the first, in a sentence each, or all of them in one."""
    sentences = further_sentences(result, online=online)
    rest = list(result.metrics.values())[1:]
    if len(sentences) != len(rest):
        return [FurtherMetric(text, "neutral", "neutral") for text in sentences]
    return [
        FurtherMetric(text, word_of(metric), toward_good(word_of(metric), metric.direction))
        for text, metric in zip(sentences, rest, strict=True)
    ]


def _metric_parts(
    result: Result, document: dict[str, Any], truth: Mapping[str, float], drawn: int, strata: int
) -> list[MetricPart]:
    """The first `drawn` metrics, each with at most `strata` strata."""
    confidence, never_varies = result.settings["analysis"]["confidence_level"], control_never_varies(result)
    parts = []
    for name, metric in list(result.metrics.items())[:drawn]:
        rows = [Row(label, e, label == metric.headline, metric.direction) for label, e in metric.estimates.items()]
        forest = forest_chart(f"Uplift in {things(name)}, by estimator", rows, confidence, truth.get(name))
        path = None if never_varies else document["metrics"][name]["cap_path"]
        cap = [] if path is None else [chart_of(chart) for chart in cap_charts(path)]
        parts.append(
            MetricPart(
                name, chart_of(forest), estimator_rows(result, metric), examination_part(name, metric, confidence), cap,
                strata_table(metric, strata), company_line(metric),
            )
        )  # fmt: skip
    return parts


def _online_forest(result: Result) -> Chart:
    rows = [
        Row(name, metric.estimates[metric.headline or ""], direction=metric.direction)
        for name, metric in list(result.metrics.items())[:METRICS_COMPARED]
    ]
    return chart_of(forest_chart("Uplift by metric", rows, result.settings["analysis"]["confidence_level"]))
