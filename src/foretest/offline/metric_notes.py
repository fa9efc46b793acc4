"""What a reader must know of metrics that are made of others: which estimators, bands and bounds they have."""

from __future__ import annotations

from collections.abc import Sequence

from foretest.aggregation.aggregates import Aggregates
from foretest.estimators import Estimator
from foretest.formatting import some_of
from foretest.offline.metric_multiples import displays_per_unit
from foretest.settings.metric_kinds import LogFacts


def definition_notes(aggregates: Aggregates, estimators: Sequence[Estimator]) -> list[str]:
    """A note on each kind of metric that the settings define; none where all are rewards."""
    plan = aggregates.plan
    definitions = plan.settings.definitions
    sums = [name for name, m in plan.shown.items() if name not in plan.settings.log.rewards]
    by_value = [e.label for e in estimators if (e.uses_value or e.stratified) and plan.fits_value_model]
    left_out = sorted(
        {e.label for e in estimators for m in plan.shown.values() if e.stratified and not plan.has_strata(m)}
    )
    notes = []
    fitted = [label for label in by_value if label not in left_out]
    if sums and fitted:
        notes.append(
            f"{some_of(sums)}: {some_of(fitted)} fit V(x) to a sum itself, so that their value of it is not the sum of"
            " their values of its parts; those of all other estimators are."
        )
    log = LogFacts(plan.settings.log.unit, displays_per_unit(aggregates), left_out)
    by_note: dict[str, list[str]] = {}
    for formula in definitions.formulas.values():
        note = formula.note(log)
        if note is not None:
            by_note.setdefault(note, []).append(formula.name)
    return [*notes, *(f"{some_of(names)}: {note}" for note, names in by_note.items())]
