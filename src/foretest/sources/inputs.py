"""The files behind a log, for a result's provenance."""

from __future__ import annotations

from typing import Any

from foretest.provenance import files_read
from foretest.stores import Location


def files_of(log: Any) -> list[Location]:
    """The files behind a log that was given by name; none for a table or a stream."""
    from foretest.sources import open_source

    named = isinstance(log, str | Location) or (
        isinstance(log, list | tuple) and bool(log) and all(isinstance(item, str | Location) for item in log)
    )
    return list(getattr(open_source(log), "paths", [])) if named else []


def inputs_of(**logs: Any) -> dict[str, Any]:
    """{"inputs": …} with the files of each log that was given by name; empty where none was."""
    inputs = {role: files_read(files) for role, log in logs.items() if (files := files_of(log))}
    return {"inputs": inputs} if inputs else {}
