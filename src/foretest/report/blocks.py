"""What a page is made of: sections of paragraphs, tables and charts, as plain data. All text is text, never markup."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Link:
    """A reference. Pages link to nothing else."""

    text: str
    address: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph with links in it; a plain string is a paragraph without."""

    parts: Sequence[str | Link]


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite specification; `alt` states its numbers to those who cannot see it."""

    title: str
    spec: Mapping[str, Any]
    alt: str
    note: str = ""  # a line below the chart


@dataclass(frozen=True)
class Choice:
    """One chart at a time, and a switch over them: {"cis": Chart(…), "ncis": Chart(…)}. The first is shown at first."""

    label: str
    charts: Mapping[str, Chart]


@dataclass(frozen=True)
class Table:
    """Rows whose first cell names them. Numbers must be formatted already; cells that look like numbers align right."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""  # a line below the table
    strong: Sequence[int] = ()  # rows to stress, counted from 0
    sortable: bool = False


@dataclass(frozen=True)
class Words:
    """Text as typed, in fixed width: a command, a settings file."""

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
class Fact:
    """A tile of the strip below the verdict."""

    name: str
    value: str
    meaning: str  # in plain words, shown on hover and focus
    state: str = "fine"  # fine | watch | alert
    detail: str = ""  # a short line below the value


@dataclass(frozen=True)
class Document:
    """A page: its kind ("The paper"), the answer in one sentence, facts, sections, files to download."""

    kind: str
    title: str
    sentence: str
    sections: Sequence[Section]
    remarks: Sequence[str] = ()  # lines below the sentence
    facts: Sequence[Fact] = ()
    files: Mapping[str, Any] = field(default_factory=dict)  # name: a JSON document
    provenance: Mapping[str, Any] = field(default_factory=dict)  # as in result.json


def chart_of(spec: Mapping[str, Any]) -> Chart:
    """A chart whose title, remarks and description its specification already has."""
    title = spec["title"]
    note = " ".join(title.get("subtitle", ()))
    return Chart(title["text"], spec, typeset(spec["description"]), typeset(note))


def typeset(text: str) -> str:
    """Hyphens before numbers as minus signs, spaces before % that do not break."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text).replace(" %", "\N{NO-BREAK SPACE}%")
