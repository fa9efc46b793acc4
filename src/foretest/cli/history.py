"""foretest history."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.options import AsJson, Figures, Threads, refuse_threads
from foretest.cli.output import PAGE, console, print_json, refuse_place, said_figures, with_command, write_figures
from foretest.progress import progress_bar

CALIBRATION = "calibration.json"


@app.command
def history(
    manifest: Annotated[Path, Parameter(help="The manifest (TOML): settings, and a [[test]] table for each A/B test.")],
    /,
    *,
    out: Annotated[
        Path,
        Parameter(
            name=("--out", "-o"), help="Folder for agreement.json, calibration.json, report.html and the results kept."
        ),
    ],
    json: AsJson = False,
    figures: Figures = False,
    threads: Threads = None,
) -> int:
    """Offline against online over many A/B tests: how often, and how well, they agreed.

    Results of tests whose logs and settings have not changed are reused. Example: foretest history tests.toml -o out
    """
    from foretest.files import json_text, write_all
    from foretest.history.run import run_history
    from foretest.terminal.result import agreement_table

    refuse_threads(threads)
    refuse_place(out)
    with progress_bar("tests") as progress:
        agreement = run_history(manifest, cache=out / "cache", threads=threads, progress=progress)
    agreement = with_command(agreement)
    page = agreement.to_html()
    files = {out / "agreement.json": agreement.to_json().encode(), out / PAGE: page.encode()}
    if agreement.calibration is not None:
        files[out / CALIBRATION] = json_text(agreement.calibration.to_dict()).encode()
    write_all(files)
    if agreement.calibration is None:  # one of an earlier run would not be of these tests
        (out / CALIBRATION).unlink(missing_ok=True)
    if figures:
        write_figures(agreement, out)
    for failure in agreement.failures:
        print(f"foretest: test '{failure['name']}' failed: {failure['error']}", file=sys.stderr)
    if json:
        print_json(agreement.to_dict())
        return 0
    console().print(agreement_table(agreement))
    known = f", {agreement.reused} of {len(agreement.tests)} tests were known already" if agreement.reused else ""
    learned = f", {out / CALIBRATION}" if agreement.calibration is not None else ""
    print(f"\nWritten: {out / 'agreement.json'}{learned}, {out / PAGE}{said_figures(out) if figures else ''}{known}")
    return 0
