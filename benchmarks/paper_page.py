"""Put the tables and pictures of a run into docs/measured/paper.md.

`foretest paper -o OUT`, then `python benchmarks/paper_page.py OUT`. Every section of OUT/README.md has its place on the
page, between `<!-- run: title -->` and `<!-- end -->`. Pictures are copied to docs/measured/paper, as SVG.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

MEASURED = Path(__file__).resolve().parent.parent / "docs" / "measured"
PICTURE = re.compile(r"\]\(figures/([\w-]+)\.png\)")
PLACE = re.compile(r"<!-- run: (?P<title>.*?) -->\n.*?<!-- end -->", re.DOTALL)


def sections_of(summary: str) -> dict[str, str]:
    """The body of every section of a summary, by its title."""
    _, *parts = re.split(r"^## (.*)$", summary, flags=re.MULTILINE)
    return {title: body.strip() for title, body in zip(parts[::2], parts[1::2], strict=True)}


def filled(page: str, summary: str) -> str:
    """The page with every place filled; a section without a place, or a place without a section, is an error."""
    sections = {title: PICTURE.sub(r"](paper/\1.svg)", body) for title, body in sections_of(summary).items()}
    places = [match["title"] for match in PLACE.finditer(page)]
    if sorted(places) != sorted(sections):
        raise SystemExit(f"the page has places for {sorted(places)}, the run has {sorted(sections)}")

    def body(match: re.Match[str]) -> str:
        title = match["title"]
        return f"<!-- run: {title} -->\n\n---\n\n{sections[title]}\n\n---\n\n<!-- end -->"

    return PLACE.sub(body, page)


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    out, page = Path(sys.argv[1]), MEASURED / "paper.md"
    page.write_text(filled(page.read_text("utf-8"), (out / "README.md").read_text("utf-8")), "utf-8")
    (MEASURED / "paper").mkdir(exist_ok=True)
    for picture in sorted((out / "figures").glob("*.svg")):
        shutil.copy(picture, MEASURED / "paper" / picture.name)


if __name__ == "__main__":
    main()
