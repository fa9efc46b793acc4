"""Do units have as many displays in one arm as in the other?

A reward per display divides by displays. Where a treatment changes how many of these its units have, it moves although
units earn what they did: with 40 % more displays and as many clicks it falls by 29 %.

Displays per unit have heavy tails, and in a small arm the t of their means is far too often large (at a split of 90 to
10 up to 2 % of right tests have p < .001). So the test is by ranks, Wilcoxon's: with s_u the share of units that have
fewer displays than unit u, half of those with as many counted,

    z = (s̄_t − s̄_c)/√(σ² Σ_g Σ_{u∈g} m_u²/(Σ_{u∈g} m_u)²),    σ² = Σ_u m_u² (s_u − s̄)²/Σ_u m_u²

over all units of both arms, m_u = 1; of a thinned log a unit stands for m_u = 1/keep of them. Chance alone decides in
which arm a unit is, so that σ² is that of both arms together.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

import numpy as np

from foretest.displays.batch import Floats
from foretest.files import finite_or_none
from foretest.formatting import format_number, percent
from foretest.formatting import p_value as p_text
from foretest.online.arms import Arms
from foretest.online.sample_ratio import ALERT, compared_units
from foretest.online.unit_days import DisplaysOfUnits
from foretest.records import dataclass
from foretest.settings.metric_kinds import PerUnit
from foretest.settings.settings import Settings
from foretest.special import ndtr

_SEVERAL_RATES = (
    "whether units have as many displays in both arms was not tested: rows of one unit were kept with different"
    " probabilities, so that nobody knows how many displays it had."
)


@dataclass(frozen=True)
class DisplaysPerUnit:
    """The mean number of displays per unit in each arm, the control's first, and the p of no difference between the
    arms; no numbers where they are not known."""

    means: list[float | None]
    p_value: float | None
    alert: bool
    warning: str | None = None  # what is wrong and what to do, where the arms differ
    obstacle: str | None = None  # why it was not tested

    def to_dict(self) -> dict[str, Any]:
        """The content of `health.displays_per_unit` in result.json."""
        document = asdict(self)
        return {
            key: value for key, value in document.items() if key not in ("warning", "obstacle") or value is not None
        }

    @property
    def reason(self) -> str | None:
        """Why the verdict of a reward per display leans at most; None where the arms are alike."""
        if not self.alert or self.p_value is None:
            return None
        return (
            f"units have another number of displays in the treatment ({p_text(self.p_value)}), and this is per display"
        )

    @property
    def notes(self) -> list[str]:
        """Why it was not tested, where it should have been."""
        return [] if self.obstacle is None else [self.obstacle]


def displays_per_unit(arms: Arms, settings: Settings) -> DisplaysPerUnit | None:
    """How alike the arms are in displays per unit; None where every row is a unit, or an arm is empty.

    While both arms know all their units, all are counted; else those up to a common hash, as for the sample ratio.
    """
    compared = compared_units(arms)
    if compared is None or not all(arm.rows for arm in arms):
        return None
    control, treatment = (units.displays(compared.highest) for units in (compared.control, compared.treatment))
    if control is None or treatment is None:
        return DisplaysPerUnit([None, None], None, False, obstacle=_SEVERAL_RATES)
    means = [finite_or_none(float(np.average(arm.displays, weights=arm.units))) for arm in (control, treatment)]
    p = rank_p_value(control, treatment)
    alert = p is not None and p < ALERT
    return DisplaysPerUnit(means, p, alert, _warning(means, p, settings) if alert else None)


def rank_p_value(control: DisplaysOfUnits, treatment: DisplaysOfUnits) -> float | None:
    """The two-sided p of the ranks of two arms; None where all units have as many displays.

    >>> one, more = np.repeat([1.0, 2.0], [30, 10]), np.repeat([1.0, 2.0], [10, 30])
    >>> p = rank_p_value(DisplaysOfUnits(one, np.ones(40)), DisplaysOfUnits(more, np.ones(40)))
    >>> round(p, 6)  # as scipy.stats.mannwhitneyu(one, more, method="asymptotic", use_continuity=False)
    9e-06
    """
    displays, m = (np.concatenate(both) for both in zip(control, treatment, strict=True))
    rank = _shares_below(displays, m)
    apart = rank - float(np.average(rank, weights=m))
    # unbiased, as in the variance of a sum of ranks
    variance = float(np.sum(m**2 * apart**2) / np.sum(m**2)) * len(m) / max(1.0, len(m) - 1.0)
    begin = len(control.displays)
    (mean, share), (other, share_of_other) = (
        (float(np.average(apart[arm], weights=m[arm])), float(np.sum(m[arm] ** 2) / np.sum(m[arm]) ** 2))
        for arm in (slice(None, begin), slice(begin, None))
    )
    if not variance > 0.0:
        return None
    return float(2.0 * ndtr(-abs(mean - other) / np.sqrt(variance * (share + share_of_other))))


def _shares_below(displays: Floats, units: Floats) -> Floats:
    """For each unit the share of all that have fewer displays, and half of those that have as many."""
    _, place = np.unique(displays, return_inverse=True)
    there = np.bincount(place, weights=units)
    return np.asarray((np.cumsum(there) - 0.5 * there)[place] / units.sum())


def _warning(means: list[float | None], p: float | None, settings: Settings) -> str:
    """What is wrong, and which metrics to look at in its place."""
    (control, treatment), unit = means, settings.log.unit
    assert control is not None
    assert treatment is not None
    assert p is not None
    more = f"{percent(abs(treatment / control - 1.0))} {'more' if treatment > control else 'fewer'}"
    return (
        f"The arms differ in displays per {unit} ({p_text(p)}): on average {format_number(treatment)} in the treatment"
        f" and {format_number(control)} in the control, {more}. A reward per display is divided by these, and moves"
        f" even if each {unit} earns the same. {_remedy(settings)}"
    )


def _remedy(settings: Settings) -> str:
    """Which metric to look at, or how to define it."""
    log, per_unit = settings.log, [formula.name for formula in settings.definitions.derived if formula.counts_units]
    if per_unit:
        return f"Judge the treatment by what is per {log.unit}: {', '.join(per_unit)}."
    if PerUnit.obstacles(log):
        return f"Judge the treatment by the reward per {log.unit}, which needs logs with all rows."
    reward = log.rewards[0]
    name = f"{reward}_per_{log.unit}"
    name = name if re.fullmatch(r"[\w-]+", name, re.ASCII) else f'"{name}"'
    return (
        f'Judge the treatment by the reward per {log.unit}, in the settings [metrics.{name}] with per = "unit" and'
        f' of = "{reward}".'
    )
