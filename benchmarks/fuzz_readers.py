"""The readers of settings, manifests, calibrations and headers of saved sums, on damaged files."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_bases import MANIFEST, SETTINGS, TRUTH
from fuzz_damage import damage_json, damage_parquet, damage_toml
from fuzz_outcomes import Hang, Outcome, Trouble, sentence_trouble, time_limit

import foretest as ft
from foretest.aggregation.choose_estimators import choose_estimators
from foretest.calibration.file import Calibration
from foretest.history.manifest import read_manifest
from foretest.settings.file import read_settings
from foretest.sources import AGGREGATES
from foretest.storage.saved.files import SavedFile, is_saved, merge_saved
from foretest.storage.saved.json_values import digest

Reader = Callable[[Random, Path, Path], Any]
SECONDS = 10  # that one input may take


def reader(read: Reader) -> Callable[[int, int, Path, Path], Outcome]:
    """A kind of input: damage a file and read it, and say how it ended."""

    @functools.wraps(read)
    def one(seed: int, number: int, bases: Path, folder: Path) -> Outcome:
        try:
            with time_limit(SECONDS):
                read(Random(f"{seed}:{number}"), bases, folder)
        except ft.BadInput as refusal:
            return Outcome(True, sentence_trouble(str(refusal)))
        except (Exception, Hang) as error:
            return Outcome(False, Trouble.of(error))
        return Outcome(False)

    return one


@reader
def settings(random: Random, bases: Path, folder: Path) -> None:
    place = folder / "settings.toml"
    place.write_bytes(damage_toml(random.choice(list(SETTINGS.values())), random))
    choose_estimators(read_settings(place))


@reader
def manifest(random: Random, bases: Path, folder: Path) -> None:
    damaged = random.random() < 0.75
    (folder / "manifest.toml").write_bytes(damage_toml(MANIFEST, random) if damaged else MANIFEST.encode())
    (folder / "truth.json").write_bytes(damage_json(TRUTH, random) if not damaged else json.dumps(TRUTH).encode())
    read_manifest(folder / "manifest.toml")


@functools.cache
def _calibration(bases: Path) -> tuple[Any, Any]:
    test = ft.OfflineTest.from_toml(bases / "plain.toml")
    return json.loads((bases / "calibration.json").read_text()), test.settings


@reader
def calibration(random: Random, bases: Path, folder: Path) -> None:
    document, of_test = _calibration(bases)
    place = folder / "calibration.json"
    place.write_bytes(damage_json(document, random))
    read = Calibration.read(place)
    read.refuse_other_settings(of_test, {"point-ncis-adaptive": 20.0})
    read.to_json()
    repr(read)


@functools.cache
def _header(path: Path) -> tuple[pa.Schema, Any]:
    schema = pq.read_schema(path)
    return schema, json.loads(schema.metadata[AGGREGATES])


@reader
def header(random: Random, bases: Path, folder: Path) -> None:
    """The header of a saved file: most with a right checksum, so that what it says is read."""
    name = random.choice(["plain", "rich", "loggers"])
    schema, document = _header(bases / f"{name}.sums.parquet")
    text = damage_json(document, random)
    metadata = {AGGREGATES: text, b"foretest.checksum": digest(text).encode() if random.random() < 0.95 else b"x"}
    file = SavedFile.of_schema(bases / f"{name}.sums.parquet", schema.with_metadata(metadata))
    file.plan(file.settings())
    if random.random() < 0.02:
        merge_saved([file], file.settings())


@reader
def footer(random: Random, bases: Path, folder: Path) -> None:
    """A saved file whose bytes were damaged, opened."""
    name = random.choice(["plain", "rich", "loggers"])
    place = folder / "sums.parquet"
    place.write_bytes(damage_parquet(_content(bases / f"{name}.sums.parquet"), random))
    file = SavedFile.open(place)
    assert is_saved(pq.read_schema(place))
    file.plan(file.settings())


@functools.cache
def _content(path: Path) -> bytes:
    return path.read_bytes()


READERS = {"settings": settings, "manifest": manifest, "calibration": calibration, "header": header, "footer": footer}
SHARES = {"settings": 0.35, "manifest": 0.2, "calibration": 0.2, "header": 0.15, "footer": 0.1}
