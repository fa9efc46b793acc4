"""The sentences above the charts of a cap and of a bound on the weights."""

from __future__ import annotations

from math import log10
from typing import Any

from foretest.formatting import percent, round_percent, span
from foretest.report.charts.parts import power

LIMITS = ("", "_ci_lower", "_ci_upper")
POINT = "PointNCIS"  # where it runs, on a grid of caps of its own
_PATHS = {"CIS": "cis", "NCIS": "ncis"}


def level_text(cap_path: dict[str, Any]) -> str:
    """The confidence level of a cap path."""
    return round_percent(cap_path["confidence_level"])


def criteria_sentences(cap_path: dict[str, Any]) -> list[str]:
    """At which caps the noise and the bound on the bias are below the uplift sought."""
    sought = round_percent(cap_path["sought"])
    noise = f"Noise (half the {level_text(cap_path)} interval) is below {sought} {_where(cap_path, 'noise_band')}"
    if cap_path["satisfies_both"] is None:
        return [f"{noise}.", *(note[0].upper() + note[1:] for note in cap_path["notes"])]
    both = (
        "No cap keeps both below it."
        if not cap_path["satisfies_both"]
        else f"Both are {_where(cap_path, 'both_band')}."
    )
    return [f"{noise}, the bound on bias {_where(cap_path, 'bias_band')}.", both]


def _where(cap_path: dict[str, Any], field: str) -> str:
    band = cap_path[field]
    if band is None:
        return "at no cap"
    first, last = band[0] <= cap_path["caps"][0], band[1] >= cap_path["caps"][-1]
    if first and last:
        return "at every cap"
    if last:
        return f"at caps of {power(band[0])} and more"
    return f"at caps up to {power(band[1])}" if first else f"at caps from {power(band[0])} to {power(band[1])}"


def _nearest(cap_path: dict[str, Any]) -> int:
    """The index of the cap in the path that is nearest to the cap of the run."""
    return min(range(len(cap_path["caps"])), key=lambda k: abs(log10(cap_path["caps"][k] / cap_path["cap"])))


def cap_sentences(cap_path: dict[str, Any]) -> list[str]:
    """The noise and the bound on the bias at the cap of the run."""
    k = _nearest(cap_path)
    noise, bias, least = (cap_path[field][k] for field in ("noise", "bias_bound", "sensitivity"))
    if noise is None:
        return []
    at = f"At a cap of {power(cap_path['caps'][k])}: noise ±{percent(noise)}"
    if bias is None:
        return [f"{at}."]
    return [f"{at}, bias at most {percent(bias)}: the smallest uplift that CIS is sure to show is {percent(least)}."]


def estimate_sentences(cap_path: dict[str, Any]) -> list[str]:
    """The estimates at the cap of the run, and how far PointNCIS moves with the cap."""
    k = _nearest(cap_path)
    estimates = []
    for name, field in _PATHS.items():
        value, lower, upper = (cap_path[field][f"rel_effect_size{part}"][k] for part in LIMITS)
        if value is not None:
            estimates.append(f"{name} {percent(value, sign=True)} ({span(lower, upper)})")
    if not estimates:
        return ["There is no reward, so there is no uplift to show."]
    at = f"At a cap of {power(cap_path['caps'][k])}: {', '.join(estimates)}"
    path = cap_path.get("point-ncis")
    whose = "" if path is None else ", of the noise that the log shows"  # that of a run may be predicted, and larger
    sentences = [f"{at}; {level_text(cap_path)} intervals{whose}."]
    return sentences + ([] if path is None else [*_ends(path, POINT, "caps", "a cap"), *_remarks(path)])


def bound_sentences(cap_path: dict[str, Any]) -> list[str]:
    """The estimate at the bound of the run, and how far it moves with the bound."""
    path = cap_path["point-ncis-adaptive"]
    if all(value is None for value in path["rel_effect_size"]):
        return ["There is no reward, so there is no uplift to show."]
    k = path["bounds"].index(min(path["bounds"], key=lambda bound: abs(log10(bound / cap_path["weight_bound"]))))
    value, lower, upper = (path[f"rel_effect_size{part}"][k] for part in LIMITS)
    at = f"At a bound of {power(path['bounds'][k])}: {percent(value, sign=True)} ({span(lower, upper)};"
    choice = cap_path.get("bound_choice")
    return [
        f"{at} {level_text(cap_path)} interval, of the noise that the log shows).",
        *([] if choice is None else [f"{choice['reason']} Filled points are bounds that the log can carry."]),
        *_ends(path, "The estimate", "bounds", "a bound"),
        *_remarks(path),
    ]


def _ends(path: dict[str, Any], name: str, grid: str, a_place: str) -> list[str]:
    """How far an estimate moves from the first to the last value of its grid."""
    first, last = path["rel_effect_size"][0], path["rel_effect_size"][-1]
    if first is None or last is None:
        return []
    low, high = power(path[grid][0]), power(path[grid][-1])
    return [f"{name} goes from {percent(first, sign=True)} at {a_place} of {low} to {percent(last, sign=True)} at"
            f" {a_place} of {high}."]  # fmt: skip


def _remarks(path: dict[str, Any]) -> list[str]:
    return [f"{note[0].upper()}{note[1:]}." for note in path["notes"]]
