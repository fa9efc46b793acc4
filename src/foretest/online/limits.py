"""Rewards of an online test that are cut: at one limit in both arms, a quantile of the control's log or as given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foretest.background import in_background
from foretest.diagnostics.winsorised import cut_rewards, limit_text
from foretest.engines.reward_quantiles import RewardLimits
from foretest.engines.scan import scan
from foretest.formatting import percent
from foretest.online.arms import Arms
from foretest.online.checks import naming_log
from foretest.online.late_rewards import SettledLogs
from foretest.settings.settings import Settings
from foretest.settings.winsorising import limits_to_find, with_limits
from foretest.sources import spool


def settle_limits(settled: SettledLogs, columns: Sequence[str], folder: str, threads: int | None) -> SettledLogs:
    """The settings with the limits that the control's log has; a stream is first written to the folder."""
    if not limits_to_find(settled.settings):
        return settled
    logs = dict(settled.logs)
    with naming_log("control"):
        source = logs["control"]
        if not source.repeatable:
            place = Path(folder) / "control-rewards"
            place.mkdir()
            logs["control"] = in_background(lambda: spool(source, columns, str(place)))
        [limits] = scan(logs["control"], [RewardLimits(settled.settings)], threads=threads)
    return SettledLogs(logs, with_limits(settled.settings, limits))


def cut_by_arm(arms: Arms, settings: Settings) -> dict[str, Any] | None:
    """By reward, its limit and the share that was cut off in the control, and in the treatment."""
    control, treatment = (
        None if arm.cut is None else cut_rewards(with_limits(settings, arm.limits), arm.cut) for arm in arms
    )
    if control is None or treatment is None:
        return None
    return {name: {**entry, "share_cut_treatment": treatment[name]["share_cut"]} for name, entry in control.items()}


def cut_notes(arms: Arms, settings: Settings) -> list[str]:
    """What was cut off in each arm, in a sentence for each reward."""
    notes = []
    for name, entry in (cut_by_arm(arms, settings) or {}).items():
        control, treatment = (percent(entry[key]) for key in ("share_cut", "share_cut_treatment"))
        notes.append(
            f"{limit_text(name, entry)}: {control} of the control's {name} and {treatment} of the treatment's was cut"
            " off."
        )
    return notes
