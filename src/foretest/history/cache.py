"""Measurements of a history that are kept on disk: a test whose logs and settings are the same is not run again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from foretest._version import __version__
from foretest.files import write_whole
from foretest.history.manifest import Entry
from foretest.history.records import Measurement
from foretest.sources import LakeLog, LogFiles, open_source
from foretest.stores import Location, RemotePath

_LAYOUT = "history-10"  # of a file of the cache; another layout has another name


def cached_file(folder: Location, entry: Entry, value_log: str | None, analysis: Mapping[str, Any]) -> Location:
    """Where the measurement of a test with a log is kept, by a hash of all that it follows from: version, settings, the
    bytes of its logs, and results."""
    assert entry.settings is not None
    digest = hashlib.blake2b(f"{_LAYOUT} {__version__}".encode(), digest_size=20)
    digest.update(entry.settings.read_bytes())
    if entry.online is not None:
        digest.update(repr((sorted(entry.online.items()), entry.shared_units)).encode())
    if analysis:
        digest.update(repr(sorted(analysis.items())).encode())
    for log in (log for log in (entry.control, entry.treatment, value_log) if log is not None):
        source = open_source(str(log))
        if isinstance(source, LakeLog):  # its files never change; which of them count is the version's to say
            digest.update(repr((source.facts(), [str(path) for path in source.paths])).encode())
            continue
        assert isinstance(source, LogFiles)
        digest.update(f"{len(source.paths)} files".encode())
        for path, partition in zip(source.paths, source.partitions, strict=True):
            digest.update(repr({key: value.as_py() for key, value in partition.items()}).encode())
            digest.update(_content(path))
    return folder / f"{digest.hexdigest()}.json"


def _content(path: Location) -> bytes:
    """A hash of all bytes of a local file; of a remote one, which would be read twice, its address and what changes
    when it is replaced."""
    if isinstance(path, RemotePath):
        return f"{path} {path.mark()}".encode()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").digest()


def read_cached(path: Location) -> Measurement | None:
    """The measurement of a file; None where there is none, or one cut short by a full disk or a kill."""
    try:
        return Measurement.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_cached(path: Location, name: str, measurement: Measurement) -> None:
    """Keep the measurement of a test, whole or not at all."""
    write_whole(path, json.dumps({"name": name, **measurement.to_dict()}, allow_nan=False))
