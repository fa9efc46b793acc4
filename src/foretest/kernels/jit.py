"""One decorator for every kernel: compiled once, cached on disk, GIL released."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile `function` with numba (no GIL, IEEE division) and cache it.

    numba looks for a writable folder beside the source, then in the user's cache folder. Where there is
    neither (a read-only executor) the kernel is compiled anew in each process.
    """
    return _compile(function, {})


def fast(function: F) -> F:
    """As `jit`, for loops whose inputs are known to be finite and whose sums may be reordered."""
    return _compile(function, {"fastmath": {"contract", "nsz", "nnan", "ninf", "arcp", "reassoc"}})


def _compile(function: F, options: dict[str, Any]) -> F:
    options = {"nogil": True, "error_model": "numpy", **options}
    try:
        return numba.njit(cache=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:
        return numba.njit(**options)(function)  # type: ignore[no-any-return]
