"""Decorators for kernels: compiled by numba for the types they are called with, GIL released, kept on disk.

Importing numba, and having it read what it compiled before, takes longer than a small test. So neither happens where
the machine code is on disk: a kernel is then loaded by `machine_code` alone. numba is imported when a kernel has to be
compiled, and compiles it as it always does; what runs is the same code either way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from types import FunctionType
from typing import Any

import numpy as np

from foretest.kernels import machine_code
from foretest.kernels.machine_code import Compiled

_C, _F, _ALIGNED, _WRITEABLE = 1, 2, 256, 1024  # bits of an array's flags
_OF_ARRAYS = _C | _F | _ALIGNED | _WRITEABLE
_STEP = {"no_cpython_wrapper": True}
_INNER = {**_STEP, "forceinline": True}
_INTEGERS = range(-(2**63), 2**63)


class Kernel:
    """A function on arrays and numbers, compiled for each combination of types that it is called with."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func = function
        self.options = options
        self.by_types: dict[tuple[Any, ...], Compiled] = {}  # what is ready to run
        update_wrapper(self, function)

    def __call__(self, *args: Any) -> Any:
        types = tuple([_type_of(value) for value in args])
        try:
            compiled = self.by_types[types]
        except KeyError:
            compiled = self._prepare(types, args)
        return compiled(*args)

    def _prepare(self, types: tuple[Any, ...], args: tuple[Any, ...]) -> Compiled:
        """The machine code for these types: from disk, or else compiled."""
        package, _, module = self.py_func.__module__.rpartition(".")
        if package == __package__:
            name = f"{module}.{self.py_func.__name__}"
            compiled = machine_code.prepared(name, types, lambda: self.numba, args)
        else:  # the files' folder is named by the sources of this package alone
            compiled = machine_code.compiled_by(self.numba, args)
        self.by_types[types] = compiled
        return compiled

    @cached_property
    def numba(self) -> Any:
        """numba's own object for this function: for other kernels that call it, and to compile it."""
        import numba

        function = self.py_func
        assert isinstance(function, FunctionType)
        seen = FunctionType(function.__code__, _names_for_numba(function), function.__name__)
        if machine_code.is_known_numba():
            return numba.njit(**self.options)(seen)
        try:
            return numba.njit(cache=True, **self.options)(seen)
        except RuntimeError:  # no folder can be written
            return numba.njit(**self.options)(seen)


class _Intrinsic:
    """A function that makes an instruction of the processor, for kernels to call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func = function

    @cached_property
    def numba(self) -> Any:
        from numba.extending import intrinsic as of_numba

        return of_numba(self.py_func)


def _names_for_numba(function: FunctionType) -> dict[str, Any]:
    """The global names that a function uses, with numba's own objects in place of kernels."""
    names = {"__name__": function.__module__}
    for name in function.__code__.co_names:
        if name in function.__globals__:
            value = function.__globals__[name]
            names[name] = value.numba if isinstance(value, Kernel | _Intrinsic) else value
    return names


def _type_of(value: Any) -> Any:
    """What decides how a kernel is compiled for a value: the array's type and layout, or the kind of number."""
    kind = type(value)
    if kind is np.ndarray:
        flags = value.flags.num & _OF_ARRAYS
        return value.dtype.str, value.ndim, flags & ~_F if flags & _C else flags
    if kind is float or kind is np.float64:
        return "float64"
    if kind is bool or kind is np.bool_:
        return "bool"
    if kind is int:
        return "int64" if value in _INTEGERS else "uint64"
    if isinstance(value, np.generic):
        return value.dtype.str
    raise TypeError(f"a kernel takes arrays and numbers, not {kind.__name__}")


def jit(function: Callable[..., Any]) -> Kernel:
    """Compile `function` with numba (no GIL, IEEE division), and keep the machine code on disk."""
    return _kernel(function, {})


def step(function: Callable[..., Any]) -> Kernel:
    """Compile a function that only kernels call: without a wrapper for Python it takes a fifth less time to compile.

    Python itself, tests included, cannot call it.
    """
    return _kernel(function, _STEP)


def inner(function: Callable[..., Any]) -> Kernel:
    """Compile a function that only kernels call, inlined: in a hot loop a call would take longer than the work."""
    return _kernel(function, _INNER)


def finite(function: Callable[..., Any]) -> Kernel:
    """Compile an inlined loop whose inputs are known to be finite; the order of operations stays."""
    return _kernel(function, {**_INNER, "fastmath": {"contract", "nsz", "nnan", "ninf"}})


def fast(function: Callable[..., Any]) -> Kernel:
    """Compile an inlined loop whose inputs are known to be finite and whose sums may be reordered."""
    return _kernel(function, {**_INNER, "fastmath": {"contract", "nsz", "nnan", "ninf", "arcp", "reassoc"}})


def reordered(function: Callable[..., Any]) -> Kernel:
    """Compile an inlined loop whose sums may be reordered; NaN and infinity are still handled."""
    return _kernel(function, {**_INNER, "fastmath": {"reassoc", "contract"}})


def intrinsic(function: Callable[..., Any]) -> _Intrinsic:
    """A function by which kernels make an instruction of the processor; see `numba.extending.intrinsic`."""
    return _Intrinsic(function)


def _kernel(function: Callable[..., Any], options: dict[str, Any]) -> Kernel:
    # no kernel is passed to C: without the wrapper for that, compilation is a tenth faster
    return Kernel(function, {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **options})
