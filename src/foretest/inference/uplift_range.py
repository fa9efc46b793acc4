"""The range of an uplift and its word.

The interval of an estimate says how far *noise* goes. The range adds what the log cannot support: with T = mean(t) the
unsupported part of the treatment, valued as the supported part is, and factors (Γ_lower, Γ_upper) of what it may earn,

    [noise lower + (1/Γ_lower − 1)·T, noise upper + (Γ_upper − 1)·T]

With a calibration the range is the calibrated interval. An estimator with neither has the noise interval.
"""

from __future__ import annotations

from dataclasses import replace

from foretest.files import finite_or_none
from foretest.inference.buckets import Interval
from foretest.inference.verdict import decide
from foretest.results.result import Adjusted, Estimate
from foretest.results.uplift_range import CALIBRATED, NOISE, Range, leaning

_NAN = float("nan")
_NOWHERE = Interval(0.0, 0.0)


def shifted_ends(
    noise: Interval, unsupported: float, gamma: tuple[float, float], moved: Interval = _NOWHERE
) -> Interval:
    """The noise interval with each end moved by what the unsupported part may earn, and no less than by `moved`.

    >>> limits = shifted_ends(Interval(0.02, 0.08), 0.1, (1.25, 2.0))
    >>> round(limits.lower, 6), round(limits.upper, 6)
    (0.0, 0.18)
    """
    down, up = (1.0 / gamma[0] - 1.0) * unsupported, (gamma[1] - 1.0) * unsupported
    return Interval(noise.lower + min(down, moved.lower), noise.upper + max(up, moved.upper))


def range_of(kind: str, absolute: Interval, control: float, relative: Interval | None = None) -> Range:
    """A range from absolute limits; the relative ones are these over the control's value unless they are given."""
    if relative is None:
        relative = Interval(*(limit / control if control else _NAN for limit in absolute))
    return Range(kind, *(finite_or_none(limit) for limit in (*absolute, *relative)))


def word_on(on_noise: str, on_range: str, kind: str) -> str:
    """The word of an offline estimate from the verdicts on its noise interval and on its range.

    >>> word_on("positive", "positive", "band"), word_on("positive", "neutral", "band")
    ('positive', 'leans positive')
    >>> word_on("positive", "negative", "band"), word_on("negative", "negative", "noise")
    ('neutral', 'leans negative')
    """
    if "insufficient" in (on_noise, on_range):
        return "insufficient"
    if on_noise == on_range:
        return leaning(on_noise) if kind == NOISE else on_noise
    decided = [verdict for verdict in (on_noise, on_range) if verdict != "neutral"]
    return leaning(decided[0]) if len(decided) == 1 else "neutral"


def with_range(estimate: Estimate, limits: Range, noise: Interval, enough: bool, control: float) -> Estimate:
    """An offline estimate with its range and its word; `noise` is the interval that the verdict was taken on."""
    ends = Interval(*(_NAN if end is None else end for end in (limits.ci_lower, limits.ci_upper)))
    on_noise, on_range = decide(noise, enough, control), decide(ends, enough, control)
    return replace(estimate, range=limits, word=word_on(on_noise, on_range, limits.kind))


def with_adjusted(estimate: Estimate, adjusted: Adjusted) -> Estimate:
    """An estimate adjusted for the number of treatments or segments: where that leaves a neutral verdict, its word at
    most leans."""
    word = leaning(estimate.word) if adjusted.verdict_adjusted == "neutral" else estimate.word
    return replace(estimate, adjusted=adjusted, word=word)


def without_band(estimate: Estimate, control: float) -> Estimate:
    """An offline estimate whose range is its own interval: calibrated, or noise alone."""
    kind = NOISE if estimate.calibration is None else CALIBRATED
    limits = Range(
        kind, estimate.effect_size_ci_lower, estimate.effect_size_ci_upper, estimate.rel_effect_size_ci_lower,
        estimate.rel_effect_size_ci_upper,
    )  # fmt: skip
    ends = (estimate.effect_size_ci_lower, estimate.effect_size_ci_upper)
    noise = Interval(*(_NAN if end is None else end for end in ends))
    return with_range(estimate, limits, noise, estimate.verdict != "insufficient", control)
