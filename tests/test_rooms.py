"""Each package of Foretest imports only from those above it in one list: the order in which the data travels."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "foretest"

#: Top first. A module may import from its own room and from any room above it.
ROOMS = [
    "_version", "records", "errors", "formatting", "serving", "special", "background", "stores", "remains", "files",
    "compiling", "progress", "provenance", "kernels", "displays", "sources", "policies", "weights", "estimators",
    "settings", "log", "results", "aggregation", "engines", "storage", "inference", "diagnostics", "calibration",
    "offline", "online", "planning", "history", "terminal", "report", "testing", "simulate", "paper", "convert", "cli",
]  # fmt: skip

#: The only exits upward: a result that renders itself imports its tables or its page inside the method.
EXITS = {
    ("results/result.py", "terminal"): "str(result) is a table",
    ("results/result.py", "report"): "result.to_html, result.figures and notebooks show a page's parts",
    ("planning/plan.py", "terminal"): "str(plan) is a table",
    ("planning/plan.py", "report"): "plan.to_html shows a page",
    ("history/agreement_result.py", "terminal"): "str(agreement) is a table",
    ("history/agreement_result.py", "report"): "agreement.to_html, agreement.figures and notebooks show a page's parts",
}


#: What runs inside a service is imported where its draws are made again, and nowhere else.
REPLAYS = ["cli/vectors.py", "policies/replay.py"]


def imported_rooms(code: str) -> Iterator[tuple[int, str]]:
    """(line, room) of everything a module imports from Foretest: at its top, in functions, or for types only."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [node.module] if node.module != "foretest" else [f"foretest.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        else:
            continue
        for name in names:
            if name is not None and name.startswith("foretest."):
                yield node.lineno, name.split(".")[1]


def upward(path: str, code: str) -> list[str]:
    """The imports of a module that point to a room below its own, as `file:line room`."""
    own = ROOMS.index(path.split("/")[0].removesuffix(".py"))
    return [
        f"{path}:{line} {room}"
        for line, room in imported_rooms(code)
        if ROOMS.index(room) > own and (path, room) not in EXITS
    ]


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def test_no_import_points_to_a_room_below() -> None:
    offenders = [
        line for path in modules() for line in upward(str(path.relative_to(SOURCE)), path.read_text(encoding="utf-8"))
    ]
    assert offenders == []


@pytest.mark.parametrize(
    "code",
    [
        "from foretest.report.page import page",
        "def f():\n    from foretest.report import page",
        "if TYPE_CHECKING:\n    import foretest.report.page",
        "from foretest import report",
    ],
)
def test_an_import_that_is_turned_around_is_seen(code: str) -> None:
    assert len(upward("weights/weightings.py", code)) == 1
    assert upward("cli/offline.py", code) == []


def test_only_what_replays_imports_what_serves() -> None:
    importers = [
        path.relative_to(SOURCE).as_posix()
        for path in modules()
        if path.parent.name != "serving"
        and "serving" in {room for _, room in imported_rooms(path.read_text(encoding="utf-8"))}
    ]
    assert importers == REPLAYS


def test_every_exit_is_used() -> None:
    for path, room in EXITS:
        assert room in {name for _, name in imported_rooms((SOURCE / path).read_text(encoding="utf-8"))}, (path, room)


def test_every_room_is_in_the_list() -> None:
    assert {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in modules()} == set(ROOMS)


def test_a_stranger_finds_the_room() -> None:
    """At most 12 modules at the root, none over 400 lines but the numeric loops, each with a docstring."""
    assert len(list(SOURCE.glob("*.py"))) <= 12
    for path in modules():
        code = path.read_text(encoding="utf-8")
        assert ast.get_docstring(ast.parse(code)), path
        assert code.count("\n") <= 400 or path.parent.name == "kernels", path
