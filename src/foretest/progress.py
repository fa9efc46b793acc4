"""Progress on stderr: a bar with rate and time left on a terminal, elsewhere one line a minute."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from foretest.compiling import FIRST_TIME, is_compiling

Progress = Callable[[str, int | None, int], None]  # stage, number of rows if known, rows done since the last call


SECONDS = 60.0  # between two lines where there is no terminal, and before the first
_PATIENCE = 2.0  # seconds between two looks at the clock


class Counted(Protocol):
    """Anything with a number of rows that may be known beforehand, such as a source of a log."""

    @property
    def rows(self) -> int | None: ...


def stage(progress: Progress | None, name: str, source: Counted) -> Callable[[int], None] | None:
    """The progress of one stage: a function to call with the number of rows of each batch."""
    if progress is None:
        return None
    progress(name, source.rows, 0)
    return lambda rows: progress(name, source.rows, rows)


@contextmanager
def progress_bar(unit: str = "rows", *, quiet: bool = False) -> Iterator[Progress | None]:
    """A callback for long work: it draws a bar on a terminal, prints a line a minute elsewhere; None if `quiet`."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        with ProgressLines(unit).every_minute() as lines:
            yield lines
        return
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            digits = ",.0f" if unit == "rows" else ",.2f"
            if task.speed:
                return Text(f"{task.speed:{digits}} {unit}/s")
            return Text(FIRST_TIME if is_compiling() and not task.finished else "")

    with Bars(
        TextColumn("{task.description:12}"), BarColumn(24), TextColumn(f"{{task.completed:,.0f}} {unit}"), Rate(),
        TimeRemainingColumn(compact=True), console=Console(stderr=True), transient=True,
    ) as bars:  # fmt: skip
        tasks: dict[str, object] = {}
        lock = threading.Lock()

        def advance(stage: str, total: int | None, rows: int) -> None:
            with lock:
                if stage not in tasks:
                    tasks[stage] = bars.add_task(stage, total=total)
                bars.advance(tasks[stage], rows)  # type: ignore[arg-type]

        yield advance


class ProgressLines:
    """A callback that prints how far a stage is on stderr, at most once a minute and first after a minute."""

    def __init__(self, unit: str = "rows", clock: Callable[[], float] = time.monotonic) -> None:
        self._unit, self._clock = unit, clock
        self._done: dict[str, int] = {}
        self._now: tuple[str, int | None] | None = None  # the stage that was heard of last, and its total
        self._last = clock()
        self._lock = threading.Lock()

    def __call__(self, stage: str, total: int | None, rows: int) -> None:
        with self._lock:
            self._done[stage] = self._done.get(stage, 0) + rows
            self._now = stage, total
        self._print("")

    def remind(self) -> None:
        """Print the line where nobody calls: all rows of a stage may be read, and not be worked on yet."""
        self._print(", and at work on them")

    def _print(self, of_all: str) -> None:
        """Print the line, if a minute is over since the last; `of_all` ends it where a stage has all its rows."""
        with self._lock:
            now = self._clock()
            if now - self._last < SECONDS:
                return
            self._last = now
            text = self._text(of_all)
        with suppress(OSError, ValueError):  # nobody reads stderr any more: the work goes on
            print(f"{text}{f', {FIRST_TIME}' if is_compiling() else ''}", file=sys.stderr, flush=True)

    def _text(self, of_all: str) -> str:
        if self._now is None:
            return "still at work"
        stage, total = self._now
        done = self._done[stage]
        if total is None:
            return f"{stage}: {done:,} {self._unit}"
        text = f"{stage}: {done:,} of {total:,} {self._unit}"
        return text if done < total else f"{text}{of_all}"

    @contextmanager
    def every_minute(self) -> Iterator[ProgressLines]:
        """While this lasts, lines come also where nobody calls, as in a long analysis after the last row."""
        over = threading.Event()

        def wait() -> None:
            while not over.wait(_PATIENCE):
                self.remind()

        waiting = threading.Thread(target=wait, name="progress", daemon=True)
        waiting.start()
        try:
            yield self
        finally:
            over.set()
            waiting.join()
