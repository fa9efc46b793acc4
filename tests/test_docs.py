"""The documentation runs: every block of every page, every link, every doctest.

A page is one story. Its blocks run in order, in one namespace and one empty folder:

- ```python with `>>>` is a doctest; else it is executed, and `expression  # -> repr` is checked;
- ```python file=NAME and ```toml file=NAME are also written to that file; a whole settings file must parse;
- ```yaml must parse; a workflow's steps are checked, and its foretest commands must be among those that the page runs;
- ```py is a signature, which is shown and not run;
- ```console lines `$ foretest …` run through the real command line and must print what the page shows.

A picture from docs/reference/figures must be what the page's commands drew.
`python tests/test_docs.py` draws docs/table.svg anew.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import hashlib
import importlib
import io
import os
import pkgutil
import re
import shlex
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlparse

import pyarrow as pa
import pytest

import foretest
from foretest import cli
from foretest.settings.file import read_settings

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PICTURE = DOCS / "table.svg"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted(DOCS.rglob("*.md")),
]
HOSTS = {"doi.org", "arxiv.org"}
# commands a page may name that are somebody else's to test
NOT_RUN = {"make", "git", "python", "python3", "pip", "cd", "mkdir"}

# the folder with what `make data` fetched; by default that of the virtual environment
DATA = "FORETEST_DATA"
FETCHED = ("obp-0.5.7.tar.gz", "recbole-1.2.1-py3-none-any.whl")

SPARK = {"cluster.md"}
SLOW = {
    "bandit-log.md", "board.md", "calibration.md", "decision-service.md", "deterministic-production.md", "digits.md",
    "exposure.md", "figures.md", "getting-started.md", "history.md", "in-ci.md", "index.md", "movielens.md",
    "nightly-job.md", "open-bandit.md", "plan.md", "ranking-log.md", "report.md", "saved-aggregates.md",
    "sensitivity.md",
}  # fmt: skip


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


pages = pytest.mark.parametrize("page", PAGES, ids=name_of)


def marks_of(page: Path) -> list[pytest.MarkDecorator]:
    """Each page runs on any worker but for those that start Spark, which go to the one that has it."""
    if page.name in SPARK:
        return [pytest.mark.spark]
    return [pytest.mark.xdist_group(name_of(page)), *([pytest.mark.slow] if page.name in SLOW else [])]


class Block(NamedTuple):
    language: str
    file: str | None
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    blocks: list[Block] = []
    opening: re.Match[str] | None = None
    held: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if opening is None:
            opening = re.match(r"```(\w*)(?: file=(\S+))?\s*$", line)
            assert opening or not line.startswith("```"), f"{page.name}:{number}: {line}"
            held, start = [], number
        elif line == "```":
            blocks.append(Block(opening[1], opening[2], "\n".join(held) + "\n", start))
            opening = None
        else:
            held.append(line)
    assert opening is None, f"{page.name}: a block is not closed"
    return blocks


@pytest.mark.parametrize("page", [pytest.param(page, id=name_of(page), marks=marks_of(page)) for page in PAGES])
def test_every_block_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if DATA in page.read_text(encoding="utf-8"):
        monkeypatch.setenv(DATA, str(fetched_data()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    modules = set(sys.modules)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    try:
        for block in blocks_of(page):
            where = f"{page.name}:{block.line}"
            if block.file is not None:
                Path(block.file).write_text(block.text, encoding="utf-8")
            if block.language == "python":
                run_python(block.text, namespace, where)
            elif block.language == "console":
                run_console(block.text, where)
            elif block.language == "toml":
                parse_settings(block, tmp_path / "settings-of-a-page.toml")
            elif block.language == "yaml":
                check_workflow(block.text, commands_of(page), where)
            else:
                assert block.language in ("", "json", "text", "py"), f"{where}: {block.language} is not tested"
        check_pictures(page, tmp_path)
    finally:
        for name in set(sys.modules) - modules:  # modules that a page wrote
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
                del sys.modules[name]


def fetched_data() -> Path:
    """The folder with the packages whose sample data pages of the gallery read."""
    folder = Path(os.environ.get(DATA, Path(sys.prefix) / "data"))
    hashes = re.findall(r"sha256:(\w+)", (DOCS / "gallery" / "packages.txt").read_text(encoding="utf-8"))
    lacking = [name for name, sha in zip(FETCHED, hashes, strict=True) if sha256_of(folder / name) != sha]
    if lacking:
        absent = f"{folder} lacks {' and '.join(lacking)}, or has another file of that name: run make data"
        if os.environ.get("CI") or os.geteuid() == 0:
            pytest.fail(absent)
        pytest.skip(absent)
    return folder


def sha256_of(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def test_pages_without_their_data_fail_in_ci_and_are_skipped_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA, str(tmp_path))
    (tmp_path / FETCHED[0]).write_text("another file")
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match=r"lacks obp-.* and recbole-.*: run make data"):
        fetched_data()
    monkeypatch.delenv("CI")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(pytest.fail.Exception):
        fetched_data()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(pytest.skip.Exception):
        fetched_data()


def check_pictures(page: Path, folder: Path) -> None:
    """A picture of docs/reference/figures that a page shows is the one that the page's own commands drew."""
    for name in re.findall(r"\]\(figures/([\w-]+\.svg)\)", without_blocks(page)):
        [drawn] = folder.rglob(f"figures/{name}")
        assert_same_text(words_of(page.parent / "figures" / name), words_of(drawn), f"{page.name}: {name}")


def words_of(picture: Path) -> str:
    return "\n".join("".join(text.itertext()) for text in ET.parse(picture).iter("{http://www.w3.org/2000/svg}text"))


def run_python(code: str, namespace: dict[str, Any], where: str) -> None:
    """Run one block: a doctest if it has prompts, else statements with `# ->` beside what they should show."""
    if ">>>" in code:
        test = doctest.DocTestParser().get_doctest(code, namespace, where, where, 0)
        out = io.StringIO()
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=out.write, clear_globs=False)
        assert not out.getvalue(), out.getvalue()
        namespace.update(test.globs)
        return
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        _, arrow, shown = lines[statement.end_lineno - 1].partition("# -> ")
        if arrow:
            assert isinstance(statement, ast.Expr), f"{where}: only an expression shows something: {shown}"
            value = eval(compile(ast.Expression(statement.value), where, "eval"), namespace)
            assert repr(value) == shown.strip(), where
        else:
            exec(compile(ast.Module([statement], []), where, "exec"), namespace)


def run_console(text: str, where: str) -> None:
    """Run the commands of a block; what a page shows after one is what it prints."""
    code = 0
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        words = shlex.split(command, comments=True)
        if words == ["echo", "$?"]:
            assert int(shown) == code, where
        elif words[0] == "foretest":
            code, printed = run_foretest(words[1:])
            assert code in (0, 2, 3), f"{where}: {command}\n{printed}"
            if shown.strip():
                assert_same_text(shown, printed, f"{where}: {command}")
            else:
                assert code == 0, f"{where}: {command}\n{printed}"
        else:
            assert Path(words[0]).name in NOT_RUN, f"{where}: {command}"
            assert not shown.strip(), f"{where}: the output of {command} is not checked"


def run_foretest(arguments: list[str]) -> tuple[int, str]:
    """The command line in this process: exit code, and stdout and stderr together."""
    printed = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        patch.setattr(sys, "argv", ["foretest", *arguments])
        patch.setattr(os, "cpu_count", lambda: 1)  # a history is simulated here, not in processes that start anew
        # pages show SVG pictures; as PNG each takes .3 s to draw, and tests/report/test_pictures.py draws some
        patch.setattr("foretest.report.pictures.png", lambda spec: b"")
        with pytest.raises(SystemExit) as stop:
            cli.main()
    return int(stop.value.code or 0), printed.getvalue()


_NUMBER = re.compile(r"([+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)( %)?")


def assert_same_text(shown: str, printed: str, where: str) -> None:
    """The same words, and numbers that agree to 2 % (percentages to 0.2 points); a line `…` stands for any lines.

    The slack is for another release of the gradient boosting behind V(x), not for another formula.
    """

    def words(text: str) -> str:
        return "".join(_NUMBER.sub("#", text).split())

    def numbers(text: str) -> list[tuple[float, bool]]:
        return [(float(n.replace(",", "")), bool(percent)) for n, percent in _NUMBER.findall(text)]

    failure = f"{where}: expected\n{shown}\ngot\n{printed}"
    rest = printed
    for piece in re.split(r"^…$", shown, flags=re.MULTILINE):
        wanted, held = words(piece), words(rest)
        assert wanted in held, failure
        before = held[: held.index(wanted)].count("#")
        expected = numbers(piece)
        for (a, percent), (b, _) in zip(expected, numbers(rest)[before:], strict=False):
            assert a == pytest.approx(b, rel=0.02, abs=0.2 if percent else 0.0), f"{a} is shown, not {b}; {failure}"
        rest = _after_numbers(rest, before + len(expected))
    if "…" not in shown:
        assert words(shown) == words(printed), failure


def _after_numbers(text: str, count: int) -> str:
    ends = [0, *(match.end() for match in _NUMBER.finditer(text))]
    return text[ends[count] :]


def parse_settings(block: Block, path: Path) -> None:
    """A block with [log], [control] and [treatment] is a whole settings file; others must at least be TOML."""
    import tomllib

    tables = tomllib.loads(block.text)
    if {"log", "control", "treatment"} <= set(tables):
        path.write_text(block.text, encoding="utf-8")
        read_settings(path)


def commands_of(page: Path) -> list[list[str]]:
    """The foretest commands that a page runs, as words."""
    text = "".join(block.text for block in blocks_of(page) if block.language == "console")
    return [shlex.split(line, comments=True) for line in re.findall(r"^\$ (foretest .*)$", text, re.MULTILINE)]


def check_workflow(text: str, commands: list[list[str]], where: str) -> None:
    """A workflow: every step runs or uses something, and each foretest command is one that the page runs."""
    import yaml

    document = yaml.safe_load(text)
    steps = [step for job in document["jobs"].values() for step in job["steps"]]
    assert steps, where
    for step in steps:
        assert ("run" in step) != ("uses" in step), f"{where}: {step}"
        for line in step.get("run", "").splitlines():
            if line.startswith("foretest "):
                assert shlex.split(line.partition(" > ")[0]) in commands, f"{where}: {line}"


def test_a_wrong_page_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks above can fail."""
    monkeypatch.chdir(tmp_path)
    run_python("x = 1\nx + 1  # -> 2\n", {}, "here")
    with pytest.raises(AssertionError):
        run_python("x = 1\nx + 1  # -> 3\n", {}, "here")
    with pytest.raises(AssertionError):
        run_python(">>> 1 + 1\n3\n", {}, "here")
    run_console("$ foretest --version\n" + foretest.__version__, "here")
    with pytest.raises(AssertionError):
        run_console("$ foretest --version\n9.9.9", "here")
    with pytest.raises(AssertionError):
        run_console("$ foretest run nothing.parquet -c nothing.toml", "here")
    with pytest.raises(AssertionError):
        assert_same_text("uplift +5.1 %", "uplift +7.4 %", "here")
    drawn, shown = tmp_path / "out" / "figures", tmp_path / "figures"
    for folder, uplift in ((drawn, 5.1), (shown, 7.4)):
        folder.mkdir(parents=True)
        (folder / "a.svg").write_text(f'<svg xmlns="http://www.w3.org/2000/svg"><text>{uplift} %</text></svg>')
    (tmp_path / "page.md").write_text("![a picture](figures/a.svg)\n")
    with pytest.raises(AssertionError):
        check_pictures(tmp_path / "page.md", tmp_path / "out")
    steps = "jobs: {test: {steps: [{run: foretest --version > version.txt}]}}"
    check_workflow(steps, [["foretest", "--version"]], "here")
    with pytest.raises(AssertionError):
        check_workflow(steps, [["foretest", "--help"]], "here")
    with pytest.raises(AssertionError):
        check_workflow("jobs: {test: {steps: [{name: nothing}]}}", [], "here")
    with pytest.raises(foretest.BadInput):
        parse_settings(
            Block("toml", None, '[log]\nreward = "click"\n[control]\n[treatment]\n', 1), tmp_path / "wrong.toml"
        )


def without_blocks(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def prose_of(page: Path) -> str:
    """A page without its blocks and its inline code."""
    return re.sub(r"`[^`\n]*`", "", without_blocks(page))


def anchors_of(page: Path) -> set[str]:
    """The names that a forge gives to a page's headings."""
    titles = re.findall(r"^#+ (.+)$", without_blocks(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pages
def test_every_relative_link_resolves(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        if urlparse(target).scheme:
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        assert place.exists(), f"{page.name}: {target}"
        assert place.is_relative_to(ROOT), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors_of(place), f"{page.name}: {target}; there are {sorted(anchors_of(place))}"


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=name_of)
def test_every_page_is_on_the_index_above_it(page: Path) -> None:
    """The site's contents are made from these links."""
    above = page.parent.parent if page.name == "index.md" else page.parent
    if page != DOCS / "index.md":
        links = re.findall(r"\]\(([^):#\s]+\.md)\)", (above / "index.md").read_text(encoding="utf-8"))
        assert page in [above / link for link in links]


@pages
def test_a_page_names_no_other_host(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert {urlparse(address).hostname for address in re.findall(r"https?://[^\s)>\"'`]+", text)} <= HOSTS


def test_every_field_of_a_result_is_on_its_page() -> None:
    scores = {"old": [[0.1, 1.2]] * 9, "new": [[0.4, 0.9]] * 9, "shown": [[0]] * 9, "click": [True] * 9, "v": [1.0] * 9}
    test = foretest.OfflineTest(
        log=foretest.LogColumns(rewards=["click"], ranking="shown"),
        control=foretest.PlackettLuce("old"),
        treatment=foretest.PlackettLuce("new"),
        value="v",
    )
    document = test.run(pa.table(scores)).to_dict()
    del document["settings"]  # these have pages of their own
    quoted = re.findall(r"`([^`\n]+)`", without_blocks(DOCS / "reference" / "result-json.md"))
    named = {*quoted, *(word for text in quoted for word in text.split("."))}
    estimators = set(document["metrics"]["click"]["estimates"])
    assert keys_of(document) - estimators - {"click"} <= named


def keys_of(document: Any) -> set[str]:
    """All keys, at any depth."""
    if isinstance(document, dict):
        return set(document).union(*(keys_of(value) for value in document.values()))
    return set().union(*(keys_of(value) for value in document)) if isinstance(document, list) else set()


def modules_of_the_package() -> list[str]:
    found = pkgutil.walk_packages(foretest.__path__, prefix="foretest.")
    return ["foretest", *(module.name for module in found)]


@pytest.mark.parametrize("name", modules_of_the_package())
def test_the_doctests_of_every_module(name: str) -> None:
    module = importlib.import_module(name)
    # numba's dispatchers hide the functions of the kernels from doctest
    finder = doctest.DocTestFinder()
    tests = finder.find(module)
    for hidden in (getattr(value, "py_func", None) for value in vars(module).values()):
        if hidden is not None and hidden.__module__ == name:
            tests += finder.find(hidden, hidden.__name__, module=module, globs=vars(module))
    runner = doctest.DocTestRunner()
    for test in tests:
        out = io.StringIO()
        runner.run(test, out=out.write)
        assert not out.getvalue(), out.getvalue()


def test_there_are_doctests_to_run() -> None:
    tests = [
        t for name in modules_of_the_package() for t in doctest.DocTestFinder().find(importlib.import_module(name))
    ]
    assert sum(bool(test.examples) for test in tests) >= 8


def picture_text() -> str:
    """The lines of the picture, top to bottom."""
    rows: dict[float, list[tuple[float, str]]] = {}
    for element in ET.parse(PICTURE).iter("{http://www.w3.org/2000/svg}text"):
        if "title" not in element.get("class", ""):
            at = float(element.get("y", "0")), float(element.get("x", "0"))
            rows.setdefault(at[0], []).append((at[1], "".join(element.itertext()).replace("\xa0", " ")))
    return "\n".join(" ".join(text for _, text in sorted(row)) for _, row in sorted(rows.items()))


@pytest.mark.slow
@pytest.mark.xdist_group("table.svg")
def test_the_picture_is_of_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, printed = run_foretest(["demo"])
    assert code == 0
    assert_same_text(picture_text() + "\n…\n", printed, "table.svg")


def test_the_picture_asks_no_other_host() -> None:
    text = PICTURE.read_text(encoding="utf-8")
    assert "@font-face" not in text
    assert "@import" not in text
    assert set(re.findall(r"https?://[^\s\"')]+", text)) == {"http://www.w3.org/2000/svg"}  # the name of the format


def draw_picture() -> None:
    """docs/table.svg, from a real `foretest demo`."""
    import tempfile

    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console

    from foretest.cli import demo
    from foretest.terminal.parts import RESULT_WIDTH

    class TableOnly(Console):
        """Prints the table, not the long lines of advice below it."""

        def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
            if not soft_wrap:
                super().print(*objects, **options)

    console = TableOnly(record=True, width=RESULT_WIDTH, force_terminal=True, file=io.StringIO(), highlight=False)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.argv = ["foretest", "demo"]
        demo.console = lambda width: console
        with contextlib.suppress(SystemExit):
            cli.main()
    # Rich's own frame, without the fonts it would fetch from another host
    frame = re.sub(r"@font-face \{\{.*?\}\}\s*|<!--.*?-->\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    frame = frame.replace("Fira Code, monospace", "monospace").replace("arial", "sans-serif")
    svg = console.export_svg(title="$ foretest demo", code_format=frame, unique_id="table")
    PICTURE.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    draw_picture()
