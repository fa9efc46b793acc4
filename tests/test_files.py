"""Files that are complete or not there at all, and their modes; the folder for what is made once."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from foretest import files
from foretest.errors import BadInput


def test_the_folder_of_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORETEST_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert files.cache_folder() == Path("/somewhere/foretest")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ada"))
    for platform, place in (("linux", "/home/ada/.cache/foretest"), ("darwin", "/home/ada/Library/Caches/foretest")):
        monkeypatch.setattr(files.sys, "platform", platform)
        assert files.cache_folder() == Path(place)
    monkeypatch.setenv("FORETEST_CACHE", "/chosen")
    assert files.cache_folder() == Path("/chosen")
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("FORETEST_CACHE", "~/caches")
    assert files.cache_folder() == Path("/home/ada/caches")


@pytest.fixture
def umask() -> Iterator[None]:
    """The mask of somebody who shows nothing to anybody."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_a_new_file_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    files.write_whole(tmp_path / "new" / "a.txt", "a")
    assert (mode(tmp_path / "new" / "a.txt"), mode(tmp_path / "new")) == (0o600, 0o700)
    os.umask(0o027)
    files.write_whole(tmp_path / "b.txt", "b")
    assert mode(tmp_path / "b.txt") == 0o640


@pytest.mark.parametrize("given", [0o600, 0o664, 0o444, 0o640])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path, given: int) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(given)
    with files.whole_file(path) as place:
        assert mode(place) & ~given & 0o077 == 0  # never open to more people
        place.write_text("new")
    assert (path.read_text(), mode(path)) == ("new", given)


@pytest.mark.parametrize("last", [True, False])
def test_all_files_or_none(tmp_path: Path, last: bool) -> None:
    """A folder stands where one is to be: the other one is as it was, whichever is renamed first."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.txt").write_text("old")
    paths = [tmp_path / "new.txt", tmp_path / "a.txt"]
    paths.insert(2 if last else 0, tmp_path / "folder")
    with pytest.raises(OSError, match="Is a directory") as error:
        files.write_all(dict.fromkeys(paths, b"new"))
    assert str(error.value.filename) == str(tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "folder"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_all_files_or_none_without_second_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that has no links, and an error in the last rename."""

    def without(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    replace = os.replace

    def fails_at(old: Path, new: Path) -> None:
        if new.name == "b.txt":
            raise OSError(28, "No space left on device")
        replace(old, new)

    monkeypatch.setattr(os, "link", without)
    monkeypatch.setattr(os, "replace", fails_at)
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(OSError, match="No space left") as error:
        files.write_all({tmp_path / "a.txt": b"new", tmp_path / "b.txt": b"new"})
    assert error.value.filename == str(tmp_path / "b.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"
    files.write_all({tmp_path / "a.txt": b"new", tmp_path / "c.txt": b"new"})
    assert (tmp_path / "a.txt").read_text() == "new"


def test_a_name_that_is_too_long_is_one_sentence(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 5000)
    files.refuse_device(long)
    with pytest.raises(BadInput, match="cannot be read as a settings file"):
        files.read_text(long, "settings file", "expected TOML")
