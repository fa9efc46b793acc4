"""Do the slots and the rankings of one log say the same?

`slot-ncis-adaptive` assumes that what a slot earns depends on its own item and place only. Where slots influence each
other it has a bias that its narrow interval hides, so it is compared with `point-ncis-adaptive`, which assumes nothing
of the kind. Both leave out a part of the treatment, and not the same one: each has the band [L, U] of
`sensitivity.py`, at one Γ whatever the settings' own, and they disagree if 0 is outside

    [L_slot − U_point − zσ, U_slot − L_point + zσ]

with σ the standard error of that end's difference, by unit: both come from the same rows, and mostly move together.
The estimate by ranking assumes less, and a range that excludes it claims that slots are independent: the range by slot
reaches to it, and where the two disagree over its whole interval. Which of them leads is not decided here: both use the
treatment's rewards, and among logs that disagree by chance are those in which the estimate by ranking is far off; to
lead with it would be to choose the worse of the two. The company test decides (`company.py`): it needs no treatment.

Where the estimate by ranking has too little evidence itself, it is no judge: of a treatment that always shows its best
ranking the log may have next to no row, and its uplift is then 0 by construction. The slots lead there, unchecked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.estimators import AdaptivePointNCIS, AdaptiveSlotNCIS, Estimator
from foretest.files import finite_or_none
from foretest.inference.buckets import Interval
from foretest.inference.delta import quantile
from foretest.inference.multiple_testing import two_sided_p
from foretest.inference.sensitivity import Terms
from foretest.inference.uplift_range import reaching
from foretest.results.audit import FAIL, grade
from foretest.results.result import Estimate

GAMMA = (1.15, 1.3)


class SlotAgreement(NamedTuple):
    """The uplift by slot less that by ranking, and the interval that noise and the unsupported parts leave for it."""

    slot: str  # the label of the estimator by slot
    point: str  # and of the one by ranking
    difference: float
    interval: Interval
    compared: bool = True  # had the estimate by ranking enough evidence to be compared with?
    p_value: float = 1.0  # two-sided, of the end nearer to 0; 1 where they agree

    @property
    def disagree(self) -> bool:
        """Do the two differ by more than noise and the unsupported parts explain?"""
        return self.compared and (self.interval.lower > 0.0 or self.interval.upper < 0.0)

    @property
    def refuted(self) -> bool:
        """Do they differ by more than chance makes plausible (p < .001)?"""
        return self.disagree and grade(self.p_value) == FAIL

    @property
    def reason(self) -> str | None:
        """What a reader of the estimate by slot must know: why its range is wide, or that nothing checked it."""
        if not self.compared:
            return (
                f"whether slots influence each other could not be checked: {self.point}, which assumes nothing of the"
                " kind, has too little evidence"
            )
        if not self.disagree:
            return None
        apart = f"{self.slot} and {self.point} differ by more than noise and what the log does not support explain"
        may = "influence each other here" if self.refuted else "may influence each other"
        return f"slots {may}: {apart}. So its range spans the interval of {self.point}"

    def to_dict(self) -> dict[str, float | bool | str | None]:
        """The comparison as result.json has it."""
        return {
            "slot": self.slot,
            "point": self.point,
            "difference": finite_or_none(self.difference),
            "ci_lower": finite_or_none(self.interval.lower),
            "ci_upper": finite_or_none(self.interval.upper),
            "compared": self.compared,
            "disagree": self.disagree,
            "p_value": finite_or_none(self.p_value),
            "refuted": self.refuted,
        }


def slot_agreement(
    aggregates: Aggregates, estimators: Sequence[Estimator], metric: int, estimates: Mapping[str, Estimate]
) -> SlotAgreement | None:
    """The comparison, where both ran; None otherwise. It counts where the estimate by ranking is not insufficient."""
    slot = next((e for e in estimators if type(e) is AdaptiveSlotNCIS), None)
    point = next((e for e in estimators if type(e) is AdaptivePointNCIS), None)
    if slot is None or point is None or aggregates.rows == 0:
        return None
    plan = aggregates.plan
    s, p = (Terms.of(aggregates, plan.weighting(e), metric) for e in (slot, point))
    down, up = 1.0 - 1.0 / GAMMA[0], GAMMA[1] - 1.0
    low, high = (s.d - down * s.t) - (p.d + up * p.t), (s.d + up * s.t) - (p.d - down * p.t)
    z = quantile(s.units, plan.settings.analysis.confidence_level)
    # of equal policies the two differ by rounding only
    rounding = 1e-12 * float(aggregates.r[metric].sum()) / aggregates.displays
    lower, upper = s.mean(low) - rounding, s.mean(high) + rounding
    with np.errstate(invalid="ignore"):
        limits = Interval(lower - z * s.error(low), upper + z * s.error(high))
    compared = estimates[point.label].verdict != "insufficient"
    p_value = 1.0
    if limits.lower > 0.0 or limits.upper < 0.0:
        gap, error = (lower, s.error(low)) if limits.lower > 0.0 else (upper, s.error(high))
        p_value = two_sided_p(gap, error, s.units)
    return SlotAgreement(slot.label, point.label, s.mean(s.d - p.d), limits, compared, p_value)


def with_agreement(
    estimates: dict[str, Estimate], agreement: SlotAgreement | None, control: float | None
) -> dict[str, Estimate]:
    """The estimates; the range by slot reaches to the uplift by ranking, and over its interval where the two disagree.
    A reason says so, or that slots are unchecked."""
    if agreement is None:
        return estimates
    slot, reasons = estimates[agreement.slot], [] if agreement.reason is None else [agreement.reason]
    if agreement.compared and control is not None:
        reached = reaching(slot, estimates[agreement.point], control, spanning=agreement.disagree)
        if reached.range != slot.range and not reasons:
            reasons = [f"its range reaches to {agreement.point}, which assumes nothing of slots"]
        slot = reached
    return {**estimates, agreement.slot: replace(slot, reasons=[*slot.reasons, *reasons])}
