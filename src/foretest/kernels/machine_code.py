"""Kernels as machine code: kept after numba has compiled them, run in later processes without numba.

A file has the code for one combination of types, as the compiler wrote it (an object file), after a line of JSON that
names its entry. It is loaded by llvmlite, numba's own linker, and called through numba's own C modules, which are
found beside numba's Python modules and need none of them.
"""

from __future__ import annotations

import builtins
import ctypes
import json
import pickle
import sys
import threading
from collections.abc import Callable
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from foretest.compiling import compiling
from foretest.kernels import code_files
from foretest.kernels.code_files import digest, package_folder

Compiled = Callable[..., Any]

_KNOWN = ("0.68.",)  # versions of numba whose code is known to run so; with others, numba keeps files of its own
_PICKLED = pickle.dumps(np.ndarray, protocol=4)  # as numba writes it
_lock = threading.Lock()  # of the linker, and of the functions that it made
_linked_functions: dict[str, Compiled] = {}  # by the digest of their code


def prepared(name: str, types: tuple[Any, ...], numba_of: Callable[[], Any], args: tuple[Any, ...]) -> Compiled:
    """The kernel for these types: from disk, or compiled and written to disk where that can be."""
    file = code_files.file_name(name, types)
    compiled = _loaded(file)
    if compiled is not None:
        return compiled
    with code_files.claimed(file) as mine:
        compiled = None if mine else _loaded(file)  # another process has compiled it meanwhile
        return compiled or compiled_by(numba_of(), args, file)


def compiled_by(dispatcher: Any, args: tuple[Any, ...], file: str | None = None) -> Compiled:
    """A kernel that numba compiles for the types of its arguments, and its code written to a file."""
    signature = tuple(dispatcher.typeof_pyval(value) for value in args)
    with compiling():
        dispatcher.compile(signature)
    result = dispatcher.overloads[signature]
    compiled: Compiled = result.entry_point
    if file is not None and is_known_numba():
        code = _code_of(result)
        if code is not None:
            code_files.write(file, code)
    return compiled


def is_known_numba() -> bool:
    """Is the machine code of this version of numba known to run without it, on this system?"""
    import numba

    return sys.platform == "linux" and str(numba.__version__).startswith(_KNOWN)


def _loaded(file: str) -> Compiled | None:
    """The kernel in a file, if the file is there and whole."""
    for content in code_files.read(file):
        header, _, code = content.partition(b"\n")
        try:
            entry = _Entry(**json.loads(header))
        except (ValueError, TypeError):
            continue
        if entry.digest == digest(code):
            return _linked(entry, code)
    return None


class _Entry(NamedTuple):
    """How a kernel's code is entered."""

    name: str  # of the kernel
    wrapper: str  # the symbol that takes Python's arguments
    environment: str  # the symbol of the pointer to its constants
    constants: list[str]  # types of arrays that it returns
    digest: str  # of the code


def _code_of(result: Any) -> bytes | None:
    """What numba compiled, as in a file; None where numba has more to do when it is loaded."""
    described, environment = result.fndesc, result.environment
    _, kind, (code, _) = result.library.serialize_using_object_code()
    constants = environment.consts
    plain = all(isinstance(constant, np.dtype) for constant in constants) and (not constants or _PICKLED in code)
    if kind != "object" or not plain or result.reload_init or result.lifted or b".numba.unresolved" in code:
        return None
    symbol = result.target_context.get_env_name(described)
    types = [constant.str for constant in environment.consts]
    entry = _Entry(described.qualname, described.llvm_cpython_wrapper_name, symbol, types, digest(code))
    return b"\n".join([json.dumps(entry._asdict()).encode(), code])


def _linked(entry: _Entry, code: bytes) -> Compiled:
    """Code in memory, as a function of Python: one for all who ask for it. Two would share the pointer to the constants
    of one, which end with it."""
    with _lock:
        if entry.digest not in _linked_functions:
            _linked_functions[entry.digest] = _link(entry, code)
        return _linked_functions[entry.digest]


def _link(entry: _Entry, code: bytes) -> Compiled:
    linker = _linker()
    import llvmlite.binding as llvm

    linker.engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    linker.engine.finalize_object()
    address = linker.engine.get_function_address(entry.wrapper)
    pointer = linker.engine.get_global_value_address(entry.environment)
    environment = linker.functions.Environment({})
    environment.consts.extend(np.dtype(constant) for constant in entry.constants)
    (ctypes.c_void_p * 1).from_address(pointer)[0] = ctypes.c_void_p(id(environment))
    owner = ModuleType(__package__)
    compiled: Compiled = linker.functions.make_function(owner, entry.name, "", address, environment, (linker,))
    return compiled


class _Linker(NamedTuple):
    """What turns code into functions."""

    engine: Any
    functions: ModuleType  # numba's `_dynfunc`


@lru_cache(maxsize=1)
def _linker() -> _Linker:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    helpers, functions, memory = (_c_module(name) for name in ("_helperlib", "_dynfunc", "core.runtime._nrt_python"))
    symbols = {"_Py_NoneStruct": id(None)}
    symbols |= {f"numba_{name}": at for module in (helpers, functions) for name, at in module.c_helpers.items()}
    symbols |= {name if name.startswith("_") else f"NRT_{name}": at for name, at in memory.c_helpers.items()}
    errors = (
        value for value in vars(builtins).values() if isinstance(value, type) and issubclass(value, BaseException)
    )
    symbols |= {f"PyExc_{error.__name__}": id(error) for error in errors}
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    symbols["numba_unpickle"] = _unpickle_symbol(engine, symbols["numba_unpickle"])
    for name, at in symbols.items():
        llvm.add_symbol(name, at)
    return _Linker(engine, functions)


def _unpickle_symbol(engine: Any, of_numba: int) -> int:
    """The address of a function that kernels call for the class of the arrays that they return.

    It stands in their code as a pickle, which numba reads in Python, after importing itself. Here that one pickle is
    known by its bytes, and no Python runs, which an interrupt could end; all else, such as an error, is left to numba.
    """
    import llvmlite.binding as llvm

    known = "".join(f"\\{byte:02x}" for byte in _PICKLED)
    size, array = len(_PICKLED), id(np.ndarray)
    module = llvm.parse_assembly(f"""
        @known = private constant [{size} x i8] c"{known}"
        declare i32 @memcmp(ptr, ptr, i64)
        declare void @Py_IncRef(ptr)
        define ptr @foretest_unpickle(ptr %data, i32 %size, ptr %digest) {{
            %is_as_long = icmp eq i32 %size, {size}
            br i1 %is_as_long, label %compare, label %other
        compare:
            %order = call i32 @memcmp(ptr %data, ptr @known, i64 {size})
            %is_known = icmp eq i32 %order, 0
            br i1 %is_known, label %array, label %other
        array:
            call void @Py_IncRef(ptr inttoptr (i64 {array} to ptr))
            ret ptr inttoptr (i64 {array} to ptr)
        other:
            %read = call ptr inttoptr (i64 {of_numba} to ptr)(ptr %data, i32 %size, ptr %digest)
            ret ptr %read
        }}""")
    engine.add_module(module)
    engine.finalize_object()
    address: int = engine.get_function_address("foretest_unpickle")
    return address


def _c_module(name: str) -> ModuleType:
    """A C module of numba, without the package around it."""
    full = f"numba.{name}"
    if full in sys.modules:
        return sys.modules[full]
    base = package_folder("numba").joinpath(*name.split("."))
    path = next(path for suffix in EXTENSION_SUFFIXES if (path := Path(f"{base}{suffix}")).exists())
    spec = spec_from_file_location(full, path, loader=ExtensionFileLoader(full, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
