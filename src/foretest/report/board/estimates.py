"""Estimates as result.json and agreement.json have them; of an earlier version, with what it says of range and word."""

from __future__ import annotations

from foretest.report.board.fields import Fields
from foretest.report.words import VERDICTS
from foretest.results.result import Estimate
from foretest.results.uplift_range import KINDS, NOISE, WORDS, Range, leaning


def estimate_of(document: Fields, *, online: bool) -> Estimate:
    """An estimate with what a board shows of it.

    Earlier versions wrote neither range nor word. The range is then left out (`range_of` gives the interval, which is
    noise alone), and the word is the verdict; offline it leans at most, as where a range is noise alone.
    """
    verdict = document.word("verdict", VERDICTS)
    limits = document.member("range")
    if document.text("word") is not None:
        word = document.word("word", WORDS)
    else:
        word = verdict if online else leaning(verdict)
    return Estimate(
        treatment=None,
        std_error=None,
        effect_size=document.number("effect_size"),
        effect_size_ci_lower=document.number("effect_size_ci_lower"),
        effect_size_ci_upper=document.number("effect_size_ci_upper"),
        rel_effect_size=document.number("rel_effect_size"),
        rel_effect_size_ci_lower=document.number("rel_effect_size_ci_lower"),
        rel_effect_size_ci_upper=document.number("rel_effect_size_ci_upper"),
        verdict=verdict,
        reasons=[],
        effective_positives=None,
        rel_std_error=document.number("rel_std_error"),
        range=None if limits is None else _range(limits),
        word=word,
    )


def _range(limits: Fields) -> Range:
    kind = limits.word("kind", KINDS) if limits.text("kind") is not None else NOISE
    ends = [limits.number(name) for name in ("ci_lower", "ci_upper", "rel_ci_lower", "rel_ci_upper")]
    return Range(kind, *ends)
