"""What a page shows of time: how long rewards take, and the uplift day by day."""

from __future__ import annotations

from foretest.records import dataclass
from foretest.report.blocks import Chart, Table, chart_of
from foretest.report.charts.days import days_chart
from foretest.report.charts.reward_ages import reward_ages_chart
from foretest.report.digits import interval_text, level, p_text, pct
from foretest.report.many import Panel
from foretest.results.days import Days, Heterogeneity
from foretest.results.result import Result

_ROWS = 60  # days in a table, the last ones


@dataclass(frozen=True)
class DaysSection:
    """Uplifts by day, one panel per metric."""

    lead: str
    panels: list[Panel]


def reward_age_charts(result: Result, most: int) -> list[Chart]:
    """How long rewards take, a chart per metric; none under a window, or where the log does not say."""
    curves = (result.late_rewards or {}).get("ages", {})
    return [chart_of(reward_ages_chart(curve, name)) for name, curve in list(curves.items())[:most]]


def days_section(result: Result, most: int) -> DaysSection | None:
    """Uplifts by day, in at most that many panels; None where there are no days."""
    by_metric = {name: metric.days for name, metric in result.metrics.items() if metric.days is not None}
    if not by_metric:
        return None
    panels = [_panel(result, name, days) for name, days in list(by_metric.items())[:most]]
    of_treatment = f" of the treatment {result.treatments[0].name}" if result.treatments else ""
    lead = f"The uplift{of_treatment} on each day alone. {_test_words(next(iter(by_metric.values())))}"
    return DaysSection(lead, panels)


def _panel(result: Result, name: str, days: Days) -> Panel:
    confidence = result.settings["analysis"]["confidence_level"]
    whole = result.metrics[name].estimates.get(days.estimator)
    overall, direction = None if whole is None else whole.rel_effect_size, result.metrics[name].direction
    chart = days_chart(days.days, name, confidence, overall, direction)
    left_out = f" The {len(days.days) - _ROWS} days before are in result.json." if len(days.days) > _ROWS else ""
    table = Table(
        f"Uplift by day ({name}, {days.estimator}).",
        ["day", "displays", "uplift", f"{level(confidence)} interval", "verdict"],
        [
            [day.day, f"{day.rows:,}", pct(day.rel_effect_size, sign=True),
             interval_text(day.rel_effect_size_ci_lower, day.rel_effect_size_ci_upper), day.verdict]
            for day in days.days[-_ROWS:]
        ],
        note=f"{_test_words(days)}{left_out}",
        sortable=True,
    )  # fmt: skip
    return Panel(name, chart_of(chart), table)


def _test_words(days: Days) -> str:
    """Whether days differ, in a sentence."""
    test: Heterogeneity | None = days.heterogeneity
    if test is None or test.p_value is None or test.chi2 is None:
        return "Too little is known by day to test whether days differ."
    p = p_text(test.p_value)
    equals = "" if p.startswith("below") else "= "
    differ = "differ more than chance explains" if test.p_value < 0.01 else "do not differ more than chance explains"
    return (
        f"{test.days} days {differ} (χ² = {test.chi2:.1f}, {test.df} degrees of freedom, p {equals}{p}; units that come"
        " on several days are allowed for)."
    )
