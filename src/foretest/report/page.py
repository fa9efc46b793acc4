"""One self-contained page: template, stylesheet, script, charts and data in one HTML text."""

from __future__ import annotations

from foretest.report.blocks import Document


def render(document: Document) -> str:
    """The page as HTML text; write it with `result.write_whole`."""
    raise NotImplementedError
