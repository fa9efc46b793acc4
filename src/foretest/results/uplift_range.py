"""The range of an uplift: the interval that a person should look at first, and the word that sums it up."""

from __future__ import annotations

from foretest.records import dataclass

BAND, CALIBRATED, NOISE = KINDS = ("band", "calibrated", "noise")
WORDS = ("positive", "leans positive", "neutral", "leans negative", "negative", "insufficient")


@dataclass(frozen=True)
class Range:
    """How far noise, and what the log cannot support, may move an uplift. Numbers that do not exist are None.

    `kind` says what it is made of: `band` (noise, and what unsupported recommendations may earn), `calibrated` (noise,
    and what they earned in past tests), or `noise` alone.
    """

    kind: str
    ci_lower: float | None  # of the effect size
    ci_upper: float | None
    rel_ci_lower: float | None
    rel_ci_upper: float | None
    factor_lower: float | None = None  # of a band: what unsupported recommendations may earn, as multiples of supported
    factor_upper: float | None = None


def leaning(word: str) -> str:
    """A word with its certainty taken away.

    >>> leaning("positive"), leaning("leans negative"), leaning("neutral")
    ('leans positive', 'leans negative', 'neutral')
    """
    return f"leans {word}" if word in ("positive", "negative") else word


def is_good(word: str, *, decrease: bool = False) -> bool | None:
    """Does the word speak for the treatment? None where it speaks for neither side.

    >>> is_good("leans positive"), is_good("positive", decrease=True), is_good("neutral")
    (True, False, None)
    """
    sign = word.removeprefix("leans ")
    return None if sign not in ("positive", "negative") else (sign == "positive") != decrease
