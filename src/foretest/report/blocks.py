"""What a page consists of: sections with paragraphs, tables and charts, as plain data. Text is never markup."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from foretest.records import dataclass


@dataclass(frozen=True)
class Link:
    """A link to a reference, the only kind of link on a page."""

    text: str
    address: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph with links in it; a paragraph without links is a plain string."""

    parts: Sequence[str | Link]


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite specification; `alt` gives its numbers in words, for those who cannot see it."""

    title: str
    spec: Mapping[str, Any]
    alt: str
    note: str = ""  # a line below the chart


@dataclass(frozen=True)
class Choice:
    """Charts by name, shown one at a time with a switch between them; the first one is shown first."""

    label: str
    charts: Mapping[str, Chart]


@dataclass(frozen=True)
class Table:
    """Rows whose first cell is their name. Numbers are formatted already; columns of numbers align right."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""  # a line below the table
    strong: Sequence[int] = ()  # rows to highlight, counted from 0
    sortable: bool = False


@dataclass(frozen=True)
class Words:
    """Text in a fixed-width font: a command, a settings file."""

    text: str
    title: str = ""


Block = str | Paragraph | Chart | Choice | Table | Words


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading."""

    title: str
    blocks: Sequence[Block]
    lead: str = ""  # one sentence under the heading


@dataclass(frozen=True)
class Remark:
    """A line below the sentence on top of a page."""

    text: str
    kind: str = "quiet"  # a CSS class: quiet, alarm, truth, or none


@dataclass(frozen=True)
class Fact:
    """A tile of the strip below the verdict."""

    name: str
    value: str
    meaning: str  # in plain words, shown on hover and focus
    state: str = "fine"  # fine | watch | alert
    detail: str = ""  # a short line below the value


@dataclass(frozen=True)
class Document:
    """A page: its kind (such as "The paper"), the answer in one sentence, facts, sections, files to download."""

    kind: str
    title: str
    sentence: str
    sections: Sequence[Section]
    remarks: Sequence[str] = ()  # lines below the sentence
    facts: Sequence[Fact] = ()
    files: Mapping[str, Any] = field(default_factory=dict)  # name: a JSON document
    provenance: Mapping[str, Any] = field(default_factory=dict)  # as in result.json


def chart_of(spec: Mapping[str, Any]) -> Chart:
    """A chart from a specification that has a title, a subtitle and a description."""
    title = spec["title"]
    note = " ".join(title.get("subtitle", ()))
    return Chart(title["text"], spec, typeset(spec["description"]), typeset(note))


def typeset(text: str) -> str:
    """Text with minus signs before numbers, and no line break before %.

    >>> typeset("a-b: -5 %")
    'a-b: −5\\xa0%'
    """
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text).replace(" %", "\N{NO-BREAK SPACE}%")
