"""The page of `foretest paper`: the text and tables of its summary, with charts in place of pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from foretest.report.blocks import Block, Chart, Choice, Document, Link, Paragraph, Section, Table, Words, chart_of
from foretest.report.page import render

PAPER = Link("Gilotte et al., WSDM 2018", "https://doi.org/10.1145/3159652.3159687")
_BOXES = "figure-4-"
_PICTURE = re.compile(r"!\[.*\]\(figures/(.+)\.png\)")
_MARKS = re.compile(r"\*\*|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)|`")


def paper_page(document: Mapping[str, Any], figures: Mapping[str, Mapping[str, Any]], summary: str) -> str:
    """The page of a study as HTML text: `document` is paper.json, `figures` are charts by name, `summary` README.md."""
    title, *parts = re.split(r"^#+ ", summary, flags=re.MULTILINE)[1:]
    heading, *opening = _blocks(title, figures)
    sections = []
    for part in parts:
        name, *blocks = _blocks(part, figures)
        sections.append(Section(str(name), blocks))
    run = document["run"]
    words = [block for block in opening if isinstance(block, str)]
    return render(
        Document(
            kind="The paper",
            title=str(heading),
            sentence=_sentence(document["table_2"]),
            remarks=words,
            sections=[*sections, Section("The paper itself", [Paragraph(["See ", PAPER, "."])])],
            files={"paper.json": document},
            provenance={"versions": run["versions"]},
        )
    )


def _sentence(table_2: Mapping[str, Any]) -> str:
    """The estimators that agree best and worst with the online tests."""
    correlations = {row["name"]: row["ours"]["correlation"] for row in table_2["rows"].values()}
    known = {name: value for name, value in correlations.items() if value is not None}
    if not known:
        return f"{table_2['tests']} simulated A/B tests: too few to correlate offline with online."
    best, worst = max(known, key=known.__getitem__), min(known, key=known.__getitem__)
    return (
        f"Over {table_2['tests']} simulated A/B tests, {best} agrees best with the online result (correlation"
        f" {known[best]:.2f}), {worst} least ({known[worst]:.2f})."
    ).replace("-0.", "−0.")


def _blocks(text: str, figures: Mapping[str, Mapping[str, Any]]) -> Iterator[Block]:
    """The blocks of a part, its heading first. The pictures of Figure 4, one per estimator, become one choice."""
    heading, _, body = text.partition("\n")
    yield _plain(heading)
    boxes: dict[str, Chart] = {}
    for piece in re.split(r"\n{2,}", body.strip()):
        picture = _PICTURE.fullmatch(piece)
        if picture is not None and picture[1].startswith(_BOXES):
            boxes[picture[1].removeprefix(_BOXES)] = chart_of(figures[picture[1]])
        elif picture is not None:
            yield chart_of(figures[picture[1]])
        elif piece.startswith("|"):
            yield _table(_plain(heading), piece.splitlines())
        elif piece.startswith("`") and piece.endswith("`") and "\n" not in piece:
            yield Words(piece.strip("`"))
        elif piece:
            yield _plain(" ".join(piece.split()))
    if boxes:
        yield Choice("Estimator", boxes)


def _table(caption: str, lines: Sequence[str]) -> Table:
    header, _, *rows = [[_plain(cell.strip()) for cell in line.strip("|").split(" | ")] for line in lines]
    return Table(caption, header, rows)


def _plain(text: str) -> str:
    """Text without Markdown's marks."""
    return _MARKS.sub("", text)
