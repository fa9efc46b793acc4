"""The page of an offline or online A/B test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foretest.report.bars import Bar, Span, bars
from foretest.report.blocks import Chart, Words, chart_of
from foretest.report.charts.cap import cap_chart, cap_estimates_chart
from foretest.report.charts.forest import Row, forest_chart
from foretest.report.charts.strata import strata_chart
from foretest.report.charts.weights import weights_chart
from foretest.report.digits import level, num, pct
from foretest.report.facts import offline_facts, online_facts, summary
from foretest.report.method import methods, references, settings_text
from foretest.report.origin import origin
from foretest.report.page import fill
from foretest.report.words import ESTIMATORS, assumption, headline_reason, others, sentence
from foretest.report.words import origin as rests_on
from foretest.result import Estimate, Metric, Result

METRICS_SHOWN = 200  # rows of the table of metrics
METRICS_DRAWN = 12  # metrics with charts of their own
STRATA_SHOWN = 50  # rows of a table of strata


def result_page(result: Result, truth: Mapping[str, float] | None = None) -> str:
    """The whole page; `truth` is the known relative uplift of simulated metrics."""
    online = "sample_ratio" in result.health
    if not result.metrics:
        raise ValueError("a check has no page: there is no metric in the result")
    name, metric = next(iter(result.metrics.items()))
    confidence = result.settings["analysis"]["confidence_level"]
    facts = online_facts(result) if online else offline_facts(result)
    said = sentence(name, metric, confidence, online=online)
    context = {
        "online": online,
        "level": level(confidence),
        "verdict": metric.verdict,
        "sentence": said,
        "hero": _hero(metric),
        "remarks": _remarks(result, truth or {}, online=online),
        "warning": _warning(result),
        "more": _more(result, online=online),
        "facts": facts,
        "facts_summary": summary(facts),
        "metrics": _metric_rows(result),
        "metrics_left_out": max(0, len(result.metrics) - METRICS_SHOWN),
        "parts": [] if online else _parts(result, truth or {}),
        "drawn_left_out": max(0, len(result.metrics) - METRICS_DRAWN),
        "reason": headline_reason(result, metric),
        "forest": _online_forest(result, truth or {}) if online else None,
        "weights": chart_of(weights_chart(document_weights)) if (document_weights := _weights(result)) else None,
        "sample_ratio": _sample_ratio(result) if online else None,
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
    places = [("health", "Health"), ("metrics", "Metrics")]
    places += [("arms", "Split")] if online else [("estimators", "Estimators")]
    places += [] if online or not context["weights"] and not any(p["cap"] for p in context["parts"]) else [("cap", "Cap")]
    places += [("strata", "Strata")] if any(part["strata"] for part in context["parts"]) else []
    return fill("result.html", kind, f"{said} – Foretest", places, context, {"result.json": result.to_dict()})


def _weights(result: Result) -> dict[str, Any] | None:
    weights: dict[str, Any] | None = result.to_dict().get("weights")
    return weights


def _hero(metric: Metric) -> dict[str, Any] | None:
    """The headline's interval, drawn large."""
    e = metric.estimates[metric.headline or ""]
    relative = e.rel_effect_size is not None
    span = _span(e) if relative else _absolute(e)
    [bar] = bars([span._replace(sound=True)])
    if bar is None or span.middle is None:
        return None
    form = pct if relative else num
    ends = form(span.lower, sign=True), form(span.middle, sign=True), form(span.upper, sign=True)
    return {"bar": bar, "lower": ends[0], "middle": ends[1], "upper": ends[2], "words": f"{ends[0]} to {ends[2]}"}


def _remarks(result: Result, truth: Mapping[str, float], *, online: bool) -> list[dict[str, str]]:
    remarks = []
    known = [(name, truth[name]) for name in result.metrics if name in truth]
    if known:
        said = ", ".join(f"{pct(value, sign=True)} in {name}" for name, value in known)
        remarks.append({"kind": "truth", "text": f"This log is simulated, so the truth is known: {said}."})
    remarks.append({"kind": "", "text": rests_on(result)})
    if not online and (limits := assumption(result)):
        remarks.append({"kind": "quiet", "text": limits})
    name, metric = next(iter(result.metrics.items()))
    estimate = metric.estimates[metric.headline or ""]
    if estimate.verdict == "insufficient":
        cure = "a longer test" if online else "more log, a treatment closer to the control, or an estimator with bounded weights"
        remarks.append({"kind": "", "text": f"The numbers below are given as they are; no decision should rest on them. The cure is {cure}."})
    remarks += [{"kind": "quiet", "text": f"{name}, {metric.headline}: {reason}."} for reason in estimate.reasons]
    return remarks


def _warning(result: Result) -> str | None:
    check = result.health.get("sample_ratio")
    if check is None or not check["alert"]:
        return None
    return (
        "The units are not split as designed. Find out why before you believe any number on this page: whatever moved the"
        " split may also have moved the result."
    )


def _more(result: Result, *, online: bool) -> list[dict[str, str]]:
    said = others(result, online=online)
    rest = list(result.metrics.values())[1:]
    verdicts = [m.verdict for m in rest] if len(said) == len(rest) else ["neutral"] * len(said)
    return [{"said": text, "verdict": verdict} for text, verdict in zip(said, verdicts, strict=True)]


def _span(e: Estimate) -> Span:
    return Span(e.rel_effect_size_ci_lower, e.rel_effect_size, e.rel_effect_size_ci_upper, e.verdict != "insufficient")


def _absolute(e: Estimate) -> Span:
    return Span(e.effect_size_ci_lower, e.effect_size, e.effect_size_ci_upper, e.verdict != "insufficient")


def estimate_cells(e: Estimate, relative: Bar | None, absolute: Bar | None) -> dict[str, Any]:
    """One estimate, both ways: relative and absolute, numbers and bar."""
    rel, ab = _span(e), _absolute(e)
    return {
        "estimate": e, "verdict": e.verdict, "treatment": num(e.treatment),
        "rel": pct(rel.middle, sign=True), "rel_value": rel.middle, "rel_bar": relative,
        "rel_interval": _interval(rel, pct), "abs": num(ab.middle, sign=True), "abs_value": ab.middle,
        "abs_bar": absolute, "abs_interval": _interval(ab, num),
    }  # fmt: skip


def _interval(span: Span, form: Any) -> str:
    return "no interval" if span.lower is None else f"{form(span.lower, sign=True)} to {form(span.upper, sign=True)}"


def _metric_rows(result: Result) -> list[dict[str, Any]]:
    """A row a metric. Relative bars share a scale; absolute ones have units of their own, so each has its own."""
    shown = list(result.metrics.items())[:METRICS_SHOWN]
    estimates = [m.estimates[m.headline or ""] for _, m in shown]
    relative = bars([_span(e) for e in estimates])
    absolute = [bars([_absolute(e)._replace(sound=True)])[0] for e in estimates]
    return [
        {"name": name, "control": num(m.control.value), "control_value": m.control.value,
         "control_interval": f"{num(m.control.ci_lower)} to {num(m.control.ci_upper)}", "headline": m.headline,
         **estimate_cells(e, rel, ab)}
        for (name, m), e, rel, ab in zip(shown, estimates, relative, absolute, strict=True)
    ]  # fmt: skip


def _parts(result: Result, truth: Mapping[str, float]) -> list[dict[str, Any]]:
    """What is shown of one metric at a time: estimators, cap, strata."""
    confidence = result.settings["analysis"]["confidence_level"]
    parts = []
    for name, metric in list(result.metrics.items())[:METRICS_DRAWN]:
        rows = [Row(label, e, label == metric.headline) for label, e in metric.estimates.items()]
        title = f"Uplift in {name}, by estimator"
        path = metric.cap_path
        parts.append({
            "name": name,
            "forest": chart_of(forest_chart(title, rows, confidence, truth.get(name))),
            "estimators": _estimator_rows(result, metric),
            "cap": [] if path is None else [chart_of(cap_estimates_chart(path)), chart_of(cap_chart(path))],
            "strata": _strata(metric),
        })  # fmt: skip
    return parts


def _estimator_rows(result: Result, metric: Metric) -> list[dict[str, Any]]:
    kinds = result.provenance.get("estimators", {})
    rows = []
    for label, e in metric.estimates.items():
        key = kinds.get(label, {}).get("key", label)
        title, line = ESTIMATORS.get(key, ("", "your own estimator."))
        own = {k: v for k, v in kinds.get(label, {}).items() if k != "key"}
        options = f" Here with {', '.join(f'{k} = {v}' for k, v in own.items())}." if own else ""
        rows.append({"label": label, "title": title, "line": line[:1].upper() + line[1:] + options,
                     "leads": label == metric.headline, "effective": num(e.effective_positives),
                     "reasons": e.reasons, **estimate_cells(e, None, None)})  # fmt: skip
    return rows


def _strata(metric: Metric) -> dict[str, Any] | None:
    """The strata of the first stratified estimator."""
    label, strata = next(((k, e.strata) for k, e in metric.estimates.items() if e.strata), (None, None))
    if not strata:
        return None
    shown = sorted(strata, key=lambda s: -s["share"])[:STRATA_SHOWN]
    kept = {id(s) for s in shown}
    largest = max(s["share"] for s in strata), max(s["contribution"] or 0.0 for s in strata)
    rows = [
        {"label": s["label"], "share": pct(s["share"]), "share_value": s["share"], "weight": num(s["mean_weight"]),
         "weight_value": s["mean_weight"], "value": num(s["value"]), "value_value": s["value"],
         "contribution": num(s["contribution"]), "contribution_value": s["contribution"],
         "share_bar": _part(s["share"], largest[0]), "contribution_bar": _part(s["contribution"], largest[1])}
        for s in strata if id(s) in kept
    ]  # fmt: skip
    rest = [s for s in strata if id(s) not in kept]
    note = f"{len(rest):,} smaller strata, {pct(sum(s['share'] for s in rest))} of the rows, are in result.json."
    return {"estimator": label, "rows": rows, "note": note if rest else "", "chart": chart_of(strata_chart(strata))}


def _part(value: float | None, whole: float) -> str:
    return f"--share:{100.0 * (value or 0.0) / whole:.1f}%" if whole > 0 else ""


def _online_forest(result: Result, truth: Mapping[str, float]) -> Chart:
    rows = [Row(name, m.estimates[m.headline or ""]) for name, m in list(result.metrics.items())[:40]]
    known = next(iter(truth.values()), None) if len(rows) == 1 else None
    return chart_of(forest_chart("Uplift by metric", rows, result.settings["analysis"]["confidence_level"], known))


def _sample_ratio(result: Result) -> dict[str, Any]:
    from foretest.report.digits import chance

    check = result.health["sample_ratio"]
    arms = [("control", result.log), ("treatment", result.log["treatment"])]
    rows = [
        {"arm": arm, "rows": f"{log['rows']:,}", "units": f"{units:,}", "observed": pct(share),
         "designed": pct(designed), "bar": f"--share:{100.0 * (share or 0.0):.2f}%",
         "positives": ", ".join(f"{count:,} with {name}" for name, count in list(log["positives"].items())[:4])}
        for (arm, log), units, share, designed in zip(
            arms, check["units"], check["observed"], check["expected"], strict=True)
    ]  # fmt: skip
    days = [{"day": d["day"], "units": f"{d['units'][0]:,} and {d['units'][1]:,}", "p": chance(d["p_value"])}
            for d in check["days"][:60]]  # fmt: skip
    return {"rows": rows, "p": chance(check["p_value"]), "alert": check["alert"], "days": days,
            "checked": check["days_checked"]}  # fmt: skip
