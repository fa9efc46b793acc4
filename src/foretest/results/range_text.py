"""The range of an uplift and its word, in plain words: for the terminal, for the page and for Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from foretest.results.robustness_text import band_factors, factor, inverse_factor
from foretest.results.uplift_range import BAND, CALIBRATED, NOISE, Range

if TYPE_CHECKING:
    from foretest.results.result import Estimate, Metric

WORD_MEANING = (
    "positive or negative if noise and range both say so; it leans if only one of them does, or if the"
    " estimator has no range of its own"
)

NEEDS_UNITS = "an interval needs at least"  # what a reason says where there are too few units


def range_of(estimate: Estimate) -> Range:
    """The range of an estimate; its interval where a file of an earlier version has none."""
    if estimate.range is not None:
        return estimate.range
    return Range(
        NOISE, estimate.effect_size_ci_lower, estimate.effect_size_ci_upper, estimate.rel_effect_size_ci_lower,
        estimate.rel_effect_size_ci_upper,
    )  # fmt: skip


class Limits(NamedTuple):
    """The ends of an interval; None where there is none."""

    lower: float | None
    upper: float | None


def has_interval(estimate: Estimate) -> bool:
    """Could an interval be computed? Of too few units what was computed is none, and is not shown as one."""
    return estimate.verdict != "insufficient" or not any(NEEDS_UNITS in reason for reason in estimate.reasons)


def shown_range(estimate: Estimate) -> Range:
    """The range of an estimate as tables and charts show it: without limits where there is no interval."""
    return range_of(estimate) if has_interval(estimate) else Range(NOISE, None, None, None, None)


def shown_noise(estimate: Estimate) -> Limits:
    """The relative interval for noise alone, as tables and charts show it."""
    if not has_interval(estimate):
        return Limits(None, None)
    return Limits(estimate.rel_effect_size_ci_lower, estimate.rel_effect_size_ci_upper)


def is_wider_than_noise(estimate: Estimate) -> bool:
    """Does the range say more than the interval does? Only then are both worth showing."""
    return shown_range(estimate).kind == BAND


def range_meaning(estimate: Estimate) -> str:
    """What the range of an estimate allows for, to follow "the range allows for"."""
    limits = range_of(estimate)
    curves = "; and for examination curves steeper and flatter than the one given" if estimate.curves else ""
    if limits.kind == BAND:
        usual = band_factors(estimate)
        least, most = range_factors(limits) or usual
        refuted = "" if (least, most) == usual else f"; this log refutes the usual {usual[0]} to {usual[1]}"
        return (
            "noise, and for what the log cannot support: unsupported recommendations may earn from"
            f" {least} to {most} times what supported ones earn{refuted}{curves}"
        )
    if limits.kind == CALIBRATED:
        return f"noise, and for what unsupported recommendations earned in past tests{curves}"
    return "noise alone"


def range_factors(limits: Range) -> tuple[str, str] | None:
    """The least and the most that unsupported recommendations may earn in a range, as multiples of the supported; None
    where a file of an earlier version does not say.

    >>> range_factors(Range("band", 0.0, 1.0, 0.0, 1.0, 1 / 1.3, 2.5)), range_factors(Range("band", 0, 1, 0, 1, 0, 2))
    (('1/1.3', '2.5'), ('0', '2'))
    """
    least, most = limits.factor_lower, limits.factor_upper
    if least is None or most is None:
        return None
    return inverse_factor(1.0 / least) if least > 0.0 else "0", factor(most)


def legend(metric: Metric) -> list[str]:
    """Two sentences below a table: what the range of the headline is, and what the words mean."""
    headline = metric.estimates.get(metric.headline or "")
    meaning = "noise" if headline is None else range_meaning(headline)
    return [f"range: allows for {meaning}{_other_factors(metric, headline)}", f"word: {WORD_MEANING}"]


def _other_factors(metric: Metric, headline: Estimate | None) -> str:
    """The factors of other estimators in the table, where they are not those of the headline."""
    if headline is None or range_of(headline).kind != BAND:
        return ""
    labels: dict[tuple[str, str], list[str]] = {}
    for label, estimate in metric.estimates.items():
        if range_of(estimate).kind == BAND and (factors := range_factors(range_of(estimate))) is not None:
            labels.setdefault(factors, []).append(label)
    labels.pop(range_factors(range_of(headline)) or ("", ""), None)
    parts = [f"{', '.join(names)}: {least} to {most}" for (least, most), names in labels.items()]
    return f" ({'; '.join(parts)})" if parts else ""
