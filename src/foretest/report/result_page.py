"""The page of an offline or online A/B test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foretest.report.audit_list import alarm, checklist
from foretest.report.bars import bars
from foretest.report.blocks import Chart, Words, chart_of
from foretest.report.charts.cap import cap_charts
from foretest.report.charts.forest import Row, forest_chart
from foretest.report.charts.weights import weights_chart
from foretest.report.digits import level, num, pct
from foretest.report.facts import offline_facts, online_facts, summary
from foretest.report.many import in_order, leading, segments_part, treatments_part
from foretest.report.method import methods, references, settings_text
from foretest.report.origin import origin
from foretest.report.page import Download, bounded, fill
from foretest.report.rows import absolute, arm_rows, estimator_rows, metric_rows, relative, strata_rows
from foretest.report.words import assumption, guide, headline_reason, others, rests_on, sentence, things, trust
from foretest.results.result import Metric, Result

METRICS_SHOWN = 200  # rows of the table of metrics
METRICS_DRAWN = 12  # metrics with charts of their own
STRATA_SHOWN = 50  # rows of a table of strata
METRICS_COMPARED = 40  # rows of an online test's chart


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
    shown, drawn = METRICS_SHOWN // part, max(1, METRICS_DRAWN // part)
    answer = leading(result)
    name, metric = next(iter(answer.metrics.items()))
    analysis = result.settings["analysis"]
    confidence, several = analysis["confidence_level"], bool(result.log.get("loggers"))
    facts = online_facts(result) if online else offline_facts(result)
    said = sentence(name, metric, confidence, online=online)
    if result.treatments:
        said = f"Of {len(result.treatments)} treatments {in_order(result)[0].name} ranks first. {said}"
    treatments, segments = treatments_part(result, drawn), segments_part(result, drawn)
    parts = [] if online else _parts(result, document, truth, drawn, STRATA_SHOWN // part)
    weights = None if document["weights"] is None else chart_of(weights_chart(document["weights"]))
    context = {
        "online": online,
        "level": level(confidence),
        "verdict": metric.verdict,
        "sentence": said,
        "hero": _hero(metric),
        "warning": _warning(result),
        "alarm": alarm(result),
        "audit": checklist(result),
        "more": _more(answer, online=online),
        "remarks": _remarks(answer, truth, online=online),
        "treatments": treatments,
        "segments": segments,
        "guide": guide(online=online, several=several),
        "several": several,
        "facts": facts,
        "facts_summary": summary(facts),
        "metrics": metric_rows(result)[:shown],
        "metrics_left_out": max(0, len(result.metrics) - shown),
        "parts": parts,
        "drawn_left_out": max(0, len(result.metrics) - drawn),
        "reason": headline_reason(result, metric),
        "weights": weights,
        "arms": arm_rows(result) if online else None,
        "forest": _online_forest(result) if online else None,
        "methods": methods(result),
        "references": references(result),
        "notes": result.notes,
        "origin": origin(
            result.provenance,
            [("seed", str(analysis["seed"]))],
            [Words(settings_text(result.settings), "The settings, with every default filled in")],
        ),
    }
    kind = "online A/B test" if online else "offline A/B test"
    cap = bool(weights) or any(p["cap"] for p in parts)
    places = _places(online, result.audit is not None, cap, any(p["strata"] for p in parts))
    places = [("treatments", "Treatments")] * bool(treatments) + places + [("segments", "Segments")] * bool(segments)
    return fill("result.html", kind, f"{said} – Foretest", places, context, files, part=part)


def _places(online: bool, audit: bool, cap: bool, strata: bool) -> list[tuple[str, str]]:
    """What the navigation names."""
    if online:
        return [("health", "Health"), ("metrics", "Metrics"), ("arms", "Arms")]
    places = [("health", "Health"), *[("audit", "Audit")] * audit, ("metrics", "Metrics")]
    places.append(("estimators", "Estimators"))
    return places + [("cap", "Cap")] * cap + [("strata", "Strata")] * strata


def _hero(metric: Metric) -> dict[str, Any] | None:
    """The headline's interval, drawn large."""
    e = metric.estimates[metric.headline or ""]
    form, span = (num, absolute(e)) if e.rel_effect_size is None else (pct, relative(e))
    [bar] = bars([span._replace(sound=True)])
    if bar is None or span.middle is None:
        return None
    ends = {end: form(getattr(span, end), sign=True) for end in ("lower", "middle", "upper")}
    return {"bar": bar, **ends}


def _remarks(result: Result, truth: Mapping[str, float], *, online: bool) -> list[dict[str, str]]:
    """What stands below the sentence: the truth where it is known, what the answer rests on, what it leaves out."""
    remarks = []
    known = [f"{pct(truth[name], sign=True)} in {things(name)}" for name in result.metrics if name in truth]
    if known:
        remarks.append(("truth", f"This log is simulated, so the truth is known: {', '.join(known)}."))
    remarks.append(("", rests_on(result)))
    if not online and (limits := assumption(result)):
        remarks.append(("quiet", limits))
    if not online and (trusted := trust(result)):
        remarks.append(("quiet", trusted))
    metric = next(iter(result.metrics.values()))
    estimate = metric.estimates[metric.headline or ""]
    if estimate.verdict == "insufficient":
        cure = "more log, a treatment closer to the control, or an estimator with bounded weights"
        if alarm(result) is not None:
            cure = "a control that is described as it served, and a log that holds what it showed; see the audit"
        remarks.append(("", "The numbers below are given as they are; no decision should rest on them. What helps:"
                        f" {'a longer test' if online else cure}."))  # fmt: skip
    said = sentence(*next(iter(result.metrics.items())), 0.0, online=online)
    for reason in estimate.reasons:
        if "effective positives" not in reason and reason not in said:  # the sentence has said it already
            remarks.append(("quiet", f"{reason[:1].upper()}{reason[1:]}."))
    return [{"kind": kind, "text": text} for kind, text in remarks]


def _warning(result: Result) -> str | None:
    check = result.health.get("sample_ratio")
    if check is None or not check["alert"]:
        return None
    return (
        "The units are not split as designed. Find out why before you believe any number on this page: whatever moved"
        " the split may also have moved the result."
    )


def _more(result: Result, *, online: bool) -> list[dict[str, str]]:
    """The further metrics, a sentence each."""
    said = others(result, online=online)
    rest = [metric.verdict for metric in result.metrics.values()][1:]
    verdicts = rest if len(said) == len(rest) else ["neutral"] * len(said)
    return [{"said": text, "verdict": verdict} for text, verdict in zip(said, verdicts, strict=True)]


def _parts(
    result: Result, document: dict[str, Any], truth: Mapping[str, float], drawn: int, strata: int
) -> list[dict[str, Any]]:
    """What is shown of one metric at a time: estimators, cap, strata."""
    confidence = result.settings["analysis"]["confidence_level"]
    parts = []
    for name, metric in list(result.metrics.items())[:drawn]:
        rows = [Row(label, e, label == metric.headline) for label, e in metric.estimates.items()]
        forest = forest_chart(f"Uplift in {things(name)}, by estimator", rows, confidence, truth.get(name))
        path = document["metrics"][name]["cap_path"]
        parts.append({
            "name": name,
            "forest": chart_of(forest),
            "estimators": estimator_rows(result, metric),
            "cap": [] if path is None else [chart_of(chart) for chart in cap_charts(path)],
            "strata": strata_rows(metric, strata),
        })  # fmt: skip
    return parts


def _online_forest(result: Result) -> Chart:
    rows = [Row(name, m.estimates[m.headline or ""]) for name, m in list(result.metrics.items())[:METRICS_COMPARED]]
    return chart_of(forest_chart("Uplift by metric", rows, result.settings["analysis"]["confidence_level"]))
