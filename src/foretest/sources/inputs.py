"""The files behind a log, for a result's provenance."""

from __future__ import annotations

from typing import Any

from foretest.provenance import files_read
from foretest.sources.lake_source import LakeLog
from foretest.stores import Location


def files_of(log: Any) -> list[Location]:
    """The files behind a log that was given by name; none for a table or a stream."""
    return list(getattr(_named_source(log), "paths", []))


def inputs_of(**logs: Any) -> dict[str, Any]:
    """{"inputs": …} with the files of each log that was given by name, and of a table of a lake its version; empty
    where none was."""
    inputs: dict[str, Any] = {}
    for role, log in logs.items():
        source = _named_source(log)
        paths = list(getattr(source, "paths", []))
        if paths:
            inputs[role] = files_read(paths) | ({"table": source.facts()} if isinstance(source, LakeLog) else {})
    return {"inputs": inputs} if inputs else {}


def _named_source(log: Any) -> Any:
    """The source of a log that was given by name, or one that was opened before; None for any other."""
    from foretest.sources import open_source

    if isinstance(log, LakeLog):
        return log
    named = isinstance(log, str | Location) or (
        isinstance(log, list | tuple) and bool(log) and all(isinstance(item, str | Location) for item in log)
    )
    return open_source(log) if named else None
