"""What only an online test shows: its two arms, how their units are split, and the smallest uplift it could detect."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from foretest.formatting import format_number, p_value, percent, round_percent
from foretest.results.audit import FAIL, WARN
from foretest.results.online_text import failed_arms, warnings
from foretest.terminal.audit import audit_row, findings_table
from foretest.terminal.log import log_text
from foretest.terminal.parts import WIDTH, list_table

if TYPE_CHECKING:
    from foretest.results.result import Result


def warning_lines(result: Result) -> list[Text]:
    """What to know of the arms before any number, above all else; nothing where they can be compared."""
    sentences = dict.fromkeys(failed_arms(result), "bold red") | dict.fromkeys(warnings(result), "bold yellow")
    lines = [Text(line, style=style) for text, style in sentences.items() for line in wrap(text, WIDTH)]
    return [*lines, Text()] if lines else []


def arms_table(result: Result) -> Group:
    """Both arms of an online test, and whether their units are split as designed."""
    unit = result.settings["log"].get("unit")
    table = list_table()
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for arm, log in (("control", result.log), ("treatment", result.log["treatment"])):
        table.add_row(arm, Text(log_text(log, unit)))
    table.add_row("sample ratio", _sample_ratio(result.health["sample_ratio"]))
    per_unit = result.health.get("displays_per_unit")
    if per_unit is not None and per_unit["alert"]:
        means = " : ".join(f"{mean:.2f}" for mean in per_unit["means"])
        text = Text(f"{means} per {unit} ({p_value(per_unit['p_value'])}) ")
        table.add_row("displays", text.append("DIFFERENT", "bold red"))
    for arm, audit in result.audits.items():
        _, outcome, note = audit_row(audit)
        table.add_row(f"{arm} audit", outcome.append(f"  {note}", style="dim"))
    findings = [
        line
        for audit in result.audits.values()
        if audit.outcome in (FAIL, WARN)
        for line in findings_table(audit, in_full=False)
    ]
    return Group(Text("Foretest online A/B test", style="bold"), table, *findings)


def _sample_ratio(check: dict[str, Any]) -> Text:
    if check["p_value"] is None:
        return Text("not checked" if "obstacle" in check else "no units")
    observed = " : ".join(f"{100.0 * share:.1f}" for share in check["observed"])
    expected = " : ".join(f"{100.0 * share:g}" for share in check["expected"])
    text = Text(f"{observed} % of units, designed {expected} ({p_value(check['p_value'])}) ")
    return text.append(*(("MISMATCH", "bold red") if check["alert"] else ("as designed", "green")))


def detectable_effect(name: str, result: Result) -> list[Text]:
    """The smallest uplift of a metric that the test could detect; nothing for an offline test."""
    effect = result.health.get("minimum_detectable_effect", {}).get(name, {})
    if effect.get("absolute") is None:
        return []
    relative = percent(effect["relative"]) if effect["relative"] is not None else format_number(effect["absolute"])
    return [
        Text(f"  an uplift of {relative} would show in {round_percent(effect['power'])} of such tests", style="dim")
    ]
