"""The folder for what is made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from foretest import files


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
