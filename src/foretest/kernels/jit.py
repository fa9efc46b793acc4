"""Decorators for kernels: compiled once, cached on disk, GIL released."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

Kernel = Callable[..., Any]

_STEP = {"no_cpython_wrapper": True}
_INNER = {**_STEP, "forceinline": True}


def jit(function: Kernel) -> Kernel:
    """Compile `function` with numba (no GIL, IEEE division) and cache it.

    numba looks for a writable folder beside the source, then for the user's cache folder. Where there is neither (a
    read-only executor), the kernel is compiled again in each process.
    """
    return _compile(function, {})


def step(function: Kernel) -> Kernel:
    """Compile a function that only kernels call: without a wrapper for Python it takes a fifth less time to compile.

    Python itself, tests included, cannot call it.
    """
    return _compile(function, _STEP)


def inner(function: Kernel) -> Kernel:
    """Compile a function that only kernels call, inlined: in a hot loop a call would take longer than the work."""
    return _compile(function, _INNER)


def finite(function: Kernel) -> Kernel:
    """Compile an inlined loop whose inputs are known to be finite; the order of operations stays."""
    return _compile(function, {**_INNER, "fastmath": {"contract", "nsz", "nnan", "ninf"}})


def fast(function: Kernel) -> Kernel:
    """Compile an inlined loop whose inputs are known to be finite and whose sums may be reordered."""
    return _compile(function, {**_INNER, "fastmath": {"contract", "nsz", "nnan", "ninf", "arcp", "reassoc"}})


def reordered(function: Kernel) -> Kernel:
    """Compile an inlined loop whose sums may be reordered; NaN and infinity are still handled."""
    return _compile(function, {**_INNER, "fastmath": {"reassoc", "contract"}})


def _compile(function: Kernel, options: dict[str, Any]) -> Kernel:
    # no kernel is passed to C: without the wrapper for that, compilation is a tenth faster
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **options}
    try:
        compiled: Kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        compiled = numba.njit(**options)(function)
    return compiled
