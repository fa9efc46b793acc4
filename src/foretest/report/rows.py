"""The rows of a result's tables: metrics, estimators, strata, arms."""

from __future__ import annotations

from typing import Any

from foretest.report.bars import Bar, Span, bars
from foretest.report.blocks import chart_of
from foretest.report.charts.strata import strata_chart
from foretest.report.digits import aligned, chance, count, num, pct
from foretest.report.many import role_words
from foretest.report.words import ESTIMATORS
from foretest.results.result import Estimate, Metric, Result
from foretest.results.robustness_text import is_fragile


def relative(e: Estimate) -> Span:
    return Span(e.rel_effect_size_ci_lower, e.rel_effect_size, e.rel_effect_size_ci_upper, e.verdict != "insufficient")


def absolute(e: Estimate) -> Span:
    return Span(e.effect_size_ci_lower, e.effect_size, e.effect_size_ci_upper, e.verdict != "insufficient")


def estimate_cells(e: Estimate, rel_bar: Bar | None = None, abs_bar: Bar | None = None) -> dict[str, Any]:
    """One estimate, both ways: relative and absolute, numbers and bar."""
    rel, ab = relative(e), absolute(e)
    return {
        "estimate": e, "verdict": e.verdict, "fragile": is_fragile(e), "treatment": num(e.treatment),
        "rel": pct(rel.middle, sign=True), "rel_value": rel.middle, "rel_bar": rel_bar,
        "rel_interval": _interval(rel, pct), "abs": num(ab.middle, sign=True), "abs_value": ab.middle,
        "abs_bar": abs_bar, "abs_interval": _interval(ab, num),
    }  # fmt: skip


def _interval(span: Span, form: Any) -> str:
    return "no interval" if span.lower is None else f"{form(span.lower, sign=True)} to {form(span.upper, sign=True)}"


def metric_rows(result: Result) -> list[dict[str, Any]]:
    """A row a metric. Relative bars share a scale; absolute ones have units of their own, so each has its own."""
    shown = list(result.metrics.items())
    estimates = [m.estimates[m.headline or ""] for _, m in shown]
    relatives = bars([relative(e) for e in estimates])
    absolutes = [bars([absolute(e)._replace(sound=True)])[0] for e in estimates]
    return [
        {"name": name, "role": role_words(m), "control": num(m.control.value), "control_value": m.control.value,
         **estimate_cells(e, rel_bar, abs_bar)}
        for (name, m), e, rel_bar, abs_bar in zip(shown, estimates, relatives, absolutes, strict=True)
    ]  # fmt: skip


def estimator_rows(result: Result, metric: Metric) -> list[dict[str, Any]]:
    """A row an estimator, with what it does and the options that were its own."""
    kinds = result.provenance.get("estimators", {})
    rows = []
    for label, e in metric.estimates.items():
        key = kinds.get(label, {}).get("key", label)
        _, line = ESTIMATORS.get(key, ("", "your own estimator."))
        own = {k: v for k, v in kinds.get(label, {}).items() if k != "key"}
        options = f" Here with {', '.join(f'{k} = {v}' for k, v in own.items())}." if own else ""
        rows.append({"label": label, "line": line[:1].upper() + line[1:] + options, "leads": label == metric.headline,
                     "effective": count(e.effective_positives or 0.0), "reasons": e.reasons,
                     **estimate_cells(e)})  # fmt: skip
    return rows


def strata_rows(metric: Metric, most: int) -> dict[str, Any] | None:
    """The strata of the first stratified estimator, those of the largest share if there are many."""
    label, strata = next(((k, e.strata) for k, e in metric.estimates.items() if e.strata), (None, None))
    if not strata:
        return None
    shown = sorted(strata, key=lambda s: -s["share"])[:most]
    kept = [id(s) for s in shown]
    largest = max(s["share"] for s in strata), max(s["contribution"] or 0.0 for s in strata)
    values = dict(zip(kept, aligned([s["value"] for s in shown]), strict=True))
    contributions = dict(zip(kept, aligned([s["contribution"] for s in shown]), strict=True))
    biases = dict(zip(kept, aligned([s.get("bias_contribution") for s in shown], sign=True), strict=True))
    rows = [
        {"label": s["label"], "share": pct(s["share"]), "share_value": s["share"], "weight": num(s["mean_weight"]),
         "weight_value": s["mean_weight"], "value": values[id(s)], "value_value": s["value"],
         "contribution": contributions[id(s)], "contribution_value": s["contribution"],
         "share_bar": _part(s["share"], largest[0]), "contribution_bar": _part(s["contribution"], largest[1]),
         "bias": biases[id(s)], "bias_value": s.get("bias_contribution")}
        for s in strata if id(s) in kept
    ]  # fmt: skip
    rest = [s for s in strata if id(s) not in kept]
    note = f"{len(rest):,} smaller strata, {pct(sum(s['share'] for s in rest))} of the rows, are in result.json."
    return {
        "estimator": label, "rows": rows, "note": note if rest else "", "chart": chart_of(strata_chart(strata)),
        "with_bias": any(s.get("bias_contribution") is not None for s in strata),
    }  # fmt: skip


def _part(value: float | None, whole: float) -> str:
    return f"--share:{100.0 * (value or 0.0) / whole:.1f}%" if whole > 0 else ""


def arm_rows(result: Result) -> dict[str, Any]:
    """Both arms of an online test, and the days whose split stands out."""
    check = result.health["sample_ratio"]
    arms = [("control", result.log), ("treatment", result.log["treatment"])]
    rows = [
        {"arm": arm, "rows": f"{log['rows']:,}", "units": f"{units:,}", "observed": pct(share),
         "designed": pct(designed),
         "positives": ", ".join(f"{count:,} with {name}" for name, count in list(log["positives"].items())[:4])}
        for (arm, log), units, share, designed in zip(
            arms, check["units"], check["observed"], check["expected"], strict=True)
    ]  # fmt: skip
    days = [{"day": d["day"], "units": f"{d['units'][0]:,} and {d['units'][1]:,}", "p": chance(d["p_value"])}
            for d in check["days"][:60]]  # fmt: skip
    return {"rows": rows, "p": chance(check["p_value"]), "alert": check["alert"], "days": days,
            "checked": check["days_checked"]}  # fmt: skip
