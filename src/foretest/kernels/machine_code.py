"""Machine code of kernels on disk: written after numba has compiled a kernel, run in later processes without numba.

A file has the code for one combination of types, as the compiler wrote it (an object file), after a line of JSON that
names its entry. It is loaded by llvmlite, numba's own linker, and called through numba's own C modules, which are
found beside numba's Python modules and need none of them.

Files lie in a folder named by all that the code depends on: the sources of all kernels, the versions of numba,
llvmlite and Python, the processor. That folder lies in `FORETEST_CACHE`, else beside the package, else in the user's
cache folder. Where none can be written, kernels are compiled in each process.
"""

from __future__ import annotations

import builtins
import ctypes
import hashlib
import json
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from foretest.files import cache_folder, whole_file

Compiled = Callable[..., Any]

_KNOWN = ("0.68.",)  # versions of numba whose code is known to run so; with others, numba keeps files of its own
_PICKLED = pickle.dumps(np.ndarray, protocol=4)  # as numba writes it
_LAYOUT = 1
_lock = threading.Lock()


# -- files ------------------------------------------------------------------------------------------------------------


def load(name: str, types: tuple[Any, ...]) -> Compiled | None:
    """The kernel for these types, if its code is on disk."""
    file = _file_name(name, types)
    for folder in folders():
        try:
            header, _, code = (folder / file).read_bytes().partition(b"\n")
            entry = _Entry(**json.loads(header))
        except (OSError, ValueError, TypeError):
            continue
        if entry.digest == _digest(code):
            return _linked(entry, code)
    return None


def compile_and_save(name: str | None, types: tuple[Any, ...], dispatcher: Any, args: tuple[Any, ...]) -> Compiled:
    """Compile a kernel for the types of its arguments, and write its code to disk where that can be, if it has a
    name there."""
    signature = tuple(dispatcher.typeof_pyval(value) for value in args)
    dispatcher.compile(signature)
    result = dispatcher.overloads[signature]
    compiled: Compiled = result.entry_point
    entry = _entry_of(result) if name and is_known_numba() else None
    if name and entry is not None:
        _save(_file_name(name, types), *entry)
    return compiled


def is_known_numba() -> bool:
    """Is the machine code of this version of numba known to run without it?"""
    import numba

    return str(numba.__version__).startswith(_KNOWN)


def is_saved(name: str) -> bool:
    """Is there code of this kernel on disk, for any types?"""
    return any(True for folder in folders() for _ in folder.glob(f"{name}-*.code"))


def folders() -> Iterator[Path]:
    """Where code is looked for, and written to where it can be."""
    key = _key()
    chosen = "FORETEST_CACHE" in os.environ
    if not chosen:
        yield Path(__file__).parent / "__pycache__" / key
    with suppress(RuntimeError):  # a user without a home
        yield cache_folder() / "kernels" / key
    if chosen:
        yield Path(__file__).parent / "__pycache__" / key


def _save(file: str, entry: _Entry, code: bytes) -> None:
    content = json.dumps(entry._asdict()).encode() + b"\n" + code
    for folder in folders():
        with suppress(OSError), whole_file(folder / file) as place:
            place.write_bytes(content)
            return


def _file_name(name: str, types: tuple[Any, ...]) -> str:
    return f"{name}-{_digest(repr(types).encode())}.code"


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=12).hexdigest()


@lru_cache(maxsize=1)
def _key() -> str:
    """A name for all that machine code depends on."""
    import llvmlite.binding as llvm

    sources = sorted(Path(__file__).parent.glob("*.py"))
    versions = [_package(name) / "_version.py" for name in ("numba", "llvmlite")]
    content = hashlib.blake2b(digest_size=12)
    for path in [*sources, *versions]:
        content.update(path.read_bytes())
    features = os.environ.get("NUMBA_CPU_FEATURES") or llvm.get_host_cpu_features().flatten()
    processor = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    content.update(
        f"{_LAYOUT} {sys.implementation.cache_tag} {llvm.get_process_triple()} {processor} {features}".encode()
    )
    return content.hexdigest()


def _package(name: str) -> Path:
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


# -- code -------------------------------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    """How a kernel's code is entered."""

    wrapper: str  # the symbol that takes Python's arguments
    environment: str  # the symbol of the pointer to its constants
    constants: list[str]  # types of arrays that it returns
    digest: str  # of the code


def _entry_of(result: Any) -> tuple[_Entry, bytes] | None:
    """The entry and the code of what numba compiled; None where numba has more to do when it is loaded."""
    described, environment = result.fndesc, result.environment
    _, kind, (code, _) = result.library.serialize_using_object_code()
    constants = environment.consts
    plain = all(isinstance(constant, np.dtype) for constant in constants) and (not constants or _PICKLED in code)
    if kind != "object" or not plain or result.reload_init or result.lifted or b".numba.unresolved" in code:
        return None
    symbol = result.target_context.get_env_name(described)
    types = [constant.str for constant in environment.consts]
    return _Entry(described.llvm_cpython_wrapper_name, symbol, types, _digest(code)), code


def _linked(entry: _Entry, code: bytes) -> Compiled:
    """Code in memory, as a function of Python."""
    linker = _linker()
    import llvmlite.binding as llvm

    with _lock:
        linker.engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        linker.engine.finalize_object()
        address = linker.engine.get_function_address(entry.wrapper)
        pointer = linker.engine.get_global_value_address(entry.environment)
    environment = linker.functions.Environment({})
    environment.consts.extend(np.dtype(constant) for constant in entry.constants)
    (ctypes.c_void_p * 1).from_address(pointer)[0] = ctypes.c_void_p(id(environment))
    owner, name = ModuleType("foretest.kernels"), entry.wrapper
    compiled: Compiled = linker.functions.make_function(owner, name, "", address, environment, (linker, environment))
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
    base = _package("numba").joinpath(*name.split("."))
    path = next(path for suffix in EXTENSION_SUFFIXES if (path := Path(f"{base}{suffix}")).exists())
    spec = spec_from_file_location(full, path, loader=ExtensionFileLoader(full, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
