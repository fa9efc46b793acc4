"""Where a study's figures go: between two comments of a page of docs/, whose other text stays."""

from __future__ import annotations

from pathlib import Path

from foretest.files import write_whole

DOCS = Path(__file__).resolve().parents[1] / "docs"


def into_page(page: Path, name: str, text: str) -> None:
    """Put `text` between the page's comments `<!-- name: begin -->` and `<!-- name: end -->`."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page}: the comments {begin} and {end} are not there.")
    write_whole(page, f"{before}{begin}\n{text}\n{end}{after}")
