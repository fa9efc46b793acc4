"""The source of classes that are not Foretest's: their files, and what these import from beside them."""

from __future__ import annotations

import ast
import hashlib
import inspect
import sysconfig
import time
from collections.abc import Iterable, Iterator
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import NamedTuple

_BEGUN = time.time()  # what was imported before a file was changed is not what the file says


class _Module(NamedTuple):
    """A module that a class of a user's is in, or that is imported there."""

    name: str
    file: Path

    @property
    def package(self) -> list[str]:
        """The names of the package that its relative imports begin in."""
        names = self.name.split(".")
        return names if self.file.stem == "__init__" else names[:-1]


def digest_of_code(classes: Iterable[type]) -> str | None:
    """A digest of all source that the classes follow from; None where a class has none in a file, or a file was changed
    since this process began, so that another code may be in memory than on disk."""
    files: dict[Path, str] = {}  # with their places below the folder that their names begin in
    for cls in filter(is_own, classes):
        for base in filter(is_own, cls.__mro__):
            module = _module_of(base)
            if module is None:
                return None
            if base is cls:
                _collect(module, files)
            else:  # where it is beside, what it imports follows too
                files.setdefault(module.file, module.file.name)
    digest = hashlib.blake2b(digest_size=16)
    for file, name in sorted(files.items(), key=lambda entry: (entry[1], str(entry[0]))):
        status = file.stat()
        if max(status.st_mtime, status.st_ctime) >= _BEGUN:
            return None
        digest.update(f"{name} {status.st_size}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _module_of(cls: type) -> _Module | None:
    """The module that a class is defined in; None where it has no file, as in a notebook."""
    try:
        source = inspect.getsourcefile(cls)
    except (TypeError, OSError):
        return None
    return None if source is None or not Path(source).is_file() else _Module(cls.__module__, Path(source).resolve())


def is_own(cls: type) -> bool:
    """Is it a class that comes neither with Foretest nor with Python?"""
    return cls.__module__.partition(".")[0] not in ("foretest", "builtins", "abc", "typing")


def _collect(module: _Module, files: dict[Path, str]) -> None:
    """Add the file of a module, and of all that it imports from beside it, to `files`."""
    folder = module.file.parents[len(module.package)]
    installed = {Path(path).resolve() for path in sysconfig.get_paths().values()}
    waiting = [module]
    while waiting:
        one = waiting.pop()
        if one.file in files:
            continue
        files[one.file] = str(one.file.relative_to(folder))
        for name in _imported(one):
            # of an installed package what is beside it is other packages, which have versions
            if folder not in installed or name.partition(".")[0] == module.name.partition(".")[0]:
                waiting += _modules(folder, name)


def _imported(module: _Module) -> Iterator[str]:
    """The names of all that a module may import, also inside functions."""
    if module.file.suffix != ".py":
        return
    try:
        tree = ast.parse(module.file.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module.package[: len(module.package) - node.level + 1] if node.level else []
            name = ".".join([*package, *([node.module] if node.module else [])])
            yield from (f"{name}.{alias.name}" if name else alias.name for alias in node.names)


def _modules(folder: Path, name: str) -> Iterator[_Module]:
    """The modules that a dotted name stands for: its packages, and itself, where they are in the folder."""
    names = name.split(".")
    for end in range(1, len(names) + 1):
        path = folder.joinpath(*names[:end])
        for suffix in all_suffixes():
            for file in (path.with_name(f"{path.name}{suffix}"), path / f"__init__{suffix}"):
                if file.is_file():
                    yield _Module(".".join(names[:end]), file)
