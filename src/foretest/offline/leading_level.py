"""Which level leads, where nobody says: rankings, slots, prefixes or exposure.

The choice is made from what the log shows of the control, and of weights: where rewards depend on what else is shown
(the company test fails, or that of pairs), neither slots nor exposure lead, but prefixes where there is no sign that
rewards depend on what stands below their slot, else rankings; where the position-based model is refuted (trust or chain
fails), exposure does not. Of slots and exposure the slots lead, which assume less, unless the control hardly explores:
where exposure supports clearly more of what the treatment shows, it leads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.examination import CurveTest
from foretest.diagnostics.mass_kept import mass_kept
from foretest.estimators import AdaptiveCascadeNCIS, AdaptiveExposureNCIS, AdaptiveSlotNCIS, Estimator
from foretest.formatting import percent
from foretest.inference.examination_fit import TRUST
from foretest.results.audit import PASS, grade
from foretest.results.slot_model import SlotModel, SlotTest

LEAST_GAIN = 0.03  # of what the treatment shows: the part that exposure supports and slots do not

_PASSED = {TRUST: "items of high and of low score have one examination curve, as far as the log tells"}
_FAILED = {TRUST: "items of high score are looked at in another way than those of low score"}
_OTHER_PASSED = "slots that are compared directly and through the slots between agree"
_OTHER_FAILED = "slots that are compared directly and through the slots between do not agree: there is no one curve"


class Level(NamedTuple):
    """The keys of estimators that may not lead, and which one leads that would not otherwise, and why."""

    without: frozenset[str]
    reason: str | None = None
    first: str | None = None


def with_curve_tests(model: SlotModel | None, tests: Sequence[CurveTest]) -> SlotModel | None:
    """The tests of the model behind slots, with those of the examination curve."""
    if model is None:
        return None
    return replace(model, **{test.name: _slot_test(test) for test in tests})


def _slot_test(test: CurveTest) -> SlotTest:
    status = grade(test.p_value)
    sentences = (_PASSED, _OTHER_PASSED) if status == PASS else (_FAILED, _OTHER_FAILED)
    return SlotTest(status, None, test.p_value, round(test.rewards), sentences[0].get(test.name, sentences[1]))


def leading_level(
    aggregates: Aggregates, estimators: Sequence[Estimator], model: SlotModel | None, *, apart: bool
) -> Level:
    """Who may lead; `apart` where slots influence each other."""
    slot, exposure = AdaptiveSlotNCIS.key, AdaptiveExposureNCIS.key
    if apart:
        return _without_slots(estimators, model, frozenset({slot, exposure}))
    if model is not None and model.refutes_curve:
        return Level(frozenset({exposure}))
    masses = {
        e.key: mass_kept(aggregates, aggregates.plan.weighting(e)) for e in estimators if e.key in (slot, exposure)
    }
    by_slot, by_exposure = masses.get(slot), masses.get(exposure)
    if by_slot is None or by_exposure is None or by_exposure - by_slot < LEAST_GAIN:
        return Level(frozenset())
    reason = (
        f"the control hardly explores: slots support {percent(by_slot)} of what the treatment shows, and items by their"
        f" exposure {percent(by_exposure)}"
    )
    return Level(frozenset({slot}), reason)


def _without_slots(estimators: Sequence[Estimator], model: SlotModel | None, without: frozenset[str]) -> Level:
    """Who leads where slots may not: prefixes, if nothing speaks against them, else rankings."""
    cascade = AdaptiveCascadeNCIS.key
    if model is None or not model.is_cascade or cascade not in [e.label for e in estimators]:
        return Level(without)
    assert model.below is not None
    reason = (
        f"{model.beside.doubt}, and the log has {model.below.doubt}: each slot is weighed together with the items above"
        " it"
    )
    return Level(without, reason, cascade)
