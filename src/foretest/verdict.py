"""Positive, neutral, negative, or insufficient evidence, with the reasons."""

from __future__ import annotations

from foretest.inference.buckets import Interval, Stratum

FEWEST_POSITIVES = 30.0
FEWEST_UNITS = 5
MOST_UNSUPPORTED = 0.10  # of the rewarded rows
MOST_EMPTY = 0.01  # share of rows in strata without weight


def reasons_against(
    *, rows: int, units: int, positives: int, effective_positives: float | None, unsupported: int, rewarded: int,
    strata: list[Stratum],
) -> tuple[bool, list[str]]:  # fmt: skip
    """Can the evidence carry an interval? And what a reader must know either way.

    Below 30 effective positives (Σhr)²/Σ(hr)² the usual intervals miss one-sidedly: the upper limit is too low.
    """
    reasons: list[str] = []
    if rows == 0:
        return False, ["the log is empty"]
    if positives == 0:
        return False, ["no row has a reward"]
    enough = True
    if units < FEWEST_UNITS:
        enough = False
        reasons.append(f"only {units} unit{'s' if units != 1 else ''}: an interval needs at least {FEWEST_UNITS}")
    if effective_positives is None or effective_positives < FEWEST_POSITIVES:
        enough = False
        reasons.append(
            f"only {effective_positives or 0.0:.1f} effective positives: at least {FEWEST_POSITIVES:.0f} are needed"
        )
    if unsupported:
        share = unsupported / rewarded
        if share > MOST_UNSUPPORTED:
            enough = False
        reasons.append(f"{unsupported:,} rewarded rows ({share:.1%}) have no support for the treatment")
    empty = [s for s in strata if s.value is None]
    if empty:
        share = sum(s.share for s in empty)
        if share > MOST_EMPTY:
            enough = False
        named = ", ".join(f"{s.label} ({s.share:.1%})" for s in empty[:5])
        reasons.append(f"no weight in strata worth {share:.1%} of rows: {named}{', …' if len(empty) > 5 else ''}")
    return enough, reasons


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
