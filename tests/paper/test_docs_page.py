"""docs/measured/paper.md: its places are the sections of a run, and what can be told without one is right."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from foretest.paper.published import TABLE_2
from foretest.paper.summary import table_1 as table_1_section
from foretest.paper.table_one import table_one

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "measured" / "paper.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("paper_page", ROOT / "benchmarks" / "paper_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_table_1_on_the_page_is_the_closed_form() -> None:
    title, *body = table_1_section(json.loads(json.dumps(table_one())))
    assert f"<!-- run: {title.removeprefix('## ')} -->" in PAGE
    assert "\n\n".join(body) in PAGE


def test_every_printed_number_of_table_2_is_on_the_page() -> None:
    for key, row in TABLE_2.items():
        for printed in row.values():
            text = f"{printed.value:.2f}".replace("-", "−")
            text += "" if printed.half_width is None else f" ± {printed.half_width:.2f}"
            assert text in PAGE, key


def test_a_run_fills_the_page(tool: ModuleType) -> None:
    """The page's own sections put back change nothing; a missing or unknown section stops it."""
    sections = {match["title"]: match[0] for match in tool.PLACE.finditer(PAGE)}
    assert len(sections) == 10
    summary = "# Head\n\nwords\n"
    for title, text in sections.items():
        body = text.split("\n\n---\n\n")[1]
        summary += f"\n## {title}\n\n{body.replace('.svg)', '.png)').replace('](paper/', '](figures/')}\n"
    assert tool.filled(PAGE, summary) == PAGE
    with pytest.raises(SystemExit, match="another"):
        tool.filled(PAGE, summary + "\n## another\n\nwords\n")
