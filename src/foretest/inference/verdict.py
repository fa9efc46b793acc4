"""Positive, neutral, negative, or insufficient evidence, with the reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from foretest.formatting import percent, plural
from foretest.inference.buckets import Interval, Stratum
from foretest.records import dataclass
from foretest.results.range_text import NEEDS_UNITS

FEWEST_POSITIVES = 30.0
DENSE_POSITIVES = 15.0  # of a ratio of sums with dense rewards, whose noise is in r − V and not in r
EFFECTIVE = "effective positives"  # what a reason names where there are too few; the page looks for it
FEWEST_UNITS = 5
MOST_UNSUPPORTED = 0.10  # of the rewarded rows
LEAST_MASS_KEPT = 0.5  # of the treatment: below, what the log does not support outweighs what it does
#: where rewards are dense there is little noise, and what the log does not support is most of the error
DENSE_MASS_KEPT = 0.75
MOST_EMPTY = 0.01  # share of rows in strata without weight
DETERMINISTIC = (
    "the control is deterministic: every ranking shown had a probability of 1, so that no other was ever tried. Where"
    " the log says which slot earned the reward, estimates by exposure can answer: name [log] slot_rewards and give"
    " [analysis] examination. Else show random rankings in a small share of displays, and log the scores and the"
    " probability of what was shown; foretest plan says what a share would buy"
)


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on, of one estimator and metric."""

    rows: int
    units: int
    positives: int  # rows with a reward
    effective_positives: float | None  # (Σhr)²/Σ(hr)² of the log itself
    unsupported: int  # rows without support for the treatment, of those that are counted
    rewarded: int  # rewarded rows of any metric, or all rows where all are weighed
    strata: Sequence[Stratum] = ()  # of a stratified estimator
    predicted: float | None = None  # effective positives predicted from draws
    betting: str | None = None  # the verdict of the betting interval, where it was asked for
    remedy: str = ""  # what else would help where there are few
    deterministic: bool = False  # did the control ever show but one ranking?
    counted: str = "rewarded row"  # what `rewarded` counts
    fewest: float = FEWEST_POSITIVES  # effective positives that the usual intervals need
    curve: str | None = None  # the examination curve that was given, in words, where the estimate rests on one
    least_mass: float = LEAST_MASS_KEPT  # of the treatment, that the log must support
    mass_kept: float | None = None  # of the treatment, by the estimator's own cap or bound; None where it is not known

    @property
    def is_thin(self) -> bool:
        """Are there fewer effective positives, in the log itself or predicted, than the usual intervals need?"""
        return min(self.effective_positives or 0.0, self._predicted) < self.fewest

    @property
    def _predicted(self) -> float:
        return math.inf if self.predicted is None else self.predicted

    @property
    def count_text(self) -> str:
        """The smaller of both numbers."""
        observed = self.effective_positives or 0.0
        if self._predicted <= observed:
            return f"{self._predicted:.1f} predicted {EFFECTIVE}"
        return f"{observed:.1f} {EFFECTIVE}"


class Judgement(NamedTuple):
    """Can the evidence carry an interval? And what a reader must know either way."""

    enough: bool
    reasons: list[str]


def judge(evidence: Evidence) -> Judgement:
    """Judge the evidence.

    Below 30 effective positives (15 of dense rewards) the usual intervals miss one-sidedly: the upper limit is too
    low. Then only what the betting interval says (`betting`, its verdict) stands, if it says positive or negative.
    """
    if evidence.rows == 0:
        return Judgement(False, ["the log is empty"])
    if evidence.positives == 0:
        return Judgement(False, ["no row has a reward"])
    parts = [
        _exploration(evidence), _units(evidence), _effective(evidence), _support(evidence), _mass(evidence),
        _strata(evidence), _curve(evidence),
    ]  # fmt: skip
    return Judgement(all(part.enough for part in parts), [reason for part in parts for reason in part.reasons])


_FINE = Judgement(True, [])


def _exploration(evidence: Evidence) -> Judgement:
    return Judgement(False, [DETERMINISTIC]) if evidence.deterministic else _FINE


def _curve(evidence: Evidence) -> Judgement:
    if evidence.curve is None:
        return _FINE
    return Judgement(True, [f"it rests on the examination curve {evidence.curve} that was given"])


def _units(evidence: Evidence) -> Judgement:
    if evidence.units >= FEWEST_UNITS:
        return _FINE
    return Judgement(False, [f"only {plural(evidence.units, 'unit')}: {NEEDS_UNITS} {FEWEST_UNITS}"])


def _effective(evidence: Evidence) -> Judgement:
    if not evidence.is_thin:
        return _FINE
    count = f"only {evidence.count_text}"
    if evidence.betting in ("positive", "negative"):
        reason = "the verdict is that of the betting interval, which holds with any number"
        return Judgement(True, [f"{count}: {reason}"])
    if evidence.betting == "neutral":
        reason = "and the betting interval, which holds with any number, does not exclude 0"
        return Judgement(False, [f"{count}, {reason}"])
    return Judgement(False, [f"{count}: at least {evidence.fewest:.0f} are needed{evidence.remedy}"])


def _support(evidence: Evidence) -> Judgement:
    if not evidence.unsupported:
        return _FINE
    share = evidence.unsupported / evidence.rewarded
    count, verb = plural(evidence.unsupported, evidence.counted), "has" if evidence.unsupported == 1 else "have"
    reason = f"{count} ({share:.1%}) {verb} no support for the treatment"
    return Judgement(share <= MOST_UNSUPPORTED, [reason])


def _mass(evidence: Evidence) -> Judgement:
    if evidence.mass_kept is None or evidence.mass_kept >= evidence.least_mass:
        return _FINE
    reason = (
        f"the log supports only {percent(evidence.mass_kept)} of what the treatment shows, and the answer is about that"
        f" part: at least {percent(evidence.least_mass)} is needed, or the rest, which was hardly ever shown, decides"
    )
    return Judgement(False, [reason])


def _strata(evidence: Evidence) -> Judgement:
    empty = [s for s in evidence.strata if s.value is None]
    if not empty:
        return _FINE
    share = sum(s.share for s in empty)
    named = ", ".join(f"{s.label} ({s.share:.1%})" for s in empty[:5])
    reason = f"no weight in strata worth {share:.1%} of rows: {named}{', …' if len(empty) > 5 else ''}"
    return Judgement(share <= MOST_EMPTY, [reason])


def decide(interval: Interval, enough: bool, control: float) -> str:
    """The verdict on the interval of the absolute uplift; a limit within rounding (1e-12 of the control) is 0."""
    if not enough or interval.lower != interval.lower or interval.upper != interval.upper:
        return "insufficient"
    rounding = 1e-12 * abs(control)
    if interval.lower > rounding:
        return "positive"
    if interval.upper < -rounding:
        return "negative"
    return "neutral"
