"""How much of the reward a log still lacks: the share of reward by age, and what a window left out.

The share of displays that have earned by an age is estimated by Kaplan and Meier (1958): a display without a reward is
censored at its age when the log was read. With d_k displays whose reward's age is in bin k and Y_k displays whose
reward, or own age, is in bin k or a later one,

    S_k = Π_{j ≤ k} (1 − d_j/Y_j),    share of reward by age k = (1 − S_k)/(1 − S_K).

K, the horizon, is the last bin that enough displays reach: nobody knows what comes later than the oldest displays are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from foretest.aggregation.age_sums import EDGES, AgeSums
from foretest.aggregation.aggregates import Aggregates
from foretest.displays.batch import Floats
from foretest.displays.durations import SECOND, duration_of, duration_text, instant_text
from foretest.errors import BadInput
from foretest.formatting import plural, round_percent

FEWEST_REWARDS = 50  # fewer say little about when rewards come
EXPECTED_AT_RISK = 20.0  # rewards that displays at least as old as the horizon are expected to earn
WORTH_A_NOTE = 0.05  # share of reward still to come
BY_WINDOW = 0.95  # share of reward that the proposed window has
WINDOWS = ("30s", "1m", "5m", "15m", "30m", "1h", "2h", "3h", "6h", "12h", "1d", "2d", "3d", "5d", "7d", "10d", "14d",
           "21d", "30d", "60d", "90d")  # fmt: skip


class AgeCurve(NamedTuple):
    """The share of a metric's reward by age."""

    ages: Floats  # seconds, the upper ends of the bins from the first reward to the horizon
    share: Floats  # of the reward by the horizon, that has come by each age
    displays: Floats  # how many were observed that long, or had their reward
    still_to_come: float  # share of the reward by the horizon that the log does not have yet
    window: str | None  # by which most has come; None where the log is too short for one

    @property
    def horizon(self) -> float:
        """The largest age that the curve knows, in seconds."""
        return float(self.ages[-1])

    def to_dict(self) -> dict[str, Any]:
        return {
            "age": self.ages.tolist(),
            "share": self.share.tolist(),
            "displays": self.displays.tolist(),
            "horizon": self.horizon,
            "still_to_come": self.still_to_come,
            "window": self.window,
        }


def age_curve(rewarded: Floats, waiting: Floats) -> AgeCurve | None:
    """The curve of counts by bin; None where there are too few rewards to see one."""
    total, rewards = float(rewarded.sum() + waiting.sum()), float(rewarded.sum())
    if rewards < FEWEST_REWARDS:
        return None
    at_risk = np.cumsum((rewarded + waiting)[::-1])[::-1]
    reached = np.flatnonzero(at_risk * rewards / total >= EXPECTED_AT_RISK)
    first, last = int(np.flatnonzero(rewarded)[0]), min(int(reached[-1]), len(EDGES) - 1)
    if last <= first:
        return None
    survival = np.cumprod(1.0 - np.divide(rewarded, at_risk, out=np.zeros_like(rewarded), where=at_risk > 0))
    end = survival[last]
    alive = survival[: last + 1]
    later = waiting[: last + 1] @ (1.0 - np.divide(end, alive, out=np.ones_like(alive), where=alive > 0.0))
    share = (1.0 - survival[first : last + 1]) / (1.0 - end)
    ages = EDGES[first : last + 1]
    come = float(rewarded[: last + 1].sum())
    known = [(window, _seconds(window)) for window in WINDOWS if _seconds(window) < ages[-1]]
    window = next((window for window, age in known if _share_at(age, ages, share) >= BY_WINDOW), None)
    return AgeCurve(ages, share, at_risk[first : last + 1], float(later / (come + later)), window)


def _seconds(window: str) -> float:
    return duration_of("window", window) / SECOND


def _share_at(age: float, ages: Floats, share: Floats) -> float:
    """The share that has come by the last bin that ends at or before an age."""
    at = int(np.searchsorted(ages, age * (1.0 + 1e-12), side="right")) - 1
    return float(share[at]) if at >= 0 else 0.0


def age_curves(aggregates: Aggregates) -> dict[str, AgeCurve]:
    """The curve of every metric that has one; none under a window."""
    ages, metrics = aggregates.ages, aggregates.plan.settings.log.rewards
    if ages is None or not ages.rewarded.size:
        return {}
    curves = {name: age_curve(ages.rewarded[m], ages.waiting[m]) for m, name in enumerate(metrics)}
    return {name: curve for name, curve in curves.items() if curve is not None}


def late_rewards(aggregates: Aggregates) -> dict[str, Any] | None:
    """What result.json says of late rewards; None where the log does not say when they came."""
    ages = aggregates.ages
    if ages is None:
        return None
    facts: dict[str, Any] = {"read_at": instant_text(int(ages.read_at[1]))}
    window = aggregates.plan.settings.analysis.window
    if window is None:
        return {**facts, "ages": {name: curve.to_dict() for name, curve in age_curves(aggregates).items()}}
    late = {name: int(ages.late[m]) for m, name in enumerate(aggregates.plan.settings.log.rewards)}
    return {**facts, "window": window, "left_out": ages.left_out, "late": late}


def late_notes(aggregates: Aggregates) -> list[str]:
    """What a window left out; without one, how much is still to come where that is much."""
    if aggregates.ages is None:
        return []
    if aggregates.plan.settings.analysis.window is not None:
        return window_notes(
            aggregates.ages, aggregates.plan.settings.analysis.window, aggregates.plan.settings.log.rewards
        )
    notes = []
    for name, curve in age_curves(aggregates).items():
        if curve.still_to_come > WORTH_A_NOTE:
            remedy = f'set [analysis] window = "{curve.window}", by which {round_percent(BY_WINDOW)} of it has come'
            if curve.window is None:
                remedy = "set [analysis] window, and read the log again when its last displays are older than that"
            much = round_percent(round(curve.still_to_come, 2))
            notes.append(
                f"about {much} of the reward '{name}' of these displays is still to come (of what comes within"
                f" {_about(curve.horizon)}): {remedy}."
            )
    return notes


def refuse_no_later_row(aggregates: Aggregates) -> None:
    """Refuse a log with no day after the last that a treatment was trained on."""
    until = aggregates.plan.settings.trained_until
    if until is not None and not aggregates.rows and aggregates.left_out_as_trained:
        raise BadInput(
            f"trained_until = {until} leaves out all {plural(aggregates.left_out_as_trained, 'row')}: a treatment is"
            " tested on days that it was not trained on. Log later days, or train it on earlier ones."
        )


def refuse_all_left_out(aggregates: Aggregates) -> None:
    """Refuse a window that is longer than any display is old."""
    ages, window = aggregates.ages, aggregates.plan.settings.analysis.window
    if ages is not None and window is not None and not aggregates.rows and ages.left_out:
        raise BadInput(
            f'window = "{window}" leaves out all {plural(ages.left_out, "display")}: each is younger than that'
            f" at read_at = {instant_text(int(ages.read_at[1]))}. Set a shorter window, or read the log later."
        )


def training_notes(aggregates: Aggregates) -> list[str]:
    """How many rows were left out because a treatment was trained on them."""
    until = aggregates.plan.settings.trained_until
    if until is None or aggregates.left_out_as_trained is None:
        return []
    who = "a treatment" if len(aggregates.plan.settings.treatments) > 1 or aggregates.treatments else "the treatment"
    rows = aggregates.left_out_as_trained
    were = "was" if rows == 1 else "were"
    return [f"{plural(rows, 'row')} up to {until} {were} left out: {who} was trained until then."]


def window_notes(ages: AgeSums, window: str, metrics: tuple[str, ...]) -> list[str]:
    """What a window left out, in sentences."""
    text, left_out, (first, last) = duration_text(duration_of("window", window)), ages.left_out, ages.read_at
    notes = []
    if left_out:
        when = instant_text(int(last)) if first == last else "each log was read"
        notes.append(
            f"{plural(left_out, 'display')} of the last {text} before {when} were left out: their rewards may still"
            " come."
        )
    late = [f"{int(count):,} of '{name}'" for name, count in zip(metrics, ages.late, strict=True) if count]
    if late:
        notes.append(f"rewards that came more than {text} after their display do not count: {', '.join(late)}.")
    return notes


def _about(seconds: float) -> str:
    """An age in words, to two digits.

    >>> _about(90_000.0), _about(700.0)
    ('25 hours', '12 minutes')
    """
    name, size = next(
        (pair for pair in (("day", 86_400), ("hour", 3_600), ("minute", 60)) if seconds >= 2 * pair[1]), ("second", 1)
    )
    return plural(round(seconds / size), name)
