"""Long calls into other libraries, made in threads so that the caller can still be interrupted."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

Outcome = TypeVar("Outcome")

THREAD_NAMES = "foretest"  # how the names of our threads begin


def in_background(work: Callable[[], Outcome]) -> Outcome:
    """The result of the work, which is done in another thread: the caller waits, and hears Ctrl-C at once.

    >>> in_background(lambda: 6 * 7)
    42
    """
    return side_by_side([work])[0]


def side_by_side(works: Sequence[Callable[[], Outcome]], threads: int | None = None) -> list[Outcome]:
    """The results of several works, done in parallel by as many threads as there are cores, or `threads`.

    >>> side_by_side([lambda: 6 * 7, lambda: 6 + 7])
    [42, 13]
    """
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(max(1, min(len(works), threads or os.cpu_count() or 1)), THREAD_NAMES)
    try:
        return list(pool.map(lambda work: work(), works))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def busy() -> bool:
    """Is a thread of ours still at work, as it may be after Ctrl-C?"""
    return any(thread.name.startswith(THREAD_NAMES) for thread in threading.enumerate())
