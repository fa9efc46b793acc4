"""All metrics of an online test, of every kind by the same road."""

from __future__ import annotations

from dataclasses import replace

from foretest.formatting import some_of
from foretest.inference.uplift_estimate import no_estimate, relative_where_it_exists
from foretest.online.arms import Arms
from foretest.online.comparison import Comparison, compare_arms
from foretest.online.metric_arms import MetricArms, metric_places
from foretest.online.resampling import ArmCounts
from foretest.online.sequential import Sequence
from foretest.results.result import Control, Estimate
from foretest.settings.metric_kinds import Formula
from foretest.settings.settings import Settings

_NOTHING = Control(None, None, None, None)


def compare_metrics(
    arms: Arms, settings: Settings, counts: ArmCounts | None, sequence: Sequence | None
) -> dict[str, Comparison]:
    """The comparison of both arms in every metric, in the settings' order."""
    definitions, places, analysis = settings.definitions, metric_places(settings), settings.analysis
    comparisons = {}
    for name in definitions.names:
        formula = definitions.formulas[name]
        sides = MetricArms.of(arms, formula, places)
        compared = _where_it_is_divided(
            compare_arms(sides, analysis, counts, sequence), sides, analysis.confidence_level
        )
        comparisons[name] = _relative_where_it_exists(compared, formula)
    return comparisons


def _where_it_is_divided(compared: Comparison, sides: MetricArms, level: float) -> Comparison:
    """A metric that is divided by others: no number where its denominator may be 0."""
    divisor = sides.control.formula.divisor
    if divisor is None or not all(arm.rows for arm in sides.arms):
        return compared
    if not any(side.may_divide_by_zero(level) for side in sides):
        return compared
    reason = f"the interval of {divisor}, which it is divided by, contains 0"
    estimates = {
        label: no_estimate([reason, *estimate.reasons], estimate.effective_positives)
        for label, estimate in compared.estimates.items()
    }
    detectable = compared.detectable._replace(absolute=None, relative=None)
    return compared._replace(control=_NOTHING, estimates=estimates, detectable=detectable)


def _relative_where_it_exists(compared: Comparison, formula: Formula) -> Comparison:
    """A metric that may be negative: relative numbers only where the control's interval excludes 0."""
    estimates = relative_where_it_exists(compared.estimates, compared.control, formula)
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


def counting_notes(arms: Arms, settings: Settings) -> list[str]:
    """What a reader must know of values per unit where units are too many to be counted one by one."""
    names = [formula.name for formula in settings.definitions.derived if formula.counts_units]
    if not names or all(arm.units_exact for arm in arms):
        return []
    return [
        f"{some_of(names)}: there are too many units to count them one by one, so that intervals are somewhat wide."
    ]
