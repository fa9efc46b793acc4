"""foretest board."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from foretest.cli.application import app
from foretest.cli.options import Quiet
from foretest.cli.output import check_output_file, output_place, print_json
from foretest.errors import BadInput
from foretest.formatting import one_line
from foretest.progress import progress_bar
from foretest.stores import Location


@app.command
def board(
    folder: Annotated[str, Parameter(help="A folder with results in it or in its subfolders.")],
    /,
    *,
    out: Annotated[str | None, Parameter(name=("--out", "-o"), help="The page to write, as in board.html.")] = None,
    json: Annotated[
        bool, Parameter(name="--json", negative=(), help="Print the rows of the page as JSON, and nothing else.")
    ] = False,
    quiet: Quiet = False,
) -> int:
    """Make one page of all results in a folder: what each says, and how offline and online compare.

    Reads every result.json and agreement.json that foretest run, online and history wrote with -o.
    Results in NAME/offline and NAME/online are compared.
    Example: foretest board results -o results/board.html
    """
    from foretest.report.board.board import read_board
    from foretest.report.board.pairs import count_pairs
    from foretest.report.board.sentences import board_sentence, kinds_text

    place = output_place(out)
    _check_page(place, json)
    with progress_bar("results", quiet=quiet) as progress:
        content = read_board(folder, progress=progress)
    if place is not None:
        reports = {row.entry.file.report.resolve() for row in content.rows if row.entry.file.report is not None}
        if place.resolve() in reports:
            raise BadInput(f"{place}: is the report of a result. Give -o another name, as in board.html.")
        content.to_html(place)
    for problem in content.problems:
        print(one_line(f"foretest: {problem.place}: {problem.sentence}"), file=sys.stderr)
    if json:
        print_json(content.to_dict())
        return 0
    counts = count_pairs(content.pairs)
    if counts.tests:
        print(f"{kinds_text(content.rows)}.")
    print(board_sentence(content.rows, counts))
    print(f"\nWritten: {place}")
    return 0


def _check_page(place: Location | None, as_json: bool) -> None:
    """Refuse a page that cannot be written, or that would take the place of a result."""
    if place is None:
        if not as_json:
            raise BadInput("board needs -o PAGE, the page to write, as in -o board.html, or --json.")
        return
    check_output_file(place)
    if place.suffix.lower() not in (".html", ".htm"):
        raise BadInput(f"{place}: expected the name of a page for -o, as in board.html.")
