"""Results as text: tables that read well in 80 columns, one formatter for every kind of number."""

from __future__ import annotations

from io import StringIO
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from foretest.formatting import chance, format_number, p_value, percent, plural, span
from foretest.results.robustness_text import is_fragile, robustness_sentence

if TYPE_CHECKING:
    from foretest.history.run import Agreement
    from foretest.results.audit import Audit
    from foretest.results.result import Estimate, Metric, Result

_STYLES = {"positive": "bold green", "negative": "bold red", "neutral": "yellow", "insufficient": "magenta"}


def result_table(result: Result, truth: dict[str, float] | None = None) -> Group:
    """Health above, then a table a metric, then notes; `truth` is the known relative uplift of simulated metrics."""
    online = "sample_ratio" in result.health
    parts: list[Any] = [_online_head(result)] if online else [_title(result), _health(result), *_findings(result)]
    if len(result.treatments) > 1 and result.metrics:
        parts += [Text(), *treatments_table(result)]
    for name, metric in result.metrics.items():
        parts += [Text(), *_metric(name, metric, result, (truth or {}).get(name))]
    for column in dict.fromkeys(segment.column for segment in result.segments):
        parts += [Text(), *segments_table(column, result)]
    if result.notes:
        parts += [Text(), *(Text(f"Note: {note}", style="dim") for note in result.notes)]
    return Group(*parts)


def render(result: Result, width: int = 80) -> str:
    """The tables as plain text."""
    return _plain(result_table(result), width)


_FIGURES = {
    "correlation": "corr.",
    "precision": "right",
    "fnr": "FNR",
    "ppv": "PPV",
    "miss_rate": "missed",
    "ci_size": "CI size",
}


def agreement_table(agreement: Agreement) -> Group:
    """A table a metric: how each estimator agreed with the online tests, with 10 % and 90 % quantiles below."""
    parts: list[Any] = [Text(f"Foretest history: {plural(len(agreement.tests), 'test')}", style="bold")]
    for metric, rows in agreement.tables.items():
        table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", title=metric, title_justify="left")
        table.add_column("estimator", no_wrap=True)
        for title in _FIGURES.values():
            table.add_column(title, justify="right", no_wrap=True)
        for label, row in rows.items():
            table.add_row(label, *(_figure(row[name]) for name in _FIGURES))
            spans = [f"{_figure(row[f'{name}_q10'])}:{_figure(row[f'{name}_q90'])}" for name in _FIGURES]
            table.add_row("", *(Text(span, style="dim") for span in spans))
        parts += [Text(), table]
        parts += [Text(line, style="dim") for line in _below_the_table(rows)]
        parts += [Text(line) for line in _learned(agreement, metric)]
    parts += [Text(f"propensity audit FAILED: {name}", style="bold red") for name in agreement.failed_audits]
    parts += [Text(f"failed: {f['name']}: {f['error']}", style="red") for f in agreement.failures]
    return Group(*parts)


def _below_the_table(rows: dict[str, dict[str, float | None]]) -> list[str]:
    """What needs a word beside the number: the noise of both axes, and the truth where it is known."""
    lines = []
    if any(row["noise_ceiling"] is not None for row in rows.values()):
        lines.append("correlation a perfect estimator would show, and ours with the noise taken out:")
        for label, row in rows.items():
            lines.append(f"  {label}: {_figure(row['noise_ceiling'])}, {_figure(row['deconvolved_correlation'])}")
    if any("rmse" in row for row in rows.values()):
        lines.append("against the truth: bias, root mean square error, share of intervals that hold it")
        for label, row in rows.items():
            said = percent(row["bias"], sign=True), percent(row["rmse"]), percent(row["coverage"])
            lines.append(f"  {label}: {', '.join(said)}")
    return lines


def _learned(agreement: Agreement, metric: str) -> list[str]:
    """What the tests say of unsupported parts, and which estimator came closest."""
    from foretest.history.recommendation import learned_sentence, sentence

    lines = [learned_sentence(label, found) for label, found in agreement.calibration_details.get(metric, {}).items()]
    told = agreement.recommendation(metric)
    return lines + ([] if told is None else [sentence(told)])


def _figure(value: float | None) -> str:
    """A share or correlation in two digits.

    >>> _figure(0.333), _figure(-0.5), _figure(1.0), _figure(None)
    ('.33', '-.50', '1.00', '-')
    """
    return "-" if value is None else f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 0.995 else f"{value:.2f}"


def render_agreement(agreement: Agreement, width: int = 80) -> str:
    """The tables of a history as plain text."""
    return _plain(agreement_table(agreement), width)


def _plain(content: Group, width: int) -> str:
    out = StringIO()
    Console(file=out, width=width, color_system=None, legacy_windows=False).print(content)
    return out.getvalue().rstrip("\n")


def _title(result: Result) -> Text:
    log = result.log
    about = "about " if log.get("units_approximate") else ""
    unit = result.settings["log"].get("unit")
    units = f", {about}{plural(log['units'], 'unit')} ({unit})" if unit else ""
    positives = ", ".join(f"{count:,} with {name}" for name, count in log["positives"].items())
    head = Text.assemble(("Foretest ", "bold"), f"{plural(log['rows'], 'display')}{units}, {positives}")
    said = loggers_of(result)
    return head if said is None else Text.assemble(head, f"\nShown by {said}")


def loggers_of(result: Result) -> str | None:
    """The policies that showed the log, with their shares, and the one compared with; None where there is one."""
    loggers = result.log.get("loggers")
    if not loggers:
        return None
    each = ", ".join(f"{name} {percent(held['share'])}" for name, held in loggers.items())
    return f"{each}; uplifts are over {result.settings['analysis']['baseline']}"


def _health(result: Result) -> Table:
    h = result.health
    rows = result.log["rows"] or 1
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")

    def line(name: str, value: str | Text, note: str = "") -> None:
        table.add_row(name, value, note)

    if result.audit is not None:
        line(*_audit_line(result.audit))
    size = h["effective_sample_size"]
    line(
        "effective sample size", format_number(size), f"{percent((size or 0.0) / rows)} of rows, at cap {result.cap:g}"
    )
    for name, count in h["effective_positives"].items():
        line(f"effective {name}", format_number(count), "of capped weight x reward")
    line("treatment mass kept", percent(h["treatment_mass_kept"]), "mean capped weight; 100 % when nothing is cut")
    line("rows above the cap", percent(h["capped_share"]))
    largest = format_number(h["max_weight"]) if h["max_weight"] is not None else f"10^{h['max_log10_weight'] or 0:.0f}"
    line("largest weight", largest, f"{percent(h['max_weight_share'])} of all weight")
    line("unsupported rows", f"{h['unsupported_rows']:,}")
    if h["support"] is not None:
        s = h["support"]
        line(
            "displays with q < 0.5",
            percent(s["share_q_below_half"]),
            "the cap cuts over half of the treatment there",
        )
        line(
            "mass never shown",
            percent(s["treatment_mass_unshowable"]),
            f"of the treatment, on what {'no logger can' if result.log.get('loggers') else 'the control cannot'} show",
        )
    return table


def treatments_table(result: Result) -> list[Any]:
    """All treatments, ranked, a table a metric: the headline's uplift, intervals that hold at once, Holm's verdicts."""
    from foretest.offline.treatments import goal

    level = result.settings["analysis"]["confidence_level"]
    order = sorted(result.treatments, key=lambda t: t.rank or 0)
    ranked_by = goal(result.metrics)
    parts: list[Any] = []
    for name in result.metrics:
        table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
        table.add_column("", justify="right", no_wrap=True)
        table.add_column("treatment", overflow="fold")
        table.add_column("uplift", justify="right", no_wrap=True)
        table.add_column(f"{percent(level)}, all at once".replace(".0", ""), justify="right", no_wrap=True)
        table.add_column("p (Holm)", justify="right", no_wrap=True)
        table.add_column("verdict", no_wrap=True)
        for t in order:
            metric = t.metrics[name]
            e = metric.estimates[metric.headline or ""]
            a = e.adjusted
            if a is None:
                continue
            table.add_row(
                f"{t.rank}.",
                t.name,
                percent(e.rel_effect_size, sign=True),
                span(a.rel_simultaneous_ci_lower, a.rel_simultaneous_ci_upper),
                chance(a.p_adjusted),
                Text(a.verdict_adjusted, style=_STYLES[a.verdict_adjusted]),
            )
        headline = result.metrics[name].headline
        parts += [
            Text()
            if parts
            else Text.assemble((f"{len(order)} treatments", "bold"), f", ranked by their uplift in {ranked_by}")
        ]
        parts += [Text(f"{name}, {headline}", style="bold"), table]
    first = next(iter(result.treatments)).name
    return [*parts, Text(f"  health above, and the tables below, are of the first treatment, {first}", style="dim")]


def segments_table(column: str, result: Result) -> list[Any]:
    """The headline's uplift by value of a column, a table a metric; verdicts are Holm's over the values."""
    level = result.settings["analysis"]["confidence_level"]
    segments = [segment for segment in result.segments if segment.column == column]
    parts: list[Any] = []
    for name in result.metrics:
        table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
        table.add_column(column, overflow="fold", max_width=24)
        table.add_column("displays", justify="right", no_wrap=True)
        table.add_column("uplift", justify="right", no_wrap=True)
        table.add_column(f"{percent(level)} interval".replace(".0", ""), justify="right", no_wrap=True)
        table.add_column("verdict", no_wrap=True)
        for segment in segments:
            metric = segment.metrics[name]
            e = metric.estimates[metric.headline or ""]
            verdict = e.verdict if e.adjusted is None else e.adjusted.verdict_adjusted
            table.add_row(
                Text(segment.value),
                f"{segment.rows:,}",
                percent(e.rel_effect_size, sign=True),
                span(e.rel_effect_size_ci_lower, e.rel_effect_size_ci_upper),
                Text(verdict, style=_STYLES[verdict]),
            )
        headline = segments[0].metrics[name].headline
        whose = f", of the treatment {result.treatments[0].name}" if result.treatments else ""
        parts += [Text.assemble((f"{name} by {column}", "bold"), f", {headline}{whose}"), table]
    return [*parts, Text(f"  verdicts are adjusted for {plural(len(segments), 'segment')} (Holm)", style="dim")]


_AUDIT_STYLES = {"pass": "green", "warn": "yellow", "fail": "bold red", "not made": "dim"}
_MEANINGS = {
    "exploration": "other rankings could have been shown",
    "logged probabilities": "they follow from the scores",
    "log-likelihood": "what was shown is as likely",
    "rank among draws": "what was shown is one more draw",
    "items by slot": "each is shown as often",
    "capped moment": "the mean weight is as it must be",
    "balance": "weights move no context",
    "repeated rows": "no display is there twice",
}
_AUDIT_WORDS = {"pass": "passed", "warn": "warns", "fail": "FAILED", "not made": "not made"}


def _audit_line(audit: Audit) -> tuple[str, Text, str]:
    """The audit in a line: its outcome, and how much of it could be made."""
    made = sum(finding.outcome != "not made" for finding in audit.findings)
    note = f"{made} of {len(audit.findings)} tests could be made"
    if audit.ignored:
        note += "; ignore_audit = true lets verdicts stand"
    return "propensity audit", Text(_AUDIT_WORDS[audit.outcome], style=_AUDIT_STYLES[audit.outcome]), note


def _findings(result: Result) -> list[Any]:
    """A line a test of the audit, in full what it found wrong, or could not be made; in a check, all in full."""
    if result.audit is None:
        return []
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    for no_wrap in (True, True, False):
        table.add_column(no_wrap=no_wrap)
    for finding in result.audit.findings:
        brief = bool(result.metrics) and finding.outcome == "pass"  # a check has no metrics
        said = _MEANINGS.get(finding.name, "") if brief else finding.meaning.removeprefix("not made: ")
        words = Text(said, style="dim" if brief or finding.outcome == "not made" else "")
        if finding.p_value is not None:
            words.append(f"; {p_value(finding.p_value)}")
        if finding.remedy is not None:
            words.append(f". {finding.remedy}", style="dim")
        table.add_row(Text(finding.outcome, style=_AUDIT_STYLES[finding.outcome]), finding.name, words)
    return [Text(), table]


def _role(metric: Metric) -> list[Text]:
    """What the verdict means to the metric's role."""
    if metric.role is None:
        return []
    way = "higher is better" if metric.role["direction"] == "increase" else "lower is better"
    lines = [Text(f"  {way}: {metric.role['outcome']}", style="dim")]
    if "guardrail" in metric.role:
        word = metric.role["guardrail"]
        style = {"pass": "green", "fail": "bold red"}.get(word, "yellow")
        margin = percent(metric.role["margin"])
        lines.append(Text.assemble("  guardrail: ", (word, style), f" (it may get worse by less than {margin})"))
    return lines


def _metric(name: str, metric: Metric, result: Result, truth: float | None) -> list[Any]:
    c, level = metric.control, result.settings["analysis"]["confidence_level"]
    whose = f"control ({result.settings['analysis']['baseline']})" if result.log.get("loggers") else "control"
    head = Text.assemble(
        (name, "bold"),
        "" if metric.role is None else f" ({metric.role['role']})",
        f": {whose} {format_number(c.value)} [{format_number(c.ci_lower)}, {format_number(c.ci_upper)}] a display",
    )
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    table.add_column("", width=1)
    table.add_column("estimator", no_wrap=True)
    table.add_column("treatment", justify="right", no_wrap=True)
    table.add_column("uplift", justify="right", no_wrap=True)
    table.add_column(f"{percent(level)} interval".replace(".0", ""), justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for label, e in metric.estimates.items():
        leads = label == metric.headline
        table.add_row(
            ">" if leads else "",
            Text(label, style="bold" if leads else ""),
            format_number(e.treatment),
            percent(e.rel_effect_size, sign=True),
            span(e.rel_effect_size_ci_lower, e.rel_effect_size_ci_upper),
            Text(e.verdict + (" ~" if is_fragile(e) else ""), style=_STYLES[e.verdict]),
        )
    if truth is not None:
        table.add_row(
            "", Text("the truth", style="cyan"), "", percent(truth, sign=True), "", Text("simulated", style="cyan")
        )
    return [head, table, *_role(metric), *_detectable(name, result), *_robustness(metric), *_reasons(metric.estimates)]


def _robustness(metric: Metric) -> list[Text]:
    """What undoes the headline's verdict, and what the mark means where another estimator has it."""
    fragile = [label for label, e in metric.estimates.items() if is_fragile(e)]
    headline = metric.estimates.get(metric.headline or "")
    said = None if headline is None else robustness_sentence(headline)
    lines = [] if said is None else wrap(said, 78)
    if fragile and fragile != [metric.headline]:
        lines.append("~ fragile: the sensitivity band does not exclude 0")
    return [Text(f"  {line}", style="dim") for line in lines]


def _online_head(result: Result) -> Group:
    """Both arms of an online test, and whether their units are split as designed."""
    unit, check = result.settings["log"].get("unit"), result.health["sample_ratio"]
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, log in (("control", result.log), ("treatment", result.log["treatment"])):
        about = "about " if log.get("units_approximate") else ""
        units = f", {about}{plural(log['units'], 'unit')} ({unit})" if unit else ""
        positives = ", ".join(f"{count:,} with {metric}" for metric, count in log["positives"].items())
        table.add_row(name, Text(f"{plural(log['rows'], 'display')}{units}, {positives}"))
    p = check["p_value"]
    if p is None:
        said = Text("no units")
    else:
        observed = " : ".join(f"{100.0 * share:.1f}" for share in check["observed"])
        expected = " : ".join(f"{100.0 * share:g}" for share in check["expected"])
        said = Text(f"{observed} % of units, designed {expected} ({p_value(p)}) ")
        said.append(*(("MISMATCH", "bold red") if check["alert"] else ("as designed", "green")))
    table.add_row("sample ratio", said)
    return Group(Text("Foretest online A/B test", style="bold"), table)


def _detectable(name: str, result: Result) -> list[Text]:
    effect = result.health.get("minimum_detectable_effect", {}).get(name, {})
    if effect.get("absolute") is None:
        return []
    relative = percent(effect["relative"]) if effect["relative"] is not None else format_number(effect["absolute"])
    power = f"{effect['power']:.0%}".replace("%", " %")
    return [Text(f"  an uplift of {relative} would show in {power} of such tests", style="dim")]


def _reasons(estimates: dict[str, Estimate]) -> list[Text]:
    """Each reason once, with the estimators that share it."""
    shared: dict[str, list[str]] = {}
    for label, estimate in estimates.items():
        for reason in estimate.reasons:
            shared.setdefault(reason, []).append(label)
    said = (f"{', '.join(labels)}: {reason}" for reason, labels in shared.items())
    return [Text(f"  {line}", style="dim") for sentence in said for line in wrap(sentence, 78)]
