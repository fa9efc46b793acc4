"""What winsorising cut: the limit of each reward, and the share of all reward above it."""

from __future__ import annotations

from typing import Any

from foretest.aggregation.aggregates import Aggregates
from foretest.displays.batch import Floats
from foretest.formatting import format_number, percent
from foretest.settings.settings import Settings


def winsorised_rewards(aggregates: Aggregates) -> dict[str, Any] | None:
    """By reward, its limit, the quantile that it is, and the share of reward that was cut, for result.json."""
    return None if aggregates.cut is None else cut_rewards(aggregates.plan.settings, aggregates.cut)


def cut_rewards(settings: Settings, cut: Floats) -> dict[str, Any]:
    """The same from the sums of all rewards, and of what was cut."""
    report = {}
    for name, table in settings.metrics.items():
        if table.winsorising is None:
            continue
        before, above = cut[:, settings.log.rewards.index(name)].tolist()
        share = above / before if before else 0.0
        report[name] = {**table.winsorising._asdict(), "share_cut": share}
    return report


def winsorised_notes(aggregates: Aggregates) -> list[str]:
    """What was cut, in a sentence for each reward."""
    return [cut_sentence(name, entry) for name, entry in (winsorised_rewards(aggregates) or {}).items()]


def cut_sentence(name: str, entry: dict[str, Any]) -> str:
    """One reward's limit and what was cut."""
    share = percent(entry["share_cut"])
    return f"{limit_text(name, entry)}: {share} of all {name} in the log is above it and was cut off."


def limit_text(name: str, entry: dict[str, Any]) -> str:
    """Up to where a reward counts, and where that limit comes from."""
    quantile = entry["quantile"]
    origin = "" if quantile is None else f", the {quantile:g} quantile of the control's rewarded rows"
    return f"{name} counts up to {format_number(entry['limit'])}{origin}"
