"""Files of machine code, in a folder named by all that the code depends on: the sources of all kernels, the versions of
numba, llvmlite and Python, the processor.

That folder lies in `FORETEST_CACHE`, else beside the package, else in the user's cache folder. Where none can be
written, kernels are compiled in each process. A kernel is compiled by one process at a time: others wait for its file.

Code that a run compiles is for its own processor. Code that is made to be shipped (`foretest warm`, and the folder
`compiled` that comes with the package) is for a level of processors, which nearly all of them have.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from foretest.files import cache_folder, whole_file

_LAYOUT = 3
_SHIPPED = "compiled"  # the folder of this package with code that comes with it
LEVEL = "x86-64-v3"  # of processors: made since 2013 by Intel, since 2015 by AMD
LEVEL_FEATURES = (
    "avx avx2 bmi bmi2 cmov cx16 cx8 f16c fma fxsr lzcnt mmx movbe popcnt sahf sse sse2 sse3 sse4.1 sse4.2 ssse3 xsave"
)
_LONGEST = 60.0  # seconds that a kernel may take to compile; a process that claims it for longer has died


def file_name(name: str, types: tuple[Any, ...]) -> str:
    """The file of a kernel's code for some types."""
    return f"{name}-{digest(repr(types).encode())}.code"


def read(file: str) -> Iterator[bytes]:
    """The content of a file, wherever there is one."""
    for folder in (*folders(), *folders_of_level()):
        with suppress(OSError):
            yield (folder / file).read_bytes()


def write(file: str, content: bytes) -> None:
    """Write a file to the first folder that can be written."""
    for folder in folders():
        with suppress(OSError), whole_file(folder / file) as place:
            place.write_bytes(content)
            return


@contextmanager
def claimed(file: str) -> Iterator[bool]:
    """Claim a file that is to be written; where another process has, wait until it is there, or the claim is gone:
    false then."""
    mine, path = _claim(file)
    try:
        yield mine
    finally:
        if path is not None:
            with suppress(OSError):  # it may be another user's
                path.unlink()


class _Claim(NamedTuple):
    """Whether a file is for this process to write, and the file that tells others so."""

    mine: bool
    path: Path | None


def _claim(file: str) -> _Claim:
    for folder in folders():
        path = folder / f".{file}.claim"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return _Claim(False, None) if _waited_for(path) else _Claim(True, path)
        except OSError:
            continue
        with suppress(OSError), open(descriptor, "w", encoding="utf-8") as claim:
            claim.write(f"{os.getpid()} {_machine()}")
        return _Claim(True, path)
    return _Claim(True, None)  # nothing can be written, so that nobody waits for it


def _waited_for(claim: Path) -> bool:
    """Wait for another process; false where it has died."""
    latest = time.monotonic() + _LONGEST  # a file's time is by a clock that may be another, or be set back
    while time.monotonic() < latest:
        try:
            age = time.time() - claim.stat().st_mtime
        except OSError:
            return True
        if age > _LONGEST or _has_died(claim):
            return False
        time.sleep(0.02)
    return False


def _has_died(claim: Path) -> bool:
    """Was the process that wrote this killed, as far as this machine can tell?"""
    try:
        process, _, machine = claim.read_text(encoding="utf-8").partition(" ")
    except (OSError, ValueError):
        return False
    return bool(machine) and machine == _machine() and process.isdecimal() and not Path("/proc", process).exists()


def _machine() -> str:
    """The name of this machine, where processes can be looked up: code is kept on no other system."""
    return os.uname().nodename if sys.platform == "linux" else ""


def is_saved(name: str) -> bool:
    """Is there code of this kernel on disk, for any types?"""
    places = (*folders(), *folders_of_level())
    return any(True for folder in places for _ in folder.glob(f"{name}-*.code"))


def copy_all(target: Path) -> int:
    """Copy all code that is on disk to a folder of caches; how many files it has then."""
    folder = target / "kernels" / _key()
    folder.mkdir(parents=True, exist_ok=True)
    for place in (*folders(), *(place for place in folders_of_level() if place.name == _key())):
        for path in place.glob("*.code"):
            if not (folder / path.name).exists():
                shutil.copyfile(path, folder / path.name)
    return len(list(folder.glob("*.code")))


def folders() -> Iterator[Path]:
    """Where code of this process is looked for, and written to where it can be."""
    return _places(_key())


def folders_of_level() -> Iterator[Path]:
    """Where else code is looked for: that of the processor's level, last what comes with the package."""
    key = _level_key()
    if key is not None:
        yield from _places(key) if key != _key() else ()
        yield Path(__file__).parent / _SHIPPED / key


def _places(key: str) -> Iterator[Path]:
    chosen = "FORETEST_CACHE" in os.environ
    if not chosen:
        yield Path(__file__).parent / "__pycache__" / key
    with suppress(RuntimeError):  # a user without a home
        yield cache_folder() / "kernels" / key
    if chosen:
        yield Path(__file__).parent / "__pycache__" / key


def compile_for_level() -> None:
    """Have this process compile for the level of processors instead of its own, if it has not imported numba yet."""
    if _level_key() is not None and "numba" not in sys.modules:
        os.environ["NUMBA_CPU_NAME"] = LEVEL
        os.environ["NUMBA_CPU_FEATURES"] = _flags_of_level()
        _key.cache_clear()


def digest(content: bytes) -> str:
    """A short name for content."""
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def sources() -> str:
    """A name for the sources of all kernels."""
    return digest(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))))


@lru_cache(maxsize=1)
def _key() -> str:
    """A name for all that the machine code of this process depends on."""
    import llvmlite.binding as llvm

    features = os.environ.get("NUMBA_CPU_FEATURES") or llvm.get_host_cpu_features().flatten()
    return _key_of(os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name(), features)


@lru_cache(maxsize=1)
def _level_key() -> str | None:
    """That of code for the level of processors; None where this one is not of it, or another was asked for."""
    return _key_of(LEVEL, _flags_of_level()) if "NUMBA_CPU_NAME" not in os.environ and _has_level() else None


def _key_of(processor: str, features: str) -> str:
    import llvmlite.binding as llvm

    versions = [package_folder(name) / "_version.py" for name in ("numba", "llvmlite")]
    parts = (_LAYOUT, sys.implementation.cache_tag, llvm.get_process_triple(), processor, features)
    return f"{sources()}-{digest(b''.join([*(path.read_bytes() for path in versions), repr(parts).encode()]))}"


def _has_level() -> bool:
    """Can this processor run the level's code?"""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    return all(features.get(name) for name in LEVEL_FEATURES.split())


def _flags_of_level() -> str:
    return ",".join(f"+{name}" for name in LEVEL_FEATURES.split())


def package_folder(name: str) -> Path:
    """The folder of an installed package, which is not imported."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
