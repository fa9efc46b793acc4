"""Do two trees of Foretest say the same? More than 400 commands with the sources of each, compared field by field.

    python benchmarks/compare_trees.py OLD NEW [--commands N] [--only TEXT] [--save FOLDER]

    git worktree add /tmp/before main
    python benchmarks/compare_trees.py /tmp/before .

Inputs are simulated once, by the sources of OLD; then one process for each tree runs every command of
`tree_commands.py` in itself, and what a command printed and wrote is compared: numbers to 1e-12 of themselves (1e-9
where threads or Spark add them up in any order), words, keys, exit codes and the sentences of errors exactly. A line
for each difference, and a tally; the exit code is 1 if there is any. Versions, and fingerprints and sizes of files that
the commands wrote, are not compared; pages are only there or not.

All commands take 15 minutes at most on two idle cores. `--commands N` runs about N of them, `--only TEXT` those whose
name contains TEXT; `--save FOLDER` keeps inputs and results. `foretest paper` and `foretest warm` are left out: they
take minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
ROOT = HERE.parents[1]
EXACT, THREADED = 1e-12, 1e-9
NOTHING = 1e-15  # what threads may leave of a sum that is 0
#: what differs from run to run, or is of the version
IGNORED = re.compile(r"/(foretest|versions|modified|made|created|seconds)(/|$)")
OF_WRITTEN = re.compile(r"/provenance/.*/(fingerprint|bytes): ")  # of files that were written a moment ago
NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
TEXTS = (".toml", ".md", ".csv")


def main() -> int:
    arguments = _arguments()
    if arguments.work is not None:
        return _work(*arguments.work)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="compare-trees-") as scratch:
        folder = Path(scratch) if arguments.save is None else Path(arguments.save).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("inputs", "old", "new"):
            shutil.rmtree(folder / name, ignore_errors=True)
        trees = {"old": arguments.old, "new": arguments.new}
        if _started(trees["old"], "inputs", folder).wait():
            print("The inputs could not be made.")
            return 1
        steps = _chosen(json.loads((folder / "steps.json").read_text()), arguments.commands, arguments.only)
        (folder / "chosen.json").write_text(json.dumps(steps))
        processes = []
        for name, tree in trees.items():
            shutil.copytree(folder / "inputs", folder / name / "in")
            processes.append(_started(tree, name, folder))
        codes = [process.wait() for process in processes]
        if any(codes):
            print(f"A process ended with {codes}: what it had not run counts as a difference.")
        counted, lines = _compared(steps, folder)
        print(*lines, sep="\n")
    minutes = (time.monotonic() - begin) / 60
    print(f"{counted} commands, {len(lines)} differences, {minutes:.1f} minutes")
    return 1 if lines or any(codes) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("old", nargs="?", default=".", help="a tree: the folder that src is in")
    parser.add_argument("new", nargs="?", default=".", help="the other")
    parser.add_argument("--commands", type=int, help="about how many to run; default: all")
    parser.add_argument("--only", default="", help="only those whose name contains this")
    parser.add_argument("--save", help="a folder to keep inputs and results in")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)  # one process: what it does, and the folder
    return parser.parse_args()


def _started(tree: str, task: str, folder: Path) -> subprocess.Popen[bytes]:
    """A process with the sources of a tree, and the tests of this one."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(tree).resolve() / "src"), str(ROOT)]),
        "SPARK_LOCAL_IP": "127.0.0.1", "COLUMNS": "100", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
    }  # fmt: skip
    return subprocess.Popen([sys.executable, str(HERE), "--work", task, str(folder)], env=environment)


def _chosen(steps: list[Any], count: int | None, only: str) -> list[Any]:
    """Some steps, spread over all of them, with about as many commands."""
    steps = [step for step in steps if only in step[0]]
    total = sum(len(commands) for _, commands, _ in steps)
    if count is None or count >= total:
        return steps
    share = count / total
    return [step for i, step in enumerate(steps) if int((i + 1) * share) > int(i * share)]


# -- a process with one tree ----------------------------------------------------------------------------------------


def _work(task: str, folder: str) -> int:
    place = Path(folder)
    if task == "inputs":
        from tree_commands import write_inputs

        (place / "steps.json").write_text(json.dumps(write_inputs(place / "inputs")))
        return 0
    os.chdir(place / task)
    with (place / f"{task}.jsonl").open("w", encoding="utf-8") as file:
        for number, (_, commands, threads) in enumerate(json.loads((place / "chosen.json").read_text())):
            out = f"out/{number}"
            Path(out).mkdir(parents=True)
            outcomes = [_outcome([word.replace("OUT", out) for word in words], threads) for words in commands]
            outcomes.append({"files": _files(Path(out))})
            file.write(json.dumps(outcomes) + "\n")
            file.flush()
    return 0


WITH_THREADS = ("run", "check", "plan", "aggregate", "online", "history")
QUIET = (*WITH_THREADS, "pack", "demo", "simulate", "board")


def _outcome(words: list[str], threads: int) -> dict[str, Any]:
    """How a command ended, and what it printed."""
    from tree_commands import COPY

    if words[0] == COPY:
        Path(words[2]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(words[1], words[2])
        return {}
    if words[0] in QUIET and "--help" not in words:
        words = [*words, "--quiet"]
    if words[0] in WITH_THREADS and "--engine" not in words and "--help" not in words:
        words = [*words, "--threads", str(threads)]
    code, printed, errors = _ran(words)
    document: Any = printed
    try:
        document = json.loads(printed)
    except ValueError:
        document = printed.splitlines()
    return {"exit": code, "printed": document, "errors": errors.splitlines()}


def _ran(words: list[str]) -> tuple[Any, str, str]:
    """Run a command in this process."""
    import io
    from contextlib import redirect_stderr, redirect_stdout

    from foretest import cli

    out, err, sys.argv = io.StringIO(), io.StringIO(), ["foretest", *words]
    code: Any = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
        except Exception as fault:  # a bug of a tree is a difference, or of both
            code = f"{type(fault).__name__}: {fault}"
    return code, out.getvalue(), re.sub(r'File ".*?", line \d+, in \S+', "File", err.getvalue())


def _files(folder: Path) -> dict[str, Any]:
    """What was written: documents and texts whole, of other files that they are there."""
    files: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if not path.is_file() or "/cache/" in f"/{name}":
            continue
        if path.suffix == ".json":
            files[name] = json.loads(path.read_text(encoding="utf-8"))
        else:
            files[name] = path.read_text(encoding="utf-8").splitlines() if path.suffix in TEXTS else "a file"
    return files


# -- the comparison -------------------------------------------------------------------------------------------------


def _compared(steps: list[Any], folder: Path) -> tuple[int, list[str]]:
    """How many commands ran in both trees, and a line for each difference."""
    read = {
        name: [json.loads(line.replace(str(folder / name), "…")) for line in (folder / f"{name}.jsonl").open()]
        for name in ("old", "new")
    }
    lines, counted = [], 0
    for number, (name, commands, threads) in enumerate(steps):
        if number >= min(len(read["old"]), len(read["new"])):
            lines.append(f"{name}: not run")
            continue
        old, new = read["old"][number], read["new"][number]
        counted += sum("exit" in outcome for outcome in old)
        for i, (before, now) in enumerate(zip(old, new, strict=True)):
            which = name if len(commands) == 1 else f"{name} [{i + 1}]"
            tolerance = EXACT if threads == 1 else THREADED
            apart = _differences(before, now, tolerance)
            lines += [f"{which}{line}" for line in apart if len(commands) == 1 or not OF_WRITTEN.search(line)]
    return counted, lines


def _differences(old: Any, new: Any, tolerance: float, where: str = "") -> Iterator[str]:
    if IGNORED.search(where):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            if key not in new or key not in old:
                if not IGNORED.search(f"{where}/{key}"):
                    yield f" {where}/{key}: only in the {'old' if key in old else 'new'}"
            else:
                yield from _differences(old[key], new[key], tolerance, f"{where}/{key}")
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f" {where}: {len(old)} entries, {len(new)} now"
        for i, (before, now) in enumerate(zip(old, new, strict=False)):
            yield from _differences(before, now, tolerance, f"{where}/{i}")
    elif not _same(old, new, tolerance):
        yield f" {where}: {old!r}, now {new!r}"


def _same(old: Any, new: Any, tolerance: float) -> bool:
    if type(old) is not type(new):
        return False
    if isinstance(old, float):
        rest = NOTHING if tolerance == THREADED else 0.0
        return abs(old - new) <= tolerance * max(abs(old), abs(new)) + rest or repr(old) == repr(new)
    if isinstance(old, str) and tolerance == THREADED:  # a printed number may be rounded the other way
        if NUMBER.sub("#", old) != NUMBER.sub("#", new):
            return False
        pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
        return all(a == b or abs(_number(a) - _number(b)) <= 0.01 * abs(_number(a)) for a, b in pairs)
    return bool(old == new)


def _number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


if __name__ == "__main__":
    sys.exit(main())
