"""All metrics of an online test: those with sums of their own, then ratios and values per unit."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from foretest.formatting import some_of
from foretest.inference.uplift_estimate import no_estimate, relative_where_it_exists
from foretest.online.arms import Arms
from foretest.online.comparison import Comparison, compare_arms
from foretest.online.metric_arms import may_divide_by_zero, per_unit_arms, ratio_arms
from foretest.online.resampling import ArmCounts
from foretest.online.sequential import Sequence
from foretest.results.result import Control, Estimate
from foretest.settings.metric_definitions import Ratio
from foretest.settings.settings import Settings

_NOTHING = Control(None, None, None, None)


def metric_places(settings: Settings) -> dict[str, int]:
    """The place among an arm's sums of every metric that has some."""
    return {name: m for m, name in enumerate(settings.definitions.linear)}


class MadeMetric(NamedTuple):
    """Both arms with the sums of a metric, and its place among them."""

    arms: Arms
    metric: int


def made_arms(arms: Arms, name: str, settings: Settings) -> MadeMetric:
    """The arms as a metric of any kind needs them."""
    places, definitions = metric_places(settings), settings.definitions
    if name in places:
        return MadeMetric(arms, places[name])
    for ratio in definitions.ratios:
        if ratio.name == name:
            return MadeMetric(ratio_arms(arms, ratio, places), 0)
    per_unit = next(one for one in definitions.per_unit if one.name == name)
    return MadeMetric(per_unit_arms(arms, per_unit, places), 0)


def compare_metrics(
    arms: Arms, settings: Settings, counts: ArmCounts | None, sequence: Sequence | None
) -> dict[str, Comparison]:
    """The comparison of both arms in every metric, in the settings' order."""
    definitions, places, analysis = settings.definitions, metric_places(settings), settings.analysis
    comparisons = {name: compare_arms(arms, m, analysis, counts, sequence) for name, m in places.items()}
    for one in definitions.differences:
        comparisons[one.name] = _relative_where_it_exists(comparisons[one.name])
    for ratio in definitions.ratios:
        comparisons[ratio.name] = _compare_ratio(arms, ratio, settings, counts, sequence)
    for per_unit in definitions.per_unit:
        comparisons[per_unit.name] = compare_arms(*made_arms(arms, per_unit.name, settings), analysis, counts, sequence)
    return {name: comparisons[name] for name in definitions.names}


def _compare_ratio(
    arms: Arms, one: Ratio, settings: Settings, counts: ArmCounts | None, sequence: Sequence | None
) -> Comparison:
    """A ratio of two metrics; no number where its denominator may be 0."""
    places = metric_places(settings)
    compared = compare_arms(*made_arms(arms, one.name, settings), settings.analysis, counts, sequence)
    if not all(arm.rows for arm in arms) or not may_divide_by_zero(
        arms, one, places, settings.analysis.confidence_level
    ):
        return compared
    reason = f"the interval of {one.below}, which it is divided by, contains 0"
    estimates = {
        label: no_estimate([reason, *estimate.reasons], estimate.effective_positives)
        for label, estimate in compared.estimates.items()
    }
    detectable = compared.detectable._replace(absolute=None, relative=None)
    return compared._replace(control=_NOTHING, estimates=estimates, detectable=detectable)


def _relative_where_it_exists(compared: Comparison) -> Comparison:
    """A metric with losses: relative numbers only where the control's interval excludes 0."""
    estimates = relative_where_it_exists(compared.estimates, compared.control)
    estimates = {
        label: e if e.rel_effect_size is not None or e.always_valid is None else _without_relative_sequence(e)
        for label, e in estimates.items()
    }
    detectable = compared.detectable
    if estimates[next(iter(estimates))].rel_effect_size is None:
        detectable = detectable._replace(relative=None)
    return compared._replace(estimates=estimates, detectable=detectable)


def _without_relative_sequence(estimate: Estimate) -> Estimate:
    always = {key: None if key.startswith("rel_") else value for key, value in (estimate.always_valid or {}).items()}
    return replace(estimate, always_valid=always)


def per_of(settings: Settings, name: str) -> str | None:
    """What a metric is per, where that is not a display."""
    ratios = {one.name: one.below for one in settings.definitions.ratios}
    return ratios.get(name) or next(
        (settings.log.unit for one in settings.definitions.per_unit if one.name == name), None
    )


def made_notes(arms: Arms, settings: Settings) -> list[str]:
    """What a reader must know of values per unit where units are too many to be counted one by one."""
    names = [one.name for one in settings.definitions.per_unit]
    if not names or all(arm.units_exact for arm in arms):
        return []
    return [
        f"{some_of(names)}: there are too many units to count them one by one, so that intervals are somewhat wide."
    ]
