"""What an online test says of its covariate and of looking at it while it runs, in sentences."""

from __future__ import annotations

from typing import Any

from foretest.formatting import format_number, percent, plural, round_percent
from foretest.results.audit import FAIL
from foretest.results.result import Metric, Result


def covariate_sentence(metric: Metric, result: Result) -> str | None:
    """What adjusting for the covariate bought in a metric; None without one."""
    gain, check = metric.covariate, result.health.get("covariate")
    if gain is None or check is None or gain["variance_removed"] is None:
        return None
    removed, gained = gain["variance_removed"], gain["units_gained"]
    if round(removed, 3) <= 0.0:
        return f"adjusted for the covariate '{check['column']}', which removed none of the variance"
    return (
        f"adjusted for the covariate '{check['column']}', which removed {percent(removed)} of the variance: worth"
        f" {plural(gained, 'more unit')} ({percent(gained / units_of(result), sign=True)})"
    )


def adjusted_control(metric: Metric) -> str:
    """The control's adjusted value, for a title; empty without a covariate."""
    return "" if metric.covariate is None else f", adjusted {format_number(metric.covariate['control'])}"


def control_value(metric: Metric) -> float | None:
    """The control's value that the uplift is relative to: the adjusted one, with a covariate."""
    value: float | None = metric.control.value if metric.covariate is None else metric.covariate["control"]
    return value


def warnings(result: Result) -> list[str]:
    """What makes the arms of an online test hard to compare, each with what to do."""
    warning = result.health.get("displays_per_unit", {}).get("warning")
    return [] if warning is None else [warning]


def failed_arms(result: Result) -> list[str]:
    """A sentence on each arm whose log fails the audit."""
    return [
        f"The propensity audit failed for the {arm}'s log ({', '.join(audit.named(FAIL))}): it was not drawn from the"
        f" policy that [{arm}] describes. Find out what this arm really showed, or which rows are missing from its log,"
        " before you put the uplift down to that policy."
        for arm, audit in result.audits.items()
        if audit.outcome == FAIL
    ]


def units_of(result: Result) -> int:
    """The units of both arms."""
    return int(result.log["units"] + result.log["treatment"]["units"])


def peeking_sentences(result: Result) -> list[str]:
    """What looking every day does to fixed intervals, and what the always-valid ones promise; nothing unless asked."""
    facts = result.sequential
    if facts is None:
        return []
    level = round_percent(result.settings["analysis"]["confidence_level"])
    return [
        f"Looking at the fixed {level} interval once a day, {_days(facts)}, raises a false alarm in"
        f" {100.0 * facts['false_alarm']:.0f} % of tests without any effect; the always-valid one in at most"
        f" {round_percent(facts['false_alarm_limit'])}, however often one looks.",
        f"Always-valid intervals are tightest at {facts['tightest_at_units']:,} units"
        f" (mixture variance {facts['mixture_variance']:.3g}); there are {facts['units']:,} so far.",
    ]


def _days(facts: dict[str, Any]) -> str:
    days = plural(facts["looks"], "day")
    return f"on the {days} of these logs" if facts["days_known"] else f"on {days}"
