"""Whole commands in the process, and how each ended."""

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
from fuzz_outcomes import Hang, Outcome, Trouble, seen_warnings, sentence_trouble, time_limit

SECONDS = 60  # that one command may take
_TEST = ("run", "check", "plan")


class Command(NamedTuple):
    """The words of a command line, and of one that follows if it succeeds."""

    words: list[str]
    then: list[str] | None = None


Damage = Callable[[Random, Path, Path], Command]


def log_command(random: Random, settings: Path, *logs: Path, more: tuple[str, ...] = ()) -> Command:
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


def write_some_form(table: pa.Table, random: Random, folder: Path, name: str) -> Path:
    """A table in one of the forms of files."""
    form = random.choices(["parquet", "arrow", "csv", "jsonl"], [6, 2, 1, 1])[0]
    place = folder / f"{name}.{form}"
    try:
        write_table(table, form, place)
    except (pa.ArrowException, TypeError, ValueError, KeyError):  # a form that cannot have this table
        place = folder / f"{name}.arrow"
        feather.write_feather(pa.table({f"c{i}": c for i, c in enumerate(table.columns)}), place)
    return place


def write_table(table: pa.Table, form: str, place: Path) -> None:
    """A table in a form of files, in pieces of 20 rows where a form has these."""
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


def as_run(damage: Damage) -> Callable[[int, int, Path, Path], Outcome]:
    """A kind of input: damage files, run a command and the one that follows, and say how they ended."""

    def one(seed: int, number: int, bases: Path, folder: Path) -> Outcome:
        words, then = _damaged(damage, f"{seed}:{number}", bases, folder)
        outcome = run_command(words, folder)
        return outcome if then is None or outcome.refused or outcome.trouble else run_command(then, folder)

    return one


def _damaged(damage: Damage, name: str, bases: Path, folder: Path) -> Command:
    """The command of an input; where Python cannot hold its table, such as a date of the year 146 000, of another."""
    while True:
        try:
            return damage(Random(name), bases, folder)
        except OverflowError:
            name += " again"
            shutil.rmtree(folder)
            folder.mkdir()


def run_command(words: list[str], folder: Path) -> Outcome:
    """Run `foretest` with these words in the process, and judge how it ended."""
    from foretest import cli

    out, err = io.StringIO(), io.StringIO()
    before = set(folder.rglob("*"))
    argv, sys.argv = sys.argv, ["foretest", *words]
    try:
        with time_limit(SECONDS), seen_warnings() as warned, redirect_stdout(out), redirect_stderr(err):
            cli.main()
    except SystemExit as end:
        code = end.code
    except (Exception, Hang) as error:
        trouble = Trouble.of(error)
        return Outcome(False, Trouble(trouble.signature, f"foretest {' '.join(words)}\n{trouble.detail}"))
    finally:
        sys.argv = argv
    trouble = _trouble(words, code, out.getvalue(), err.getvalue(), set(folder.rglob("*")) - before, warned)
    return Outcome(code == 2, trouble)


def _trouble(words: list[str], code: Any, out: str, err: str, written: set[Path], warned: list[str]) -> Trouble | None:
    line = f"foretest {' '.join(words)}\n"
    if warned:
        return Trouble(f"a warning, {warned[0]}"[:160], line + "\n".join(warned))
    if code == 2:
        if words[0] == "init" and not err:  # it says what it saw, and what is missing
            return Trouble("written after a failure", line + ", ".join(map(str, written))) if written else None
        if err.count("\n") != 1 or not err.startswith("foretest: ") or out:
            return Trouble("not one line on stderr", line + err[:2000] + out[:500])
        if written:
            return Trouble("written after a failure", line + ", ".join(map(str, written)))
        return sentence_trouble(err.removeprefix("foretest: "))
    if code != 0:
        return Trouble(f"exit code {code}", line + err[:2000])
    if not all(text.startswith("foretest: ") for text in err.splitlines()):  # a history says which tests it left out
        return Trouble("words on stderr", line + err[:2000])
    documents = [path.read_text() for path in written if path.suffix == ".json"] + ([out] if "--json" in words else [])
    for document in documents:
        try:
            json.loads(document, parse_constant=_refuse)
        except ValueError as error:
            return Trouble(f"JSON: {error}"[:80], line + document[:500])
    return None


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")
