"""What a page shows of an online test alone: what its covariate bought, and its always-valid intervals."""

from __future__ import annotations

from typing import Any

from foretest.formatting import minus_signs
from foretest.records import dataclass
from foretest.report.blocks import Fact, Table
from foretest.report.digits import interval_text, level, num, p_text, pct
from foretest.results.online_text import peeking_sentences, units_of
from foretest.results.result import Metric, Result

_METRICS = 200  # rows of a table


@dataclass(frozen=True)
class OnlineSection:
    """A section of the page: a table below a paragraph."""

    anchor: str
    name: str  # in the navigation
    title: str
    lead: str
    table: Table


def adjusted_for(result: Result) -> str:
    """What follows "reward per display" where it is adjusted."""
    check = result.health.get("covariate")
    return "" if check is None else f" adjusted for {check['column']}"


def online_sections(result: Result) -> list[OnlineSection]:
    """The sections that only some online tests have."""
    return [section for section in (_covariate_section(result), _looks_section(result)) if section is not None]


def _covariate_section(result: Result) -> OnlineSection | None:
    """The uplift of each metric with and without the covariate; None without one."""
    check = result.health.get("covariate")
    if check is None:
        return None
    metrics = list(result.metrics.items())[:_METRICS]
    confidence = level(result.settings["analysis"]["confidence_level"])
    columns = ["metric", "uplift", f"{confidence} interval", "unadjusted", "its interval",
               "variance removed", "worth"]  # fmt: skip
    rows = [[name, *_gain_cells(metric)] for name, metric in metrics]
    table = Table("The uplift adjusted for the covariate, and without it.", columns, rows, sortable=True,
                  note="Worth: so many more units would have narrowed the interval as much.")  # fmt: skip
    return OnlineSection("covariate", "Covariate", f"Adjusted for {check['column']}", _balance_words(check), table)


def _balance_words(check: dict[str, Any]) -> str:
    """How far the arms differ in the covariate, and what is made of it."""
    if check["p_value"] is None:
        why = "it has one value in all units" if check["constant"] else "there is too little to compare"
        return f"The covariate {check['column']} adjusts nothing: {why}."
    control, treatment = (num(mean) for mean in check["means"])
    p = p_text(check["p_value"])
    means = (
        f"{control} on average in the control, {treatment} in the treatment (p\N{NO-BREAK SPACE}"
        f"{p if p.startswith('below') else f'= {p}'})"
    )
    if check["alert"]:
        return (
            f"The arms differ in {check['column']} by more than chance would do: {means}. If the treatment can change"
            " it, or if units are missing from one arm, the adjusted uplift is wrong. Find out first."
        )
    return (
        f"Units differ in {check['column']} before the test, and the arms by chance with them: {means}. As far as the"
        " metric goes with it, this part of the noise is taken out of the uplift (CUPED)."
    )


def _gain_cells(metric: Metric) -> list[str]:
    gain = metric.covariate or {}
    cells = []
    for label in (metric.headline or "", "unadjusted"):
        estimate = metric.estimates[label]
        limits = interval_text(estimate.rel_effect_size_ci_lower, estimate.rel_effect_size_ci_upper)
        cells += [pct(estimate.rel_effect_size, sign=True), limits]
    return [*cells, pct(gain.get("variance_removed")), _units(gain.get("units_gained"))]


def _worth(gained: int | None, result: Result) -> str:
    return _units(gained) + ("" if gained is None else f" ({pct(gained / units_of(result), sign=True)})")


def _units(gained: int | None) -> str:
    return num(None) if gained is None else minus_signs(f"{gained:,}\N{NO-BREAK SPACE}units")


def _looks_section(result: Result) -> OnlineSection | None:
    """Fixed and always-valid intervals of each metric; None unless they were asked for."""
    if result.sequential is None:
        return None
    confidence = level(result.settings["analysis"]["confidence_level"])
    rows = []
    for name, metric in list(result.metrics.items())[:_METRICS]:
        estimate = metric.estimates[metric.headline or ""]
        always = estimate.always_valid or {}
        rows.append([
            name, pct(estimate.rel_effect_size, sign=True),
            interval_text(estimate.rel_effect_size_ci_lower, estimate.rel_effect_size_ci_upper), estimate.verdict,
            interval_text(always.get("rel_ci_lower"), always.get("rel_ci_upper")), always.get("verdict", ""),
        ])  # fmt: skip
    table = Table(
        "Intervals of one planned look, and intervals that hold at every look.",
        ["metric", "uplift", f"{confidence} interval, one look", "verdict", f"{confidence} interval, every look",
         "verdict, every look"],
        rows, sortable=True,
    )  # fmt: skip
    lead = " ".join(peeking_sentences(result)).replace(" %", "\N{NO-BREAK SPACE}%")
    return OnlineSection("looks", "Looks", "Looking while the test runs", lead, table)


def online_part_facts(result: Result) -> list[Fact]:
    """What the health strip says of the covariate and of daily looks, where there are such."""
    facts, check = [], result.health.get("covariate")
    name, metric = next(iter(result.metrics.items()))
    if check is not None and metric.covariate is not None:
        removed, gained = metric.covariate["variance_removed"], metric.covariate["units_gained"]
        meaning = (
            f"How much of the noise in {name} the covariate {check['column']} explains, and how many more units would"
            " have narrowed the interval as much. It must be from before the test: an alert is raised where the arms"
            " differ in it beyond chance."
        )
        state = "alert" if check["alert"] else "watch" if check["constant"] else "fine"
        facts.append(Fact("variance removed", pct(removed), meaning, state, _worth(gained, result)))
    if result.sequential is not None:
        chance, limit = result.sequential["false_alarm"], result.sequential["false_alarm_limit"]
        meaning = (
            "How often a test without any effect would be called positive or negative at one look or more, if its fixed"
            " interval were looked at once a day. The always-valid interval keeps to the small number below, however"
            " often it is looked at."
        )
        detail = f"{result.sequential['looks']} looks; always valid: at most {level(limit)}"
        facts.append(Fact("false alarm, daily looks", pct(chance), meaning, "fine", detail))
    return facts
