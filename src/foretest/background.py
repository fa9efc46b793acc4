"""Long calls into other libraries, done where they do not deafen the caller."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

Outcome = TypeVar("Outcome")

THREADS = "foretest"  # how the names of our threads begin


def in_background(work: Callable[[], Outcome]) -> Outcome:
    """What the work gives, done in a thread of its own. The caller waits, and hears Ctrl-C at once.

    >>> in_background(lambda: 6 * 7)
    42
    """
    return side_by_side([work])[0]


def side_by_side(works: Sequence[Callable[[], Outcome]], threads: int | None = None) -> list[Outcome]:
    """What each of them gives, done in as many threads as there are cores, or `threads`.

    >>> side_by_side([lambda: 6 * 7, lambda: 6 + 7])
    [42, 13]
    """
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(max(1, min(len(works), threads or os.cpu_count() or 1)), THREADS)
    try:
        return list(pool.map(lambda work: work(), works))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def busy() -> bool:
    """Is a thread of ours at work, as after Ctrl-C?"""
    return any(thread.name.startswith(THREADS) for thread in threading.enumerate())
