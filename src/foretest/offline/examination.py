"""The examination curves of a run: found in a pass before the fold, where they are not given."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from foretest.aggregation.fold_plan import FoldPlan
from foretest.engines.examination_pairs import sum_pairs
from foretest.engines.local import Progress
from foretest.errors import BadInput
from foretest.estimators import Estimator
from foretest.inference.examination_fit import CannotFit, fit_curve
from foretest.log.reader import Reader
from foretest.sources import Source
from foretest.weights.control_marginals import MarginalStore
from foretest.weights.exposure_weights import ExposureWeighting

_LEFT_OUT = " were left out:"


class NoCurve(BadInput):
    """A curve was to be fitted, and the log does not show it; `what` says why."""

    def __init__(self, labels: Sequence[str], what: str) -> None:
        super().__init__(f"{', '.join(labels)} cannot run: {what}")
        self.what = what


class CurvesFound(NamedTuple):
    """A plan with its curves, or without estimators by exposure where there are none; and notes."""

    plan: FoldPlan
    notes: list[str]


def by_exposure(plan: FoldPlan) -> list[Estimator]:
    """The estimators that need examination curves."""
    return [e for e in plan.estimators if isinstance(plan.weighting(e), ExposureWeighting)]


def metrics_to_fit(plan: FoldPlan) -> list[int]:
    """The metrics whose curve is not given, where an estimator needs one."""
    if not by_exposure(plan):
        return []
    return [m for m, name in enumerate(plan.metrics) if name in plan.by_slot and m not in plan.examination.given]


def without_fits(plan: FoldPlan) -> CurvesFound:
    """A plan whose sums are saved: a curve fitted to one day would differ from that of the next."""
    if not metrics_to_fit(plan):
        return CurvesFound(plan, [])
    reason = (
        "a curve that is fitted would differ from file to file, and such files do not add up: give [analysis]"
        " examination, as numbers or as the result.json of a run that fitted them."
    )
    return _left_out(plan, reason)


def fit_curves(
    source: Source, reader: Reader, plan: FoldPlan, threads: int | None, progress: Progress | None
) -> CurvesFound:
    """The plan with a curve for every metric that needs one. Where the log does not show it, estimators by exposure are
    left out; where the settings list them that is an error."""
    metrics = metrics_to_fit(plan)
    if not metrics:
        return CurvesFound(plan, [])
    store = MarginalStore()
    pairs = sum_pairs(source, reader, plan, metrics, threads=threads, progress=progress, store=store)
    fits, reasons = {}, []
    for m in metrics:
        try:
            fits[m] = fit_curve(pairs[m], plan.loggers)
        except CannotFit as reason:
            reasons.append(f"for '{plan.metrics[m]}' {reason}." if len(plan.metrics) > 1 else f"{reason}.")
    if not reasons:
        return CurvesFound(dataclasses.replace(plan, fits=fits, known_marginals=store.known()), [])
    labels = [e.label for e in by_exposure(plan)]
    if plan.settings.analysis.estimators is not None:
        raise NoCurve(labels, reasons[0])
    return _left_out(plan, reasons[0])


def is_left_out(label: str, notes: Sequence[str]) -> bool:
    """Does a note say that an estimator was left out, by itself or with others?"""
    return any(label in note.partition(_LEFT_OUT)[0].split(", ") for note in notes if _LEFT_OUT in note) or any(
        note.startswith(f"{label} was left out") for note in notes
    )


def _left_out(plan: FoldPlan, reason: str) -> CurvesFound:
    """The plan without estimators by exposure, and a note that says why; an error where no other is left."""
    left = [e.label for e in by_exposure(plan)]
    rest = tuple(e for e in plan.estimators if e.label not in left)
    if not rest:
        raise BadInput(f"{', '.join(left)} cannot run: {reason}")
    settings, listed = plan.settings, plan.settings.analysis.estimators
    if listed is not None:  # what the sums are recorded with
        labels = [e.label for e in rest]
        remaining = tuple(item for item in listed if getattr(item, "label", item) in labels)
        settings = dataclasses.replace(settings, analysis=settings.analysis.replace(estimators=remaining))
    note = f"{left[0]} was left out: {reason}" if len(left) == 1 else f"{', '.join(left)}{_LEFT_OUT} {reason}"
    return CurvesFound(dataclasses.replace(plan, settings=settings, estimators=rest), [note])
