"""Progress on stderr: rows (or tests), rate and time left, only on a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

Progress = Callable[[str, int | None, int], None]  # stage, number of rows if known, rows done since the last call


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
def progress_bar(unit: str = "rows") -> Iterator[Progress | None]:
    """A callback for long work that draws a bar; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            digits = ",.0f" if unit == "rows" else ",.2f"
            return Text(f"{task.speed:{digits}} {unit}/s" if task.speed else "")

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
