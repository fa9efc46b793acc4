"""One scan of a log for all that its settings leave to be found in a few of its columns.

Each thing to be found is a `Search`, which declares the columns that it reads, what it counts of a batch, and whether
it has to wait for another. All that need not wait are found in one pass over the columns of all; only the rest takes
a second one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from foretest.engines.dispatch import fold
from foretest.engines.local import Progress
from foretest.errors import BadInput
from foretest.progress import Progress as Stages
from foretest.progress import stage
from foretest.records import dataclass
from foretest.settings.late_rewards import needs_read_at
from foretest.settings.settings import Settings
from foretest.sources import Chunk, Source

Answer = TypeVar("Answer")


class Counter(Protocol):
    """What a search counts. Those of several threads or tasks are merged, field by field (`displays/merging.py`)."""

    def add(self, rows: Any) -> None:
        """Take in what the search has read of a batch."""
        ...


@dataclass(frozen=True)
class Search(Generic[Answer]):
    """One thing that is found in a log before it is folded."""

    settings: Settings

    stage: ClassVar[str]  # what progress calls it

    @property
    def is_open(self) -> bool:
        """Do the settings leave it to be found?"""
        return True

    @property
    def waits(self) -> bool:
        """Does it depend on what another search finds? By default on which rows count, as a window leaves out those
        that are younger when the log was read."""
        return self.settings.analysis.window is not None and needs_read_at(self.settings)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        raise NotImplementedError

    def read(self, chunk: Chunk) -> Any:
        """What is counted of a batch; a fault is raised as a RowFault."""
        raise NotImplementedError

    def start(self) -> Counter:
        """The counts of no row."""
        raise NotImplementedError

    def answer(self, counts: Any, source: Source) -> Answer:
        """What the counts of the whole log say."""
        raise NotImplementedError

    def found(self, settings: Settings, answer: Answer) -> Settings:
        """The settings with the answer in them."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Columns:
    """Reads the columns of several searches."""

    searches: Sequence[Search[Any]]

    @property
    def settings(self) -> Settings:
        return self.searches[0].settings

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for search in self.searches for name in search.columns))

    def counted(self, chunk: Chunk) -> Chunk:
        """All rows: each search leaves out by itself what does not count."""
        return chunk

    def read(self, chunk: Chunk) -> list[Any]:
        return [search.read(chunk) for search in self.searches]


@dataclass
class _Counts:
    """What the searches count, by stage."""

    counters: dict[str, Counter]

    def add(self, rows: Sequence[Any]) -> None:
        for counter, read in zip(self.counters.values(), rows, strict=True):
            counter.add(read)

    def finish(self) -> dict[str, Counter]:
        return self.counters


def scan(
    source: Source, searches: Sequence[Search[Any]], *, threads: int | None = None, progress: Progress | None = None
) -> list[Any]:
    """The answers of some searches, by one pass over the log."""

    def start() -> _Counts:
        return _Counts({search.stage: search.start() for search in searches})

    try:
        counts = fold(source, _Columns(searches), start, threads=threads, progress=progress)
        return [search.answer(counts[search.stage], source) for search in searches]
    except BadInput:
        if len(searches) > 1:  # the fault that is told is the first of the first search, whatever others would meet
            for search in searches:
                scan(source, [search], threads=threads)
        raise


def with_answers(
    settings: Settings,
    source: Source,
    searches: Sequence[type[Search[Any]]],
    *,
    threads: int | None = None,
    progress: Stages | None = None,
) -> Settings:
    """The settings with all that the searches find which they leave open, by as few scans as these depend on."""
    left = list(searches)
    while to_do := open_searches(settings, left):
        now = [search for search in to_do if not search.waits] or to_do
        done = stage(progress, ", ".join(search.stage for search in now), source)
        for search, answer in zip(now, scan(source, now, threads=threads, progress=done), strict=True):
            settings = search.found(settings, answer)
        left = [kind for kind in left if kind not in map(type, now)]
    return settings


def open_searches(settings: Settings, searches: Sequence[type[Search[Any]]]) -> list[Search[Any]]:
    """Those whose answer the settings lack."""
    return [search for search in (kind(settings) for kind in searches) if search.is_open]
