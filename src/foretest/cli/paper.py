"""foretest paper."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.options import Quiet, Seed, World, check_at_least
from foretest.cli.output import check_output_folder, console
from foretest.errors import BadInput, choose
from foretest.progress import progress_bar

FEWEST_ROWS = 1000  # with fewer, whole arms have no click


@app.command
def paper(
    *,
    out: Annotated[
        Path, Parameter(name=("--out", "-o"), help="Folder for report.html, README.md, paper.json and figures.")
    ],
    world: World = "paper",
    tests: Annotated[int, Parameter(help="A/B tests in the history.")] = 39,
    rows: Annotated[int, Parameter(help="Displays per arm.")] = 150_000,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> int:
    """Repeat the tables and figures of the WSDM 2018 paper on a simulated recommender, next to the paper's numbers.

    Takes some minutes. The simulated logs (45 MB per test) are removed at the end. Example: foretest paper -o paper
    """
    from foretest.paper import run_paper
    from foretest.paper.terminal import study_table
    from foretest.simulate import WORLDS
    from foretest.simulate.world import SATURATING

    for option, value, least in (("--tests", tests, 1), ("--rows", rows, FEWEST_ROWS), ("--seed", seed, 0)):
        check_at_least(option, value, least)
    check_output_folder(out)
    chosen = WORLDS[choose("world", world, WORLDS)]
    if chosen.clicks != SATURATING:
        known = ", ".join(name for name, one in WORLDS.items() if one.clicks == SATURATING)
        raise BadInput(f"--world {world}: its clicks are no part of the paper's study. Take one of {known}.")
    processes = min(tests, os.cpu_count() or 1)
    with progress_bar("tests", quiet=quiet) as progress:
        study = run_paper(out, chosen, tests=tests, rows=rows, seed=seed, processes=processes, progress=progress)
    study.write(out)
    console().print(study_table(study))
    print(f"\nWritten: {out / 'report.html'}, {out / 'README.md'}, {out / 'paper.json'}, {out / 'figures'}")
    return 0
