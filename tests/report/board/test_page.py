"""The page of a board as text, and the command that writes it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from foretest.report.board.board import Board, read_board
from foretest.report.board.page import board_page
from foretest.report.page import LARGEST
from tests.commands import exit_code_of
from tests.report.board.results import Document, document, put, set_uplift

NAMES = [
    "<script>alert(1)</script>",
    "\"q' onclick=alert(2) &amp;",
    "\u202eevil",
    "x" * 250,
    "caf\udce9",
    "javascript:a",
]


class Cells(HTMLParser):
    """The rows of a page's tables as their texts, every link, and every element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.rows: list[dict[str, str | None]] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
            self.rows.append(dict(attrs))
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._inside = True
        elif tag == "a":
            self.links.append(dict(attrs)["href"] or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.tables[-1][-1][-1] += data.replace("\N{NO-BREAK SPACE}", " ")


def page_of(folder: Path) -> Cells:
    return Cells(read_board(folder).to_html())


# -- the page ----------------------------------------------------------------------------------------------------------


def test_a_page_of_200_results_is_small_complete_and_names_no_host(many: Path) -> None:
    page = read_board(many).to_html(many / "board.html")
    (many / "board.html").unlink()
    assert len(page.encode()) < 2_000_000
    assert len(page.encode()) < LARGEST
    assert not re.findall(r"https?://(?!www\.w3\.org)", page)
    assert str(many) not in page
    cells = Cells(page)
    pairs, results = cells.tables
    assert len(pairs) == 61
    assert len({row[0] + row[1] for row in results[1:]}) == 200 + 25  # twenty-five have two treatments
    reports = [link for link in cells.links if link.startswith("./")]
    assert len(reports) > 200
    assert all((many / unquote(link)).is_file() for link in reports)
    assert all(link.startswith(("#", "./")) for link in cells.links)


def test_only_its_own_script_runs(tmp_path: Path) -> None:
    """No chart, so no library that draws charts: one script, allowed by its hash."""
    put(tmp_path, document("offline"))
    page = read_board(tmp_path).to_html()
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy.count("sha256-") == 1
    assert policy.startswith("default-src &#39;none&#39;;")
    assert len(re.findall("<script>", page)) == 1
    assert "vega" not in page.replace("vegaEmbed(place", "").replace("vega-lite", "").replace(".vega-embed", "")
    assert "Licences" not in page


def test_a_row_says_what_its_result_says(tmp_path: Path) -> None:
    put(tmp_path / "new", set_uplift(document("days"), 0.05, 0.02, 0.01))
    cells = page_of(tmp_path)
    [[_, row]] = cells.tables
    assert row == [
        "new", "offline", "2026-03-05", "click", "+5.0 %", "+2.0 % to +8.0 %", "▲positive", "✓pass",
    ]  # fmt: skip
    assert cells.links[-1] == "./new/report.html"


def test_further_metrics_and_guardrails_stand_beside_the_first_goal(tmp_path: Path) -> None:
    content = document("several") | {"winner": "shy"}
    for treatment in content["treatments"]:
        treatment["metrics"]["revenue"]["guardrail"] = "fail" if treatment["name"] == "bold" else "pass"
    put(tmp_path, set_uplift(content, 0.05, 0.02, 0.01))
    [[_, *rows]] = page_of(tmp_path).tables
    by_treatment = {row[0]: row for row in rows if row[3].startswith("click")}
    assert by_treatment[".bold"][3] == "clickguardrail revenue: fail"
    assert by_treatment[".shy winner"][3] == "clickrevenue: positive"
    assert sorted(row[6] for row in rows if row[3] == "revenue") == [
        "▲positiveguardrail: fail", "▲positiveguardrail: pass",
    ]  # fmt: skip


def test_many_metrics_are_counted_and_not_named(tmp_path: Path) -> None:
    content = document("offline")
    for number in range(9):
        content["metrics"][f"metric {number}"] = content["metrics"]["revenue"]
    put(tmp_path, set_uplift(content, 0.05, 0.02, 0.01))
    assert page_of(tmp_path).tables[0][1][3] == "click10 more metrics: 10 positive"


def test_lower_is_better_shows_in_the_colour_and_in_a_word(tmp_path: Path) -> None:
    content = set_uplift(document("offline"), 0.05, 0.02, 0.01)
    content["metrics"]["click"] |= {"role": "goal", "direction": "decrease", "outcome": "worse"}
    put(tmp_path, content)
    page = read_board(tmp_path).to_html()
    assert '<span class="chip negative"><i aria-hidden="true">▲</i>positive: worse</span>' in page
    assert Cells(page).tables[0][1][3].startswith("clicklower is better")


def test_an_earlier_version_is_said(tmp_path: Path) -> None:
    put(tmp_path, set_uplift(document("old"), 0.05, 0.02))
    row = page_of(tmp_path).tables[0][1]
    assert row[5] == "+3.0 % to +7.0 % (noise only)"
    assert row[6] == "△leans positiveby verdict"


def test_absolute_numbers_where_there_are_no_relative_ones(tmp_path: Path) -> None:
    content = set_uplift(document("offline"), 0.05, 0.02, 0.01)
    estimate = content["metrics"]["click"]["estimates"][content["metrics"]["click"]["headline"]]
    estimate |= {name: None for name in estimate if name.startswith("rel_")}
    estimate |= {"effect_size": 0.5}
    estimate["range"] |= {"rel_ci_lower": None, "rel_ci_upper": None, "ci_lower": 0.25, "ci_upper": 0.75}
    put(tmp_path, content)
    row = page_of(tmp_path).tables[0][1]
    assert row[4:6] == ["+0.5000 per display", "+0.2500 to +0.7500"]


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_are_text(name: str, tmp_path: Path) -> None:
    content = set_uplift(document("several"), 0.05, 0.02)
    metric = f"<img src=x onerror=alert(3)>{name}"
    for part in (content, *content["treatments"]):
        part["metrics"] = {metric if key == "click" else key: value for key, value in part["metrics"].items()}
    content["treatments"][0]["name"] = content["winner"] = f"</script>{name}"
    text = json.dumps(content)  # lone surrogates as \\ud800, as JSON allows
    put(tmp_path / name / "offline", text)
    put(tmp_path / name / "online", document("online"))
    put(tmp_path / name / "broken", "{")
    board = read_board(tmp_path)
    page = board.to_html()
    assert page.encode("utf-8")
    cells = Cells(page)
    assert not cells.tags & {"img", "iframe", "object"}
    assert page.count("<script") == 3  # two of data, one of its own
    assert "\u202e" not in page
    assert json.dumps(board.to_dict(), ensure_ascii=False).encode()


def test_a_page_of_thousands_stays_small_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    put(tmp_path / "a", set_uplift(document("offline"), 0.05, 0.02, 0.01))
    [click, revenue] = read_board(tmp_path).rows
    rows = []
    for number in range(1200):
        entry = replace(click.entry, file=replace(click.entry.file, folder=("results", f"number {number}")))
        rows += [replace(click, entry=entry), replace(revenue, entry=entry)]
    page = board_page(Board(tmp_path, rows, [], []), tmp_path / "board.html")
    assert len(page.encode()) <= LARGEST
    shown = len(Cells(page).tables[0]) - 1
    assert shown > 500
    assert f"{2400 - shown:,} further rows are left out" in page
    assert "1,200 offline results." in page


def test_ranges_far_wider_than_most_do_not_flatten_the_others(tmp_path: Path) -> None:
    for number in range(9):
        put(tmp_path / str(number), set_uplift(document("offline"), 0.05, 0.02, 0.01))
    put(tmp_path / "wild", set_uplift(document("offline"), 0.5, 90.0))
    page = read_board(tmp_path).to_html()
    widths = sorted(float(width) for width in re.findall(r"--width:([\d.]+)%", page))
    assert widths[0] > 30.0
    assert page.count('<b class="cut-right">') == 2  # two metrics of the wild one


def test_the_same_results_give_the_same_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    for kind in ("offline", "online", "several"):
        put(tmp_path / "new" / kind, document(kind))
    assert read_board(tmp_path).to_html() == read_board(str(tmp_path)).to_html()


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of results: a pair, a damaged file, and a JSON of somebody else's."""
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "results" / "new" / "offline", set_uplift(document("offline"), 0.05, 0.02, 0.01))
    put(tmp_path / "results" / "new" / "online", set_uplift(document("online"), 0.04, 0.02))
    put(tmp_path / "results" / "damaged", '{"foretest": "0.1.0", "sch')
    put(tmp_path / "results" / "other", '{"accuracy": 0.9}')
    return tmp_path


def rows_printed(text: str) -> list[Document]:
    rows: list[Document] = json.loads(text)["rows"]
    return rows


def test_the_command_writes_the_page_and_says_what_it_could_not_read(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(monkeypatch, "board", "results", "-o", "results/pages/board.html") == 0
    printed = capsys.readouterr()
    assert printed.err == ("foretest: damaged/result.json: damaged or cut short: it is not JSON after line 1.\n")
    assert printed.out == (
        "1 offline result, 1 online result.\nOf 1 test with both results, the range contained the online uplift in 1,"
        " and offline was right in 1.\n\nWritten: results/pages/board.html\n"
    )
    page = (shop / "results" / "pages" / "board.html").read_text(encoding="utf-8")
    assert [path.name for path in (shop / "results" / "pages").iterdir()] == ["board.html"]
    assert "<bdi>damaged/result.json</bdi>" in page
    assert "other/result.json" not in page
    links = [link for link in Cells(page).links if link.startswith("./")]
    assert {(shop / "results" / "pages" / link).resolve() for link in links} == {
        shop / "results" / "new" / kind / "report.html" for kind in ("offline", "online")
    }


def test_json_prints_rows_pairs_and_problems(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(monkeypatch, "board", "results", "--json", "--quiet") == 0
    text = capsys.readouterr().out
    assert [(row["name"], row["metric"]) for row in rows_printed(text)] == [
        ("new/offline", "click"), ("new/offline", "revenue"), ("new/online", "click"),
    ]  # fmt: skip
    content: dict[str, Any] = json.loads(text)
    assert list(content) == ["foretest", "schema", "rows", "pairs", "problems"]
    [pair] = content["pairs"]
    assert (pair["name"], pair["metric"], pair["range_held"], pair["decision"]) == ("new", "click", True, "right")
    assert [problem["place"] for problem in content["problems"]] == ["damaged/result.json"]
    assert sorted(path.name for path in shop.iterdir()) == ["results"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["results"], "board needs -o PAGE, the page to write, as in -o board.html, or --json."),
        (["nowhere", "-o", "b.html"], "nowhere: no such folder."),
        (["results/new/offline/result.json", "-o", "b.html"], "results/new/offline/result.json: is a file, expected a"),
        (["results/other", "-o", "b.html"], "results/other: there is no result of Foretest in this folder, nor in its"),
        (["results", "-o", "results"], "results: is a folder, expected the name of a file"),
        (["results", "-o", "results/new/offline/result.json"], "results/new/offline/result.json: expected the name of"),
        (["results", "-o", "results/new/../new/offline/report.html"], "is the report of a result."),
        (["a\0b", "-o", "b.html"], "no file can have this path"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    arguments: list[str], sentence: str, shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in shop.rglob("*") if path.is_file()}
    assert exit_code_of(monkeypatch, "board", *arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert {path: path.read_bytes() for path in shop.rglob("*") if path.is_file()} == before


def test_a_board_of_damaged_files_alone_is_still_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / "results", "{")
    page = tmp_path / "board.html"
    assert exit_code_of(monkeypatch, "board", str(tmp_path / "results"), "-o", str(page)) == 0
    assert "No result could be read." in page.read_text(encoding="utf-8")
    assert "No result could be read." in capsys.readouterr().out
