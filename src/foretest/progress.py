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
        yield progress_lines(unit)
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


def progress_lines(unit: str = "rows", clock: Callable[[], float] = time.monotonic) -> Progress:
    """A callback that prints how far a stage is on stderr, at most once a minute and first after a minute."""
    done: dict[str, int] = {}
    last = clock()
    lock = threading.Lock()

    def advance(stage: str, total: int | None, rows: int) -> None:
        nonlocal last
        with lock:
            done[stage] = done.get(stage, 0) + rows
            now = clock()
            if now - last < SECONDS:
                return
            last = now
            amount = f"{done[stage]:,}" if total is None else f"{done[stage]:,} of {total:,}"
        with suppress(OSError, ValueError):  # nobody reads stderr any more: the work goes on
            now_compiling = f", {FIRST_TIME}" if is_compiling() else ""
            print(f"{stage}: {amount} {unit}{now_compiling}", file=sys.stderr, flush=True)

    return advance
