"""Progress where there is no terminal: one line a minute on stderr, or none."""

from __future__ import annotations

import io
import sys
import threading
import time
from types import SimpleNamespace

import pytest

import foretest.progress
from foretest.compiling import compiling, is_compiling
from foretest.kernels.machine_code import compiled_by
from foretest.progress import ProgressLines, progress_bar


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_a_line_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    """200 batches of 16,000 rows, one a second: lines at 60, 120 and 180 seconds."""
    clock = Clock()
    advance = ProgressLines("rows", clock)
    advance("read", 20_000_000, 0)
    for _ in range(200):
        clock.seconds += 1.0
        advance("read", 20_000_000, 16_000)
    captured = capsys.readouterr()
    assert captured.err.splitlines() == [
        "read: 960,000 of 20,000,000 rows",
        "read: 1,920,000 of 20,000,000 rows",
        "read: 2,880,000 of 20,000,000 rows",
    ]
    assert captured.out == ""


def test_a_line_comes_also_where_nobody_calls(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the last row a long analysis calls nobody."""
    monkeypatch.setattr(foretest.progress, "_PATIENCE", 0.01)
    clock = Clock()
    lines = ProgressLines("rows", clock)
    with lines.every_minute():
        clock.seconds += 60.0
        deadline = time.monotonic() + 10.0
        while time.monotonic() < deadline and capsys.readouterr().err != "still at work\n":
            time.sleep(0.01)
        lines("read", 100, 100)
        clock.seconds += 60.0
        seen = ""
        while time.monotonic() < deadline and not seen:
            seen = capsys.readouterr().err
            time.sleep(0.01)
    assert seen == "read: 100 of 100 rows, and at work on them\n"
    assert threading.active_count() == sum(thread.name != "progress" for thread in threading.enumerate())


def test_a_kernel_that_is_being_compiled_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    advance = ProgressLines("rows", clock)
    clock.seconds += 61.0
    with compiling():
        advance("read", 100, 0)
    clock.seconds += 61.0
    advance("read", 100, 50)
    assert capsys.readouterr().err == "read: 0 of 100 rows, compiling (first time only)\nread: 50 of 100 rows\n"


def test_compiling_a_kernel_is_noticed() -> None:
    class Dispatcher:
        """As numba's, but that it only notes whether compilation is announced."""

        def __init__(self) -> None:
            self.seen: list[bool] = []
            self.overloads = {("number",): SimpleNamespace(entry_point=abs)}

        def typeof_pyval(self, value: object) -> str:
            return "number"

        def compile(self, signature: tuple[str, ...]) -> None:
            self.seen.append(is_compiling())

    dispatcher = Dispatcher()
    assert compiled_by(dispatcher, (1.0,)) is abs
    assert dispatcher.seen == [True]
    assert not is_compiling()


def test_the_bar_says_that_it_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with progress_bar() as advance, compiling():
        assert advance is not None
        advance("read", 100, 0)
        time.sleep(0.3)
    assert "compiling (first time only)" in terminal.getvalue()


def test_less_than_a_minute_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    advance = ProgressLines("rows", clock)
    clock.seconds += 59.9
    advance("read", 100, 50)
    assert capsys.readouterr().err == ""


def test_stages_are_counted_apart_and_share_the_minute(capsys: pytest.CaptureFixture[str]) -> None:
    """A stage whose rows are not known beforehand has no total."""
    clock = Clock()
    advance = ProgressLines("tests", clock)
    advance("cap", 7, 3)
    clock.seconds += 61.0
    advance("read", None, 1200)
    advance("cap", 7, 1)  # the line of this minute has been printed
    clock.seconds += 60.0
    advance("cap", 7, 1)
    assert capsys.readouterr().err == "read: 1,200 tests\ncap: 5 of 7 tests\n"


def test_a_closed_stderr_does_not_stop_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    advance = ProgressLines("rows", clock)
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    clock.seconds += 60.0
    advance("read", 100, 50)


@pytest.mark.parametrize("terminal", [False, True])
def test_quiet(terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with progress_bar(quiet=True) as progress:
        assert progress is None
    with progress_bar() as progress:
        assert progress is not None
        progress("read", 100, 50)
    if not terminal:
        assert capsys.readouterr().err == ""
