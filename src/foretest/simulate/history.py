"""A simulated history: many A/B tests of one recommender, each with both arms' logs and a known truth.

A test's seed is a pure function of the history's seed and the test's number; from it follow its treatment, both
logs and its truth. So no digit depends on the number of tests or of processes: the 40th test is added to a history by
writing 40 tests instead of 39.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pyarrow as pa

from foretest.simulate.change import NO_CHANGE, Change, draw_change
from foretest.simulate.displays import CHUNK, chunk_generator
from foretest.simulate.log import SCHEMA, Arm, simulate_log, write_parquet
from foretest.simulate.settings_text import settings_text
from foretest.simulate.truth import true_values
from foretest.simulate.world import World
from foretest.storage.ownership import marked_json, marked_toml, own_files, refuse_others

CHANGE_STREAM = 3
"""The draw of a test's treatment shares no random number with its logs or its truth."""

HISTORY_STREAM = 4
"""The seeds of tests differ from those of single logs."""

TRUTH_DISPLAYS = 4 * CHUNK
"""Displays of a test's truth: enough for a standard error of about 0.3 points where the effect is large."""

TRUTH_DRAWS = 2
"""Rankings that each policy draws for each of these displays."""

COLUMNS = pa.schema([field for field in SCHEMA if "revenue" not in field.name])
"""The columns of a history's logs: those of a single log that `settings.toml` names."""


class SimulatedTest(NamedTuple):
    """One A/B test of a history, before its logs are drawn; `draw_test` returns it.

    >>> from foretest.simulate import WORLDS
    >>> draw_test(WORLDS["mild"], 2).name
    'test-002'
    """

    name: str
    """`test-001` for the first."""
    change: Change
    """The treatment."""
    seed: int
    """The seed of its logs and of its truth."""


def draw_test(world: World, number: int, seed: int = 0, *, aa: bool = False) -> SimulatedTest:
    """One test of a simulated history.

    Parameters
    ----------
    world: the simulated recommender.
    number: of the test, from 1.
    seed: of the history.
    aa: an A/A test, whose treatment is the control.

    Returns
    -------
    The test's name, treatment and seed.

    >>> from foretest.simulate import WORLDS
    >>> draw_test(WORLDS["paper"], 1).name
    'test-001'
    """
    if number < 1 or seed < 0:
        raise ValueError(f"test {number}, seed {seed}: expected >= 1, >= 0")
    own = int(np.random.SeedSequence([seed, HISTORY_STREAM, number]).generate_state(1, np.uint64)[0])
    touch = {group.name: group.touch_probability for group in world.groups}
    change = NO_CHANGE if aa else draw_change(world.changes, touch, chunk_generator(own, CHANGE_STREAM, 0))
    return SimulatedTest(f"test-{number:03d}", change, own)


def write_history(
    folder: str | os.PathLike[str],
    world: World,
    tests: int = 39,
    rows: int = 150_000,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
    *,
    aa: bool = False,
    processes: int = 1,
    replace: bool = False,
) -> None:
    """Write a simulated history of A/B tests, for `foretest history`.

    Each test is a folder with `control.parquet` and `treatment.parquet`; next to these folders are `settings.toml`,
    `truth.json` and, last, `manifest.toml`, which names them all. Files are written under a temporary name and then
    renamed, so that none is ever incomplete; manifest and truth of an earlier history in `folder` are removed
    first, so that a manifest always describes what is there. Files of these names that Foretest did not make, or that
    were edited since, are refused. Memory does not grow with the rows.

    Parameters
    ----------
    folder: where to write; created if needed.
    world: the simulated recommender.
    tests: how many A/B tests.
    rows: displays per arm.
    seed: of the history.
    progress: is called with the number of tests done so far.
    aa: every treatment is the control, with the same scores.
    processes: more than 1 starts as many (`spawn`: a script needs its `if __name__ == "__main__"`).
    replace: also files that would be refused.

    Returns
    -------
    Nothing.

    Raises
    ------
    BadInput: a file that is there would be lost.

    >>> import os, tempfile
    >>> from foretest.simulate import WORLDS
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_history(folder, WORLDS["reranker"], tests=1, rows=100)
    ...     print(*sorted(os.listdir(folder)))
    manifest.toml settings.toml test-001 truth.json
    """
    if tests < 1 or rows < 1 or seed < 0 or processes < 1:
        raise ValueError(
            f"tests {tests}, rows {rows}, seed {seed}, processes {processes}: expected >= 1, >= 1, >= 0, >= 1"
        )
    folder = Path(folder)
    drawn = [draw_test(world, number, seed, aa=aa) for number in range(1, tests + 1)]
    settings, truth_file, manifest = (folder / name for name in ("settings.toml", "truth.json", "manifest.toml"))
    logs = [folder / test.name / f"{arm}.parquet" for test in drawn for arm in get_args(Arm)]
    refuse_others([settings, truth_file, manifest, *logs], replace=replace)
    folder.mkdir(parents=True, exist_ok=True)
    for path in (manifest, truth_file):
        path.unlink(missing_ok=True)
    truth: dict[str, dict[str, Any]] = {}
    with _mapped(min(processes, tests)) as mapped:
        tasks = [_TestToWrite(folder, world, rows, test, replace) for test in drawn]
        for test, true_of_test in zip(drawn, mapped(_write_test, tasks), strict=True):
            truth[test.name] = true_of_test
            if progress is not None:
                progress(len(truth))
    kind = "A/A" if aa else "A/B"
    title = f"{tests} simulated {kind} tests: world {world.name}, {rows} displays per arm, seed {seed}"
    texts = {
        settings: marked_toml(_settings(world)),
        truth_file: json.dumps(marked_json(truth), indent=2) + "\n",
        manifest: marked_toml(_manifest(title, list(truth))),
    }
    with own_files(list(texts), replace=replace) as files:
        for file, text in zip(files, texts.values(), strict=True):
            file.write_text(text, encoding="utf-8")


@contextmanager
def _mapped(processes: int) -> Iterator[Callable[..., Iterator[dict[str, Any]]]]:
    """`map` in this process or over several; when something fails, what has not begun is cancelled."""
    if processes == 1:
        yield map
        return
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        try:
            yield pool.map
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class _TestToWrite(NamedTuple):
    """What a process needs to write one test."""

    folder: Path
    world: World
    rows: int
    test: SimulatedTest
    replace: bool


def _write_test(task: _TestToWrite) -> dict[str, Any]:
    """Write both logs of a test, and return its entry in `truth.json`."""
    folder, world, rows, test, replaced = task
    with_change = replace(world, change=test.change)
    for arm in get_args(Arm):
        with own_files([folder / test.name / f"{arm}.parquet"], replace=replaced) as [path]:
            write_parquet(path, simulate_log(with_change, rows, test.seed, arm=arm), None, COLUMNS)
    truth = true_values(world, test.change, test.seed, displays=TRUTH_DISPLAYS, draws=TRUTH_DRAWS)["click"]
    return {
        "rel_uplift": truth.rel_uplift,
        "std_error": truth.std_error,
        "control": truth.control,
        "treatment": truth.treatment,
        "change": asdict(test.change),
    }


def _settings(world: World) -> str:
    """The settings of a history: those of a single log, without its second metric."""
    title = "# A simulated history of A/B tests: how each treatment is tested against the control.\n"
    return title + settings_text(world).split("\n", 1)[1].replace('           # the log also has "revenue"', "")


def _manifest(title: str, names: list[str]) -> str:
    """The history's manifest; its paths are relative to its folder."""
    lines = [f"# {title}.", "", 'settings = "settings.toml"', 'truth = "truth.json"']
    for name in names:
        lines += ["", "[[test]]", f'name = "{name}"']
        lines += [f'{arm} = "{name}/{arm}.parquet"' for arm in get_args(Arm)]
    return "\n".join(lines) + "\n"
