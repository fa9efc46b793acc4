"""foretest history."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.options import AsJson, Figures, Quiet, Threads, prepare_threads
from foretest.cli.output import (
    PAGE,
    check_output_folder,
    console,
    figures_place,
    print_json,
    with_command,
    write_figures,
)
from foretest.formatting import one_line
from foretest.progress import progress_bar
from foretest.stores import location

CALIBRATION = "calibration.json"


@app.command
def history(
    manifest: Annotated[
        str,
        Parameter(
            help="The manifest (TOML): settings, and a [[test]] table for each A/B test, or results, a table of many."
        ),
    ],
    /,
    *,
    out: Annotated[
        str,
        Parameter(
            name=("--out", "-o"),
            help="Folder for agreement.json, calibration.json, report.html and a cache of results.",
        ),
    ],
    json: AsJson = False,
    figures: Figures = False,
    threads: Threads = None,
    quiet: Quiet = False,
) -> int:
    """Compare offline with online results over many past A/B tests: how often and how closely they agreed.

    A test has the logs of both arms; results may replace the treatment's log, or both.
    Also fits a calibration for foretest run. Results of tests whose logs and settings have not changed are reused.
    Example: foretest history tests.toml -o out
    """
    from foretest.files import json_text, write_all
    from foretest.history.run import run_history
    from foretest.terminal.history import agreement_table

    prepare_threads(threads)
    place = location(out)
    check_output_folder(place)
    with progress_bar("tests", quiet=quiet) as progress:
        agreement = run_history(manifest, cache=place / "cache", threads=threads, progress=progress)
    agreement = with_command(agreement)
    page = agreement.to_html()
    files = {place / "agreement.json": agreement.to_json().encode(), place / PAGE: page.encode()}
    if agreement.calibration is not None:
        files[place / CALIBRATION] = json_text(agreement.calibration.to_dict()).encode()
    write_all(files)
    if agreement.calibration is None:  # one from an earlier run would be about other tests
        (place / CALIBRATION).unlink(missing_ok=True)
    if figures:
        write_figures(agreement, place)
    for failure in agreement.failures:
        print(one_line(f"foretest: test '{failure['name']}' failed: {failure['error']}"), file=sys.stderr)
    if json:
        print_json(agreement.to_dict())
        return 0
    console().print(agreement_table(agreement))
    reused = f", {agreement.reused} of {len(agreement.tests)} tests were known already" if agreement.reused else ""
    calibration = f", {place / CALIBRATION}" if agreement.calibration is not None else ""
    drawn = figures_place(place) if figures else ""
    print(f"\nWritten: {place / 'agreement.json'}{calibration}, {place / PAGE}{drawn}{reused}")
    return 0
