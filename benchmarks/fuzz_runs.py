"""Whole commands on damaged logs, settings, saved and packed files, calibrations and manifests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random

import fuzz_layouts
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_bases import MANIFEST, SETTINGS, small_log
from fuzz_commands import Command, as_run, log_command, write_some_form, write_table
from fuzz_damage import damage_bytes, damage_json, damage_parquet, damage_table, damage_toml


def _settings(random: Random, folder: Path, text: str | None = None) -> Path:
    place = folder / "settings.toml"
    place.write_text(random.choice(list(SETTINGS.values())) if text is None else text)
    return place


def _columns(random: Random, bases: Path, folder: Path) -> Command:
    """A log with odd values, types, names or rows, in one of the forms of files."""
    table = damage_table(small_log(random.randrange(8)), random)
    place = write_some_form(table, random, folder, "log")
    return log_command(random, _settings(random, folder), place)


def _parquet(random: Random, bases: Path, folder: Path) -> Command:
    """A Parquet log with damaged bytes."""
    place = folder / "log.parquet"
    place.write_bytes(damage_parquet((bases / "log.parquet").read_bytes(), random))
    return log_command(random, _settings(random, folder), place)


def _text_log(random: Random, bases: Path, folder: Path) -> Command:
    """A CSV, JSON lines or Arrow log with damaged bytes."""
    form = random.choice(["csv", "jsonl", "arrow"])
    place = folder / f"log.{form}"
    write_table(small_log(random.randrange(8)), form, place)
    place.write_bytes(damage_bytes(place.read_bytes(), random))
    return log_command(random, _settings(random, folder), place)


def _of_settings(random: Random, bases: Path, folder: Path) -> Command:
    """Damaged settings with a good log."""
    place = _settings(random, folder)
    place.write_bytes(damage_toml(place.read_text(), random))
    return log_command(random, place, bases / "log.parquet")


def _saved(random: Random, bases: Path, folder: Path) -> Command:
    """One or two files of saved sums, of which one is damaged."""
    name = random.choice(["plain", "rich", "loggers"])
    place = folder / "sums.parquet"
    place.write_bytes(damage_parquet((bases / f"{name}.sums.parquet").read_bytes(), random))
    files = [place, *([bases / f"{name}.sums.parquet"] if random.random() < 0.2 else [])]
    config = ["-c", str(bases / f"{name}.toml")] if random.random() < 0.5 else []
    return Command(["run", *map(str, files), *config, "--json"])


def _packed(random: Random, bases: Path, folder: Path) -> Command:
    """A packed log of which one file is damaged, or missing."""
    shutil.copytree(bases / "packed", folder / "packed")
    place = random.choice(sorted((folder / "packed").iterdir()))
    if random.random() < 0.1:
        place.unlink()
    else:
        place.write_bytes(damage_parquet(place.read_bytes(), random))
    own = ("--estimators", "point-ncis-adaptive") if random.random() < 0.7 else ()
    return log_command(random, _settings(random, folder, SETTINGS["plain"]), folder / "packed", more=own)


def _calibrated(random: Random, bases: Path, folder: Path) -> Command:
    """A good log with a damaged calibration."""
    place = folder / "calibration.json"
    place.write_bytes(damage_json(json.loads((bases / "calibration.json").read_text()), random))
    settings = _settings(random, folder, SETTINGS["plain"])
    return Command(["run", str(bases / "log.parquet"), "-c", str(settings), "--calibration", str(place), "--json"])


def _history(random: Random, bases: Path, folder: Path) -> Command:
    """A damaged manifest, or damaged settings, logs or truth that it names."""
    for name in ("log.parquet", "treatment.parquet", "settings.toml", "truth.json"):
        shutil.copy(bases / name, folder / name)
    (folder / "manifest.toml").write_text(MANIFEST)
    match random.randrange(4):
        case 0:
            (folder / "manifest.toml").write_bytes(damage_toml(MANIFEST, random))
        case 1:
            (folder / "settings.toml").write_bytes(damage_toml(SETTINGS["plain"], random))
        case 2:
            (folder / "treatment.parquet").write_bytes(
                damage_parquet((bases / "treatment.parquet").read_bytes(), random)
            )
        case 3:
            pq.write_table(
                pa.Table.from_pylist(damage_table(small_log(1), random).to_pylist()), folder / "treatment.parquet"
            )
    return Command(["history", str(folder / "manifest.toml"), "-o", str(folder / "out"), "--json"])


def _online(random: Random, bases: Path, folder: Path) -> Command:
    """An online test with a damaged log of one arm."""
    place = folder / "treatment.arrow"
    try:
        write_table(damage_table(small_log(1), random), "arrow", place)
    except (pa.ArrowException, TypeError, ValueError):
        place.write_bytes(b"")
    settings = _settings(random, folder)
    return Command(["online", str(bases / "log.parquet"), str(place), "-c", str(settings), "--json"])


RUNS = {
    **{
        f"run {name}": as_run(damage)
        for name, damage in {
            "columns": _columns, "parquet": _parquet, "text": _text_log, "settings": _of_settings, "saved": _saved,
            "packed": _packed, "calibration": _calibrated, "history": _history, "online": _online,
        }.items()
    },
    **fuzz_layouts.RUNS,
}  # fmt: skip
SHARES = {
    "run columns": 0.17, "run parquet": 0.07, "run text": 0.05, "run settings": 0.08, "run saved": 0.05,
    "run packed": 0.04, "run calibration": 0.03, "run history": 0.02, "run online": 0.03, **fuzz_layouts.SHARES,
}  # fmt: skip
