"""Is a kernel being compiled? Progress says so: nothing else happens meanwhile, and it takes long the first time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

FIRST_TIME = "compiling (first time only)"

_lock = threading.Lock()
_at_work: list[int] = []  # threads that compile


@contextmanager
def compiling() -> Iterator[None]:
    """What is done within compiles a kernel."""
    thread = threading.get_ident()
    with _lock:
        _at_work.append(thread)
    try:
        yield
    finally:
        with _lock:
            _at_work.remove(thread)


def is_compiling() -> bool:
    """Does any thread compile a kernel just now?

    >>> with compiling():
    ...     is_compiling()
    True
    >>> is_compiling()
    False
    """
    return bool(_at_work)
