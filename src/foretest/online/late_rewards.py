"""Late rewards of an online test: both arms are read at one time, and have one window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from foretest.background import in_background
from foretest.diagnostics.late_rewards import window_notes
from foretest.engines.latest_time import LatestTime
from foretest.engines.scan import scan
from foretest.online.arms import Arms
from foretest.online.checks import naming_log
from foretest.settings.late_rewards import needs_read_at, with_read_at
from foretest.settings.settings import Settings
from foretest.sources import Source, spool


class SettledLogs(NamedTuple):
    """The logs of both arms by name, which can be read again, and the settings with when they were read."""

    logs: Mapping[str, Source]
    settings: Settings


def settle_read_at(
    settings: Settings, logs: Mapping[str, Source], columns: Sequence[str], folder: str, threads: int | None
) -> SettledLogs:
    """The settings with the time at which the logs were read: as given, or the latest time of both. A stream is first
    written to the folder."""
    if settings.analysis.window is None or not needs_read_at(settings):
        return SettledLogs(logs, settings)
    read: dict[str, Source] = {}
    times = []
    for name, source in logs.items():
        with naming_log(name):
            read[name] = source if source.repeatable else _spooled(source, columns, Path(folder) / name)
            times += scan(read[name], [LatestTime(settings)], threads=threads)
    return SettledLogs(read, with_read_at(settings, max((time for time in times if time is not None), default=None)))


def _spooled(source: Source, columns: Sequence[str], folder: Path) -> Source:
    folder.mkdir()
    return in_background(lambda: spool(source, columns, str(folder)))


def arm_notes(arms: Arms, settings: Settings) -> list[str]:
    """What the window left out of each arm."""
    window, metrics = settings.analysis.window, settings.log.rewards
    if window is None:
        return []
    return [
        f"{name}: {note}"
        for name, arm in zip(("control", "treatment"), arms, strict=True)
        for note in ([] if arm.ages is None else window_notes(arm.ages, window, metrics))
    ]
