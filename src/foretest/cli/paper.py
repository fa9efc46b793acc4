"""foretest paper."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.output import console, refuse_place
from foretest.errors import BadInput, choose
from foretest.progress import progress_bar

FEWEST_ROWS = 1000  # with fewer, whole arms have no click


@app.command
def paper(
    *,
    out: Annotated[
        Path, Parameter(name=("--out", "-o"), help="Folder for report.html, README.md, paper.json and figures.")
    ],
    world: Annotated[str, Parameter(help="paper | mild | dense | rewards | sharp | no-overlap")] = "paper",
    tests: Annotated[int, Parameter(help="A/B tests of the history.")] = 39,
    rows: Annotated[int, Parameter(help="Displays of each arm.")] = 150_000,
    seed: Annotated[int, Parameter(help="Of everything that is simulated.")] = 0,
) -> int:
    """The tables and figures of the WSDM 2018 paper on a simulated world, beside the paper's numbers.

    Takes some minutes. The simulated logs (45 MB a test) are removed in the end. Example: foretest paper -o paper
    """
    from foretest.paper import run_paper
    from foretest.paper.terminal import study_table
    from foretest.simulate import WORLDS

    for name, value, least in (("--tests", tests, 1), ("--rows", rows, FEWEST_ROWS), ("--seed", seed, 0)):
        if value < least:
            raise BadInput(f"{name} {value}: expected at least {least}.")
    refuse_place(out)
    chosen = WORLDS[choose("world", world, WORLDS)]
    processes = min(tests, os.cpu_count() or 1)
    with progress_bar("tests") as progress:
        study = run_paper(out, chosen, tests=tests, rows=rows, seed=seed, processes=processes, progress=progress)
    study.write(out)
    console().print(study_table(study))
    print(f"\nWritten: {out / 'report.html'}, {out / 'README.md'}, {out / 'paper.json'}, {out / 'figures'}")
    return 0
