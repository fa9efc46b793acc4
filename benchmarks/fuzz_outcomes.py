"""How an input ended: well, refused in one sentence, or in trouble."""

from __future__ import annotations

import faulthandler
import signal
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

PACKAGE = "foretest"
LONGEST_SENTENCE = 12_000  # characters: values are shortened, but a sentence may list all columns


class Trouble(NamedTuple):
    """What must not happen; two troubles with one signature have one cause."""

    signature: str
    detail: str

    @classmethod
    def of(cls, error: BaseException) -> Trouble:
        """An exception, by its type and the last line of the package that it passed."""
        frames = traceback.extract_tb(error.__traceback__)
        inside = [f for f in frames if f"/{PACKAGE}/" in f.filename] or list(frames)
        place = f"{Path(inside[-1].filename).name}:{inside[-1].lineno}" if inside else "nowhere"
        text = "".join(traceback.format_exception(error)[-12:])
        return cls(f"{type(error).__name__} at {place}", text[-3000:])


class Outcome(NamedTuple):
    """Of one input."""

    refused: bool
    trouble: Trouble | None = None


class Hang(BaseException):
    """An input that takes longer than it may."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise Hang after some seconds; end the process, with the places of all threads, if even that is not heard."""

    def stop(*_: Any) -> None:
        raise Hang(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    faulthandler.dump_traceback_later(10 * seconds, exit=True)
    try:
        yield
    finally:
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


@contextmanager
def seen_warnings() -> Iterator[list[str]]:
    """The warnings that are shown meanwhile, in any thread."""
    seen: list[str] = []

    def show(message: Any, category: Any, filename: str, lineno: int, *_: Any) -> None:
        seen.append(f"{category.__name__} at {Path(filename).name}:{lineno}: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.showwarning = show
        yield seen


def sentence_trouble(sentence: str) -> Trouble | None:
    """A refusal is one line that says something."""
    if not sentence.strip() or len(sentence.strip()) < 10:
        return Trouble("an empty sentence", repr(sentence))
    if len(sentence) > LONGEST_SENTENCE:
        return Trouble(f"a sentence of more than {LONGEST_SENTENCE:,} characters", sentence[:300])
    return None
