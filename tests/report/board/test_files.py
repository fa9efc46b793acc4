"""Which files of a folder are results, by which names, and how a page links to their reports."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urljoin, urlparse

import pytest

from foretest.errors import BadInput
from foretest.formatting import visible, visible_path
from foretest.report.board.files import find_results, relative_link
from foretest.stores import RemotePath
from tests.report.board.results import put

HOSTILE = [
    "<script>alert(1)</script>", "\"quotes' & more", "javascript:alert(1)", "a?b#c%20d", "x" * 200, "..", " ",
    "\u202etxt.exe", "\u2067right to left\u2069", "line\nbreak\x1b[31m", "\N{HEBREW LETTER ALEF}", "caf\udce9",
]  # fmt: skip


def names(folder: Path) -> list[tuple[str, str, bool]]:
    return [(file.name, file.path.name, file.report is not None) for file in find_results(folder).files]


def test_results_are_found_at_any_depth_by_their_file_names(tmp_path: Path) -> None:
    put(tmp_path, "{}")
    put(tmp_path / "b" / "c", "{}", report=False)
    put(tmp_path / "a", "{}", name="agreement.json")
    put(tmp_path / "a", "{}", name="plan.json")
    put(tmp_path / ".git" / "a", "{}")
    (tmp_path / "d" / "result.json").mkdir(parents=True)
    os.mkfifo(tmp_path / "d" / "agreement.json")
    assert names(tmp_path) == [
        (".", "result.json", True), ("a", "agreement.json", True), ("b/c", "result.json", False),
    ]  # fmt: skip


def test_links_are_followed_once_and_loops_end(tmp_path: Path) -> None:
    put(tmp_path / "board" / "z real", "{}")
    put(tmp_path / "elsewhere" / "deep", "{}")
    (tmp_path / "board" / "a latest").symlink_to("z real")  # the folder has its own name
    (tmp_path / "board" / "z real" / "back").symlink_to(tmp_path / "board")
    (tmp_path / "board" / "self").symlink_to("self")
    (tmp_path / "board" / "outside").symlink_to(tmp_path / "elsewhere")
    content = find_results(tmp_path / "board")
    assert [file.name for file in content.files] == ["outside/deep", "z real"]
    assert content.problems == []


def test_a_folder_that_cannot_be_read_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "open", "{}")
    put(tmp_path / "closed", "{}")
    scandir: Callable[[Any], Any] = os.scandir

    def guarded(place: Any) -> Any:
        if Path(place).name == "closed":
            raise PermissionError(13, "Permission denied", str(place))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", guarded)
    content = find_results(tmp_path)
    assert [file.name for file in content.files] == ["open"]
    assert [(p.place, p.sentence) for p in content.problems] == [
        ("closed", "the folder cannot be read (Permission denied).")
    ]


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "results", "{}")
    with pytest.raises(BadInput, match=r"/result: no such folder\. Did you mean 'results'\?"):
        find_results(tmp_path / "result")
    with pytest.raises(BadInput, match=r"result\.json: is a file, expected a folder"):
        find_results(tmp_path / "results" / "result.json")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_link_leads_to_the_file_whatever_its_name(name: str, tmp_path: Path) -> None:
    """As a browser resolves it, from the page's folder."""
    folder = tmp_path / "results" / name
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "report.html"
    report.write_text("x")
    for page in (tmp_path / "results" / "board.html", tmp_path / "other: place" / "deep" / "board.html"):
        link = relative_link(report, page)
        assert link is not None
        assert link.isascii()
        assert set(link).isdisjoint("<>\"'\\ ?#:")
        address = urlparse(urljoin("http://here" + page.parent.as_posix().replace(" ", "%20") + "/", link))
        assert address.hostname == "here"
        assert os.path.samefile(unquote_to_bytes(address.path), report)


def test_links_between_stores_and_folders() -> None:
    page = RemotePath("s3://shop/boards/all.html")
    assert relative_link(RemotePath("s3://shop/tests/a b/report.html"), page) == "./../tests/a%20b/report.html"
    assert relative_link(RemotePath("s3://other/tests/report.html"), page) is None
    assert relative_link(Path("out/report.html"), page) is None
    assert relative_link(RemotePath("s3://shop/report.html"), Path("board.html")) is None


@pytest.mark.parametrize("name", HOSTILE)
def test_a_shown_name_is_plain_text(name: str) -> None:
    text = visible_path(f"tests/{name}")
    assert text.encode("utf-8")  # no lone surrogate
    assert not {unicodedata.category(letter) for letter in text} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert visible_path(text) == text


def test_ordinary_names_are_shown_as_they_are() -> None:
    for name in ("new ranker/offline", "Übung 3", "\N{HEBREW LETTER ALEF}", "a\\b"):
        assert visible(name) == visible_path(name) == name
