"""Whole commands on damaged logs, settings, saved and packed files, calibrations and manifests."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
from fuzz_bases import MANIFEST, SETTINGS, small_log
from fuzz_damage import damage_bytes, damage_json, damage_parquet, damage_table, damage_toml
from fuzz_outcomes import Hang, Outcome, Trouble, seen_warnings, sentence_trouble, time_limit

SECONDS = 60  # that one command may take
_TEST = ("run", "check", "plan")


class Command(NamedTuple):
    """The words of a command line."""

    words: list[str]


Damage = Callable[[Random, Path, Path], Command]


def _run(random: Random, settings: Path, *logs: Path, more: tuple[str, ...] = ()) -> Command:
    """A command that reads logs with a settings file: most often `run`."""
    name = random.choices([*_TEST, "aggregate", "pack"], [70, 10, 8, 6, 6])[0]
    words = [name, *map(str, logs), "-c", str(settings), "--threads", "1", *more]
    out = str(settings.parent / "out")
    if name == "pack":
        words = [word for word in words if word not in ("--threads", "1")]
    if name in ("aggregate", "pack"):
        return Command([*words, "-o", f"{out}/sums.parquet" if name == "aggregate" else out])
    if name == "run" and random.random() < 0.06:
        return Command([*words, "-o", out])
    return Command([*words, "--json"] if random.random() < 0.9 else words)


def _settings(random: Random, folder: Path, text: str | None = None) -> Path:
    place = folder / "settings.toml"
    place.write_text(random.choice(list(SETTINGS.values())) if text is None else text)
    return place


def _columns(random: Random, bases: Path, folder: Path) -> Command:
    """A log with odd values, types, names or rows, in one of the forms of files."""
    table = damage_table(small_log(random.randrange(8)), random)
    form = random.choices(["parquet", "arrow", "csv", "jsonl"], [6, 2, 1, 1])[0]
    place = folder / f"log.{form}"
    try:
        _write(table, form, place)
    except (pa.ArrowException, TypeError, ValueError, KeyError):  # a form that cannot have this table
        feather.write_feather(pa.table({f"c{i}": c for i, c in enumerate(table.columns)}), folder / "log.arrow")
        place = folder / "log.arrow"
    return _run(random, _settings(random, folder), place)


def _write(table: pa.Table, form: str, place: Path) -> None:
    if form == "parquet":
        pq.write_table(table, place, row_group_size=20)
    elif form == "arrow":
        with pa.ipc.new_file(place, table.schema) as writer:
            writer.write_table(table, max_chunksize=20)
    elif form == "jsonl":
        place.write_text("".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist()))
    else:
        rows = [table.column_names, *zip(*(column.to_pylist() for column in table.columns), strict=True)]
        place.write_text("".join(",".join(map(_cell, row)) + "\n" for row in rows))


def _cell(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)
    return '"' + text.replace('"', '""') + '"'


def _parquet(random: Random, bases: Path, folder: Path) -> Command:
    """A Parquet log with damaged bytes."""
    place = folder / "log.parquet"
    place.write_bytes(damage_parquet((bases / "log.parquet").read_bytes(), random))
    return _run(random, _settings(random, folder), place)


def _text_log(random: Random, bases: Path, folder: Path) -> Command:
    """A CSV, JSON lines or Arrow log with damaged bytes."""
    form = random.choice(["csv", "jsonl", "arrow"])
    place = folder / f"log.{form}"
    _write(small_log(random.randrange(8)), form, place)
    place.write_bytes(damage_bytes(place.read_bytes(), random))
    return _run(random, _settings(random, folder), place)


def _of_settings(random: Random, bases: Path, folder: Path) -> Command:
    """Damaged settings with a good log."""
    place = _settings(random, folder)
    place.write_bytes(damage_toml(place.read_text(), random))
    return _run(random, place, bases / "log.parquet")


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
    return _run(random, _settings(random, folder, SETTINGS["plain"]), folder / "packed", more=own)


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
        _write(damage_table(small_log(1), random), "arrow", place)
    except (pa.ArrowException, TypeError, ValueError):
        place.write_bytes(b"")
    settings = _settings(random, folder)
    return Command(["online", str(bases / "log.parquet"), str(place), "-c", str(settings), "--json"])


def _as_run(damage: Damage) -> Callable[[int, int, Path, Path], Outcome]:
    def one(seed: int, number: int, bases: Path, folder: Path) -> Outcome:
        return run_command(damage(Random(f"{seed}:{number}"), bases, folder), folder)

    return one


RUNS = {
    f"run {name}": _as_run(damage)
    for name, damage in {
        "columns": _columns, "parquet": _parquet, "text": _text_log, "settings": _of_settings, "saved": _saved,
        "packed": _packed, "calibration": _calibrated, "history": _history, "online": _online,
    }.items()
}  # fmt: skip
SHARES = {
    "run columns": 0.34, "run parquet": 0.14, "run text": 0.1, "run settings": 0.16, "run saved": 0.08,
    "run packed": 0.06,
    "run calibration": 0.05, "run history": 0.03, "run online": 0.04,
}  # fmt: skip


def run_command(command: Command, folder: Path) -> Outcome:
    """Run `foretest` with these words in the process, and judge how it ended."""
    from foretest import cli

    out, err = io.StringIO(), io.StringIO()
    before = set(folder.rglob("*"))
    argv, sys.argv = sys.argv, ["foretest", *command.words]
    try:
        with time_limit(SECONDS), seen_warnings() as warned, redirect_stdout(out), redirect_stderr(err):
            cli.main()
    except SystemExit as end:
        code = end.code
    except (Exception, Hang) as error:
        trouble = Trouble.of(error)
        return Outcome(False, Trouble(trouble.signature, f"foretest {' '.join(command.words)}\n{trouble.detail}"))
    finally:
        sys.argv = argv
    trouble = _trouble(command, code, out.getvalue(), err.getvalue(), set(folder.rglob("*")) - before, warned)
    return Outcome(code == 2, trouble)


def _trouble(command: Command, code: Any, out: str, err: str, written: set[Path], warned: list[str]) -> Trouble | None:
    line = f"foretest {' '.join(command.words)}\n"
    if warned:
        return Trouble(f"a warning, {warned[0]}"[:160], line + "\n".join(warned))
    if code == 2:
        if err.count("\n") != 1 or not err.startswith("foretest: ") or out:
            return Trouble("not one line on stderr", line + err[:2000] + out[:500])
        if written:
            return Trouble("written after a failure", line + ", ".join(map(str, written)))
        return sentence_trouble(err.removeprefix("foretest: "))
    if code != 0:
        return Trouble(f"exit code {code}", line + err[:2000])
    if not all(words.startswith("foretest: ") for words in err.splitlines()):  # a history says which tests it left out
        return Trouble("words on stderr", line + err[:2000])
    documents = [path.read_text() for path in written if path.suffix == ".json"] + (
        [out] if "--json" in command.words else []
    )
    for document in documents:
        try:
            json.loads(document, parse_constant=_refuse)
        except ValueError as error:
            return Trouble(f"JSON: {error}"[:80], line + document[:500])
    return None


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")
