"""The files that sums were made from, so that no row counts twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from foretest.errors import BadInput
from foretest.provenance import fingerprints
from foretest.sources import Source
from foretest.sources.spool import Spooled
from foretest.stores import Location


class InputFile(TypedDict):
    """A file of a log as saved sums record it."""

    path: str
    content: str  # its fingerprint


def source_paths(source: Source) -> list[Location]:
    """The files of a source; none where it is a table, a query or a stream."""
    return [] if isinstance(source, Spooled) else list(getattr(source, "paths", ()))


def recorded_inputs(source: Source) -> list[InputFile]:
    """The path and fingerprint of each file of a source; none where it is a table, a query or a stream."""
    paths = source_paths(source)
    return [
        {"path": str(path.resolve()), "content": content}
        for path, content in zip(paths, fingerprints(paths), strict=True)
    ]


def refuse_repeated(inputs: Sequence[tuple[str, list[InputFile]]]) -> None:
    """Refuse aggregates (name, input files) that share an input file: its rows would count twice."""
    seen: dict[tuple[str, str], str] = {}
    for name, files in inputs:
        for file in files:
            key = file["path"], file["content"]
            if seen.setdefault(key, name) != name:
                raise BadInput(
                    f"{seen[key]} and {name} were both made from {file['path']}, so its rows would count twice. Leave"
                    " one out."
                )
