"""The Vega bundle: made once, kept whole or made anew, with its notices and without addresses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from foretest.report import bundle


@pytest.fixture(scope="module")
def made() -> str:
    return bundle.make_bundle()


@pytest.fixture
def kept(made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A cache folder of the test's own; how often the bundle was made."""
    calls: list[int] = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(bundle, "make_bundle", lambda: calls.append(1) or made)
    return calls


def test_it_is_made_once(kept: list[int], made: str, tmp_path: Path) -> None:
    assert bundle.vega_bundle() == made
    assert bundle.vega_bundle() == made
    assert len(kept) == 1
    [file] = (tmp_path / "foretest").iterdir()
    assert file.name.startswith("vega-")


def test_a_damaged_file_is_made_anew(kept: list[int], made: str, tmp_path: Path) -> None:
    bundle.vega_bundle()
    [file] = (tmp_path / "foretest").iterdir()
    for damage in (file.read_bytes()[:-7], b"", b"\xff\xfe", file.read_bytes().replace(b"vegaEmbed", b"evilEmbed", 1)):
        file.write_bytes(damage)
        assert bundle.vega_bundle() == made
    assert len(kept) == 5


def test_without_a_place_to_keep_it_the_page_is_still_made(
    kept: list[int], made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert bundle.vega_bundle() == made
    assert bundle.vega_bundle() == made
    assert len(kept) == 2


def test_a_user_without_a_home(kept: list[int], made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a number that has no name."""

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for variable in ("FORETEST_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert bundle.vega_bundle() == made
    assert len(kept) == 1


def test_it_holds_notices_and_no_address_but_names_of_formats(made: str) -> None:
    assert made.startswith("/*\nThe script below is Vega")
    for said in ("University of Washington", "BSD 3-Clause License", "Mike Bostock", "ISC License", "MIT License"):
        assert said in made
    assert set(re.findall(r"https?://([^/\"'`\s]+)", made)) == {"www.w3.org"}
    assert "</script" not in made
    assert "<!--" not in made
    assert "window.vegaEmbed=" in made
