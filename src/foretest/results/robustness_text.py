"""How far a verdict can be trusted, in plain words: for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foretest.results.result import Estimate


def factor(gamma: float) -> str:
    """A factor Γ in two or three digits.

    >>> factor(1.4), factor(1.0849), factor(12.34), factor(2.0), factor(0.1649)
    ('1.4', '1.08', '12.3', '2', '0.16')
    """
    return f"{gamma:.2g}" if gamma < 1.0 else f"{gamma:.3g}"


def inverse_factor(gamma: float) -> str:
    """1/Γ, as people read it.

    >>> inverse_factor(1.15), inverse_factor(1.0)
    ('1/1.15', '1')
    """
    text = factor(gamma)
    return text if text == "1" else f"1/{text}"


def breakdown_text(estimate: Estimate) -> str | None:
    """What would undo a positive or negative verdict, to follow "the verdict"; None for any other verdict."""
    if estimate.sensitivity is None or estimate.verdict not in ("positive", "negative"):
        return None
    gamma, positive = estimate.sensitivity["breakdown_gamma"], estimate.verdict == "positive"
    if gamma is None:
        if positive:
            return "holds even if unsupported recommendations earn nothing"
        return "holds whatever unsupported recommendations earn: there are next to none"
    if gamma < 1.005:
        way = "less" if positive else "more"
        return f"is lost as soon as unsupported recommendations earn {way} than supported ones"
    limit = f"less than 1/{factor(gamma)} of" if positive else f"more than {factor(gamma)} times"
    return f"holds unless unsupported recommendations earn {limit} what supported ones earn"


def band_factors(estimate: Estimate) -> tuple[str, str]:
    """The least and the most that unsupported recommendations may earn in the band, as multiples of the supported.

    The first is written as 1/Γ, the second as Γ.
    """
    band = estimate.sensitivity or {}
    return inverse_factor(band.get("gamma_lower") or 1.0), factor(band.get("gamma_upper") or 1.0)


def robustness_sentence(estimate: Estimate) -> str | None:
    """Robust or fragile, at which factors, and what would undo the verdict; None where there is none to undo."""
    breakdown = breakdown_text(estimate)
    if breakdown is None:
        return None
    least, most = band_factors(estimate)
    refuted = refuted_text(estimate)
    doubt = "" if refuted is None else f"; {refuted}"
    return f"{estimate.robustness} at factors from {least} to {most}: the verdict {breakdown}{doubt}"


def refuted_text(estimate: Estimate) -> str | None:
    """What the log itself says of those factors, where its slice test refutes them; None where it does not.

    The slice just below the cap is supported, and taken for unsupported it shows what such recommendations earn.
    """
    band = estimate.sensitivity or {}
    lower, upper = band.get("slice_gamma_ci_lower"), band.get("slice_gamma_ci_upper")
    if lower is None or upper is None:
        return None
    if lower <= (band.get("gamma_upper") or 1.0) and upper >= 1.0 / (band.get("gamma_lower") or 1.0):
        return None
    return (
        f"yet the least supported recommendations of this log earn {factor(lower)} to {factor(upper)} times what the"
        " others earn, beyond these factors"
    )


def fragile_sentence(labels: Sequence[str]) -> str:
    """What the mark `~` means, and which estimators have it: narrow tables leave its column out."""
    meaning = "the verdict does not survive the factors of the range, or the log refutes them"
    return f"~ fragile ({', '.join(labels)}): {meaning}"


def is_fragile(estimate: Estimate) -> bool:
    """Is the verdict positive or negative, and one that the sensitivity band does not share or cannot vouch for?"""
    return estimate.robustness == "fragile" and estimate.verdict in ("positive", "negative")
