"""How the process of a command asks the system for memory."""

from __future__ import annotations

import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # numbers of glibc's malloc.h
_LARGEST = 1 << 25  # bytes of an array that is taken from memory that was freed
_FREE = 1 << 28


def reuse_freed_memory() -> None:
    """Have arrays of the next batch take the memory of the last one's, in every thread.

    glibc gives large arrays back to the system when they are freed, and has a heap for each thread: of every batch the
    system would clear all pages anew, a twentieth of a long run. Elsewhere than on Linux nothing is done.
    """
    if sys.platform != "linux":
        return
    import ctypes

    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    for option, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, _LARGEST), (_TRIM_THRESHOLD, _FREE)):
        set_option(option, value)
