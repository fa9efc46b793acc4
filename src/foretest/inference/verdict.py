"""Positive, neutral, negative, or insufficient evidence, with the reasons."""

from __future__ import annotations

from foretest.inference.buckets import Interval, Stratum

FEWEST_POSITIVES = 30.0
FEWEST_UNITS = 5
MOST_UNSUPPORTED = 0.10  # of the rewarded rows
MOST_EMPTY = 0.01  # share of rows in strata without weight
DETERMINISTIC = (
    "the control is deterministic: every ranking shown had a probability of 1, so that no other was ever tried. Show"
    " random rankings in a small share of displays, and log the scores and the probability of what was shown; foretest"
    " plan says what a share would buy"
)


def are_few(effective_positives: float | None, predicted: float | None = None) -> bool:
    """Are there fewer effective positives than the usual intervals need? Those predicted from draws, where there are
    any, else (Σhr)²/Σ(hr)² of the log itself."""
    count = effective_positives if predicted is None else predicted
    return count is None or count < FEWEST_POSITIVES


def reasons_against(
    *, rows: int, units: int, positives: int, effective_positives: float | None, unsupported: int, rewarded: int,
    strata: list[Stratum], predicted: float | None = None, betting: str | None = None, remedy: str = "",
    deterministic: bool = False,
) -> tuple[bool, list[str]]:  # fmt: skip
    """Can the evidence carry an interval? And what a reader must know either way.

    Below 30 effective positives the usual intervals miss one-sidedly: the upper limit is too low. Then only what the
    betting interval says (`betting`, its verdict) stands, if it says positive or negative.
    """
    reasons: list[str] = []
    if rows == 0:
        return False, ["the log is empty"]
    if positives == 0:
        return False, ["no row has a reward"]
    enough = True
    if deterministic:
        enough = False
        reasons.append(DETERMINISTIC)
    if units < FEWEST_UNITS:
        enough = False
        reasons.append(f"only {units} unit{'s' if units != 1 else ''}: an interval needs at least {FEWEST_UNITS}")
    if are_few(effective_positives, predicted):
        said = f"only {effective_positives or 0.0:.1f} effective positives"
        if predicted is not None:
            said = f"only {predicted:.1f} predicted effective positives"
        if betting in ("positive", "negative"):
            reasons.append(f"{said}: the verdict is that of the betting interval, which holds with any number")
        else:
            enough = False
            if betting == "neutral":
                reasons.append(f"{said}, and the betting interval, which holds with any number, does not exclude 0")
            else:
                reasons.append(f"{said}: at least {FEWEST_POSITIVES:.0f} are needed{remedy}")
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
