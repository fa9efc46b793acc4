"""How far a verdict can be trusted, in plain words: for the terminal and for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foretest.results.result import Estimate

_PARTS = "unsupported recommendations"


def factor(gamma: float) -> str:
    """A factor Γ.

    >>> factor(1.4), factor(1.0849), factor(12.34), factor(2.0), factor(0.1649)
    ('1.4x', '1.08x', '12.3x', '2x', '0.16x')
    """
    return f"{gamma:.2g}x" if gamma < 1.0 else f"{gamma:.3g}x"


def breakdown_text(estimate: Estimate) -> str | None:
    """What it takes to undo a positive or negative verdict, after the words "the verdict …"; None of any other."""
    band = estimate.sensitivity
    if band is None or estimate.verdict not in ("positive", "negative"):
        return None
    gamma, worse = band["breakdown_gamma"], "less" if estimate.verdict == "positive" else "more"
    if gamma is None:
        if estimate.verdict == "positive":
            return f"holds even if {_PARTS} earn nothing"
        return "holds whatever unsupported recommendations earn: there are next to none"
    if gamma < 1.005:
        return f"is lost as soon as {_PARTS} earn {worse} than supported ones"
    return f"holds unless {_PARTS} earn {factor(gamma)} {worse} than supported ones"


def robustness_sentence(estimate: Estimate) -> str | None:
    """Robust or fragile, at which factors, and what undoes the verdict; None where there is none to undo."""
    band, said = estimate.sensitivity, breakdown_text(estimate)
    if band is None or said is None:
        return None
    ends = f"{factor(band['gamma_lower'] or 1.0)} less and {factor(band['gamma_upper'] or 1.0)} more"
    return f"{estimate.robustness} at {ends}: the verdict {said}"


def is_fragile(estimate: Estimate) -> bool:
    """A positive or negative verdict that the band does not share."""
    return estimate.robustness == "fragile" and estimate.verdict in ("positive", "negative")
