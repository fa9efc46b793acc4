"""What a reader must know of metrics that are made of others: which estimators, bands and bounds they have."""

from __future__ import annotations

from collections.abc import Sequence

from foretest.aggregation.aggregates import Aggregates
from foretest.estimators import Estimator
from foretest.formatting import format_number, some_of
from foretest.offline.per_unit import displays_per_unit


def definition_notes(aggregates: Aggregates, estimators: Sequence[Estimator]) -> list[str]:
    """A note on each kind of metric that the settings define; none where all are rewards."""
    plan = aggregates.plan
    definitions = plan.settings.definitions
    sums = [name for name, m in plan.shown.items() if name not in plan.settings.log.rewards]
    with_losses = [one.name for one in definitions.differences]
    by_value = [e.label for e in estimators if (e.uses_value or e.stratified) and plan.fits_value_model]
    left_out = sorted({e.label for e in estimators for m in plan.differences if not plan.weighs(e, m) and e.stratified})
    notes = []
    fitted = [label for label in by_value if label not in left_out]
    if sums and fitted:
        notes.append(
            f"{some_of(sums)}: {some_of(fitted)} fit V(x) to a sum itself, so that their value of it is not the sum of"
            " their values of its parts; those of all other estimators are."
        )
    if with_losses:
        without = f"{some_of(left_out)}, " if left_out else ""
        notes.append(
            f"{some_of(with_losses)}: what has losses is without {without}betting intervals, lower bounds and"
            " calibration, which are for rewards of 0 or more."
        )
    if definitions.ratios:
        names = some_of([one.name for one in definitions.ratios])
        notes.append(f"{names}: a ratio of metrics has the interval of noise alone, no sensitivity band and no bounds.")
    if definitions.per_unit and aggregates.rows:
        names = some_of([one.name for one in definitions.per_unit])
        unit, count = plan.settings.log.unit, format_number(displays_per_unit(aggregates))
        notes.append(
            f"{names}: per {unit}, which has {count} displays on average in this log; that number is taken as known."
        )
    return notes
