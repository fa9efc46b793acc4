"""The standard streams of a command."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from foretest.errors import BadInput
from foretest.formatting import visible_lines


class VisibleStream:
    """A stream that writes names as they are, but for characters that a terminal would obey. Rich, which has colours
    to write, finds the stream itself by the name that it gives to such wrappers."""

    def __init__(self, stream: Any) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        return int(self.rich_proxied_file.write(visible_lines(text)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextmanager
def visible_streams() -> Iterator[None]:
    """Have all that is printed pass through visible streams. Letters that the output's encoding does not have are
    written by their number; without a stderr nothing is said there."""
    before = sys.stdout, sys.stderr
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is not None:
        sys.stdout = VisibleStream(sys.stdout)
    sys.stderr = VisibleStream(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def refuse_closed_output() -> None:
    """Refuse to work where stdout is closed: the next file that is opened would take its number."""
    if sys.stdout is None:
        raise BadInput("standard output is closed, so that no answer can be shown. Send it to a file, or to /dev/null.")
