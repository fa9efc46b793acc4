"""The sample ratio check: are the units split between the arms as the test was designed?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

from foretest.aggregation.quantities import SQUARES
from foretest.online.arms import Arm, Arms
from foretest.online.unit_days import UnitDays, UnitSums, WeightedUnits
from foretest.records import dataclass
from foretest.special import chdtrc

ALERT = 0.001  # p-values below it are reported
MOST_NAMED = 5  # days in a note


class DayRatio(NamedTuple):
    """The units of one day, the control's first, against the designed split."""

    day: str
    units: list[int]
    p_value: float

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


@dataclass(frozen=True)
class SampleRatio:
    """The units of both arms, the control's first, against the designed split: in all, and the days that stand out."""

    expected: list[float]
    observed: list[float | None]
    units: list[int]
    p_value: float | None
    alert: bool
    sampled_share: float
    days_checked: int
    days: list[DayRatio]
    obstacle: str | None = None  # why the split could not be checked, where there are units

    def to_dict(self) -> dict[str, Any]:
        """The content of `health.sample_ratio` in result.json."""
        document = asdict(self) | {"days": [day.to_dict() for day in self.days]}
        return {key: value for key, value in document.items() if key != "obstacle" or value is not None}

    @property
    def reason(self) -> str | None:
        """Why no verdict should be trusted before the split is explained; None where it is as designed."""
        if not self.alert:
            return None
        return f"the units are not split as designed (p = {self.p_value:.2g}): find out why first"

    @property
    def notes(self) -> list[str]:
        """What a reader should know of the check, in words."""
        notes = [] if self.obstacle is None else [f"the sample ratio was not checked: {self.obstacle}."]
        if self.sampled_share < 1.0:
            notes.append(
                f"over 2^17 units: split and shared units are checked on a random {self.sampled_share:.1%} of units,"
                " those of smallest hash."
            )
        if self.days:
            named = ", ".join(day.day for day in self.days[:MOST_NAMED])
            more = ", …" if len(self.days) > MOST_NAMED else ""
            notes.append(
                f"sample ratio by day: p < {ALERT:g} on {len(self.days)} of {self.days_checked} days ({named}{more})."
                " With that many days checked, one or more would stand out by chance alone in up to"
                f" {min(1.0, ALERT * self.days_checked):.1%} of tests."
            )
        return notes


class ComparedUnits(NamedTuple):
    """What both arms know of their units, and the hash up to which both know all of them."""

    control: UnitDays
    treatment: UnitDays
    highest: int

    @property
    def complete(self) -> bool:
        """Whether both arms know every unit."""
        return self.control.complete and self.treatment.complete

    @property
    def share(self) -> float:
        """The share of units that are compared."""
        return 1.0 if self.complete else self.highest / 2.0**64


def compared_units(arms: Arms) -> ComparedUnits | None:
    """The units of both arms that can be compared; None where every row is a unit."""
    control, treatment = arms.control.unit_days, arms.treatment.unit_days
    if control is None or treatment is None:
        return None
    for unit_days in (control, treatment):
        unit_days.pairs()  # puts them in order, which settles the highest hash
    return ComparedUnits(control, treatment, min(control.highest, treatment.highest))


_SEVERAL_RATES = (
    "rows of one unit were kept with different probabilities, so that nobody knows how many units there were"
)


def sample_ratio(arms: Arms, split: tuple[float, float]) -> SampleRatio:
    """χ² of the units against the designed split, in all and by day.

    While both arms know all their units, all are counted; else those up to a common hash, which are a random sample of
    both arms (`sampled_share` of all): an estimated number of units would err by more than chance does.
    """
    compared, share = compared_units(arms), 1.0
    units = [arm.rows for arm in arms]
    weighted = [_rows_as_units(arm) for arm in arms]
    if compared is not None:
        *both, highest = compared
        share, units = compared.share, [len(one.units(highest)) for one in both]
        weighted = [one.weighted(highest) for one in both]
    control, treatment = weighted
    if control is None or treatment is None:
        return SampleRatio(list(split), [None, None], units, None, False, share, 0, [], _SEVERAL_RATES)
    p_value = split_p_value(control.overall, treatment.overall, split)
    days, none = sorted({*control.days, *treatment.days}), UnitSums(0.0, 0.0)
    unlikely = []
    for day in days:
        of_day = control.days.get(day, none), treatment.days.get(day, none)
        p_of_day = split_p_value(*of_day, split)
        if p_of_day is not None and p_of_day < ALERT:
            unlikely.append(DayRatio(day, [round(one.total) for one in of_day], p_of_day))
    total = control.overall.total + treatment.overall.total
    return SampleRatio(
        expected=list(split),
        observed=[one.overall.total / total if total else None for one in (control, treatment)],
        units=units,
        p_value=p_value,
        alert=p_value is not None and p_value < ALERT,
        sampled_share=share,
        days_checked=len(days),
        days=unlikely,
    )


def _rows_as_units(arm: Arm) -> WeightedUnits | None:
    """The rows of an arm in which every row is a unit."""
    squares = arm.squares_by_day
    days = {day: UnitSums(total, squares[day]) for day, total in arm.rows_by_day.items()}
    return WeightedUnits(UnitSums(arm.displays, arm.ledger.plain.total(SQUARES)), days)


def split_p_value(control: UnitSums, treatment: UnitSums, split: tuple[float, float]) -> float | None:
    """P(χ²_1 ≥ (N_c − s_c N)²/(s_c s_t Σ m²)), N = Σ m of the units, each of which was in the control with
    probability s_c, whatever its m. With m = 1 it is Σ (observed − expected)²/expected; None where there are no units.

    >>> round(split_p_value(UnitSums(5000, 5000), UnitSums(5300, 5300), (0.5, 0.5)), 4)
    0.0031
    """
    total, squares = control.total + treatment.total, control.squares + treatment.squares
    if total == 0.0:
        return None
    return float(chdtrc(1.0, (control.total - split[0] * total) ** 2 / (split[0] * split[1] * squares)))
