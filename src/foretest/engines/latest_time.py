"""The latest time of a log, which it was read at where the settings do not say when."""

from __future__ import annotations

from dataclasses import field
from typing import cast

from foretest.displays.merging import by, largest
from foretest.displays.times import Ints
from foretest.engines.scan import Search
from foretest.log.reward_ages import display_times
from foretest.records import dataclass
from foretest.settings.late_rewards import needs_read_at, with_read_at
from foretest.settings.settings import Settings
from foretest.sources import Chunk, Source


@dataclass
class _Latest:
    """The latest time so far; None before the first row."""

    time: int | None = field(default=None, metadata=by(largest))

    def add(self, times: Ints) -> None:
        if len(times):
            self.time = largest([self.time, int(times.max())])


@dataclass(frozen=True)
class LatestTime(Search[int | None]):
    """The latest time of a display, in microseconds; None where there is no row."""

    stage = "times"

    @property
    def is_open(self) -> bool:
        return needs_read_at(self.settings)

    @property
    def waits(self) -> bool:
        return False

    @property
    def columns(self) -> tuple[str, ...]:
        return (cast(str, self.settings.log.time),)

    def read(self, chunk: Chunk) -> Ints:
        return display_times(self.settings.log, chunk.batch)

    def start(self) -> _Latest:
        return _Latest()

    def answer(self, counts: _Latest, source: Source) -> int | None:
        return counts.time

    def found(self, settings: Settings, answer: int | None) -> Settings:
        return with_read_at(settings, answer)
