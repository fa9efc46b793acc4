"""foretest simulate log, foretest simulate history."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from foretest.cli.application import app
from foretest.cli.options import Quiet, Replace, Seed, World, check_at_least
from foretest.cli.output import check_output_folder
from foretest.errors import check_number, choose
from foretest.progress import Progress, progress_bar

simulate = App(name="simulate", help="Simulate a recommender whose true uplifts are known.")
app.command(simulate)


@simulate.command(name="log")
def simulate_log_command(
    *,
    out: Annotated[Path, Parameter(name=("--out", "-o"), help="Folder for log.parquet, settings.toml and truth.json.")],
    world: World = "paper",
    rows: Annotated[int, Parameter(help="Displays to simulate.")] = 200_000,
    seed: Seed = 0,
    temperature: Annotated[
        float | None, Parameter(help="Of both policies, instead of the world's own; 0: always the best scores.")
    ] = None,
    replace: Replace = False,
    quiet: Quiet = False,
) -> int:
    """Simulate the log of one recommender, with settings to test it and the truth in a file of its own.

    Example: foretest simulate log --world sharp --rows 500000 -o sharp
    """
    from foretest.formatting import percent

    truth = write_simulated_log(world, rows, seed, out, temperature=temperature, replace=replace, quiet=quiet)
    true = percent(truth["click"], sign=True)
    print(f"{out}: log.parquet ({rows:,} displays), settings.toml, truth.json (click {true})")
    print(f"Next: foretest run {out}/log.parquet -c {out}/settings.toml")
    return 0


@simulate.command(name="history")
def simulate_history_command(
    *,
    out: Annotated[Path, Parameter(name=("--out", "-o"), help="Folder for the logs, settings, truth and manifest.")],
    world: World = "paper",
    tests: Annotated[int, Parameter(help="A/B tests to simulate.")] = 39,
    rows: Annotated[int, Parameter(help="Displays per arm.")] = 150_000,
    seed: Seed = 0,
    aa: Annotated[bool, Parameter(negative=(), help="A/A tests: every treatment is the control.")] = False,
    replace: Replace = False,
    quiet: Quiet = False,
) -> int:
    """Simulate a history of A/B tests: both logs of each, a manifest, and the truth in a file of its own.

    Example: foretest simulate history -o tests, then foretest history tests/manifest.toml -o out
    """
    from foretest.simulate import WORLDS, write_history

    for option, value, least in (("--tests", tests, 1), ("--rows", rows, 1), ("--seed", seed, 0)):
        check_at_least(option, value, least)
    check_output_folder(out)
    chosen = WORLDS[choose("world", world, WORLDS)]
    processes = min(tests, os.cpu_count() or 1)
    with progress_bar("tests", quiet=quiet) as progress:
        write_history(
            out, chosen, tests, rows, seed, _advance(progress, tests), aa=aa, processes=processes, replace=replace
        )
    print(f"{out}: {tests} tests with {rows:,} displays per arm, settings.toml, truth.json, manifest.toml")
    print(f"Next: foretest history {out}/manifest.toml -o {out}-agreement")
    return 0


def write_simulated_log(
    world: str,
    rows: int,
    seed: int,
    out: Path,
    *,
    temperature: float | None = None,
    replace: bool = False,
    quiet: bool = False,
) -> dict[str, float]:
    """Write a simulated log with its settings and truth; returns the true relative uplift by metric."""
    import dataclasses
    import json

    from foretest.simulate import WORLDS, write_log

    check_at_least("--rows", rows, 1)
    check_at_least("--seed", seed, 0)
    check_output_folder(out)
    chosen = WORLDS[choose("world", world, WORLDS)]
    if temperature is not None:
        check_number("--temperature", temperature, at_least=0.0)
        chosen = dataclasses.replace(chosen, temperature=temperature)
    with progress_bar(quiet=quiet) as progress:
        write_log(out, chosen, rows, seed, progress=_advance(progress, rows), replace=replace)
    truth = json.loads((out / "truth.json").read_text(encoding="utf-8"))
    return {name: values["rel_uplift"] for name, values in truth["metrics"].items()}


def _advance(progress: Progress | None, total: int) -> Callable[[int], None]:
    """A callback that takes how much is done in all, and reports what is new."""
    reported = 0

    def advance(done: int) -> None:
        nonlocal reported
        if progress is not None:
            progress("simulate", total, done - reported)
        reported = done

    return advance
