"""Markdown tables and cells."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; columns that are empty in every row are left out.

    >>> print(table(["key", "unit", "meaning"], [["`a`", "", "first"]]))
    | key | meaning |
    | --- | --- |
    | `a` | first |
    """
    lines = [list(row) for row in rows]
    shown = [k for k in range(len(titles)) if k == 0 or any(line[k] for line in lines)]
    cells = [[titles[k] for k in shown], ["---"] * len(shown), *([line[k] for k in shown] for line in lines)]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in cells)


def cell(text: str) -> str:
    """Plain text in a cell: in one line, without what Markdown would take for its own.

    >>> print(cell("auto | exact  <= 3"))
    auto \\| exact &lt;= 3
    """
    line = " ".join(text.split()).replace("|", "\\|")
    return re.sub(r"<(?![^`]*`(?:[^`]*`[^`]*`)*[^`]*$)", "&lt;", line)


def code(text: str) -> str:
    """Code in a cell."""
    return f"`{text}`".replace("|", "\\|") if text else ""


def value(given: Any) -> str:
    """A default as a settings file has it; nothing where there is none."""
    return "" if given is None or given == () else code(json.dumps(given, ensure_ascii=False))
