"""The range of an uplift and its word.

The interval of an estimate says how far *noise* goes. The range adds what the log cannot support: with T = mean(t) the
unsupported part of the treatment, valued as the supported part is, and factors (Γ_lower, Γ_upper) of what it may earn,

    [noise lower + (1/Γ_lower − 1)·T, noise upper + (Γ_upper − 1)·T]

Γ is an assumption, and gives way where the log itself refutes it: where the interval of the slice test lies beyond it,
its nearest end is the factor, and no end moves less than larger bounds on weights, which the log can carry, move the
value. With a calibration the range is the calibrated interval. An estimator with neither has the noise interval.
"""

from __future__ import annotations

from dataclasses import replace

from foretest.files import finite_or_none
from foretest.inference.buckets import Interval
from foretest.inference.verdict import decide
from foretest.results.result import Adjusted, Estimate
from foretest.results.uplift_range import BAND, CALIBRATED, NOISE, Range, is_good, leaning

_NAN = float("nan")
_NOWHERE = Interval(0.0, 0.0)


def shifted_ends(noise: Interval, shift: Interval, scale: float = 1.0) -> Interval:
    """The noise interval with each end moved by a shift over `scale`."""
    return Interval(noise.lower + shift.lower / scale, noise.upper + shift.upper / scale)


def unsupported_shift(
    unsupported: float, gamma: tuple[float, float], moved: Interval = _NOWHERE, losses: float = 0.0
) -> Interval:
    """How far the unsupported part may move each end of an interval, and no less than `moved`; `losses` are what of it
    is lost, where a metric has losses.

    >>> shift = unsupported_shift(0.1, (1.25, 2.0))
    >>> round(shift.lower, 6), round(shift.upper, 6)
    (-0.02, 0.1)
    """
    less, more = 1.0 / gamma[0] - 1.0, gamma[1] - 1.0
    down, up = less * unsupported - more * losses, more * unsupported - less * losses
    return Interval(min(down, moved.lower), max(up, moved.upper))


def factors_by_log(gamma: tuple[float, float], slice_gamma: Interval) -> tuple[float, float]:
    """(Γ_lower, Γ_upper), each as large as the slice test says at the least.

    The nearest end of its interval is the least change that the log demands: an alarm by chance then moves next to
    nothing. Limits that do not exist (NaN) refute nothing.

    >>> factors_by_log((1.25, 2.0), Interval(2.5, 3.5)), factors_by_log((1.25, 2.0), Interval(0.2, 0.5))
    ((1.25, 2.5), (2.0, 2.0))
    """
    down, up = gamma
    return (1.0 / slice_gamma.upper if 0.0 < slice_gamma.upper < 1.0 / down else down, max(up, slice_gamma.lower))


def range_of(kind: str, absolute: Interval, control: float, relative: Interval | None = None) -> Range:
    """A range from absolute limits; the relative ones are these over the control's value unless they are given."""
    if relative is None:
        relative = Interval(*(limit / abs(control) if control else _NAN for limit in absolute))
    return Range(kind, *(finite_or_none(limit) for limit in (*absolute, *relative)))


def band_range(
    estimate: Estimate, noise: Interval, unsupported: float, gamma: tuple[float, float], moved: Interval,
    control: float, losses: float = 0.0,
) -> Range:  # fmt: skip
    """The range of an estimate with a band: the interval `noise`, which the verdict was taken on, with both ends moved
    by what the unsupported part may earn or lose or, where that is more, by `moved`."""
    shift = unsupported_shift(unsupported, gamma, moved, losses)
    relative = None
    if (
        estimate.rel_effect_size_ci_lower is not None
        and estimate.rel_effect_size_ci_upper is not None
        and noise == (estimate.effect_size_ci_lower, estimate.effect_size_ci_upper)
    ):
        own = Interval(estimate.rel_effect_size_ci_lower, estimate.rel_effect_size_ci_upper)
        relative = shifted_ends(own, shift, abs(control))
    limits = range_of(BAND, shifted_ends(noise, shift), control, relative)
    least, most = (1.0 + end / unsupported for end in moved) if unsupported > 0.0 else (1.0, 1.0)
    return replace(
        limits,
        factor_lower=min(1.0 / gamma[0], max(0.0, least)),
        factor_upper=finite_or_none(max(gamma[1], most)),
    )


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


def reaching(estimate: Estimate, other: Estimate, control: float, *, spanning: bool = False) -> Estimate:
    """An estimate whose range reaches to the uplift of another one, or (`spanning`) over its interval, with the word
    that this leaves: a word that spans an uplift of the opposite sign is neutral."""
    own = estimate.range
    if own is None or own.ci_lower is None or own.ci_upper is None or other.effect_size is None:
        return estimate
    absolute, relative = [other.effect_size], [other.rel_effect_size]
    if spanning:
        absolute += [end for end in (other.effect_size_ci_lower, other.effect_size_ci_upper) if end is not None]
        relative += [other.rel_effect_size_ci_lower, other.rel_effect_size_ci_upper]
    limits = replace(own, ci_lower=min(own.ci_lower, *absolute), ci_upper=max(own.ci_upper, *absolute))
    shares = [end for end in relative if end is not None]
    if own.rel_ci_lower is not None and own.rel_ci_upper is not None and shares:
        limits = replace(
            limits, rel_ci_lower=min(own.rel_ci_lower, *shares), rel_ci_upper=max(own.rel_ci_upper, *shares)
        )
    # where there is a betting interval, the verdict was taken on it
    ends = (
        (estimate.effect_size_ci_lower, estimate.effect_size_ci_upper)
        if estimate.betting is None
        else (estimate.betting["ci_lower"], estimate.betting["ci_upper"])
    )
    noise = Interval(*(_NAN if end is None else end for end in ends))
    reached = with_range(estimate, limits, noise, estimate.word != "insufficient", control)
    good = is_good(reached.word)
    opposite = good is not None and (other.effect_size < 0.0 if good else other.effect_size > 0.0)
    return replace(reached, word="neutral") if spanning and opposite else reached


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
