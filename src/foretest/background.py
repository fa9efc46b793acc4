"""Long calls into other libraries, done where they do not deafen the caller."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Outcome = TypeVar("Outcome")

THREADS = "foretest"  # how the names of our threads begin


def in_background(work: Callable[[], Outcome]) -> Outcome:
    """What the work gives, done in a thread of its own. The caller waits, and hears Ctrl-C at once.

    >>> in_background(lambda: 6 * 7)
    42
    """
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(1, THREADS)
    try:
        return pool.submit(work).result()
    finally:
        pool.shutdown(wait=False)


def busy() -> bool:
    """Is a thread of ours at work, as after Ctrl-C?"""
    return any(thread.name.startswith(THREADS) for thread in threading.enumerate())
