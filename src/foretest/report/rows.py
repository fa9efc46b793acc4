"""The rows of a result's tables: metrics, estimators, arms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from foretest.records import dataclass
from foretest.report.bars import Bar, Span, bars
from foretest.report.digits import count, interval_text, num, p_text, pct
from foretest.report.estimator_words import ESTIMATORS
from foretest.report.many import role_words
from foretest.results.online_text import control_value
from foretest.results.range_text import is_wider_than_noise, shown_range
from foretest.results.result import Estimate, Metric, Result
from foretest.results.robustness_text import is_fragile
from foretest.settings.metric_roles import toward_good

DAYS_SHOWN = 60


@dataclass(frozen=True)
class UpliftCells:
    """An uplift with its range, relative or absolute: as text, as a number to sort by, and as a bar."""

    text: str
    value: float | None
    range: str
    noise: str  # limits of noise alone, where they differ from the range; else empty
    bar: Bar | None = None

    @property
    def words(self) -> str:
        """The bar in words, for those who cannot see it."""
        return f"{self.text}, range {self.range}" + (f", noise only {self.noise}" if self.noise else "")


@dataclass(frozen=True)
class EstimateRow:
    """What the rows of metrics and of estimators share."""

    estimate: Estimate
    treatment: str
    relative: UpliftCells
    absolute: UpliftCells
    direction: str  # the way that is better

    @property
    def verdict(self) -> str:
        return self.estimate.verdict

    @property
    def word(self) -> str:
        return self.estimate.word

    @property
    def tone(self) -> str:
        """The word whose colour says good or bad."""
        return toward_good(self.word, self.direction)

    @property
    def by_noise(self) -> str:
        """The verdict, which is by noise alone, and what robustness says of it, where the word does not say both."""
        if self.word == self.verdict:
            return "fragile" if self.fragile else ""
        return f"by noise alone {self.verdict}" + (", fragile" if self.fragile else "")

    @property
    def fragile(self) -> bool:
        return is_fragile(self.estimate)


@dataclass(frozen=True)
class MetricRow(EstimateRow):
    """A metric by its headline estimate."""

    name: str
    role: str
    control: str
    control_value: float | None
    per: str | None  # where values are not per display


@dataclass(frozen=True)
class EstimatorRow(EstimateRow):
    """An estimator, with what it does."""

    label: str
    line: str
    leads: bool
    effective: str
    reasons: list[str]


def relative(estimate: Estimate) -> Span:
    """The relative uplift and the limits of its range."""
    limits = shown_range(estimate)
    noise = _noise(estimate, estimate.rel_effect_size_ci_lower, estimate.rel_effect_size_ci_upper)
    sound = estimate.verdict != "insufficient"
    return Span(limits.rel_ci_lower, estimate.rel_effect_size, limits.rel_ci_upper, sound, noise)


def absolute(estimate: Estimate) -> Span:
    """The absolute uplift and the limits of its range."""
    limits = shown_range(estimate)
    noise = _noise(estimate, estimate.effect_size_ci_lower, estimate.effect_size_ci_upper)
    return Span(limits.ci_lower, estimate.effect_size, limits.ci_upper, estimate.verdict != "insufficient", noise)


def _noise(estimate: Estimate, lower: float | None, upper: float | None) -> tuple[float, float] | None:
    """The limits of noise alone, where the range is wider."""
    return None if lower is None or upper is None or not is_wider_than_noise(estimate) else (lower, upper)


def uplift_cells(span: Span, form: Callable[..., str], bar: Bar | None = None) -> UpliftCells:
    """The cells of an uplift, its numbers formatted by `form`."""
    limits = interval_text(span.lower, span.upper, form)
    noise = "" if span.noise is None else interval_text(*span.noise, form)
    return UpliftCells(form(span.middle, sign=True), span.middle, limits, noise, bar)


def metric_rows(result: Result) -> list[MetricRow]:
    """One row per metric. Relative bars share one scale; each absolute bar has its own, as metrics differ in unit."""
    estimates = [metric.estimates[metric.headline or ""] for metric in result.metrics.values()]
    relative_bars = bars([relative(estimate) for estimate in estimates])
    absolute_bars = [bars([absolute(estimate)._replace(sound=True)])[0] for estimate in estimates]
    return [
        MetricRow(
            estimate,
            num(estimate.treatment),
            uplift_cells(relative(estimate), pct, relative_bar),
            uplift_cells(absolute(estimate), num, absolute_bar),
            metric.direction,
            name,
            role_words(metric),
            num(control_value(metric)),
            control_value(metric),
            metric.per,
        )
        for (name, metric), estimate, relative_bar, absolute_bar in zip(
            result.metrics.items(), estimates, relative_bars, absolute_bars, strict=True
        )
    ]


def estimator_rows(result: Result, metric: Metric) -> list[EstimatorRow]:
    """One row per estimator, with what it does and the options that it was given."""
    kinds = result.provenance.get("estimators", {})
    return [
        EstimatorRow(
            estimate,
            num(estimate.treatment),
            uplift_cells(relative(estimate), pct),
            uplift_cells(absolute(estimate), num),
            metric.direction,
            label,
            _what_it_does(label, kinds.get(label, {})),
            label == metric.headline,
            count(estimate.effective_positives or 0.0),
            estimate.reasons,
        )
        for label, estimate in metric.estimates.items()
    ]


def _what_it_does(label: str, kind: dict[str, Any]) -> str:
    """`kind` is the estimator's entry in the provenance: its key and its own options."""
    _, line = ESTIMATORS.get(kind.get("key", label), ("", "your own estimator."))
    options = ", ".join(f"{name} = {value}" for name, value in kind.items() if name != "key")
    return line[:1].upper() + line[1:] + (f" Here with {options}." if options else "")


@dataclass(frozen=True)
class ArmRow:
    """One arm of an online test."""

    arm: str
    rows: str
    units: str
    observed: str
    designed: str
    positives: str


@dataclass(frozen=True)
class DayRow:
    """A day whose split stands out."""

    day: str
    units: str
    p: str


@dataclass(frozen=True)
class Arms:
    """Both arms of an online test, and the days whose split stands out."""

    rows: list[ArmRow]
    p: str
    alert: bool
    days: list[DayRow]
    checked: int  # days


def arm_rows(result: Result) -> Arms:
    """The arms of an online test, from its sample ratio check."""
    check = result.health["sample_ratio"]
    arms = [("control", result.log), ("treatment", result.log["treatment"])]
    rows = [
        ArmRow(
            arm,
            f"{log.get('displays', log['rows']):,.0f}",
            f"{units:,}",
            pct(share),
            pct(designed),
            ", ".join(f"{count:,} with {name}" for name, count in list(log["positives"].items())[:4]),
        )
        for (arm, log), units, share, designed in zip(
            arms, check["units"], check["observed"], check["expected"], strict=True
        )
    ]
    days = [
        DayRow(day["day"], f"{day['units'][0]:,} and {day['units'][1]:,}", p_text(day["p_value"]))
        for day in check["days"][:DAYS_SHOWN]
    ]
    return Arms(rows, p_text(check["p_value"]), check["alert"], days, check["days_checked"])
