"""Measurements of a history that are kept on disk: a test whose logs and settings are the same is not run again."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
from collections.abc import Iterator
from dataclasses import replace

from foretest._version import __version__
from foretest.files import write_whole
from foretest.history.manifest import Entry
from foretest.history.own_code import digest_of_code, is_own
from foretest.history.records import Measurement
from foretest.policies.adapter import AdaptedPolicy
from foretest.policies.all_rankings import parts_of
from foretest.settings.settings import Settings
from foretest.sources import LakeLog, LogFiles, open_source
from foretest.storage.saved.json_values import digest
from foretest.stores import Location, RemotePath

_LAYOUT = "history-11"  # of a file of the cache; another layout has another name
_FILE = re.compile(r'\{"digest": "([0-9a-f]{32})", "measurement": (.*)\}\n', re.DOTALL)


def cached_file(folder: Location, entry: Entry, settings: Settings) -> Location | None:
    """Where the measurement of a test with a log is kept, by a hash of all that it follows from: version, settings as
    they are resolved, classes of a user's own with their source, the bytes of its logs, and results. None where that
    cannot be told."""
    code, state = digest_of_code(_own_classes(settings)), _state(settings)
    if code is None or state is None:
        return None
    name = hashlib.blake2b(f"{_LAYOUT} {__version__} {code}".encode(), digest_size=20)
    name.update(state)
    if entry.online is not None:
        name.update(repr((sorted(entry.online.items()), entry.shared_units)).encode())
    logs = (entry.control, entry.treatment, settings.analysis.value_log)
    for log in (log for log in logs if log is not None):
        source = open_source(str(log))
        if isinstance(source, LakeLog):  # its files never change; which of them count is the version's to say
            name.update(repr((source.facts(), [str(path) for path in source.paths])).encode())
            continue
        assert isinstance(source, LogFiles)
        name.update(f"{len(source.paths)} files".encode())
        for path, partition in zip(source.paths, source.partitions, strict=True):
            name.update(repr({key: value.as_py() for key, value in partition.items()}).encode())
            name.update(_content(path))
    return folder / f"{name.hexdigest()}.json"


def _state(settings: Settings) -> bytes | None:
    """All values of the settings, those inside objects of a user's own too; a log counts by its content. None where an
    object cannot be pickled."""
    settings = replace(settings, analysis=settings.analysis.replace(value_log=None))
    try:
        return pickle.dumps(settings, protocol=5)
    except Exception:  # whatever code of a user's raises
        return None


def _own_classes(settings: Settings) -> Iterator[type]:
    """The classes of policies and estimators that Foretest does not have."""
    for policy in (settings.control, *settings.treatments.values()):
        for single in parts_of(policy):
            yield single.own_class if isinstance(single, AdaptedPolicy) else type(single)
    yield from (type(estimator) for estimator in settings.analysis.estimators or () if is_own(type(estimator)))


def _content(path: Location) -> bytes:
    """A hash of all bytes of a local file; of a remote one, which would be read twice, its address and what changes
    when it is replaced."""
    if isinstance(path, RemotePath):
        return f"{path} {path.mark()}".encode()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").digest()


def read_cached(path: Location) -> Measurement | None:
    """The measurement of a file; None where there is none, or not all of it is as it was written under this name."""
    try:
        match = _FILE.fullmatch(path.read_text(encoding="utf-8"))
        if match is None or match[1] != _digest(path, match[2]):
            return None
        return Measurement.from_dict(json.loads(match[2]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def write_cached(path: Location, measurement: Measurement) -> None:
    """Keep the measurement of a test, whole or not at all."""
    text = json.dumps(measurement.to_dict(), allow_nan=False)
    write_whole(path, f'{{"digest": "{_digest(path, text)}", "measurement": {text}}}\n')


def _digest(path: Location, text: str) -> str:
    """The digest of a measurement, which under another name is another one."""
    return digest(f"{path.name} {text}".encode())
