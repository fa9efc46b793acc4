"""The parts of the reference that are written from the code, between two comments of a page.

They are committed, so that pages read the same on a forge. `python docs/_site/generate.py` writes them; a test compares
them with the code.
"""

from __future__ import annotations

from pathlib import Path

from generated import command_line, python_names, schemas, settings_tables

REFERENCE = Path(__file__).resolve().parents[2] / "reference"


def parts() -> dict[Path, dict[str, str]]:
    """The text of every generated part, by page and by name."""
    python = {REFERENCE / "python" / f"{page}.md": {"names": text} for page, text in python_names.pages().items()}
    return {
        REFERENCE / "settings.md": settings_tables.parts(),
        REFERENCE / "command-line.md": {"commands": command_line.text()},
        REFERENCE / "schemas.md": {"documents": schemas.text()},
        **python,
    }


def with_parts(page: str, texts: dict[str, str]) -> str:
    """A page with its generated parts replaced by `texts`."""
    for name, text in texts.items():
        begin, end = f"<!-- generated {name}: begin -->", f"<!-- generated {name}: end -->"
        before, opened, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not (opened and closed):
            raise SystemExit(f"the comments {begin} and {end} are not on the page.")
        page = f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}"
    return page
