"""foretest simulate log, foretest simulate history."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from foretest.cli.application import app
from foretest.cli.output import refuse_place
from foretest.errors import BadInput, choose
from foretest.progress import progress_bar

simulate = App(name="simulate", help="Simulated recommenders with a known truth.")
app.command(simulate)


@simulate.command(name="log")
def simulate_log_command(
    *,
    out: Annotated[Path, Parameter(name=("--out", "-o"), help="Folder for log.parquet, settings.toml and truth.json.")],
    world: Annotated[str, Parameter(help="paper | mild | dense | rewards | sharp | no-overlap")] = "paper",
    rows: Annotated[int, Parameter(help="Displays to simulate.")] = 200_000,
    seed: Annotated[int, Parameter(help="Of everything random.")] = 0,
) -> int:
    """The log of a simulated recommender, with settings to test it and, apart, the truth.

    Example: foretest simulate log --world sharp --rows 500000 -o sharp
    """
    from foretest.formatting import percent

    true = percent(simulated_log(world, rows, seed, out)["click"], sign=True)
    print(f"{out}: log.parquet ({rows:,} displays), settings.toml, truth.json (click {true})")
    print(f"Next: foretest run {out}/log.parquet -c {out}/settings.toml")
    return 0


@simulate.command(name="history")
def simulate_history_command(
    *,
    out: Annotated[Path, Parameter(name=("--out", "-o"), help="Folder for the logs, settings, truth and manifest.")],
    world: Annotated[str, Parameter(help="paper | mild | dense | rewards | sharp | no-overlap")] = "paper",
    tests: Annotated[int, Parameter(help="A/B tests to simulate.")] = 39,
    rows: Annotated[int, Parameter(help="Displays of each arm.")] = 150_000,
    seed: Annotated[int, Parameter(help="Of everything random.")] = 0,
    aa: Annotated[bool, Parameter(negative=(), help="A/A tests: every treatment is the control.")] = False,
) -> int:
    """A history of A/B tests of a simulated recommender: both logs of each, a manifest, and, apart, the truth.

    Example: foretest simulate history -o tests, then foretest history tests/manifest.toml -o out
    """
    from foretest.simulate import WORLDS, write_history

    for name, value, least in (("--tests", tests, 1), ("--rows", rows, 1), ("--seed", seed, 0)):
        if value < least:
            raise BadInput(f"{name} {value}: expected at least {least}.")
    refuse_place(out)
    chosen = WORLDS[choose("world", world, WORLDS)]
    with progress_bar("tests") as progress:
        done = 0

        def advance(tests_done: int) -> None:
            nonlocal done
            if progress is not None:
                progress("simulate", tests, tests_done - done)
            done = tests_done

        write_history(out, chosen, tests, rows, seed, advance, aa=aa, processes=min(tests, os.cpu_count() or 1))
    print(f"{out}: {tests} tests of {rows:,} displays an arm, settings.toml, truth.json, manifest.toml")
    print(f"Next: foretest history {out}/manifest.toml -o {out}-agreement")
    return 0


def simulated_log(world: str, rows: int, seed: int, out: Path) -> dict[str, float]:
    """Write a simulated log; the true relative uplift of each metric."""
    import json

    from foretest.simulate import WORLDS, write_log

    if rows < 1:
        raise BadInput(f"--rows {rows}: expected at least 1.")
    if seed < 0:
        raise BadInput(f"--seed {seed}: expected 0 or more.")
    refuse_place(out)
    chosen = WORLDS[choose("world", world, WORLDS)]
    with progress_bar() as progress:
        done = 0

        def advance(rows_done: int) -> None:
            nonlocal done
            if progress is not None:
                progress("simulate", rows, rows_done - done)
            done = rows_done

        write_log(out, chosen, rows, seed, progress=advance)
    truth = json.loads((out / "truth.json").read_text(encoding="utf-8"))
    return {name: values["rel_uplift"] for name, values in truth["metrics"].items()}
