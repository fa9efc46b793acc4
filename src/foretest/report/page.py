"""One self-contained page: template, stylesheet, script, charts and data in one HTML text.

Names from users are always text: templates escape them, data is in script elements that are not run, and the page's
Content-Security-Policy allows its scripts by hash, and no address at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlparse

from foretest._version import __version__
from foretest.files import cache_folder
from foretest.provenance import today
from foretest.records import dataclass
from foretest.report.blocks import Chart, Document, Link, Remark, Table
from foretest.report.bundle import notices, vega_bundle
from foretest.report.embed import chart_colours, chart_config, lean, packed_json, policy_hash, script_json
from foretest.report.origin import origin
from foretest.report.words import SIGNS

if TYPE_CHECKING:
    from jinja2 import BytecodeCache, Environment

LARGEST = 1_600_000  # bytes of a page, whatever it shows
_CHARTS = 300_000  # bytes of charts; beyond, only those that a page must have are placed
_FILES = 240_000  # bytes of a download, plain or packed; a larger file is not in the page
_HOSTS = ("doi.org", "arxiv.org")  # of references


@dataclass
class Charts:
    """The charts of a page, in the order in which the template places them."""

    most: int = _CHARTS
    specs: dict[str, str] = field(default_factory=dict)

    def place(self, chart: Chart, must: bool = False) -> str | None:
        """Add a chart; its name in the page, or None if the page would grow too large."""
        text = script_json(lean(chart.spec))
        if not must and sum(map(len, self.specs.values())) + len(text) > self.most:
            return None
        name = f"chart-{len(self.specs) + 1}"
        self.specs[name] = text
        return name

    def text(self) -> str:
        """All charts as one JSON object, by name."""
        return "{" + ",".join(f'"{name}":{text}' for name, text in self.specs.items()) + "}"


class File(NamedTuple):
    """A download within the page; without an id, the page only says that the file is too large."""

    id: str | None
    name: str
    type: str
    text: str
    words: str  # beside the button


@dataclass(frozen=True)
class Download:
    """A JSON document to download from the page; its text is made once, however often the page is made."""

    name: str
    content: Any

    @cached_property
    def plain(self) -> str:
        """The JSON text."""
        return script_json(self.content, indent=1) + "\n"

    @cached_property
    def packed(self) -> str:
        """The JSON text, compressed."""
        return packed_json(self.content)

    def file(self, name: str, most: int) -> File:
        """The download as plain text if it is small enough, else packed, else left out."""
        words = "Every number on this page, unrounded."
        if len(self.plain) <= most and len(self.plain.encode()) <= most:
            return File(name, self.name, "application/json", self.plain, words)
        if len(self.plain) <= 20 * most and len(self.packed) <= most:  # it does not pack better than that
            return File(name, self.name, "application/gzip", self.packed, words)
        return File(None, self.name, "", "", f"{self.name} is too large for this page; it is in the same folder.")


def bounded(make: Callable[[int], str]) -> str:
    """A page that is not too large: `make(1)` shows lists in full, `make(2)` half of them, `make(4)` a quarter, …"""
    for part in (1, 2, 4, 8, 16, 32):
        page = make(part)
        if len(page.encode()) <= LARGEST:
            break
    return page


def render(document: Document) -> str:
    """The page of a document as HTML text."""
    files = [Download(name, content) for name, content in document.files.items()]
    return bounded(lambda part: _document_page(document, files, part))


def _document_page(document: Document, files: Sequence[Download], part: int) -> str:
    remarks = [Remark(text) for text in document.remarks]
    # the navigation has room for the first words of a title
    places = [(f"section-{n}", re.split(r"[:,(]", s.title)[0].strip()) for n, s in enumerate(document.sections, 1)]
    context = {"document": document, "remarks": remarks, "origin": origin(document.provenance)}
    return fill("document.html", document.kind, document.title, places, context, files, part=part)


def fill(
    template: str, kind: str, title: str, places: Sequence[tuple[str, str]], context: Mapping[str, Any],
    files: Sequence[Download], data: Mapping[str, Any] | None = None, part: int = 1,
) -> str:  # fmt: skip
    """A page: the body from a template and its context, and around it what all pages share.

    `places` are the anchors and names of the navigation, `files` the downloads, `data` what the script reads; `part` is
    the number that `bounded` passes.
    """
    from markupsafe import Markup  # what jinja2 escapes with

    env, charts = environment(), Charts(_CHARTS // part)
    downloads = [download.file(f"file-{number}", _FILES // part) for number, download in enumerate(files, 1)]
    body = env.get_template(template).render(charts=charts, downloads=downloads, **context)
    bundle = vega_bundle() if charts.specs else ""  # a page without charts needs nothing that draws them
    script = env.loader.get_source(env, "script.js")[0]  # type: ignore[union-attr]
    style = env.get_template("style.css").render(colours=chart_colours())
    return env.get_template("page.html").render(
        kind=kind,
        title=title,
        version=__version__,
        date=today(),
        policy=security_policy(*filter(None, (bundle, script))),
        places=[*places, ("reproduce", "Method")],
        style=Markup(style),
        body=Markup(body),
        notices=notices(),
        config=Markup(script_json(chart_config())),
        charts=Markup(charts.text()),
        files=[file._replace(text=Markup(file.text)) for file in downloads if file.id],
        data=[(name, Markup(script_json(content))) for name, content in (data or {}).items()],
        bundle=Markup(bundle),
        script=Markup(script),
    )


def security_policy(*scripts: str) -> str:
    """A policy under which nothing is loaded, sent or framed, and only these scripts run."""
    hashes = " ".join(policy_hash(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; connect-src 'none';"
        " base-uri 'none'; form-action 'none'"
    )


@cache
def environment() -> Environment:
    """Templates that escape everything, and raise an error for an unknown name."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    env = Environment(
        loader=PackageLoader("foretest.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    env.bytecode_cache = _compiled_templates()
    env.globals["signs"] = SIGNS
    env.filters["reference"] = _reference
    env.filters["column_kind"] = _column_kind
    env.filters["block_kind"] = lambda block: type(block).__name__
    return env


def _compiled_templates() -> BytecodeCache | None:
    """Templates as they were compiled before, which takes half as long as the rest of a page; None where no folder can
    be written."""
    from jinja2 import FileSystemBytecodeCache
    from jinja2.bccache import Bucket

    class Templates(FileSystemBytecodeCache):
        def dump_bytecode(self, bucket: Bucket) -> None:
            with suppress(OSError):  # a full disk
                super().dump_bytecode(bucket)
                # the folder of an image is filled by root, and read by others
                Path(self.directory, self.pattern % (bucket.key,)).chmod(0o644)

    try:
        folder = cache_folder() / "templates"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # a read-only disk, a user without a home
        return None
    return Templates(str(folder))


def _reference(link: Link) -> str:
    """The address of a link, which must be a reference."""
    address = urlparse(link.address)
    if address.scheme != "https" or address.hostname not in _HOSTS:
        raise ValueError(f"{link.address}: a page links to {' and '.join(_HOSTS)} only")
    return link.address


def _column_kind(table: Table, column: int) -> str:
    """Whether a column has numbers, which align right: every cell begins with a digit, a sign or a dash."""
    cells = [row[column] for row in table.rows if column < len(row)]
    numbers = [cell[:1].isdigit() or cell[:1] in "+−-.–" for cell in cells]
    return "number" if column and cells and all(numbers) else "text"
